package binding

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// The modes (§8.1) and hubs (§8.2).
const (
	Public     = manifest.ModePublic
	User       = manifest.ModeUser
	Local      = manifest.ModeLocal
	Mothership = manifest.ModeMothership
	Mock       = manifest.ModeMock

	HubNone   = "none"
	HubPublic = "public"
)

// MockCredential is what mode mock mints (§8.3): a fixed value that opens nothing.
const MockCredential = "hcp-mock-credential"

// Connected says whether the binding counts as connected (§8.5): public always is.
func Connected(b *manifest.Binding, connected bool) bool { return mode(b) == Public || connected }

// Consent is what a person consented to at connect, as one word for the state: mode, hub and the whole source. A pack
// whose next version has another source must be connected again (§8.3).
func Consent(b *manifest.Binding) string {
	text := mode(b) + "\n" + b.Hub + "\n"
	if b.Source != nil {
		text += string(b.Source.Canonical(nil))
	}
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Sourced says whether the binding mints from a source at all.
func Sourced(b *manifest.Binding) bool { return b != nil && b.Source != nil }

// mode is the binding's mode; absent is public (§8.1).
func mode(b *manifest.Binding) string {
	if b == nil || b.Mode == "" {
		return Public
	}
	return b.Mode
}

// NewHub makes the hub of this runtime. Without Options it mints for the modes that need none.
func NewHub(o Options) Hub {
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	return &hub{o}
}

// hub holds no state of its own.
type hub struct{ Options }

// Supported: public, mock, local with hub none and no source, as the bootstrap pack has it (§11.4), and every source
// whose doors are there. For all others the honest answer is not_connected, whatever any state says.
func (h *hub) Supported(b *manifest.Binding) *protocol.Error {
	switch m := mode(b); {
	case m == Public, m == Mock, m == Local && b.Hub == HubNone && b.Source == nil:
		return nil
	case b.From != nil && h.has(b.From):
		return nil
	default:
		e := protocol.Fail(protocol.NotConnected, "This runtime cannot mint a credential of mode "+m+", so the pack cannot be connected.").
			With("mode", m)
		if b.Hub != "" {
			e = e.With("hub", b.Hub)
		}
		return e.WithHint("hcpx availability")
	}
}

// has says whether the doors that a source needs are there.
func (h *hub) has(src *manifest.Source) bool {
	if src.Keeps() && (h.Secrets == nil || h.Now == nil) {
		return false
	}
	switch src.Kind {
	case manifest.KindToken, manifest.KindBasic:
		return true
	case manifest.KindEnv:
		return h.Getenv != nil
	case manifest.KindFile:
		return h.ReadFile != nil
	case manifest.KindCommand:
		return h.Command != nil
	case manifest.KindOAuth2, manifest.KindClientCredentials:
		return h.Net.Dial != nil
	case manifest.KindTokenExchange:
		return h.Net.Dial != nil && h.Now != nil && (src.SubjectFile == "" || h.ReadFile != nil) && (src.SubjectEnv == "" || h.Getenv != nil)
	default:
		return false
	}
}

// Hold implements Hub: the lock of who connects or forgets, another one than that of who mints.
func (h *hub) Hold(ctx context.Context, name string) (func(), *protocol.Error) {
	if h.Secrets == nil {
		return func() {}, nil
	}
	return h.Secrets.Lock(ctx, "connect/"+name)
}

// Mint gives the credential of one run (§8.4), and for public and local without a source an empty one.
func (h *hub) Mint(ctx context.Context, b *manifest.Binding, s Scope, lasts time.Duration) (*Minted, *protocol.Error) {
	if err := h.Supported(b); err != nil {
		return nil, err
	}
	switch {
	case mode(b) == Mock:
		value := func() []byte { return []byte(MockCredential) }
		return &Minted{held: &credential{token: value(), username: value(), password: value()}, kind: Mock}, nil
	case b.From == nil:
		return &Minted{held: &credential{}}, nil
	}
	if err := h.conceal(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, maxMint)
	defer cancel()
	m, err := h.from(ctx, b.From, s, lasts)
	if err != nil {
		return nil, advised(classed(err), s)
	}
	m.kind = b.From.Kind
	return m, nil
}

func (h *hub) conceal() *protocol.Error {
	if h.Conceal == nil {
		return nil
	}
	return h.Conceal()
}

func (h *hub) from(ctx context.Context, src *manifest.Source, s Scope, lasts time.Duration) (*Minted, *protocol.Error) {
	switch src.Kind {
	case manifest.KindEnv, manifest.KindFile, manifest.KindCommand:
		value, err := h.local(ctx, src)
		if err != nil {
			return nil, err
		}
		return &Minted{held: &credential{token: value}}, nil
	case manifest.KindToken, manifest.KindBasic:
		return h.kept(ctx, src, s)
	default:
		return h.remote(ctx, src, s, lasts)
	}
}

// classed gives every refusal of a mint its reason: those of a store of secrets bring none.
func classed(err *protocol.Error) *protocol.Error {
	switch {
	case err.Code == protocol.Canceled:
		return failed(Canceled, err.Message)
	case err.Code == protocol.BindingFailed && reasonOf(err) == "":
		return err.With("reason", string(Unkept))
	}
	return err
}

// advised adds the next command to type: what a person can mend by connecting again.
func advised(err *protocol.Error, s Scope) *protocol.Error {
	if err.Hint != "" || err.Code != protocol.BindingFailed {
		return err
	}
	switch reasonOf(err) {
	case Denied, Revoked, Unkept, Missing:
		return err.WithHint(protocol.InSession("hcpx connect "+s.Pack, s.Session))
	default:
		return err
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
