package lifecycle

import (
	"slices"

	"hcpx/internal/gate"
	"hcpx/internal/grant"
	"hcpx/internal/store"
)

// Used says whether the store holds anything that only a recorded change brings (§15.4): a pack beside the
// bootstrap pack, a skill copy, grants that are not the defaults, an allowance, an activation. A state that
// can't be read was written once.
func Used(st store.Store) bool {
	r := st.Reader()
	ids, err := r.Packs()
	if err != nil || slices.ContainsFunc(ids, func(id string) bool { return id != gate.Bootstrap }) {
		return true
	}
	skills, err := r.Skills()
	if err != nil || slices.ContainsFunc(skills, func(id string) bool { return id != gate.Bootstrap }) {
		return true
	}
	s, err := r.State()
	return err != nil || len(s.Activated)+len(s.Connected)+len(s.Sessions) > 0 ||
		len(s.Bins)+len(s.Reads)+len(s.Native)+len(s.Hosts) > 0 ||
		!slices.EqualFunc(s.Grants, grant.Defaults(), grant.Same)
}
