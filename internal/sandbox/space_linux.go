package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// space is a run in namespaces of its own, from the runtime's side (§10.5). The first process in them is a fork of
// the runtime, of one thread and with all signals held back. It carries out the script, starts the command as its
// child, and reaps until nothing is left; the kernel kills whatever is in the namespace when it ends.
type space struct {
	script
	birth *birth
	flags uintptr // of clone: the namespaces

	// Of the first process alone.
	args    [6]uintptr
	child   uintptr
	failed  uintptr // why the command was not executed
	say     spaceReport
	poll    [2]unix.PollFd
	status  uint32
	usage   unix.Rusage
	heard   [128]byte
	nothing int32
}

// spaceReport is what the first process says over the control socket.
type spaceReport struct {
	kind   uint32
	step   uint32 // that failed
	no     uint32 // why
	status uint32 // of the command
	killed uint32 // left-overs
	_      uint32
	usage  unix.Rusage // of the command
}

// What a report is about.
const (
	reportFailed  = iota + 1 // a step of the script
	reportRefused            // the kernel did not execute the command
	reportStarted
	reportEnded
)

// slotChildren is the first slot of every script: a descriptor that tells of children that end.
const slotChildren = 0

// startTime bounds the building of a jail.
const startTime = 30 * time.Second

// namespaces are those of every run; the network's is added where the command has none.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// jailError is a failure before the command: the jail could not be built.
type jailError struct{ error }

func (e jailError) Unwrap() error { return e.error }

// newSpace writes the script of a run. control and files are of the first process, none of them below 10.
func newSpace(mode string, files [3]int, control, rules int) *space {
	s := &space{flags: namespaces}
	if mode == "none" {
		s.flags |= unix.CLONE_NEWNET
	}
	s.files(files, control, rules)
	children := &unix.Sigset_t{}
	children.Val[0] = 1 << (uint(unix.SIGCHLD) - 1)
	s.call("signalfd", unix.SYS_SIGNALFD4, ^uintptr(0), pin(&s.script, children), 8, unix.SFD_CLOEXEC)
	s.save()
	s.call("pdeathsig", unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL))
	s.call("setsid", unix.SYS_SETSID)
	s.own(strconv.Itoa(os.Geteuid()), strconv.Itoa(os.Getegid()))
	return s
}

// spaced are the processes of a run in namespaces of their own (§6.9). Killing the first of them kills all.
type spaced struct {
	*launcher
	filter   filter
	layout   *layout
	mode     string
	kernel   Kernel
	grants   []grant
	services func() []service

	control, handle int
	script          *script
	now             clock
}

func (p *spaced) begin(r *run, files [3]int) (pid, handle int, err error) {
	rules := -1
	if p.kernel.ABI > 0 { // what Landlock knows here it keeps too: it tells programs from other files
		made, err := newRuleset(p.kernel, p.mode, p.grants)
		if err != nil {
			return 0, -1, jailError{err}
		}
		rules = made.fd
		defer unix.Close(rules)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, -1, err
	}
	p.control = pair[0]
	pid, handle, err = p.fork(r, files, pair[1], rules)
	err = errors.Join(err, unix.Close(pair[1]))
	if err == nil {
		p.handle = handle
		if err = p.started(); err == nil {
			return pid, p.control, nil // the last word comes there
		}
		_ = unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0) // it has ended, or is given up
		_, _, again := reap(pid)
		err = errors.Join(err, again, unix.Close(handle))
	}
	_ = unix.Close(p.control)
	p.control, p.handle = -1, -1
	return 0, -1, err
}

// fork makes the first process with copies of the descriptors that are in nobody's way.
func (p *spaced) fork(r *run, files [3]int, control, rules int) (pid, handle int, err error) {
	var moved []int
	defer func() {
		for _, fd := range moved {
			_ = unix.Close(fd)
		}
	}()
	for _, fd := range append(files[:], control, rules) {
		if fd < 0 {
			moved = append(moved, fd)
			continue
		}
		to, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 10)
		if err != nil {
			return 0, -1, err
		}
		moved = append(moved, to)
	}
	s := newSpace(p.mode, [3]int(moved[:3]), moved[3], moved[4])
	s.root(p.layout, p.private.root, p.kernel.ABI)
	s.strip(p.filter, rules >= 0)
	if p.filter.notifies {
		s.hand()
	}
	if s.birth, err = newBirth(r.job, files); err != nil || s.err != nil {
		return 0, -1, errors.Join(err, s.err)
	}
	p.script = &s.script
	return s.start()
}

// started waits until the command has begun. The listener of its filter comes first, where it has one.
func (p *spaced) started() error {
	until := p.now().Add(startTime)
	for {
		report, lent, err := p.hear(until)
		switch {
		case err != nil:
			return jailError{err}
		case lent >= 0:
			p.listener = lent
			p.broker = newBroker(lent, p.services()...)
		case report.kind == reportStarted:
			return nil
		case report.kind == reportRefused && report.no != 0:
			return unix.Errno(report.no)
		case report.kind == reportFailed:
			return jailError{p.script.failure(report.step, unix.Errno(report.no))}
		default:
			return jailError{fmt.Errorf("the first process says %d", report.kind)}
		}
	}
}

