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
	return k
}
