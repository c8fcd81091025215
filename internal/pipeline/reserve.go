package pipeline

import (
	"errors"
	"fmt"

	"hcpx/internal/approval"
	"hcpx/internal/protocol"
)

// claim is this run under its idempotency key.
func (r *run) claim() approval.Claim {
	return approval.Claim{Principal: r.s.Principal, Tenant: r.s.Tenant, Key: r.req.IdempotencyKey,
		Canonical: r.canonical(r.placed()).Canonical(nil), Run: r.id}
}

// idempotent is §15.5, once the arguments are known: a key that stands for another request, for a run that goes on, or
// for one that was cut off is refused; for one that has ended, its answer is the answer.
func (r *run) idempotent() *protocol.Error {
	switch {
	case r.req.IdempotencyKey == "":
		return nil
	case r.verb.Entry.Operation == protocol.Read:
		return invalidEnvelope("/idempotency_key", "An idempotency key may stand on write commands only.")
	}
	found, err := r.p.keys.Look(r.claim())
	if err != nil {
		return unkept(err)
	}
	if found.Standing != approval.Answered {
		return taken(found)
	}
	answer, err := protocol.ReadResult(found.Answer)
	if err != nil {
		return unkept(errors.New("the recorded answer of this key cannot be read"))
	}
	answer.Notes = []string{"This is the recorded answer of run " + found.Run + "; nothing was run."}
	r.recorded = &answer
	r.recordedBy = found.Run
	return nil
}

// taken is the refusal of a key that stands for something else; nil when it is free.
func taken(f approval.Found) *protocol.Error {
	var e *protocol.Error
	switch f.Standing {
	case approval.Free:
		return nil
	case approval.Conflict:
		e = protocol.Fail(protocol.IdempotencyConflict, "The idempotency key belongs to another request; nothing was run.")
	case approval.Unknown:
		e = protocol.Fail(protocol.IdempotencyUnknown, "The run of this idempotency key was cut off: what it did is not known, and it is not run again.").
			WithHint("hcpx audit show " + f.Run)
	default: // going on, or ended just now
		e = protocol.Fail(protocol.IdempotencyInProgress, "The run of this idempotency key has not ended; repeat the request for its answer.")
	}
	e.Step = 5
	return e.With("run", f.Run)
}

// reserve is the last thing before the intent: the key is claimed, then the approval is spent, both on disk, so that no
// other run has them whenever this process dies. What is spent is bound to the world that step 8 made.
func (r *run) reserve() *protocol.Error {
	if r.req.IdempotencyKey != "" {
		held, found, err := r.p.keys.Take(r.claim())
		if err != nil {
			return unkept(err)
		}
		if held == nil {
			return taken(found)
		}
		r.held = held
	}
	if r.confirm.by != byApproval {
		return nil
	}
	q, blocked := r.request()
	if blocked != nil {
		return blocked
	}
	reason, err := r.p.approvals.Spend(r.confirm.approval.ID, q, r.id)
	if err != nil {
		return unkept(err)
	}
	if reason != "" {
		r.confirm.reason, r.confirm.given = reason, false
		e := protocol.Fail(protocol.ConfirmRequired, r.why()).With("reason", reason).With("message", r.confirm.message)
		e.Step = 6
		return e
	}
	r.spent = true
	return nil
}

// unreserve gives back what was reserved by a run that never began. Where that fails it stays taken, which lets nothing run.
func (r *run) unreserve() {
	if r.ran {
		return
	}
	if r.spent {
		r.spent = false
		_ = r.p.approvals.GiveBack(r.confirm.approval.ID, r.id)
	}
	if r.held != nil {
		_ = r.held.Drop()
		r.held = nil
	}
}

// keep records the answer of a run under its key (§15.5). One that cannot be kept stands, and a repeat is refused.
func (r *run) keep(res protocol.Result) protocol.Result {
	if r.held == nil {
		return res
	}
	held := r.held
	r.held = nil
	if err := held.Keep(res.AppendJSON(nil)); err != nil {
		res.Notes = append(res.Notes, fmt.Sprintf("The answer could not be kept under its idempotency key, so a repeat will be refused: %s.", protocol.Clause(err.Error())))
	}
	return res
}
