package pipeline

import (
	"errors"
	"fmt"

	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// findPack is step 2: installed, digest intact, activated in this session (HCP-11.1-1).
func (r *run) findPack() *protocol.Error {
	st, err := r.p.Gate.Store.State()
	if err != nil {
		return stateFault(err)
	}
	r.state = r.p.Gate.InForce(st)
	loaded, refusal := r.p.Gate.Pack(r.state, r.s.ID, r.req.PackID)
	r.pack = loaded
	return refusal
}

// stateFault is a state that cannot be read: nothing is run on a guess.
func stateFault(err error) *protocol.Error {
	var damaged *store.DamagedError
	if errors.As(err, &damaged) {
		return protocol.Fail(protocol.StateDamaged, fmt.Sprintf("The state file %s is damaged at %d:%d: %s.", damaged.Path, damaged.Line, damaged.Column, protocol.Clause(damaged.Reason))).
			WithHint("hcpx repair")
	}
	return protocol.Fail(protocol.InternalError, fmt.Sprintf("The state cannot be read: %s.", protocol.Clause(err.Error()))).WithHint("hcpx doctor")
}
