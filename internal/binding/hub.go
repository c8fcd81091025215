package binding

import (
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// The modes (§8.1) and hubs (§8.2).
const (
	Public     = "public"
	User       = "user"
	Local      = "local"
	Mothership = "mothership"
	Mock       = "mock"

	HubNone   = "none"
	HubPublic = "public"
)

// MockCredential is what mode mock mints (§8.3): a fixed value that opens nothing.
const MockCredential = "hcp-mock-credential"

// Connected says whether the binding counts as connected (§8.5): public always is.
func Connected(b *manifest.Binding, connected bool) bool { return mode(b) == Public || connected }

// mode is the binding's mode; absent is public (§8.1).
func mode(b *manifest.Binding) string {
	if b == nil || b.Mode == "" {
		return Public
	}
	return b.Mode
}

// NewHub makes the hub of this runtime, for the modes that keep no secret. It holds no state.
func NewHub() Hub { return hub{} }

type hub struct{}

// Supported: public, mock, and local with hub none and no source, as the bootstrap pack has it (§11.4).
// For all others the honest answer is not_connected, whatever any state says.
func (hub) Supported(b *manifest.Binding) *protocol.Error {
	switch m := mode(b); {
	case m == Public, m == Mock, m == Local && b.Hub == HubNone && b.Source == nil:
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

// Connect runs one trial mint (§8.5). There is nothing to keep.
func (h hub) Connect(b *manifest.Binding, s Scope) *protocol.Error {
	m, err := h.Mint(b, s)
	if err != nil {
		return err
	}
	defer m.Release()
	_, _, err = m.Env(b.Inject)
	return err
}

// Disconnect has nothing to delete.
func (hub) Disconnect(*manifest.Binding, Scope) *protocol.Error { return nil }

// Mint gives the credential of one run (§8.4), and for public and local without a source an empty one.
func (h hub) Mint(b *manifest.Binding, _ Scope) (*Minted, *protocol.Error) {
	if err := h.Supported(b); err != nil {
		return nil, err
	}
	if mode(b) != Mock {
		return &Minted{held: &credential{}}, nil
	}
	value := func() []byte { return []byte(MockCredential) }
	return &Minted{held: &credential{token: value(), username: value(), password: value()}}, nil
}
