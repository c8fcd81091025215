package sandbox

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"
)

// buildSpace makes the private directory and the layout of a jail of namespaces. The first process of the run
// builds the jail itself (§10.5); this thread stays as it is, and only waits.
func (c *confiner) buildSpace(w *world, f filter) (*launcher, error) {
	if err := errors.Join(ownScratch(c.system.options.Scratch), c.place().clear(c.shared(w))); err != nil {
		return nil, err
	}
	own, err := newPrivate(c.place().path, w.spec)
	if err != nil {
		return nil, err
	}
	l := &launcher{private: own, jobs: make(chan *job), adopted: &c.system.adopted, pids: &c.pids, groups: c.groups, listener: -1,
		broker: newBroker(-1)}
	p := &spaced{launcher: l, filter: f, mode: w.mode(), kernel: c.system.kernel(), control: -1, handle: -1, now: c.system.options.Now}
	if err := p.plan(c, w); err != nil {
		return nil, errors.Join(err, own.release())
	}
	l.procs = p
	onOwnThread(l.serve)
	return l, nil
}

// plan finds the layout and the grants of programs.
func (p *spaced) plan(c *confiner, w *world) error {
	own, err := p.private.grants()
	if err != nil {
		return err
	}
	p.layout = newLayout()
	for _, g := range append(slices.Clone(own), w.grants...) {
		if err := p.layout.add(g, false); err != nil {
			return err
		}
	}
	if err := p.layout.addPresent(sharedPaths(w.mode())); err != nil {
		return err
	}
	p.layout.aliases(w)
	for _, name := range []string{"/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr"} {
		_, _ = p.layout.look(name) // a machine that lacks the link has no program that needs it
	}
	p.layout.finish(p.kernel.ABI)
	p.grants = slices.Concat(c.shared(w), own, w.grants)
	p.services = func() []service { return c.services(p.launcher, w, own) }
	return nil
}

// aliases looks for the names that scripts know programs by, which may be links to what was recorded: so #!/bin/sh
// finds a sh that was recorded as /usr/bin/dash. What leads to nothing that is in the jail leads nowhere there.
func (l *layout) aliases(w *world) {
	for _, program := range append([]Program{w.spec.Program}, w.spec.Uses...) {
		for _, dir := range []string{"/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/"} {
			_, _ = l.resolve(dir + program.Name)
		}
	}
}

// sharedPaths are what every command of a network mode may read, by all its names; and the links that the names of
// programs and libraries lead through.
func sharedPaths(mode string) []grant {
	list := append(basePaths(), grant{path: "/etc/alternatives", rights: rightsRead})
	switch mode {
	case "full":
		list = append(list, fullPaths()...)
	case "hosts":
		list = append(list, hostsPaths()...)
	}
	return list
}

// list is the first process, and all that descends from it.
func (p *spaced) list(r *run) []int {
	in := map[int]bool{r.pid: true}
	var pids []int
	for grew := true; grew; {
		grew = false
		for _, s := range everything() {
			if in[s.parent] && !in[s.pid] {
				in[s.pid], grew = true, true
				if !s.zombie {
					pids = append(pids, s.pid)
				}
			}
		}
	}
	return pids
}

// flags are those with which a filter is loaded. Kernels before 5.19 cannot hold a caller that waits for an answer
// against signals; they are asked with a program that is nowhere, so nothing is loaded.
func (f filter) flags() uintptr {
	if !f.notifies {
		return 0
	}
	const hold = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	if _, _, no := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, hold, 0); no == unix.EFAULT {
		return hold
	}
	return unix.SECCOMP_FILTER_FLAG_NEW_LISTENER
}
