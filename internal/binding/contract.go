// Package binding mints the credential of one run (§8). Modes public, mock and local without a source keep
// no secret; every other answers not_connected, because this runtime has no way to mint it. A failed mint
// never falls back to another credential or to none (§8.4).
//
// Nouns: Hub (the contract of whoever mints; hubtest is its suite), Minted (a credential that hides
// itself from every printer and leaves only by Env), Scope (whose binding it is).
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
