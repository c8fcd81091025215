package pipeline

import (
	"fmt"

	"hcpx/internal/protocol"
)

// confirmation is what step 6 found.
type confirmation struct {
	needed  bool
	given   bool
	by      string // envelope | grant | composite
	message string
}

// confirmed is step 6 (§4.5, HCP-1.4-1): a gated write runs only when the envelope carries a confirmation
// that counts. An agent's own true counts only under a grant with self_confirm, or where the operator set
// [confirm] agent = "envelope" (§15.2).
func (r *run) confirmed() *protocol.Error {
	r.weigh()
	if !r.confirm.needed || r.confirm.given {
		return nil
	}
	e := protocol.Fail(protocol.ConfirmRequired, r.unconfirmed()).With("message", r.confirm.message)
	if r.call.Argv != nil {
		e = e.With("argv", r.call.Argv)
	}
	if r.s.Principal.Agent() && r.p.NoSelfConfirm {
		return e.WithHint("ask a person to run it; no grant lets an agent confirm here: hcpx config show")
	}
	if r.s.Principal.Agent() {
		return e.WithHint(fmt.Sprintf("ask a person to run it, or to allow it: hcpx grant %s verb.exec.write --pack %s --verb %s --self-confirm",
			r.s.Principal, r.pack.ID, r.verb.Command.Key))
	}
	return e.WithHint(fmt.Sprintf("hcpx exec %s %s --confirm -- …", r.pack.ID, r.verb.Command.Key))
}

// weigh finds what is needed and what was given; plan shows it, exec acts on it.
func (r *run) weigh() {
	c := confirmation{needed: r.verb.Entry.Confirm}
	if c.needed {
		c.message = r.verb.Entry.Sentence(r.args)
		switch {
		case r.s.Confirmed:
			c.given, c.by = true, "composite"
		case !r.req.confirm:
		case !r.s.Principal.Agent() || r.p.AgentEnvelope:
			c.given, c.by = true, "envelope"
		case r.decision.SelfConfirm && !r.p.NoSelfConfirm:
			c.given, c.by = true, "grant"
		}
	}
	r.confirm = c
}

func (r *run) unconfirmed() string {
	name := r.pack.ID + "/" + r.verb.Command.Key
	switch {
	case r.req.approval != "":
		return fmt.Sprintf("%s needs confirmation, and there is no approval of that id.", name)
	case r.req.confirm:
		return fmt.Sprintf("%s needs confirmation by a person; an agent's own does not count here.", name)
	default:
		return fmt.Sprintf("%s needs confirmation: %s", name, r.confirm.message)
	}
}
