// Package binding mints the credential of one run (§8). Modes public, mock and hub none keep no secret;
// the others answer not_connected until their sources exist. A failed mint never falls back (§8.4).
package binding

import (
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// Scope says whose binding it is (§8.5): it belongs to tenant, owner and family or pack.
type Scope struct {
	Tenant, Session string
	Pack, Family    string
}

// Hub mints. Every kind passes hubtest.
type Hub interface {
	// Supported answers whether this runtime can mint for the binding at all; nil when it can.
	Supported(b *manifest.Binding) *protocol.Error
	// Connect establishes the binding with one trial mint (§8.5).
	Connect(b *manifest.Binding, s Scope) *protocol.Error
	// Disconnect deletes what Connect kept.
	Disconnect(b *manifest.Binding, s Scope) *protocol.Error
	// Mint gives the credential of one run; the caller must Release it.
	Mint(b *manifest.Binding, s Scope) (*Minted, *protocol.Error)
}
