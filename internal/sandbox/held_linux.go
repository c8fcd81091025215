package sandbox

import (
	"errors"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// held is the tree of a run where the kernel does not keep signals inside a domain (§10.5, Landlock ABI 3 to 5).
// This process is the subreaper meanwhile, so that the tree is the command and what descends from it, and what
// this process has adopted since: that carries a filter which this process does not. Runs take turns, so nobody
// else's left-over is taken for one. Everything here reads /proc, which a confined thread cannot.
type held struct {
	adoption *adoption
	own      int // filters of this process
	now      clock
	brokered bool // signals, groups and sessions are asked for

	mu     sync.Mutex
	frozen bool
	groups map[int]bool // that were let begin, beside the command's own
	crowd  int          // how many of them there are before those that are gone are looked for
}

func newHeld(a *adoption, mode signalMode, now clock) *held {
	return &held{adoption: a, own: filters(os.Getpid()), now: now, brokered: mode == signalsBrokered}
}

// unscoped are the processes of a launcher whose domain does not keep signals inside. The walks are made by another
// thread.
type unscoped struct {
	*launcher
	tree *held
}

// begin forks from this thread. The child shows the filter that it need not be asked for when it begins its session:
// nobody could answer while this thread waits for its exec.
func (u unscoped) begin(r *run, files [3]int) (pid, handle int, err error) {
	child, err := newBirth(r.job, files)
	if err != nil {
		return 0, -1, err
	}
	child.secret = uintptr(uint64(u.secret[1])<<32 | uint64(u.secret[0]))
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
		_, err := u.tree.kill(false)
		done <- err
	}()
	return <-done
}

func (u unscoped) list(*run) []int {
	done := make(chan []int)
	go func() {
		var pids []int
		u.tree.bury()
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
		n, err := u.tree.kill(true)
		r.outcome.Report.Killed += n
		done <- err
	}()
	return <-done
}

// bury takes away the dead that this process has adopted, while the run goes on: nobody else would, and they hold their
// numbers, of which the machine has only so many. The command's first process is another's to bury, and so is a child
// that is none of the run's.
func (h *held) bury() {
	leader := h.adoption.leader()
	for {
		var dead struct {
			_   [4]int32
			pid int32
			_   [108]byte
		}
		err := unix.Waitid(unix.P_ALL, 0, (*unix.Siginfo)(unsafe.Pointer(&dead)), unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
		pid := int(dead.pid)
		if err != nil || pid == 0 || pid == leader || !h.knows(pid, leader) {
			return
		}
		if _, err := unix.Wait4(pid, nil, unix.WNOHANG|unix.WALL, nil); err != nil {
			return
		}
	}
}

// knows says whether a child that has ended was in a group of the run.
func (h *held) knows(pid, leader int) bool {
	group, err := unix.Getpgid(pid)
	h.mu.Lock()
	defer h.mu.Unlock()
	return err == nil && (group == leader || h.groups[group])
}

// renew makes ready for the next run.
func (h *held) renew() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.frozen, h.groups, h.crowd = false, map[int]bool{}, fewGroups
}

// fewGroups is how many groups are remembered before it is looked which of them are gone.
const fewGroups = 256

// admit is asked before a group begins, with its number, or before a process goes into one that is there, with 0. The
// group is known before the process may go on. That of the command's first process is known without: until that is
// buried, nobody may look for the dead in it.
func (h *held) admit(group int) bool {
	leader := h.adoption.leader()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.frozen:
		return false
	case group <= 1 || group == leader || group == unix.Getpgrp():
		return true
	}
	h.groups[group] = true
	if len(h.groups) > h.crowd {
		// The process first: as long as it is there it may begin the group yet.
		maps.DeleteFunc(h.groups, func(n int, _ bool) bool {
			return n != group && errors.Is(unix.Kill(n, 0), unix.ESRCH) && errors.Is(unix.Kill(-n, 0), unix.ESRCH)
		})
		h.crowd = max(fewGroups, 2*len(h.groups))
	}
	return true
}

