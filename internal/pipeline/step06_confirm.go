package pipeline

import (
	"errors"
	"fmt"
	"time"

	"hcpx/internal/approval"
	"hcpx/internal/protocol"
)

// confirmation is what step 6 found.
type confirmation struct {
	needed   bool
	given    bool
	by       string // envelope | grant | composite | approval
	message  string
	approval *approval.Approval // that confirms, or that does not
	reason   approval.Reason    // why the id confirms nothing
	blocked  *protocol.Error    // why it could not run even if somebody approved
}

// confirmed is step 6 (§4.5, HCP-1.4-1): a gated write runs only when the envelope carries a confirmation
// that counts. An agent's own true counts only under a grant with self_confirm, or where the operator set
// [confirm] agent = "envelope"; else a person's approval does, and the refusal asks for one (§15.2).
func (r *run) confirmed() *protocol.Error {
	if err := r.weigh(); err != nil {
		return err
	}
	if r.confirm.by == byApproval {
		r.previewed()
	}
	if !r.confirm.needed || r.confirm.given {
		return nil
	}
	return r.unconfirmed()
}

const byApproval = "approval"

// weigh finds what is needed and what was given; plan shows it, exec acts on it.
func (r *run) weigh() *protocol.Error {
	c := &r.confirm
	if c.needed = r.verb.Entry.Confirm; !c.needed {
		return nil
	}
	c.message = r.verb.Entry.Sentence(r.shownArgs())
	switch {
	case r.s.Confirmed && r.asSeen():
		c.given, c.by = true, "composite"
	case r.req.approval != "":
		return r.approvedAs(r.req.approval)
	case r.req.confirm && (!r.s.Principal.Agent() || r.p.AgentEnvelope):
		c.given, c.by = true, "envelope"
	case r.req.confirm && r.ownCounts():
		c.given, c.by = true, "grant"
	case r.s.Shown: // a step of an approved composite, with other arguments than a person saw
		return r.approvedStep()
	}
	return nil
}

// ownCounts says whether the Principal's own true would be enough.
func (r *run) ownCounts() bool {
	return !r.s.Principal.Agent() || r.p.AgentEnvelope || r.decision.SelfConfirm && !r.p.NoSelfConfirm
}

// approvedAs asks whether the id is of an approval of exactly this request, whose approver may still run it himself.
func (r *run) approvedAs(id string) *protocol.Error {
	q, blocked := r.request()
	if blocked != nil {
		r.confirm.reason, r.confirm.blocked = approval.ReasonBlocked, blocked
		return nil
	}
	return r.approvedFor(id, q)
}

// approvedFor is approvedAs of a request that is known.
func (r *run) approvedFor(id string, q approval.Request) *protocol.Error {
	a, reason, err := r.p.approvals.Usable(id, q)
	if err != nil {
		return unkept(err)
	}
	if reason == "" && !r.mayApprove(a.By) {
		reason = approval.ReasonApprover
	}
	r.confirm.approval, r.confirm.reason = a, reason
	if reason == "" {
		r.confirm.given, r.confirm.by = true, byApproval
	}
	return nil
}

// approvedStep finds what a person approved for exactly this step.
func (r *run) approvedStep() *protocol.Error {
	q, blocked := r.request()
	if blocked != nil {
		r.confirm.blocked = blocked
		return nil
	}
	a, err := r.p.approvals.Ready(q)
	if err != nil {
		return unkept(err)
	}
	if a == nil {
		return nil
	}
	return r.approvedFor(a.ID, q)
}

// mayApprove: whoever approves holds the command's own capability, with these arguments, when it is used too.
func (r *run) mayApprove(by protocol.Principal) bool {
	asked := r.asked
	asked.Principal = by
	return by.Human() && by != r.s.Principal && r.p.Gate.Decide(r.state, asked).Err == nil
}

