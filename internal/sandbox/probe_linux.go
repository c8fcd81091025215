package sandbox

import (
	"errors"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// probe asks the kernel what it can do (§10.5), never its version: a call that a container blocks is as
// missing as one that the kernel lacks. It changes nothing.
func probe() Kernel {
	k := Kernel{System: runtime.GOOS + "/" + runtime.GOARCH}
	_, k.Supported = archOf(runtime.GOARCH)
	ask := func(flag uintptr) int {
		n, _, no := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, flag)
		if no != 0 {
			return 0
		}
		return int(n)
	}
	k.ABI = ask(unix.LANDLOCK_CREATE_RULESET_VERSION)
	k.Errata = ask(unix.LANDLOCK_CREATE_RULESET_ERRATA)
	action := func(ret uint32) bool {
		_, _, no := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&ret)))
		return no == 0
	}
	k.Filter = action(retErrno) && action(retKill)
	k.Notify = action(retNotify)
	// A range that holds no descriptor: the call is there when it does nothing.
	k.CloseRange = unix.CloseRange(1<<31-2, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC) == nil
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: ^uint64(0)}
	_, err := unix.Openat2(unix.AT_FDCWD, "/", &how)
	k.Openat2 = errors.Is(err, unix.EINVAL)
	k.GetFd = probeGetFd()
	if k.ABI < abiTruncate && k.Filter && k.CloseRange && k.Openat2 {
		k.Barrier = spacesPossible()
		k.Namespaces = k.Barrier == ""
	}
	return k
}

// probeGetFd asks for a descriptor that is none, of this process itself, which may always be looked into; and whether
// Yama leaves to others what the process could do to its children.
func probeGetFd() bool {
	self, err := unix.PidfdOpen(unix.Getpid(), 0)
	if err != nil {
		return false
	}
	_, err = unix.PidfdGetfd(self, 1<<30, 0)
	_ = unix.Close(self)
	if !errors.Is(err, unix.EBADF) {
		return false
	}
	scope, err := unix.Open("/proc/sys/kernel/yama/ptrace_scope", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return errors.Is(err, unix.ENOENT) // there is no Yama
	}
	defer unix.Close(scope)
	text := make([]byte, 1)
	n, err := unix.Read(scope, text)
	return err == nil && n == 1 && (text[0] <= '1' || text[0] == '2' && unix.Geteuid() == 0)
}
