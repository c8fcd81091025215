// Package binding mints the credential of one run (§8), from the one source that the manifest names and that
// was consented to at connect: a kept token or password, a variable, a file or a program of the machine, or an
// OAuth server. A failed mint never falls back to another credential or to none (§8.4).
//
// What is kept lies with Secrets, under a name that is tenant, owner and family or pack (§8.5); nothing else is
// written. Nothing is read from the environment of the process behind the caller's back: clock, variables, files,
// programs and the network come in with Options.
//
// Nouns: Hub (the contract of whoever mints; hubtest is its suite), Scope (whose binding it is), Minted (a
// credential that hides itself from every printer and leaves only by Env), Person (who is asked at connect), wire
// (one request to a token endpoint), record (what is kept under one name).
package binding

import (
	"context"
	"crypto/x509"
	"io"
	"net"
	"time"

	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// Scope says whose binding it is (§8.5): it belongs to tenant, owner and family or pack.
type Scope struct {
	Tenant, Session string
	Owner           string // the Principal that ran connect
	Pack, Family    string
	// At connect: the pack is connected in this session already; another session or member uses what is kept.
	Here, Elsewhere bool
	// At connect: what is there was given to other packs of the family, never to this one.
	Joins bool
}

// Key is what shares one consent: the family, else the pack (§8.5).
func (s Scope) Key() string {
	if s.Family != "" {
		return "family/" + s.Family
	}
	return "pack/" + s.Pack
}

// Name is the name of what is kept for the scope.
func (s Scope) Name() string { return s.Tenant + "/" + s.Owner + "/" + s.Key() }

// Hub mints. Every kind passes hubtest.
type Hub interface {
	// Supported answers whether this runtime can mint for the binding at all; nil when it can.
	Supported(b *manifest.Binding) *protocol.Error
	// Connect establishes the binding with one trial mint (§8.5). Whoever calls it holds the name.
	Connect(ctx context.Context, b *manifest.Binding, s Scope, p Person) (Made, *protocol.Error)
	// Hold keeps others from connecting or forgetting the name; it waits while another does.
	Hold(ctx context.Context, name string) (release func(), err *protocol.Error)
	// Forget deletes what is kept under the name; nothing is no error. Tokens of a server are given back before, as well as the
	// server takes them; it says how that went, nil when there were none.
	Forget(ctx context.Context, name string) (*Ended, *protocol.Error)
	// Mint gives the credential of one run that may last so long (§8.4); the caller must Release it.
	Mint(ctx context.Context, b *manifest.Binding, s Scope, lasts time.Duration) (*Minted, *protocol.Error)
}

// Made says how a binding came to stand.
type Made struct {
	Keeps  bool // something is kept under the scope's name
	Asked  bool // a person was asked, or sent to a server
	Shared bool // what was there of the family, or of another session, is used
}

// Person is who connects. Any of it may be nil: then nobody can be asked, or told.
type Person struct {
	// Secret asks for one secret without showing it. An empty answer is none.
	Secret func(ctx context.Context, what string) ([]byte, *protocol.Error)
	// Login asks for a name and a password, with the name given when it is known already.
	Login func(ctx context.Context, username string) (name string, password []byte, err *protocol.Error)
	// Visit shows an address to open, and the code to type there, "" for none.
	Visit func(address, code string)
}

// Secrets keep what must outlive a process (§8.3).
type Secrets interface {
	Get(ctx context.Context, name string) (value []byte, found bool, err *protocol.Error)
	Set(ctx context.Context, name string, value []byte) *protocol.Error
	Delete(ctx context.Context, name string) *protocol.Error
	Lock(ctx context.Context, name string) (unlock func(), err *protocol.Error)
}

// Options are the doors of a hub. What is nil is a way that this runtime does not have, and then the sources that need
// it answer not_connected.
type Options struct {
	Secrets Secrets
	Getenv  func(name string) string
	// ReadFile reads a file of the machine for a source, or says why it stays closed.
	ReadFile func(path string) ([]byte, error)
	// Command runs an allowed program with exact arguments, without a shell, and gives its standard output.
	Command func(ctx context.Context, argv []string) ([]byte, *protocol.Error)
	// Conceal keeps others from reading this process, before it comes to hold a credential (§8.4); nil: nothing does.
	Conceal func() *protocol.Error
	Net     Net
	Now     func() time.Time
	Rand    io.Reader
	// Sleep waits between two polls; nil: by the clock of the machine.
	Sleep func(ctx context.Context, d time.Duration) error
}

// Net is how token endpoints are reached. No proxy is ever taken from the environment.
type Net struct {
	Dial    func(ctx context.Context, network, address string) (net.Conn, error) // nil: none
	Roots   *x509.CertPool                                                       // nil: those of the machine
	Timeout time.Duration                                                        // of one request; 0 = 20 s
}

// Times of §8.4.
const (
	// Skew is how far two clocks may be apart before a token is not counted on.
	Skew = 30 * time.Second
	// maxMint bounds one mint, with every wait for another process and every request.
	maxMint = time.Minute
	// maxVisit bounds how long a person is waited for at connect.
	maxVisit = 10 * time.Minute
	// shortest and longest are the bounds of a secret in bytes: a shorter one could not be masked (§8.3).
	shortest, longest = 8, 32 << 10
)
