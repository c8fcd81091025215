package sandbox

import (
	"context"
	"strings"
	"sync"
	"time"

	"hcpx/internal/egress"
	"hcpx/internal/protocol"
)

// Options are what a System is made from; nothing is looked up behind them.
type Options struct {
	// Scratch is the directory for private directories, absolute; it is made 0700 when absent and must not
	// lie in a tree that a command may read.
	Scratch string
	// Keep is how many idle launchers wait for another run of the same policy; 0 throws each away with its
	// run, as a one-shot program wants it.
	Keep int
	// Now is the clock of timeouts and durations; nil is the machine's.
	Now func() time.Time
	// Lookup resolves the names of network hosts (§10.2); nil resolves none.
	Lookup egress.Lookup
	// Kernel, when set, is believed instead of the probe: tests hold kernels that they do not run on.
	Kernel *Kernel
	// Accept holds the rules of Accepted that the operator lets be kept in a weaker way where the kernel has no
	// better one (§10.5); any other word accepts nothing.
	Accept []string
	// Canary says how the sandbox proves itself before the first confined run (§10.5). nil leaves the proof out:
	// that is for tests, and for a program that cannot be its own child since it does not begin with Inner.
	Canary *Canary
}

// System is the sandbox of this machine: Landlock and seccomp on Linux, native where the Spec says so, and
// a refusal everywhere else (§10.5).
type System struct {
	options Options
	kernel  func() Kernel
	zone    func() string
	confine confiner
	adopted adoption
	turns   chan struct{} // taken by a run whose tree is known by descent alone
	proof   proof
}

var _ Sandbox = (*System)(nil)

// New makes the sandbox; it touches nothing before the first question.
func New(o Options) *System {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &System{options: o, zone: sync.OnceValue(localZone), turns: make(chan struct{}, 1)}
	s.kernel = sync.OnceValue(func() Kernel {
		var k Kernel
		if o.Kernel != nil {
			k = *o.Kernel
		} else {
			k = probe()
		}
		k.accept = strings.Join(o.Accept, " ")
		return k
	})
	s.confine.init(s)
	s.proof.system = s
	return s
}

// Facts implements Sandbox.
func (s *System) Facts() Facts {
	k := s.kernel()
	if s.options.Kernel == nil {
		k.Groups = s.confine.delegated()
	}
	f := k.facts()
	f.Rules = append(f.Rules, protectedRow(f.Backend), s.canaryRow())
	return f
}

// Check implements Sandbox (§6.3 step 8): the kernel first, then the network form, then programs and jail.
func (s *System) Check(spec *Spec) *protocol.Error {
	if spec.Native {
		return checkNative(spec)
	}
	_, err := s.confine.check(spec)
	return err
}

// Jail implements Sandbox.
func (s *System) Jail(spec *Spec, home string) Jail {
	if spec.Native {
		return Jail{Backend: "native", Degraded: nativeDegraded()}
	}
	j := s.confine.jail(spec, home)
	j.Backend, j.Degraded = s.kernel().backend(), s.kernel().degraded()
	return j
}

// Prepare implements Sandbox.
func (s *System) Prepare(spec *Spec) (Box, *protocol.Error) {
	if spec.Native {
		return s.prepareNative(spec)
	}
	if err := s.confinable(spec); err != nil {
		return nil, err
	}
	if err := s.proof.need(spec.Done); err != nil {
		return nil, err
	}
	return s.confine.prepare(spec)
}

// Close ends idle launchers and removes their directories.
func (s *System) Close() error { return s.confine.close() }

// confinable is the part of a check that needs no file system: kernel and network form (§10.2, §10.5).
func (s *System) confinable(spec *Spec) *protocol.Error {
	if err := s.kernel().refusal(); err != nil {
		return err
	}
	switch spec.Network.Mode {
	case "", "none", "full":
		return nil
	case "hosts":
		return s.reachable(spec.Network)
	}
	return unavailable("network", "The network mode "+spec.Network.Mode+" is unknown, so nothing enforces it.")
}

// Warm asks what every run asks (kernel, common grants, filter) beside whatever the caller does meanwhile, so that
// a program which runs one command does not wait for it. It makes nothing and answers nothing: the run asks again.
func (s *System) Warm() {
	go s.confine.warm()
	if s.options.Canary != nil {
		go s.proof.recall()
	}
}

// turn waits until no other run goes on, where the kernel does not hold the tree of a confined one together: what
// loses its parent is adopted by this process, and must be known for that run's (§10.5). A native run waits for
// such a one too. Elsewhere nobody waits.
func (s *System) turn(ctx context.Context) (done func(), ok bool) {
	if k := s.kernel(); k.refusal() != nil || k.posture("none").signals == signalsScoped {
		return func() {}, ctx.Err() == nil
	}
	select {
	case s.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, false
	}
	if ctx.Err() != nil {
		<-s.turns
		return nil, false
	}
	return func() { <-s.turns }, true
}
