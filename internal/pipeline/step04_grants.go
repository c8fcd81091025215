package pipeline

import "hcpx/internal/protocol"

// authorize is step 4: §9.5 in its order, before arguments are looked at, so that whoever may not run the
// command learns nothing of them.
func (r *run) authorize() *protocol.Error {
	r.asked = r.p.Gate.Ask(r.s, r.verb, r.s.Project, true)
	r.decision = r.p.Gate.Decide(r.state, r.asked)
	return r.decision.Err
}
