package pipeline

import (
	"context"
	"fmt"
	"time"

	"hcpx/internal/adapter"
	"hcpx/internal/approval"
	"hcpx/internal/binding"
	"hcpx/internal/gate"
	"hcpx/internal/grant"
	"hcpx/internal/jsondoc"
	"hcpx/internal/protect"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
	"hcpx/internal/store"
)

// run is one exec or plan on its way down the steps. Each step reads what those before it left here.
type run struct {
	p       *Pipeline
	ctx     context.Context //nolint:containedctx // a run lives no longer than its call
	s       protocol.Session
	id      string
	started time.Time
	step    int
	ran     bool // the intent stands in the audit

	req        request             // 1
	state      *store.State        // 2
	pack       *gate.Loaded        // 2
	verb       *gate.Verb          // 3
	asked      grant.Request       // 4
	decision   grant.Decision      // 4, again at 5 with the arguments
	args       *jsondoc.Node       // 5
	open       *jsondoc.Node       // 5: of a step that is looked at, what of its arguments is not a secret's; nil: all
	call       *adapter.Call       // 5
	recorded   *protocol.Result    // 5: what the idempotency key has answered before
	recordedBy string              // 5: in which run
	confirm    confirmation        // 6
	opened     *approval.Approval  // 6: what was asked of a person
	fresh      bool                // 6: and asked by this run first
	minted     *binding.Minted     // 7
	owner      string              // 7: who connected; "" when nothing of a person's is used
	mask       *mask               // 7
	world      *gate.World         // 8
	box        sandbox.Box         // 8
	guarded    *protect.Guard      // 8, until 9 is over
	held       *approval.Held      // 8: the claimed key
	spent      bool                // 8: the approval is this run's
	changes    []protect.Change    // 9
	seen       map[string][]string // 6: what a person is shown of a composite's calls, exactly, by their arguments
	picturing  bool                // 6: made only to be shown, as a step of the run above; it runs nothing itself
	unseen     error               // 9: nobody could look at what changed
}

func (p *Pipeline) newRun(ctx context.Context, s protocol.Session) *run {
	return &run{p: p, ctx: ctx, s: s, id: p.NewID(), started: p.Now()}
}

// Exec runs the envelope through the ten steps of §6.3.
func (p *Pipeline) Exec(ctx context.Context, s protocol.Session, envelope []byte) (res protocol.Result) {
	r := p.newRun(ctx, s)
	defer r.recovered(&res)
	defer r.release()
	if err := r.admit(envelope); err != nil {
		return r.denied(err)
	}
	if r.recorded != nil {
		return *r.recorded
	}
	if err := r.at(6, r.confirmed); err != nil {
		return r.denied(err)
	}
	r.warm()
	if err := r.at(7, r.bind); err != nil {
		return r.denied(err)
	}
	if err := r.at(8, r.enclose); err != nil {
		return r.denied(err)
	}
	if err := r.at(8, r.reserve); err != nil {
		return r.denied(err)
	}
	if err := r.intend(); err != nil {
		return protocol.Denied(r.req.PackID, r.req.VerbKey, err)
	}
	out, err := r.work()
	return r.keep(r.finish(out, err))
}

// admit is steps 1 to 5, the part that Exec and Plan share.
func (r *run) admit(envelope []byte) *protocol.Error { return r.upTo(5, envelope) }

// upTo is the steps from the first to the last that is named, 5 at most.
func (r *run) upTo(last int, envelope []byte) *protocol.Error {
	decode := func() *protocol.Error { return r.decode(envelope) }
	for i, do := range []func() *protocol.Error{decode, r.findPack, r.findVerb, r.authorize, r.render} {
		if i >= last {
			break
		}
		if err := r.at(i+1, do); err != nil {
			return err
		}
	}
	return nil
}

// at runs one step and stamps its number on the refusal.
func (r *run) at(step int, do func() *protocol.Error) *protocol.Error {
	r.step = step
	err := do()
	if err != nil && err.Step == 0 {
		err.Step = step
	}
	return err
}

// release gives back what steps 7 and 8 took, in reverse order, however the run ended.
func (r *run) release() {
	r.unreserve()    // of a run that never began
	r.unguard()      // of a run that did not come to step 9: nothing changed
	_ = r.closeBox() // of a run that has no outcome; a leftover is cleaned up at the next start
	if r.world != nil && r.world.Spec != nil {
		for _, f := range r.world.Spec.Files {
			clear(f.Content)
		}
	}
	if r.minted != nil {
		r.minted.Release()
	}
}

// closeBox removes the private directory, once.
func (r *run) closeBox() error {
	if r.box == nil {
		return nil
	}
	box := r.box
	r.box = nil
	return box.Close()
}

// recovered turns a panic into internal at the step it struck (§6.3): never a success, never a trace. A
// run that had begun gets its outcome.
func (r *run) recovered(res *protocol.Result) {
	fault := recover()
	if fault == nil {
		return
	}
	err := protocol.Fail(protocol.InternalError, fmt.Sprintf("An unexpected fault stopped the run at step %d; nothing was reported as done.", r.step)).
		With("fault", fmt.Sprintf("%.200v", fault))
	err.Step = r.step
	if r.ran {
		err = err.With("ran", true)
	}
	*res = protocol.Denied(r.req.PackID, r.req.VerbKey, err)
	defer func() { _ = recover() }() // the audit broke too: the answer above stands
	if r.ran {
		*res = r.keep(r.finish(nil, err))
		return
	}
	*res = r.denied(err)
}
