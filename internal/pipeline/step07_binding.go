package pipeline

import (
	"hcpx/internal/binding"
	"hcpx/internal/protocol"
)

// bind is step 7 (§8.4): connected, then one mint for this run alone. A failed mint never falls back to
// another credential or to none.
func (r *run) bind() *protocol.Error {
	if err := r.p.Gate.Connected(r.state, r.s.ID, r.pack); err != nil {
		return err
	}
	m := r.pack.Manifest
	minted, err := r.p.Gate.Hub.Mint(&m.Binding, binding.Scope{Tenant: r.s.Tenant, Session: r.s.ID, Pack: r.pack.ID, Family: m.Family})
	if err != nil {
		return err
	}
	r.minted = minted
	return nil
}
