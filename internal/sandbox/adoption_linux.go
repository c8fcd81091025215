package sandbox

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"hcpx/internal/procs"
)

// adoption is the tree kill of native runs (§6.9, §10.3): while one goes on, this process is the subreaper,
// so that whatever loses its parent becomes a child of this process, whatever session or group it fled to.
// A child of this process belongs to a native run when it has left this process's session, which every
// native command does and nothing can come back from, when it was not there before, and when it is no
// command that was started here. This process starts programs through its System only.
type adoption struct {
	mu       sync.Mutex
	runs     map[int]string // direct child → its private directory
	confined map[int]bool   // direct children of launchers, which wait for them and kill their left-overs
	before   map[process]bool
	held     int   // the direct child whose tree the kernel does not hold together, 0 = none
	was      int32 // the subreaper flag as it was found
}

// process is one that cannot be mistaken for a later one of the same number.
type process struct {
	pid   int
	start uint64
}

// status is what /proc tells of a process.
type status struct {
	process
	parent, group, session int
	zombie                 bool
}

// nativeTree is the process tree of one native run.
type nativeTree struct {
	adoption *adoption
	leader   *os.Process
}

// start begins a native command and everything that finds its tree again. The lock keeps a command that
// has just begun from being taken for somebody's left-over.
func (a *adoption) start(cmd *exec.Cmd, root string) (nativeTree, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.runs) == 0 {
		if err := a.begin(); err != nil {
			return nativeTree{}, err
		}
	}
	if err := cmd.Start(); err != nil {
		a.settle()
		return nativeTree{}, err
	}
	a.runs[cmd.Process.Pid] = root
	return nativeTree{a, cmd.Process}, nil
}

// reap makes this process the subreaper.
func (a *adoption) reap() error {
	if err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&a.was)), 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	return nil
}

func (a *adoption) begin() error {
	if err := a.reap(); err != nil {
		return err
	}
	a.runs, a.before = map[int]string{}, map[process]bool{}
	for _, p := range everything() {
		if p.parent == os.Getpid() {
			a.before[p.process] = true
		}
	}
	return nil
}

// fork begins a confined command, known from its first moment as none of a native run's.
func (a *adoption) fork(start func() (int, error)) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	pid, err := start()
	if err == nil {
		if a.confined == nil {
			a.confined = map[int]bool{}
		}
		a.confined[pid] = true
	}
	return pid, err
}

// hold begins a confined command whose tree the kernel does not hold together; it is called by fork. Such runs,
// and native ones, take turns (System.turn).
func (a *adoption) hold(start func() (pid, handle int, err error)) (pid, handle int, err error) {
	if err := a.reap(); err != nil {
		return 0, -1, err
	}
	pid, handle, err = start()
	if err != nil {
		a.settle()
		return 0, -1, err
	}
	a.held = pid
	return pid, handle, nil
}

// leader is the direct child of the run whose tree is held.
func (a *adoption) leader() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held
}

// forget ends what fork began, once nothing of the run is alive.
func (a *adoption) forget(pid int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.confined, pid)
	if a.held == pid {
		a.held = 0
		a.settle()
	}
}

// settle gives the flag back after the last run.
func (a *adoption) settle() {
	if len(a.runs) == 0 {
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, uintptr(a.was), 0, 0, 0) // it was set by the same call
	}
}

// release forgets a run whose tree is dead.
func (t nativeTree) release() {
	t.adoption.mu.Lock()
	defer t.adoption.mu.Unlock()
	delete(t.adoption.runs, t.leader.Pid)
	t.adoption.settle()
}

// ask sends SIGTERM to the tree.
func (t nativeTree) ask() {
	_ = t.leader.Signal(unix.SIGTERM) // it fails only when the process has ended
	for _, p := range t.members() {
		p.send(unix.SIGTERM)
	}
}

// nativeKill bounds the kill of a native run, enough how often nothing is to be found where this process has children
// besides, and nobody but the search can say that the run has none.
const (
	nativeKill = 5 * time.Second
	enough     = 20
)

// kill ends the tree and counts those beside the direct child. What is found dies with its group, at one moment: a
// group that was killed begins nothing more. A command can make groups as it likes here, so it is searched again and
// again. That this process has no child any more proves that nothing is left, for it adopts what loses its parent;
// where it has others, walks that find nothing have to do. left says that the time was over before.
func (t nativeTree) kill(now clock) (n int, left bool) {
	_ = t.leader.Kill() // it fails only when the process has ended
	killed, pause := map[int]bool{}, firstPause
	for until, quiet := now().Add(nativeKill), 0; ; {
		if errors.Is(unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil), unix.ECHILD) {
			return len(killed), false
		}
		found, sole := t.hunt(killed)
		if found = t.walk(killed) || found; found {
			quiet = 0
		} else if quiet++; quiet == enough || quiet == 2 && !sole {
			return len(killed), false
		}
		if now().After(until) {
			return len(killed), true
		}
		if !found {
			time.Sleep(pause)
			pause = min(2*pause, killPause)
		}
	}
}

