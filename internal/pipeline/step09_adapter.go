package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"hcpx/internal/adapter"
	"hcpx/internal/protocol"
)

// work is step 9: the adapter runs, and the first part of step 10, its parsing.
func (r *run) work() (*adapter.Output, *protocol.Error) {
	r.step = 9
	defer r.unguard()
	if r.ctx.Err() != nil {
		return nil, protocol.Fail(protocol.Canceled, "The run was cancelled before it started.")
	}
	run := &adapter.Run{Call: r.call, Box: r.box, Sub: r.sub}
	if r.world.Spec != nil {
		run.Limits = r.world.Spec.Limits
		return r.verb.Adapter.Run(r.ctx, run) // the sandbox keeps the limits
	}
	if r.call.Request != nil {
		run.Credential, run.Mask, run.Keep, run.Limits.Output = r.minted.Part, r.mask.torn, r.keepResult, r.p.OutputCap
	}
	limit := r.requestTime()
	ctx, cancel := context.WithTimeout(r.ctx, limit)
	defer cancel()
	out, err := r.verb.Adapter.Run(ctx, run)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return out, protocol.Fail(protocol.Timeout, fmt.Sprintf("%s/%s did not end within %s, the timeout of the command.", r.pack.ID, r.verb.Command.Key, limit)).With("error", err)
	}
	return out, err
}

// warm begins what step 9 would wait for, beside the steps that are left. Everything that is decided by now has let the
// run past, and what is begun is none of the command.
func (r *run) warm() {
	if w, ok := r.verb.Adapter.(adapter.Warmer); ok {
		w.Warm()
	}
}

// requestTime is how long a run without a sandbox may take: the command's timeout, a request within the runtime's cap.
func (r *run) requestTime() time.Duration {
	limit := r.verb.Command.Timeout
	if wall := r.p.Gate.Limits.Wall; r.call.Request != nil && wall > 0 {
		limit = min(limit, wall)
	}
	return limit
}

// keepResult writes a result that is no text to a file of this run (§12).
func (r *run) keepResult(name string, data []byte) (string, error) {
	return r.p.Gate.Store.KeepResult(r.s.Tenant, r.id, name, data)
}

// sub runs one step of a composite: the whole pipeline for its own command, as the same Principal. A
// composite lends no rights; only its confirmation covers its steps (§3.5), and an approval those that a person saw (§15.2).
func (r *run) sub(ctx context.Context, pack, verb string, args json.RawMessage) protocol.Result {
	envelope, err := json.Marshal(protocol.Envelope{PackID: pack, VerbKey: verb, Args: args, Project: r.req.Project})
	if err != nil {
		return protocol.Denied(pack, verb, protocol.Fail(protocol.InternalError, "The arguments of a step cannot be written as JSON."))
	}
	s := r.s
	s.Parent = r.id
	s.Shown = r.confirm.by == byApproval || r.s.Shown
	covered := true
	if s.Seen = ""; s.Shown {
		s.Seen, covered = r.foresaw(pack, verb, args)
	}
	s.Confirmed = r.confirm.needed && r.confirm.given && covered
	return r.p.Exec(ctx, s, envelope)
}
