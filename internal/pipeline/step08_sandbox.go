package pipeline

import (
	"context"
	"fmt"

	"hcpx/internal/gate"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
)

// look is step 8 without effects: programs, jail, network and limits, and whether the kernel keeps them
// (§10.2). Plan stops here.
func (r *run) look() *protocol.Error {
	w, err := r.p.Gate.World(r.state, r.s, r.verb, r.call)
	if err != nil {
		return err
	}
	if w.Spec != nil && r.verb.Entry.Preview != "" {
		w.Spec.Env = append(w.Spec.Env, manifest.PreviewEnv+"="+r.shown())
	}
	r.world = w
	return nil
}

// shown is the hash of the preview that stands for this run (§15.3), "" where no person was shown one. The command can
// compare it with what it is about to do, in the process that does it: nothing else sees what changes until then.
func (r *run) shown() string {
	if r.confirm.by == byApproval {
		return r.confirm.approval.Shown
	}
	return ""
}

// enclose is step 8: look, then the land directory, the injection and the private directory of this run.
func (r *run) enclose() *protocol.Error {
	if err := r.look(); err != nil {
		return err
	}
	if r.verb.ID == gate.Bootstrap {
		r.box = &builtinBox{run: r.p.Builtin, s: r.s, argv: r.call.Argv}
		return nil
	}
	if r.world.Spec == nil {
		return nil // a composite, or a request of this process: the sandbox has nothing to confine
	}
	if r.world.Land != nil {
		if err := r.p.Gate.Store.MakeLand(*r.world.Land); err != nil {
			return protocol.Fail(protocol.InternalError, fmt.Sprintf("The data directory cannot be made: %v.", err)).WithHint("hcpx doctor")
		}
	}
	if err := r.inject(); err != nil {
		return err
	}
	r.world.Spec.Done = r.ctx.Done()
	box, err := r.p.Gate.Sandbox.Prepare(r.world.Spec)
	if err != nil {
		return err
	}
	r.box = masked(box, r.mask)
	return r.guard()
}

// inject puts the minted credential into the child's environment and files (§8.2), and nowhere else.
func (r *run) inject() *protocol.Error {
	b := &r.pack.Manifest.Binding
	env, secrets, err := r.minted.Env(b.Inject)
	if err != nil {
		return err
	}
	contents, err := r.minted.Files(b.Files)
	if err != nil {
		return err
	}
	spec := r.world.Spec
	spec.Env = append(spec.Env, env...)
	spec.Secrets = secrets
	for i, content := range contents { // in the order of World
		spec.Files[i].Content = content
	}
	return nil
}

// builtinBox runs a command line of the bootstrap pack in this process (§11.4): the sandbox has nothing to
// confine there, and the report says so.
type builtinBox struct {
	run  Builtin
	s    protocol.Session
	argv []string
}

// Run implements sandbox.Box.
func (b *builtinBox) Run(ctx context.Context) (*sandbox.Outcome, *protocol.Error) {
	stdout, exit := b.run(ctx, b.s, b.argv[1:])
	return &sandbox.Outcome{Exit: exit, Stdout: stdout,
		Report: sandbox.Report{Backend: "in-process", Network: "none", Degraded: []string{}}}, nil
}

// Close implements sandbox.Box.
func (b *builtinBox) Close() error { return nil }
