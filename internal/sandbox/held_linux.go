package sandbox

import (
	"errors"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// held is the tree of a run where the kernel does not keep signals inside a domain (§10.5, Landlock ABI 3 to 5).
// This process is the subreaper meanwhile, so that the tree is the command and what descends from it, and what
// this process has adopted since: that carries a filter which this process does not. Runs take turns, so nobody
// else's left-over is taken for one. Everything here reads /proc, which a confined thread cannot.
type held struct {
	adoption *adoption
	own      int // filters of this process
	// watched says that no process begins unasked. Then frozen lets none begin, and begun says whether any did.
	watched       bool
	frozen, begun atomic.Bool
}

func newHeld(a *adoption, mode signalMode) *held {
	return &held{adoption: a, own: filters(os.Getpid()), watched: mode == signalsBrokered}
}

// unscoped are the processes of a launcher whose domain does not keep signals inside. The walks are made by another
// thread.
type unscoped struct {
	*launcher
	tree *held
}

// begin forks from this thread. The high half of clone's flags, which the kernel ignores, tells the filter that
// this child need not be asked for: nobody could answer while this thread waits for its exec.
func (u unscoped) begin(r *run, files [3]int) (pid, handle int, err error) {
	child, err := newBirth(r.job, files)
	if err != nil {
		return 0, -1, err
	}
	child.secret = uintptr(uint64(u.secret[0]) << 32)
	u.tree.renew()
	return u.adopted.hold(child.start)
}

func (u unscoped) kill(sig unix.Signal) error {
	done := make(chan error)
	go func() {
		if sig != unix.SIGKILL {
			u.tree.ask(sig)
			done <- nil
			return
		}
		_, err := u.tree.kill()
		done <- err
	}()
	return <-done
}

func (u unscoped) list(*run) []int {
	done := make(chan []int)
	go func() {
		var pids []int
		u.tree.each(func(p status, _ int) {
			if !p.zombie {
				pids = append(pids, p.pid)
			}
		})
		done <- pids
	}()
	return <-done
}

// finish reaps the direct child and ends everything that it left behind (§6.9).
func (u unscoped) finish(r *run) error {
	status, usage, err := reap(r.pid)
	if err != nil {
		return err
	}
	r.outcome.ended(status, usage, r.job.limits)
	done := make(chan error)
	go func() {
		n, err := u.tree.kill()
		r.outcome.Report.Killed += n
		done <- err
	}()
	return <-done
}

// renew makes ready for the next run.
func (h *held) renew() {
	h.frozen.Store(false)
	h.begun.Store(false)
}

// mayFork is asked before a process begins.
func (h *held) mayFork() bool {
	h.begun.Store(true)
	return !h.frozen.Load()
}

// root says whether a child of this process is the top of the tree, or was adopted from it.
func (h *held) root(p status) bool {
	return p.parent == os.Getpid() && (p.pid == h.adoption.leader() || filters(p.pid) > h.own)
}

// holds says whether a process is in the tree. It goes up from child to parent. That one process is the child
// of another is believed only when it still was after the other one had been looked at.
func (h *held) holds(pid int) bool {
	p, ok := look(pid)
	for ok && p.parent > 0 {
		if p.parent == os.Getpid() {
			return h.root(p)
		}
		up, there := look(p.parent)
		now, alive := look(p.pid)
		switch {
		case !alive || now.process != p.process:
			return false
		case !there || now.parent != p.parent:
			p = now // it was adopted meanwhile
		default:
			p = up
		}
	}
	return false
}

// each opens a handle to every process of the tree and calls do with it; the handles are closed afterwards. A
// process is believed to be in the tree when it, and its parent, are still who they were once the handle is open:
// a number may have been given to somebody else.
func (h *held) each(do func(p status, pidfd int)) {
	children := map[int][]status{}
	var queue []status
	for _, p := range everything() {
		if p.parent == os.Getpid() {
			if h.root(p) {
				queue = append(queue, p)
			}
			continue
		}
		children[p.parent] = append(children[p.parent], p)
	}
	var orphans []status // of a parent that ended while we looked
	for len(queue) > 0 {
		p := queue[0]
		queue = queue[1:]
		for _, child := range children[p.pid] {
			if h.follows(child, p) {
				queue = append(queue, child)
			}
		}
		delete(children, p.pid)
		h.visit(p, do)
	}
	for _, list := range children {
		orphans = append(orphans, list...)
	}
	for _, p := range orphans {
		if now, ok := look(p.pid); ok && now.process == p.process && now.parent != p.parent && h.root(now) {
			h.visit(now, do)
		}
	}
}

// follows proves that one process is the child of another, or was until that one ended and this process
// adopted it.
func (h *held) follows(child, parent status) bool {
	up, there := look(parent.pid)
	now, alive := look(child.pid)
	if !alive || now.process != child.process {
		return false
	}
	return there && up.process == parent.process && now.parent == parent.pid || h.root(now)
}

// visit opens the handle before it looks whether the process is the one that was meant.
func (h *held) visit(p status, do func(status, int)) {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if now, ok := look(p.pid); ok && now.process == p.process {
		do(now, fd)
	}
}

// ask sends a signal to the whole tree.
func (h *held) ask(sig unix.Signal) {
	h.each(func(_ status, fd int) { _ = unix.PidfdSendSignal(fd, sig, nil, 0) }) // fails only when it has ended
}

// kill ends the tree, the command's first process included, and counts those that were alive. Where processes
// begin only when this one lets them, none begins any more, and the walk ends: what was let begin before is born
// to a process that the walk sees, or is seen by the next; so two walks that find nothing prove that nothing is
// there. Elsewhere the walk may lose against a process that begins others faster than they are killed.
func (h *held) kill() (int, error) {
	h.frozen.Store(true)
	killed := map[process]bool{}
	if h.watched && !h.begun.Load() {
		h.killFirst(killed)
		return len(killed), nil
	}
	until := time.Now().Add(killTime)
	for quiet := 0; quiet < 2; {
		found := h.killOnce(killed, until)
		quiet++
		if found {
			quiet = 0
		}
		if time.Now().After(until) {
			return len(killed), errors.New("processes of the command could not be killed")
		}
	}
	return len(killed), nil
}

// killTime bounds the walk that kills a tree.
const killTime = 10 * time.Second

// killFirst kills a command that began no other process.
func (h *held) killFirst(killed map[process]bool) {
	leader := h.adoption.leader()
	if p, ok := look(leader); ok && leader != 0 && p.parent == os.Getpid() && !p.zombie {
		h.visit(p, func(p status, fd int) {
			if unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) == nil {
				killed[p.process] = true
			}
		})
	}
}

// killOnce is one walk. It buries the adopted dead, but for the command's first process, and says whether it
// met anything alive.
func (h *held) killOnce(killed map[process]bool, until time.Time) bool {
	leader, found := h.adoption.leader(), false
	var dying []unix.PollFd
	h.each(func(p status, fd int) {
		if p.zombie {
			if p.parent == os.Getpid() && p.pid != leader {
				_, _ = unix.Wait4(p.pid, nil, unix.WNOHANG, nil)
			}
			return
		}
		if unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) != nil {
			return // it has just ended
		}
		killed[p.process], found = true, true
		if len(dying) < atOnce {
			if again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3); err == nil {
				dying = append(dying, unix.PollFd{Fd: int32(again), Events: unix.POLLIN})
			}
		}
	})
	for i := range dying {
		for one := dying[i : i+1]; ; {
			n, err := unix.Poll(one, int(max(time.Until(until)/time.Millisecond, 0)))
			if n > 0 || !errors.Is(err, unix.EINTR) {
				break
			}
		}
		_ = unix.Close(int(dying[i].Fd))
	}
	return found
}

// atOnce bounds the handles that are held while the killed are waited for.
const atOnce = 128
