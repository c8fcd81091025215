package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

func aideAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// Seclude takes from this process, for good, what an Aide that only computes does not need: descriptors beside its three
// streams, memory above the bound, core dumps, and every system call but those by which Go manages memory, threads and
// time, and by which it reads and writes what it has open. It opens no file and no socket, starts no program and
// signals no other process.
func Seclude(memory uint64) error {
	if err := onlyStreams(); err != nil {
		return os.NewSyscallError("close_range", err)
	}
	for _, b := range []bound{
		{unix.RLIMIT_CORE, unix.Rlimit{Cur: noCore, Max: noCore}},
		{unix.RLIMIT_DATA, unix.Rlimit{Cur: memory, Max: memory}},
	} {
		var own unix.Rlimit
		if err := unix.Getrlimit(int(b.resource), &own); err != nil {
			return os.NewSyscallError("getrlimit", err)
		}
		b.limit.Cur, b.limit.Max = min(b.limit.Cur, own.Max), min(b.limit.Max, own.Max)
		if err := unix.Setrlimit(int(b.resource), &b.limit); err != nil {
			return os.NewSyscallError("setrlimit", err)
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	program, err := secluded(uint32(os.Getpid()))
	if err != nil {
		return err
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: (*unix.SockFilter)(unsafe.Pointer(&program[0]))}
	thread, _, no := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	switch {
	case no != 0:
		return os.NewSyscallError("seccomp", no)
	case thread != 0:
		return fmt.Errorf("seccomp: thread %d cannot be confined", thread)
	}
	return nil
}

func onlyStreams() error {
	err := unix.CloseRange(3, 1<<32-1, 0)
	if !errors.Is(err, unix.ENOSYS) {
		return err
	}
	for fd := 3; fd < 1024; fd++ { // before Linux 5.9
		_ = unix.Close(fd) // most are none
	}
	return nil
}

// secluded is the filter of Seclude: what is not in the list is refused.
func secluded(self uint32) ([]insn, error) {
	machine, known := archOf(runtime.GOARCH)
	if !known {
		return nil, errors.New("seccomp: this machine has no filter")
	}
	a := newAssembler()
	own, thread, older, signal, allowed := a.label(), a.label(), a.label(), a.label(), a.label()
	a.op(opLoad, offArch)
	a.jump(opJeq, machine.audit, own, next)
	a.op(opRet, retKill)
	a.place(own)
	a.op(opLoad, offNumber)
	for _, number := range []uint32{
		unix.SYS_READ, unix.SYS_WRITE, unix.SYS_CLOSE, unix.SYS_FCNTL,
		unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MPROTECT, unix.SYS_MADVISE, unix.SYS_BRK,
		unix.SYS_FUTEX, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY,
		unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_RESTART_SYSCALL,
		unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2,
		unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_GETRANDOM, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
	} {
		a.jump(opJeq, number, allowed, next)
	}
	a.jump(opJeq, unix.SYS_CLONE, thread, next)
	a.jump(opJeq, unix.SYS_CLONE3, older, next)
	a.jump(opJeq, unix.SYS_TGKILL, signal, next)
	a.op(opRet, retErrno|eperm)
	a.place(thread) // and no process
	a.op(opLoad, offArgs)
	a.jump(opJset, unix.CLONE_THREAD, allowed, next)
	a.op(opRet, retErrno|eperm)
	a.place(older) // whose flags no filter sees: a C library then takes the other one
	a.op(opRet, retErrno|enosys)
	a.place(signal) // between its own threads, as Go stops one that computes
	a.op(opLoad, offArgs)
	a.jump(opJeq, self, allowed, next)
	a.op(opRet, retErrno|eperm)
	a.place(allowed)
	a.op(opRet, retAllow)
	f, err := a.link()
	return f.program, err
}
