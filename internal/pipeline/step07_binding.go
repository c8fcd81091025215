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
	bound, _ := r.state.Bound(r.s.ID, r.pack.ID)
	scope := binding.Scope{Tenant: r.s.Tenant, Session: r.s.ID, Owner: bound.Owner, Pack: r.pack.ID, Family: m.Family}
	minted, err := r.p.Gate.Hub.Mint(r.ctx, &m.Binding, scope, r.verb.Command.Timeout)
	if err != nil {
		return err
	}
	r.minted, r.owner, r.mask = minted, bound.Owner, newMask(minted.Secrets())
	return nil
}

// lent says whose binding the run used, beside the Principal that used it (§8.5).
func (r *run) lent() map[string]any {
	return map[string]any{"owner": r.owner, "source": r.minted.Kind(), "reused": r.minted.Reused()}
}
