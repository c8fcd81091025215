package sandbox

import (
	"errors"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"hcpx/internal/procs"
)

// signals is the service that sends signals for the child, to processes of its own tree and to nobody else, and
// lets groups and sessions begin as long as the tree is not being killed (§10.5). What a process sends to itself the kernel
// carries out: its number is its own for as long as it waits here.
type signals struct{ tree *held }

func (s *signals) calls() []string {
	return []string{"kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal", "setsid", "setpgid"}
}

func (s *signals) blocks() bool { return false }

func (s *signals) end() {}

func (s *signals) close() {}

func (s *signals) act(c *call) answer {
	own := procs.Of(int(c.PID))
	if no := c.waits(); no != 0 || own == 0 {
		return fails(unix.ESRCH)
	}
	word := func(i int) int { return int(int32(c.Args[i])) }
	switch c.name {
	case "kill":
		return s.kill(own, word(0), word(1))
	case "rt_sigqueueinfo":
		if word(0) == own {
			return answer{kind: proceeds}
		}
		return s.queue(c, signal{group: word(0), number: word(1), info: c.Args[2]})
	case "tkill":
		return s.thread(c, own, signal{group: procs.Of(word(0)), thread: word(0), number: word(1)})
	case "tgkill":
		return s.thread(c, own, signal{group: word(0), thread: word(1), number: word(2)})
	case "rt_tgsigqueueinfo":
		return s.thread(c, own, signal{group: word(0), thread: word(1), number: word(2), info: c.Args[3]})
	case "pidfd_send_signal":
		return s.handle(c)
	case "setsid":
		return s.group(own)
	case "setpgid":
		return s.move(own, word(0), word(1))
	}
	return fails(unix.EPERM)
}

// group lets the kernel make a group, or move a process into one (0), unless the tree is being killed.
func (s *signals) group(begins int) answer {
	if s.tree.admit(begins) {
		return answer{kind: proceeds}
	}
	return answer{kind: stays}
}

// move is setpgid(2): a group begins where a process shall lead one; any other must be there already. The kernel
// moves the caller and its children only, so what is not in the tree is none of them.
func (s *signals) move(own, target, group int) answer {
	if target == 0 {
		target = own
	}
	if group == 0 {
		group = target
	}
	switch {
	case group < 0:
		return fails(unix.EINVAL)
	case target != own && !s.tree.holds(target):
		return fails(unix.ESRCH)
	case group != target:
		return s.group(0)
	}
	return s.group(group)
}

// signal is what a child wants to send: to a process, or to a thread of it.
type signal struct {
	group, thread int
	number        int
	info          uint64 // address of a siginfo in the child, 0 = none
}

// kill is kill(2) to a process, to a process group, or to all.
func (s *signals) kill(own, target, number int) answer {
	switch {
	case number < 0 || number > 64:
		return fails(unix.EINVAL)
	case target == own:
		return answer{kind: proceeds}
	case target > 0:
		return s.one(target, func(fd int) error { return unix.PidfdSendSignal(fd, unix.Signal(number), nil, 0) })
	}
	group := -target
	if target == 0 {
		caller, ok := look(own)
		if !ok {
			return fails(unix.ESRCH)
		}
		group = caller.group
	}
	reached := false
	s.tree.each(func(p status, fd int) {
		if target == -1 && p.pid != own || target != -1 && p.group == group {
			reached = unix.PidfdSendSignal(fd, unix.Signal(number), nil, 0) == nil || reached
		}
	})
	switch {
	case reached:
		return answer{}
	case target == -1, unix.Kill(-group, 0) == unix.ESRCH:
		return fails(unix.ESRCH)
	}
	return fails(unix.EPERM)
}

// one sends to a process of the tree. The handle is opened before it is looked who that is: if the number has
// been given to somebody else since, the handle is the dead one's, and reaches nobody.
func (s *signals) one(pid int, send func(pidfd int) error) answer {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fails(unix.ESRCH)
	}
	defer unix.Close(fd)
	if !s.tree.holds(pid) {
		return fails(unix.EPERM)
	}
	return fails(number(send(fd)))
}

