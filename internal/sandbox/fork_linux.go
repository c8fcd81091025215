//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// birth is what a command begins as. A child is made here and not by the standard library, because that has no
// place to set a limit between fork and exec, and a limit that comes later is none in the first moments (§10.4).
type birth struct {
	path      *byte
	argv, env []*byte
	dir       *byte // nil = where the runtime is
	files     [3]int
	secret    uintptr // shown with setsid, which ignores it; the filter may not
	bounds    []bound
}

// newBirth makes everything that must not be allocated in the child.
func newBirth(j *job, files [3]int) (*birth, error) {
	b := &birth{files: files, bounds: j.limits.bounds()}
	var errs [4]error
	b.path, errs[0] = syscall.BytePtrFromString(j.path)
	b.argv, errs[1] = syscall.SlicePtrFromStrings(j.argv)
	b.env, errs[2] = syscall.SlicePtrFromStrings(j.env)
	if j.dir != "" {
		b.dir, errs[3] = syscall.BytePtrFromString(j.dir)
	}
	return b, errors.Join(errs[:]...)
}

// The runtime's own preparation for a fork: signals are held back, and the stack cannot grow.
//
//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

//go:linkname afterForkInChild syscall.runtime_AfterForkInChild
func afterForkInChild()

// vfork calls clone with flags that share the memory and hold the caller until the child's exec. It returns
// twice, on one stack: to the child first, with 0.
//
//go:noescape
func vfork(flags uintptr, pidfd *int32) (pid uintptr, no uintptr)

// start makes the child, confined as the calling thread is, and returns when it has become the command.
func (b *birth) start() (pid, pidfd int, err error) {
	for i, fd := range b.files { // so that moving one to its place closes none of the others
		if fd <= 2 {
			moved, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
			if err != nil {
				return 0, -1, err
			}
			defer unix.Close(moved)
			b.files[i] = moved
		}
	}
	syscall.ForkLock.Lock()
	var failed [2]int
	if err := unix.Pipe2(failed[:], unix.O_CLOEXEC); err != nil {
		syscall.ForkLock.Unlock()
		return 0, -1, err
	}
	handle := int32(-1)
	parent := os.Getpid()
	child, no := b.fork(&handle, uintptr(parent), uintptr(failed[1]))
	afterFork()
	syscall.ForkLock.Unlock()
	_ = unix.Close(failed[1])
	defer unix.Close(failed[0])
	if no != 0 {
		return 0, -1, syscall.Errno(no)
	}
	if err := told(failed[0]); err != nil {
		_, _ = unix.Wait4(int(child), nil, 0, nil)
		_ = unix.Close(int(handle))
		return 0, -1, err
	}
	return int(child), int(handle), nil
}

// told is what the child wrote before it gave up; nil when it became the command, which closed its end.
func told(fd int) error {
	var no uint32
	report := unsafe.Slice((*byte)(unsafe.Pointer(&no)), unsafe.Sizeof(no))
	for {
		n, err := unix.Read(fd, report)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n == 0:
			return nil
		case n != len(report) || no == 0:
			return unix.EPIPE
		default:
			return syscall.Errno(no)
		}
	}
}

// fork has a frame of its own, which only the child uses after the clone: the parent leaves it at once. In the
// child nothing may be allocated, locked or called that is not nosplit. Whoever calls fork calls afterFork.
//
//go:noinline
//go:norace
//go:nocheckptr
func (b *birth) fork(pidfd *int32, parent, report uintptr) (pid, no uintptr) {
	const flags = uintptr(unix.CLONE_VFORK | unix.CLONE_VM | unix.CLONE_PIDFD | uintptr(syscall.SIGCHLD))
	var i int
	var got uintptr
	var e syscall.Errno
	beforeFork()
	pid, no = vfork(flags, pidfd)
	if pid != 0 || no != 0 {
		return pid, no
	}
	afterForkInChild()
	if _, _, e = syscall.RawSyscall(syscall.SYS_SETSID, b.secret, 0, 0); e != 0 {
		goto fail
	}
	// The child dies with the launcher, which outlives it; one whose runtime is gone already goes too.
	if _, _, e = syscall.RawSyscall(syscall.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0); e != 0 {
		goto fail
	}
	if got, _, _ = syscall.RawSyscall(syscall.SYS_GETPPID, 0, 0, 0); got != parent {
		e = syscall.ESRCH
		goto fail
	}
	if b.dir != nil {
		if _, _, e = syscall.RawSyscall(syscall.SYS_CHDIR, uintptr(unsafe.Pointer(b.dir)), 0, 0); e != 0 {
			goto fail
		}
	}
	for i = 0; i < len(b.files); i++ {
		if _, _, e = syscall.RawSyscall(syscall.SYS_DUP3, uintptr(b.files[i]), uintptr(i), 0); e != 0 {
			goto fail
		}
	}
	for i = 0; i < len(b.bounds); i++ {
		if _, _, e = syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, b.bounds[i].resource, uintptr(unsafe.Pointer(&b.bounds[i].limit)), 0, 0, 0); e != 0 {
			goto fail
		}
	}
	_, _, e = syscall.RawSyscall(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(b.path)), uintptr(unsafe.Pointer(&b.argv[0])), uintptr(unsafe.Pointer(&b.env[0])))
fail:
	_, _, _ = syscall.RawSyscall(syscall.SYS_WRITE, report, uintptr(unsafe.Pointer(&e)), 4)
	for {
		_, _, _ = syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 253, 0, 0)
	}
}