// unconfirmed is the refusal. For an agent whose own word does not count it asks a person, or finds that it did.
func (r *run) unconfirmed() *protocol.Error {
	asks := !r.ownCounts() && reopens(r.confirm.reason)
	if asks {
		if err := r.ask(); err != nil {
			return err
		}
	}
	c := &r.confirm
	e := protocol.Fail(protocol.ConfirmRequired, r.why()).With("message", c.message)
	if r.call.Argv != nil {
		e = e.With("argv", r.call.Argv)
	}
	if r.call.Request != nil {
		e = e.With("request", raw(requestNode(r.shownCall().Request)))
	}
	if c.reason != "" {
		e = e.With("reason", c.reason)
	}
	switch {
	case c.blocked != nil:
		return e.With("error", c.blocked).WithHint(c.blocked.Hint)
	case r.opened != nil:
		id := r.opened.ID
		return e.With("approval_id", id).With("expires_at", r.opened.ExpiresAt.Format(time.RFC3339)).
			WithHint(fmt.Sprintf("a person decides: hcpx approvals show %s; once it is approved, repeat with \"confirm\": %q, or --approval %s", id, id, id))
	case asks: // too many are open
		return e.WithHint("hcpx approvals list")
	case c.reason == approval.ReasonRejected:
		return e.WithHint("a person said no: change the request, or leave it, and ask the person before asking again")
	case r.s.Principal.Agent() && !r.ownCounts():
		return e.WithHint("repeat it without an id to ask again")
	}
	return e.WithHint(fmt.Sprintf("hcpx exec %s %s --confirm -- …", r.pack.ID, r.verb.Command.Key))
}

// reopens says whether a refused id is answered with a new question. A person's no is not asked about again by itself,
// and what was spent was done.
func reopens(why approval.Reason) bool {
	return why != approval.ReasonRejected && why != approval.ReasonWithdrawn && why != approval.ReasonSpent
}

// ask opens the request, or finds the one that is open (§15.2).
func (r *run) ask() *protocol.Error {
	if r.confirm.blocked != nil {
		return nil
	}
	q, blocked := r.request()
	if blocked != nil {
		r.confirm.reason, r.confirm.blocked = approval.ReasonBlocked, blocked
		return nil
	}
	but := "" // an approval that fits and does not count must not be the answer
	if r.confirm.reason == approval.ReasonPreview || r.confirm.reason == approval.ReasonApprover {
		but = r.confirm.approval.ID
	}
	a, fresh, err := r.p.approvals.Ask(q, but)
	if errors.Is(err, approval.ErrTooMany) {
		r.confirm.reason = approval.ReasonTooMany
		return nil
	}
	if err != nil {
		return unkept(err)
	}
	r.opened, r.fresh = a, fresh
	return nil
}

// unkept is a shelf of the store that cannot be read or written: nothing is confirmed, and nothing runs.
func unkept(err error) *protocol.Error {
	var refusal *protocol.Error
	if errors.As(err, &refusal) {
		return refusal
	}
	return protocol.Fail(protocol.InternalError, fmt.Sprintf("The approvals cannot be kept: %s.", protocol.Clause(err.Error()))).WithHint("hcpx doctor")
}

// why is the sentence of the refusal.
func (r *run) why() string {
	name, c := r.pack.ID+"/"+r.verb.Command.Key, r.confirm
	switch c.reason {
	case "":
	case approval.ReasonBlocked:
		return fmt.Sprintf("%s needs confirmation, and could not run if it had one: %s", name, c.blocked.Message)
	case approval.ReasonTooMany:
		return fmt.Sprintf("%s needs confirmation, and too many requests of %s are open already.", name, r.s.Principal)
	case approval.ReasonUnknown:
		return fmt.Sprintf("%s needs confirmation, and there is no approval of that id.", name)
	case approval.ReasonMismatch:
		return fmt.Sprintf("%s needs confirmation, and the approval is for another request.", name)
	case approval.ReasonPending:
		return fmt.Sprintf("%s needs confirmation, and nobody has decided about it yet.", name)
	case approval.ReasonApprover:
		return fmt.Sprintf("%s needs confirmation, and who approved it may not run it any more.", name)
	case approval.ReasonPreview:
		return fmt.Sprintf("%s needs confirmation: what it would change is no longer what was shown to who approved it.", name)
	default:
		return fmt.Sprintf("%s needs confirmation, and the approval is %s.", name, c.reason)
	}
	switch {
	case c.blocked != nil:
		return fmt.Sprintf("%s needs confirmation, and could not run if it had one: %s", name, c.blocked.Message)
	case r.req.confirm:
		return fmt.Sprintf("%s needs confirmation by a person; an agent's own does not count here.", name)
	default:
		return fmt.Sprintf("%s needs confirmation: %s", name, c.message)
	}
}
