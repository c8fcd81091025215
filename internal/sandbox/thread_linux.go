package sandbox

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// onOwnThread runs f on an OS thread that no other goroutine will ever use: it is locked, never unlocked,
// and dies with f. The main thread is never taken; it would not die, and /proc/self shows it.
func onOwnThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f()
			return
		}
		done := make(chan struct{})
		onOwnThread(func() { defer close(done); f() })
		<-done
		runtime.UnlockOSThread()
	}()
}

// domain is the proof that the calling thread entered a Landlock domain whose signals stay inside. Only
// enter makes one. Killing everything that may be signalled is right in such a thread, and a catastrophe
// in any other.
type domain struct{ tid int }

// strip takes from the calling thread, for good, what needs no policy of files: new privileges, capabilities,
// and the system calls of the filter (§10.5). The thread must be an own one. The answer is the listener of
// the metadata broker.
func strip(f filter, secret [2]uint32) (int, error) {
	tid := unix.Gettid()
	if tid == unix.Getpid() {
		return -1, errors.New("the main thread cannot be confined")
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, fmt.Errorf("no_new_privs: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return -1, fmt.Errorf("capset: %w", err)
	}
	return f.load(launcherValues{markThread: uint32(tid), markProcess: uint32(unix.Getpid()), markKnock: secret[0],
		markKnockHigh: secret[1]})
}

// enter confines the calling, stripped thread to the ruleset, for good, and proves that signals are held as the
// mode says. Only where they stay inside the domain there is one that can be killed as a whole.
func (r ruleset) enter(mode signalMode) (domain, error) {
	if _, _, no := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r.fd), 0, 0); no != 0 {
		return domain{}, fmt.Errorf("landlock_restrict_self: %w", no)
	}
	if mode != signalsScoped {
		// The filter refuses this one itself, in both modes; the others it hands over, or refuses too.
		if err := unix.Kill(unix.Getpid(), 0); !errors.Is(err, unix.EPERM) {
			return domain{}, errors.New("signals are not refused")
		}
		return domain{}, nil
	}
	if !r.scoped {
		return domain{}, errors.New("the ruleset does not confine signals")
	}
	// Believe the kernel only when the parent of this process is out of reach.
	if parent := unix.Getppid(); parent > 1 && unix.Kill(parent, 0) == nil {
		return domain{}, errors.New("signals still leave the domain")
	}
	return domain{tid: unix.Gettid()}, nil
}

// load confines the calling thread's system calls and returns the listener for those that are handed over, -1
// where none is. A notified call waits killable only, so that a signal cannot make it happen twice.
func (f filter) load(values launcherValues) (int, error) {
	code := f.with(values)
	program := unix.SockFprog{Len: uint16(len(code)), Filter: (*unix.SockFilter)(unsafe.Pointer(&code[0]))}
	flags := uintptr(0)
	if f.notifies {
		flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	}
	fd, _, no := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	switch {
	case no != 0:
		return -1, fmt.Errorf("seccomp: %w", no)
	case !f.notifies:
		return -1, nil
	}
	return int(fd), nil
}

// conceal makes the memory, descriptors and directories of this process invisible to others of the same
// user. The launcher's thread shares all of them, and its children are in its domain, so Landlock alone
// would let them in by /proc. It also keeps credentials out of core dumps.
func conceal() error { return unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }

// here says whether the calling thread is the one that entered the domain.
func (d domain) here() bool { return d.tid != 0 && d.tid == unix.Gettid() }

// kill signals every process of the domain at once; the kernel holds the list still meanwhile, so no fork
// escapes.
func (d domain) kill(sig unix.Signal) error {
	if !d.here() {
		return errors.New("the tree can only be killed by the thread that confined it")
	}
	if err := unix.Kill(-1, sig); err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.EPERM) {
		return err
	}
	return nil
}

// running opens a handle to a process of the domain that has not ended; -1 when pid is none.
func (d domain) running(pid int) int {
	if !d.here() || pid == unix.Getpid() || unix.Kill(pid, 0) != nil {
		return -1
	}
	fd, err := unix.PidfdOpen(pid, 0) // fails for a thread that is no process
	if err != nil {
		return -1
	}
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	if n, err := unix.Poll(poll, 0); err == nil && n > 0 {
		_ = unix.Close(fd)
		return -1
	}
	return fd
}
