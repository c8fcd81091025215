//go:build amd64 || arm64

package sandbox

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// start makes the first process.
func (s *space) start() (pid, pidfd int, err error) {
	handle := int32(-1)
	syscall.ForkLock.Lock()
	child, no := s.fork(&handle)
	afterFork()
	syscall.ForkLock.Unlock()
	if no != 0 {
		return 0, -1, os.NewSyscallError("clone", syscall.Errno(no))
	}
	return int(child), int(handle), nil
}

// fork is in the child the whole life of the first process; it never returns there. Nothing may be allocated, locked
// or called that is not nosplit. Whoever calls fork calls afterFork.
//
//go:noinline
//go:norace
//go:nocheckptr
func (s *space) fork(pidfd *int32) (pid, no uintptr) {
	beforeFork()
	pid, no = vfork(s.flags|unix.CLONE_PIDFD|uintptr(syscall.SIGCHLD), pidfd)
	if pid != 0 || no != 0 {
		return pid, no
	}
	if s.perform() && s.begin() {
		s.attend()
	}
	_, _, _ = syscall.RawSyscall(syscall.SYS_WRITE, fdControl, uintptr(unsafe.Pointer(&s.say)), unsafe.Sizeof(s.say))
	for {
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
	}
}

// perform carries out the script.
//
//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func (s *space) perform() bool {
	for i := 0; i < len(s.steps); i++ {
		st := &s.steps[i]
		for k := 0; k < 6; k++ {
			s.args[k] = st.args[k]
			if st.from[k] != 0 {
				s.args[k] = s.slots[st.from[k]-1]
			}
		}
		r, _, e := syscall.RawSyscall6(st.nr, s.args[0], s.args[1], s.args[2], s.args[3], s.args[4], s.args[5])
		if e != 0 && !st.may || st.id != nil && (s.stat.Dev != st.id.dev || s.stat.Ino != st.id.ino) {
			s.say.kind, s.say.step, s.say.no = reportFailed, uint32(i), uint32(e)
			return false
		}
		if st.into >= 0 {
			s.slots[st.into] = r
		}
		if st.lent != nil {
			*st.lent = int32(r)
		}
	}
	return true
}

// begin starts the command, says so, and lets go of its standard files.
//
//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func (s *space) begin() bool {
	child, no := s.command()
	if s.failed != 0 || no != 0 {
		s.say.kind, s.say.no = reportRefused, uint32(s.failed|no)
		return false
	}
	s.child = child
	s.say.kind = reportStarted
	_, _, _ = syscall.RawSyscall(syscall.SYS_WRITE, fdControl, uintptr(unsafe.Pointer(&s.say)), unsafe.Sizeof(s.say))
	_, _, _ = syscall.RawSyscall(unix.SYS_CLOSE_RANGE, 0, 2, 0)
	return true
}

// attend reaps whatever ends, and passes on signals of the runtime, until the command has ended or the runtime has.
//
//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func (s *space) attend() {
	s.poll[0].Fd, s.poll[0].Events = fdControl, unix.POLLIN
	s.poll[1].Fd, s.poll[1].Events = int32(s.slots[slotChildren]), unix.POLLIN
	for {
		_, _, _ = syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&s.poll[0])), 2, 0, 0, 0, 0)
		if s.poll[1].Revents != 0 {
			_, _, _ = syscall.RawSyscall(syscall.SYS_READ, s.slots[slotChildren], uintptr(unsafe.Pointer(&s.heard[0])), unsafe.Sizeof(s.heard))
		}
		for {
			got, _, e := syscall.RawSyscall6(syscall.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&s.status)), unix.WNOHANG, uintptr(unsafe.Pointer(&s.usage)), 0, 0)
			if e != 0 || got == 0 {
				break
			}
			if got == s.child {
				s.say.kind, s.say.status, s.say.usage = reportEnded, s.status, s.usage
				s.sweep()
				return
			}
		}
		if s.poll[0].Revents == 0 {
			continue
		}
		// What is read is a signal for all. Nothing to read is the end of the runtime, and so of this process.
		if r, _, e := syscall.RawSyscall(syscall.SYS_READ, fdControl, uintptr(unsafe.Pointer(&s.heard[0])), 1); e != 0 || r != 1 {
			return
		}
		_, _, _ = syscall.RawSyscall(syscall.SYS_KILL, ^uintptr(0), uintptr(s.heard[0]), 0)
	}
}

// sweep kills what the command left behind, and counts it. The kernel holds the list of processes still while it
// signals them all, so none escapes by forking.
//
//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func (s *space) sweep() {
	for {
		_, _, _ = syscall.RawSyscall(syscall.SYS_KILL, ^uintptr(0), uintptr(syscall.SIGKILL), 0)
		if _, _, e := syscall.RawSyscall6(syscall.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&s.status)), 0, 0, 0, 0); e != 0 {
			return
		}
		if s.status&0x7f == uint32(syscall.SIGKILL) {
			s.say.killed++
		}
	}
}

// command starts the command from the first process, confined as that is. It has a frame of its own, which only the
// child uses after the clone.
//
//go:noinline
//go:nosplit
//go:norace
//go:nocheckptr
func (s *space) command() (pid, no uintptr) {
	var i int
	var e syscall.Errno
	pid, no = vfork(unix.CLONE_VFORK|unix.CLONE_VM|uintptr(syscall.SIGCHLD), &s.nothing)
	if pid != 0 || no != 0 {
		return pid, no
	}
	afterForkInChild()
	if _, _, e = syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0); e != 0 {
		goto fail
	}
	if s.birth.dir != nil {
		if _, _, e = syscall.RawSyscall(syscall.SYS_CHDIR, uintptr(unsafe.Pointer(s.birth.dir)), 0, 0); e != 0 {
			goto fail
		}
	}
	for i = 0; i < len(s.birth.bounds); i++ {
		if _, _, e = syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, s.birth.bounds[i].resource, uintptr(unsafe.Pointer(&s.birth.bounds[i].limit)), 0, 0, 0); e != 0 {
			goto fail
		}
	}
	if _, _, e = syscall.RawSyscall(unix.SYS_CLOSE_RANGE, 3, 1<<32-1, unix.CLOSE_RANGE_CLOEXEC); e != 0 {
		goto fail
	}
	_, _, e = syscall.RawSyscall(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(s.birth.path)), uintptr(unsafe.Pointer(&s.birth.argv[0])), uintptr(unsafe.Pointer(&s.birth.env[0])))
fail:
	s.failed = uintptr(e)
	for {
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 253, 0, 0)
	}
}
