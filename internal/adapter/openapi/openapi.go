package openapi

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"hcpx/internal/adapter"
	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// Options are the doors of an Adapter. Without any it can check and render, and calls as this machine does.
type Options struct {
	Now     func() time.Time                                                     // for a Retry-After that names a date
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)         // names; nil = the machine's
	Dial    func(ctx context.Context, network, address string) (net.Conn, error) // addresses that were judged; nil = the machine's
	Sleep   func(ctx context.Context, d time.Duration) error                     // between attempts; nil = the clock's
	Roots   *x509.CertPool                                                       // nil = the machine's
}

// Adapter compiles commands of openapi packs, and sends their requests over connections that it keeps.
type Adapter struct {
	o      Options
	client func() *client // made by the first request
}

// New makes the adapter.
func New(o Options) *Adapter {
	a := &Adapter{o: o}
	a.client = sync.OnceValue(func() *client { return newClient(o) })
	return a
}

var (
	_ adapter.Documented = (*Adapter)(nil)
	_ adapter.Command    = (*command)(nil)
)

// command is one compiled command; it is not changed after Compile.
type command struct {
	*Adapter
	op     *operation
	server server
	places []scheme // where the credential goes
	whole  bool     // an argument is the whole body; else its members are arguments
}

// Compile makes the command of its operation (§3.6), which Adopt has given it.
func (a *Adapter) Compile(m *manifest.Manifest, cmd *manifest.Command) (adapter.Command, []protocol.Issue) {
	if m.OpenAPI == nil || cmd.Operation == nil {
		return nil, nil // manifest.adapter-block, or what Summarize said
	}
	op := readOperation(cmd.Operation())
	if op == nil {
		return nil, nil // what Summarize said
	}
	srv, err := parseServer(m.OpenAPI.Server)
	if err != nil {
		return nil, nil // openapi.server
	}
	at := adapter.CommandPlace(m, cmd)
	c := &command{Adapter: a, op: op, server: srv}
	places, needs := choose(op.security, &m.Binding)
	if needs != "" {
		return nil, []protocol.Issue{at.Member(cmd.Node, "operation_id").Issue("openapi.security", needs)}
	}
	c.places = places
	schema, err := cmd.Args()
	if err != nil {
		return nil, nil // manifest.args-schema
	}
	c.whole = op.body != nil && !op.body.lifted
	if cmd.ArgsNode == nil {
		return c, nil
	}
	var declared []string
	for _, p := range schema.Properties() {
		declared = append(declared, p.Name)
	}
	issues := c.written(at.Member(cmd.Node, "args"), declared)
	if protocol.HasErrors(issues) {
		return nil, issues
	}
	return c, issues
}

// written holds hand-written arguments to the operation: each goes somewhere, and what the path needs is there. Where none
// is the whole body, those that are no parameters are its members.
func (c *command) written(at adapter.Place, declared []string) (issues []protocol.Issue) {
	b := c.op.body
	c.whole = b != nil && (b.kind == bodyText || b.kind == bodyBinary || b.arg != "" && slices.Contains(declared, b.arg))
	for _, name := range declared {
		switch {
		case c.param(name) != nil, b != nil && !c.whole, c.whole && name == b.arg:
		default:
			issues = append(issues, at.Issue("openapi.operation", fmt.Sprintf("The argument %s goes nowhere: the operation has no such parameter, and takes it in no body.", jsondoc.Quote(name))))
		}
	}
	for _, p := range c.op.params {
		if p.in == inPath && !slices.Contains(declared, p.arg) {
			issues = append(issues, at.Issue("openapi.operation", fmt.Sprintf("The arguments lack %s, which the path needs.", jsondoc.Quote(p.arg))))
		}
	}
	return issues
}

func (c *command) param(arg string) *param {
	for i := range c.op.params {
		if c.op.params[i].arg == arg {
			return &c.op.params[i]
		}
	}
	return nil
}

// choose takes of the alternatives of a security the first that the binding gives whole; nothing only where the operation
// asks for nothing, or lets it be left out. Where none can be given it says so, for a command is never sent without.
func choose(alternatives [][]scheme, b *manifest.Binding) (places []scheme, needs string) {
	optional := len(alternatives) == 0
	var unmet []string
	for _, all := range alternatives {
		if len(all) == 0 {
			optional = true
			continue
		}
		if gives(b, all) {
			return all, ""
		}
		unmet = append(unmet, words(all))
	}
	if optional {
		return nil, ""
	}
	return nil, fmt.Sprintf("The operation needs %s, which the binding %s cannot give.", strings.Join(unmet, ", or "), modeOf(b))
}

func modeOf(b *manifest.Binding) string {
	if b.From != nil {
		return b.Mode + " (" + b.From.Kind + ")"
	}
	return b.Mode
}

// gives says whether the binding's credential fills all places of one alternative: a source of kind basic has a name and a
// password, every other a token, the mock both.
func gives(b *manifest.Binding, all []scheme) bool {
	mock := b.Mode == manifest.ModeMock
	pairs := mock || b.From != nil && b.From.Kind == manifest.KindBasic
	tokens := mock || b.From != nil && b.From.Kind != manifest.KindBasic
	authorizations := 0
	for _, s := range all {
		switch s.kind {
		case basic:
			authorizations++
			if !pairs {
				return false
			}
		case bearer, inHeader, inQuery, inCookie:
			if s.kind == bearer || s.kind == inHeader && strings.EqualFold(s.name, "Authorization") {
				authorizations++
			}
			if !tokens {
				return false
			}
		default:
			return false
		}
	}
	return authorizations < 2 // there is one such header
}

// words is an alternative for a sentence.
func words(all []scheme) string {
	list := make([]string, len(all))
	for i, s := range all {
		switch s.kind {
		case bearer:
			list[i] = "a bearer token"
		case basic:
			list[i] = "a name and password"
		case other:
			list[i] = "the scheme " + jsondoc.Quote(s.name)
		default:
			list[i] = "a key in " + s.kind + " " + jsondoc.Quote(s.name)
		}
	}
	return strings.Join(list, " and ")
}

// Supported is always nil: every platform can send a request.
func (c *command) Supported() *protocol.Error { return nil }

// Steps is always nil.
func (c *command) Steps() []adapter.Step { return nil }

// Spec is always nil: no process is started.
func (c *command) Spec(*adapter.Call) *adapter.Need { return nil }