// hear takes one message of the first process: a report, or the listener.
func (p *spaced) hear(until time.Time) (report spaceReport, lent int, err error) {
	poll := []unix.PollFd{{Fd: int32(p.control), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(poll, int(max(until.Sub(p.now())/time.Millisecond, 0)))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return report, -1, errors.Join(err, errors.New("the first process says nothing"))
		}
		break
	}
	const size = int(unsafe.Sizeof(report))
	var text [size + 1]byte
	var oob [64]byte
	n, more, flags, _, err := unix.Recvmsg(p.control, text[:], oob[:], unix.MSG_CMSG_CLOEXEC)
	switch {
	case err != nil:
		return report, -1, err
	case flags&unix.MSG_CTRUNC != 0:
		return report, -1, errors.New("a message of the first process is cut off")
	case more > 0 && n == 1:
		return listenerOf(oob[:more])
	case n == 0:
		return report, -1, errors.New("the first process ended without a word")
	case n != size:
		return report, -1, fmt.Errorf("the first process says %d bytes", n)
	}
	return *(*spaceReport)(unsafe.Pointer(&text[0])), -1, nil
}

// listenerOf takes the one descriptor out of a message.
func listenerOf(oob []byte) (report spaceReport, lent int, err error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(messages) != 1 {
		return report, -1, errors.Join(err, errors.New("a message of the first process makes no sense"))
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return report, -1, errors.Join(err, errors.New("a message of the first process makes no sense"))
	}
	return report, fds[0], nil
}

func (p *spaced) kill(sig unix.Signal) error {
	if p.handle < 0 {
		return nil
	}
	err := error(nil)
	if sig == unix.SIGKILL {
		err = unix.PidfdSendSignal(p.handle, sig, nil, 0)
	} else {
		_, err = unix.Write(p.control, []byte{byte(sig)})
	}
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		return nil // it has ended
	}
	return err
}

// finish takes the last report, which says that nothing else is alive. What is left is the first process on its way
// out: the kernel takes its mounts down meanwhile, for which nobody needs to wait. There is no such report where that
// process was killed, by the runtime for a limit or by the kernel for want of memory: then the command was too.
func (p *spaced) finish(r *run) error {
	report, _, silent := p.hear(p.now())
	handle := p.handle
	p.control, p.handle = -1, -1
	if silent == nil && report.kind == reportEnded {
		r.outcome.Report.Killed = int(report.killed)
		r.outcome.ended(unix.WaitStatus(report.status), report.usage, r.job.limits)
		go func() {
			_, _, _ = reap(r.pid)
			_ = unix.Close(handle)
		}()
		return nil
	}
	_ = unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0) // it has ended
	status, usage, err := reap(r.pid)
	switch err = errors.Join(err, unix.Close(handle)); {
	case err != nil:
		return err
	case status.Signaled():
		r.outcome.ended(status, usage, r.job.limits)
	default:
		return errors.Join(errors.New("the first process ended before the command"), silent)
	}
	return nil
}

// spacesPossible says why no run can have namespaces of its own here, "" when it can. A first process does what
// every one does, builds a jail of one device, and ends; nothing of it is left.
func spacesPossible() string {
	err := trySpace()
	if err == nil {
		return ""
	}
	return err.Error()
}

func trySpace() error {
	l := newLayout()
	if err := l.add(grant{path: "/dev/null", rights: rightsRead}, false); err != nil {
		return err
	}
	l.finish(0)
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(null)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	p := &spaced{control: pair[0], mode: "none", filter: filter{}, layout: l, now: time.Now}
	defer unix.Close(pair[0])
	high, err := unix.FcntlInt(uintptr(null), unix.F_DUPFD_CLOEXEC, 10)
	if err != nil {
		return errors.Join(err, unix.Close(pair[1]))
	}
	defer unix.Close(high)
	control, err := unix.FcntlInt(uintptr(pair[1]), unix.F_DUPFD_CLOEXEC, 10)
	if err = errors.Join(err, unix.Close(pair[1])); err != nil {
		return err
	}
	s := newSpace("none", [3]int{high, high, high}, control, -1)
	s.root(l, "/dev", 0)
	s.call("end", unix.SYS_EXIT_GROUP, 0)
	p.script = &s.script
	pid, handle, err := s.start()
	if err = errors.Join(err, unix.Close(control)); err != nil {
		return err
	}
	report, _, silent := p.hear(p.now().Add(startTime))
	_ = unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0) // one that hangs; it has ended else
	status, _, err := reap(pid)
	err = errors.Join(err, unix.Close(handle))
	switch {
	case err != nil:
		return err
	case silent == nil && report.kind == reportFailed:
		return s.failure(report.step, unix.Errno(report.no))
	case !status.Exited() || status.ExitStatus() != 0:
		return errors.New("the first process ended badly")
	}
	return nil
}
