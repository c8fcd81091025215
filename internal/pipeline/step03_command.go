package pipeline

import (
	"hcpx/internal/gate"
	"hcpx/internal/protocol"
)

// findVerb is step 3: declared, this build has its adapter, every step of a composite resolves.
func (r *run) findVerb() *protocol.Error {
	v, err := r.p.Gate.Verb(r.state, r.s.ID, r.pack, r.req.VerbKey)
	if err != nil {
		return err
	}
	if v.ID == gate.Bootstrap && r.p.Builtin == nil {
		return protocol.Fail(protocol.NotExecutable, "The bootstrap pack runs only inside the hcpx program.").With("reason", "builtin")
	}
	r.verb = v
	return nil
}
