package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"hcpx/internal/protocol"
)

// Canary is how a System proves itself before it confines the first command (§10.5): a child of the same
// program is confined like any other and tries to leave. What it can do that it may not is why nothing is run.
// The proof holds for this start of the machine, this very file of the program and these facts of the kernel.
type Canary struct {
	// Dir is the directory for what the child tries to reach: absolute, made 0700 when it is absent, and neither
	// in Options.Scratch nor around it.
	Dir string
	// Proof is the file of the proof, in a directory of the same kind; "" keeps none. ReadOnly says that it is not
	// written: whoever only looks takes what others proved, and else proves it for this process alone.
	Proof    string
	ReadOnly bool
	// Program is an executable that calls Inner before anything else; "" is the one that runs now.
	Program string
	// Ready is closed when a child may be started; nil: at once.
	Ready <-chan struct{}
}

// CanaryName is argv[0] of the child, by which Inner knows it.
const CanaryName = "hcpx: canary"

// canaryVersion changes when the attempts do.
const canaryVersion = "1"

// canaryRule is the rule of every refusal that the canary causes, and its row in doctor's table.
const canaryRule = "canary"

// proof is what is known of this System's canary.
type proof struct {
	system *System
	once   sync.Once
	key    []byte // nil: this machine does not say enough for a proof to be kept
	kept   bool   // a proof of an earlier process holds

	mu     sync.Mutex
	passed bool
}

// recall looks for the proof of an earlier process, once. It makes nothing.
func (p *proof) recall() {
	p.once.Do(func() {
		c := p.system.options.Canary
		if p.key = canaryKey(c.Program, p.system.kernel()); p.key != nil {
			p.kept = holdsProof(c.Proof, p.key)
		}
	})
}

// canaryKey is everything that a proof depends on; it is the text of the proof, so that reading one is comparing
// it. The kernel's facts, and what the operator accepts of them, stand in it as they are, whatever is added to them.
func canaryKey(program string, k Kernel) []byte {
	boot, id := bootID(), programID(program)
	if boot == "" || id == "" {
		return nil
	}
	return fmt.Appendf(nil, "hcpx canary %s\nboot %s\nprogram %s %s\nkernel %+v\n", canaryVersion, boot, id, program, k)
}

// need runs the canary unless there is a proof (§10.5). What failed once is tried again by the next run, for it
// may have been a passing want of processes or memory; nothing is run meanwhile. done is closed when the caller does
// not want the run any more; nil: never.
func (p *proof) need(done <-chan struct{}) *protocol.Error {
	if p.system.options.Canary == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recall()
	if p.passed || p.kept {
		return nil
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		select {
		case <-done:
			stop()
		case <-ctx.Done():
		}
	}()
	if err := p.run(ctx); err != nil {
		return err
	}
	if c := p.system.options.Canary; p.key != nil && c.Proof != "" && !c.ReadOnly {
		keepProof(c.Proof, p.key)
	}
	return nil
}

// run is one live test; it keeps what it found for this process alone.
func (p *proof) run(ctx context.Context) *protocol.Error {
	c := p.system.options.Canary
	if c.Ready != nil {
		select {
		case <-c.Ready:
		case <-ctx.Done():
			return canceledBefore()
		}
	}
	program, err := canaryProgram(c.Program)
	if err != nil {
		return noProof("The canary, which tests the sandbox before the first run, has no program: " + err.Error() + ".")
	}
	f := flight{dir: c.Dir, program: program, prepare: p.system.confine.prepare, apart: p.system.kernel().spaces()}
	p.passed = false
	got, refusal := f.fly(ctx)
	switch {
	case ctx.Err() != nil: // it was ended, and found nothing out
		refusal = canceledBefore()
	case refusal == nil:
		refusal = got.refusal()
	}
	p.passed = refusal == nil
	return refusal
}

// noProof refuses because the canary did not come to an answer: what is not shown to hold is not relied on.
func noProof(why string) *protocol.Error { return unavailable(canaryRule, why) }

// findings are what the canary's child could do, and what it could not even try, in the order of the attempts.
type findings struct {
	worked    []string
	undecided []string
}

func (f findings) refusal() *protocol.Error {
	switch {
	case len(f.worked) > 0:
		e := noProof("The sandbox does not hold on this machine: a test command could do what it must not (" + strings.Join(f.worked, ", ") + ").")
		if len(f.undecided) > 0 {
			e = e.With("undecided", f.undecided)
		}
		return e.With("worked", f.worked)
	case len(f.undecided) > 0:
		return noProof("The test of the sandbox came to no answer here ("+strings.Join(f.undecided, ", ")+"), so it is not relied on.").
			With("undecided", f.undecided)
	}
	return nil
}

// canaryRow is the canary's row as far as it is known without running it.
func (s *System) canaryRow() Rule {
	row := Rule{Name: canaryRule, Mechanism: "a child of hcpx that tries to leave, before the first run", State: "missing"}
	if refusal := s.kernel().refusal(); refusal != nil {
		row.Detail = refusal.Message
		return row
	}
	if s.options.Canary == nil {
		row.Detail = "This runtime was started without it."
		return row
	}
	s.proof.mu.Lock()
	defer s.proof.mu.Unlock()
	if s.proof.recall(); s.proof.passed || s.proof.kept {
		row.State = "enforced"
		return row
	}
	row.Detail = "Not tried yet since this machine or this program was started anew; the next run does it first."
	return row
}

// protectedRow is kept by the pipeline around a run (§10.2), wherever there is one.
func protectedRow(backend string) Rule {
	row := Rule{Name: "protected-names", Mechanism: "compared after a write command of land local; what changed is put back", State: "enforced"}
	if backend == "" {
		row.State, row.Detail = "missing", "Nothing is run in a sandbox here."
	}
	return row
}

// Prove implements Sandbox.
func (s *System) Prove(ctx context.Context) Rule {
	row := s.canaryRow()
	if s.options.Canary == nil || s.kernel().refusal() != nil {
		return row
	}
	s.proof.mu.Lock()
	defer s.proof.mu.Unlock()
	row.State, row.Detail = "enforced", ""
	if refusal := s.proof.run(ctx); refusal != nil {
		row.State, row.Detail = "missing", refusal.Message
	}
	return row
}

// canaryProgram is the real path of the child's program: the file that runs now must still stand there.
func canaryProgram(named string) (string, error) {
	if named != "" {
		return named, nil
	}
	path, err := os.Executable()
	if err != nil {
		return "", err
	}
	path, err = filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if programID(path) != programID("") {
		return "", fmt.Errorf("%s was replaced while it runs", path)
	}
	return path, nil
}