// hunt kills what was adopted, with its group, as fast as can be: a walk over all processes is too slow for one that
// begins the next and ends. It serves a run that is the sole one, where whatever child has left this process's session
// is that run's; the lock keeps another from beginning. A child's number is its own until this process buries it.
func (t nativeTree) hunt(killed map[int]bool) (found, sole bool) {
	a := t.adoption
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.runs) != 1 || len(a.confined) > 0 || len(a.before) > 0 {
		return false, false
	}
	self := strconv.Itoa(os.Getpid())
	session, _ := unix.Getsid(0)
	for range 64 {
		text, err := os.ReadFile("/proc/self/task/" + self + "/children") // not every kernel has it; the walk does without
		if err != nil || len(text) == 0 {
			return found, true
		}
		struck := map[int]bool{} // once a pass: a group of a storm has thousands of dead, and a kill asks each
		for _, word := range bytes.Fields(text) {
			pid, err := strconv.Atoi(string(word))
			if err != nil || pid == t.leader.Pid {
				continue
			}
			if own, err := unix.Getsid(pid); err != nil || own == session {
				continue
			}
			if group, err := unix.Getpgid(pid); err == nil && group > 1 && !struck[group] {
				struck[group] = true
				_ = unix.Kill(-group, unix.SIGKILL) // it may have left it since: itself is killed next
			}
			var status unix.WaitStatus
			dead, _ := unix.Wait4(pid, &status, unix.WNOHANG|unix.WALL, nil)
			if dead == pid && status.Signaled() && status.Signal() == unix.SIGKILL || dead != pid && unix.Kill(pid, unix.SIGKILL) == nil {
				killed[pid], found = true, true
			}
		}
	}
	return found, true
}

// walk kills what belongs to the run, each with its group, and buries the adopted dead. It says whether something was
// alive.
func (t nativeTree) walk(killed map[int]bool) (found bool) {
	for _, p := range t.members() {
		switch {
		case p.zombie && p.parent == os.Getpid():
			_, _ = unix.Wait4(p.pid, nil, unix.WNOHANG, nil) // somebody else's zombie is not in the list
		case p.zombie:
		default:
			p.strike()
			if p.send(unix.SIGKILL) {
				killed[p.pid], found = true, true
			}
		}
	}
	return found
}

// strike kills the group of a process that is still the one that was seen. The members of a group are of one session,
// and a session that a run has made holds nothing else; that it is none of this process's is looked at again.
func (p status) strike() {
	own, _ := unix.Getsid(0)
	if now, ok := look(p.pid); ok && now.process == p.process && now.session != own && now.group > 1 {
		_ = unix.Kill(-now.group, unix.SIGKILL)
	}
}

// send signals the process if it is still the one that was seen. A SIGKILL is waited for. It says whether
// the process was there and may be signalled.
func (p status) send(sig unix.Signal) bool {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if now, ok := look(p.pid); !ok || now.process != p.process || unix.PidfdSendSignal(fd, sig, nil, 0) != nil {
		return false
	}
	if sig == unix.SIGKILL {
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100) // the next walk sees it else
	}
	return true
}

// members are the processes of the run beside its direct child, the adopted dead included.
func (t nativeTree) members() []status {
	a, self, leader := t.adoption, os.Getpid(), t.leader.Pid
	a.mu.Lock()
	defer a.mu.Unlock()
	all := everything()
	own, _ := unix.Getsid(0)
	in := map[int]bool{}
	for _, p := range all {
		_, started := a.runs[p.pid]
		started = started || a.confined[p.pid]
		switch {
		case p.pid == leader:
			in[leader] = p.parent == self
		case p.session == leader:
			in[p.pid] = true
		case p.parent == self && p.session != own && !started && !a.before[p.process]:
			in[p.pid] = a.belongs(p, leader)
		}
	}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if in[p.parent] && !in[p.pid] {
				in[p.pid], grown = true, true
			}
		}
	}
	var list []status
	for _, p := range all {
		if in[p.pid] && p.pid != leader && (!p.zombie || p.parent == self) {
			list = append(list, p)
		}
	}
	return list
}

// belongs says whose left-over an adopted process is. A confined one is killed by its launcher. With several
// native runs at once, the environment names the run; one that has shed its environment waits for the last.
func (a *adoption) belongs(p status, leader int) bool {
	if p.zombie {
		return true
	}
	if len(a.confined) > 0 && filters(p.pid) > filters(os.Getpid()) {
		return false
	}
	if len(a.runs) == 1 {
		return true
	}
	env, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/environ")
	return err == nil && bytes.Contains(env, []byte("="+a.runs[leader]+"/"))
}

// filters is how many seccomp filters a process has.
func filters(pid int) int {
	return int(procs.Field("/proc/"+strconv.Itoa(pid)+"/status", "\nSeccomp_filters:"))
}

// everything lists the machine's processes.
func everything() []status {
	var list []status
	for _, pid := range procs.All() {
		if p, ok := look(pid); ok {
			list = append(list, p)
		}
	}
	return list
}

// look reads /proc/PID/stat. The state in it is that of the first thread: a process whose first thread has ended lives as long as another does. The
// kernel counts no threads of one that it is just removing, or whose number another thread takes for an exec: it is
// looked at again, and lives in doubt.
func look(pid int) (status, bool) {
	for again := 2; ; again-- {
		fields := procs.Stat(pid)
		if fields == nil {
			return status{}, false
		}
		threads := string(fields[procs.Threads])
		if threads == "0" && again > 0 {
			continue
		}
		p := status{process: process{pid: pid}, zombie: threads == "1" && (fields[procs.State][0] == 'Z' || fields[procs.State][0] == 'X')}
		p.parent, _ = strconv.Atoi(string(fields[procs.Parent]))
		p.group, _ = strconv.Atoi(string(fields[procs.Group]))
		p.session, _ = strconv.Atoi(string(fields[procs.Session]))
		p.start, _ = strconv.ParseUint(string(fields[procs.Start]), 10, 64)
		return p, true
	}
}