// freeze lets no group begin any more, and says which were let.
func (h *held) freeze() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.frozen = true
	return slices.Collect(maps.Keys(h.groups))
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
		switch {
		case p.zombie: // it has no children any more, and a storm leaves thousands of them
			continue
		case p.parent == os.Getpid():
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

// Why the kill ends, however fast processes begin others. The command's first process began a session and a group.
// Whatever descends from it is in that group, or in one that hcpx let begin and knows (admit); from the kill on none
// begins (§10.5: where the operator accepted less, none ever does). Every process that has lost its parent is a child
// of this process, so while anything of the run is left, there is a child of this process in a known group: wait4 of a
// group tells that at one moment, and that the group is the run's and no later one of the same number, for a number
// that is a child's group is not given out again. A signal to a group and a fork in it exclude each other in the
// kernel, so a group that was killed begins nothing any more. A process that was let begin a group just before may
// do so until it is killed, once, so that one round over the groups may miss it; two that find no child prove that
// nothing is left.

// kill ends the tree and counts those that were alive. Once the command's first process is buried nothing is left
// afterwards; before that its group is killed, since its number is held by the one that is not buried, and what is in
// other groups is searched.
func (h *held) kill(buried bool) (int, error) {
	known, leader := h.freeze(), h.adoption.leader()
	k := &cull{held: h, until: h.now().Add(killTime), killed: map[int]bool{}, struck: map[int]bool{}}
	enough := 2
	switch {
	case leader == 0:
		return 0, nil
	case len(known) == 0 && !buried:
		return 0, os.NewSyscallError("kill", unix.Kill(-leader, unix.SIGKILL))
	case len(known) == 0:
		enough = 1
	}
	if buried {
		known = append(known, leader)
	}
	for quiet, pause := 0, firstPause; quiet < enough; quiet++ {
		if !buried {
			_ = unix.Kill(-leader, unix.SIGKILL) // it is there until it is buried
		}
		found := false
		for _, group := range known {
			found = k.sweep(group) || found
		}
		if len(known) > 1 && found || !buried {
			found = k.walk() || found
		} else if found {
			time.Sleep(pause)
			pause = min(2*pause, killPause)
		}
		if found {
			quiet = -1
		}
		if h.now().After(k.until) {
			return len(k.killed), errors.New("processes of the command could not be killed")
		}
	}
	return len(k.killed), nil
}

// The bounds of a kill: its time, its pauses, and the handles that are held while the killed are waited for.
const (
	killTime   = 10 * time.Second
	firstPause = 50 * time.Microsecond
	killPause  = 2 * time.Millisecond
	atOnce     = 128
)

// cull is one kill of a tree.
type cull struct {
	*held
	until  time.Time
	killed map[int]bool
	struck map[int]bool // groups that were sent SIGKILL
}

// sweep buries the dead of a group whose parent is this process now, and kills the group where one is alive. It says
// whether one was.
func (k *cull) sweep(group int) bool {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-group, &status, unix.WNOHANG|unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return false
		case pid == 0:
			_ = unix.Kill(-group, unix.SIGKILL) // one is there, and may be signalled: it is a child with our user
			k.struck[group] = true
			return true
		case k.struck[group] && status.Signaled() && status.Signal() == unix.SIGKILL:
			k.killed[pid] = true
		}
	}
}

// walk kills what it finds by descent, and says whether it met anything alive: so a tree whose processes are each in a
// group of their own dies at once, and not by one generation in a round.
func (k *cull) walk() bool {
	found := false
	var dying []unix.PollFd
	k.each(func(p status, fd int) {
		if p.zombie || unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) != nil {
			return
		}
		k.killed[p.pid], found = true, true
		if len(dying) < atOnce {
			if again, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3); err == nil {
				dying = append(dying, unix.PollFd{Fd: int32(again), Events: unix.POLLIN})
			}
		}
	})
	for i := range dying {
		for one := dying[i : i+1]; ; {
			n, err := unix.Poll(one, int(max(k.until.Sub(k.now())/time.Millisecond, 0)))
			if n > 0 || !errors.Is(err, unix.EINTR) {
				break
			}
		}
		_ = unix.Close(int(dying[i].Fd))
	}
	return found
}
