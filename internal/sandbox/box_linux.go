package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"hcpx/internal/protocol"
)

func hostArch() (arch, bool) { return archOf(runtime.GOARCH) }

// hostFilter is the filter of this machine.
func hostFilter(p posture) (filter, error) {
	machine, ok := hostArch()
	if !ok {
		return filter{}, errors.New("there is no table of system calls for " + runtime.GOARCH)
	}
	return compileFilter(machine, p)
}

// confinedBox is a prepared run on a launcher.
type confinedBox struct {
	confiner *confiner
	world    *world

	mu       sync.Mutex
	launcher *launcher // nil once closed
	ran      bool
	broken   bool // the launcher may not be used again
}

// Run implements Box.
func (b *confinedBox) Run(ctx context.Context) (*Outcome, *protocol.Error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.launcher == nil || b.ran {
		return nil, ranAlready()
	}
	b.ran = true
	done, ok := b.confiner.system.turn(ctx)
	if !ok {
		return nil, canceledBefore()
	}
	defer done()
	cancel, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, protocol.Fail(protocol.InternalError, "The run could not be prepared: "+err.Error()+".")
	}
	stop := func() { _, _ = unix.Write(cancel, []byte{7: 1}) } // any non-zero count; fails only when it is set already
	released := make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() { defer close(released); stop() })
	got := b.execute(cancel)
	if !unwatch() {
		<-released
	}
	if err := unix.Close(cancel); err != nil {
		got.err = errors.Join(got.err, err)
	}
	if got.err != nil {
		b.broken = true
		return nil, b.notStarted(got.err)
	}
	b.report(got.outcome)
	return got.outcome, nil
}

// execute hands the job to the thread and waits.
func (b *confinedBox) execute(cancel int) verdictOf {
	spec, l := b.world.spec, b.launcher
	dir := spec.Dir
	if dir == "" {
		dir = l.private.part(homePart)
	}
	j := &job{
		path: spec.Program.Path, argv: append([]string{spec.Program.Name}, spec.Args...),
		env: b.confiner.system.Environ(spec, l.private.root), dir: dir, stdin: spec.Stdin,
		limits: spec.Limits.filled(), clock: b.confiner.system.options.Now, cancel: cancel,
		done: make(chan verdictOf, 1),
	}
	l.jobs <- j
	return <-j.done
}

// notStarted tells why the kernel did not start the command.
func (b *confinedBox) notStarted(err error) *protocol.Error {
	p := b.world.spec.Program
	if dir := b.world.spec.Dir; dir != "" {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return escape(dir, "it went away before the start")
		}
	}
	var jail jailError
	switch {
	case errors.As(err, &jail):
		return unavailable("jail", "The jail could not be built: "+jail.Error()+".")
	case errors.Is(err, unix.E2BIG), errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOMEM), errors.Is(err, unix.EMFILE):
		return protocol.Fail(protocol.CommandFailed, fmt.Sprintf("%q could not be started: %v.", p.Name, err))
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOEXEC), errors.Is(err, unix.EPERM):
		return protocol.Fail(protocol.BinNotAllowed, fmt.Sprintf("%q could not be started: %v. A script needs its interpreter in uses.", p.Name, err)).
			With("name", p.Name).With("path", p.Path).WithHint("ls -l " + protocol.Word(p.Path))
	}
	return protocol.Fail(protocol.InternalError, fmt.Sprintf("%q could not be run: %v.", p.Name, err))
}

func (b *confinedBox) report(o *Outcome) {
	k := b.confiner.system.kernel()
	o.Report.Backend, o.Report.ABI, o.Report.Errata = k.backend(), k.ABI, k.Errata
	o.Report.Network, o.Report.Degraded = b.world.mode(), k.degraded()
}

// Close implements Box. A launcher that is sound waits for the next run of its policy.
func (b *confinedBox) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	l := b.launcher
	if l == nil {
		return nil
	}
	b.launcher = nil
	if b.broken || l.worn {
		return l.end()
	}
	return b.confiner.put(l)
}