// queue is a signal with a value. Its code must say that it was sent by a process: the kernel's own are refused.
func (s *signals) queue(c *call, sig signal) answer {
	info, no := s.info(c, sig)
	if no != 0 {
		return fails(no)
	}
	if info == nil {
		return fails(unix.EFAULT)
	}
	info.Signo = int32(sig.number)
	return s.one(sig.group, func(fd int) error { return unix.PidfdSendSignal(fd, unix.Signal(sig.number), info, 0) })
}

// info copies what a signal says of itself.
func (s *signals) info(c *call, sig signal) (*unix.Siginfo, unix.Errno) {
	if sig.info == 0 {
		return nil, 0
	}
	raw, no := c.bytes(sig.info, int(unsafe.Sizeof(unix.Siginfo{})))
	if no != 0 {
		return nil, no
	}
	if no := c.waits(); no != 0 {
		return nil, no
	}
	info := *(*unix.Siginfo)(unsafe.Pointer(&raw[0]))
	const byThread = -6
	if info.Code >= 0 || info.Code == byThread {
		return nil, unix.EPERM
	}
	return &info, 0
}

// thread is a signal to one thread. There is no handle of a thread on the kernels that need this, so the kernel
// is told both numbers, and that the process is the one that was looked at is seen before and after.
func (s *signals) thread(c *call, own int, sig signal) answer {
	switch {
	case sig.thread > 0 && sig.group == 0 && c.name == "tkill":
		return fails(unix.ESRCH)
	case sig.group <= 0 || sig.thread <= 0:
		return fails(unix.EINVAL)
	case sig.group == own && (c.name != "tkill" || sig.thread == int(c.PID)):
		return answer{kind: proceeds}
	}
	info, no := s.info(c, sig)
	if no != 0 {
		return fails(no)
	}
	if info == nil && c.name == "rt_tgsigqueueinfo" {
		return fails(unix.EFAULT)
	}
	if _, err := os.Stat("/proc/" + strconv.Itoa(sig.group) + "/task/" + strconv.Itoa(sig.thread)); err != nil {
		return fails(unix.ESRCH)
	}
	return s.one(sig.group, func(fd int) error {
		if err := unix.PidfdSendSignal(fd, 0, nil, 0); err != nil {
			return err
		}
		if c.name != "rt_tgsigqueueinfo" {
			return unix.Tgkill(sig.group, sig.thread, unix.Signal(sig.number))
		}
		_, _, no := unix.Syscall6(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(sig.group), uintptr(sig.thread), uintptr(sig.number),
			uintptr(unsafe.Pointer(info)), 0, 0)
		if no != 0 {
			return no
		}
		return nil
	})
}

// handle is a signal by a handle of a process. The child's handle is not copied: anything could stand under its number,
// a socket that lingers for one, and whoever closes the last copy waits. Which process it means is read instead, and
// that one is signalled.
func (s *signals) handle(c *call) answer {
	const whole = 2 // PIDFD_SIGNAL_THREAD_GROUP
	if flags := uint32(c.Args[3]); flags&^whole != 0 {
		return fails(unix.EINVAL)
	}
	pid := pidOf(int(c.PID), int(int32(c.Args[0])))
	if no := c.waits(); no != 0 || pid == 0 {
		return fails(unix.EBADF)
	}
	info, no := s.info(c, signal{info: c.Args[2]})
	if no != 0 {
		return fails(no)
	}
	if pid < 0 {
		return fails(unix.ESRCH)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.EINVAL) {
		fd, err = unix.PidfdOpen(pid, pidfdThread) // it was the handle of a thread
	}
	if err != nil {
		return fails(unix.ESRCH)
	}
	defer unix.Close(fd)
	if !s.tree.holds(pid) {
		return fails(unix.EPERM)
	}
	return fails(number(unix.PidfdSendSignal(fd, unix.Signal(int32(c.Args[1])), info, 0)))
}

// pidOf is the process that a handle of a thread's means: -1 when it has ended, 0 when it is no handle.
func pidOf(tid, fd int) int {
	return int(procs.Field("/proc/"+strconv.Itoa(tid)+"/fdinfo/"+strconv.Itoa(fd), "\nPid:"))
}
