package redteamtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// start runs the program as an attacker of its own.
func start(path string, args ...string) error {
	c := exec.Command(path, append([]string{Arg}, args...)...)
	c.Stderr = os.Stderr
	return c.Run()
}

// layers enters Landlock domains of one's own; 16 are the most that the kernel keeps. They refuse nothing but
// the making of block devices.
func layers(n int) error {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	for range n {
		fd, _, no := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), 8, 0)
		if no != 0 {
			return no
		}
		_, _, no = unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0)
		_ = unix.Close(int(fd))
		if no == unix.E2BIG {
			return nil // as deep as it goes
		}
		if no != 0 {
			return no
		}
	}
	return nil
}

// ownFilter loads a filter that allows everything.
func ownFilter() error { _, err := load(0, []unix.SockFilter{{Code: 0x06, K: 0x7fff0000}}); return err }

func load(flags uintptr, code []unix.SockFilter) (int, error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, err
	}
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	fd, _, no := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&program)))
	if no != 0 {
		return -1, no
	}
	return int(fd), nil
}

// listener is a broker of one's own for fchmodat, which lets every call continue: the newest filter that notifies
// would be asked instead of the runtime's.
func listener(a []string) error {
	fd, err := load(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, []unix.SockFilter{
		{Code: 0x20, K: 0},
		{Code: 0x15, K: unix.SYS_FCHMODAT, Jf: 1},
		{Code: 0x06, K: 0x7fc00000},
		{Code: 0x06, K: 0x7fff0000},
	})
	if err != nil {
		return err
	}
	go func() { // its thread has no filter of its own: it was there before, or comes from one that was
		var n [80]byte
		if _, _, no := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); no == 0 {
			reply := [3]uint64{*(*uint64)(unsafe.Pointer(&n)), 0, 1 << 32} // SECCOMP_USER_NOTIF_FLAG_CONTINUE
			_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&reply)))
		}
	}()
	return unix.Fchmodat(unix.AT_FDCWD, a[0], 0o640, 0)
}

// brokerRace exchanges a directory for a link while modes are changed through it: what is checked must be what
// is changed. a is the jail, the name outside, and the directory that holds it.
func brokerRace(a []string) error {
	at, name, outside := filepath.Join(a[0], "swap"), a[1], a[2]
	link := at + ".link"
	if err := errors.Join(os.Mkdir(at, 0o700), os.WriteFile(at+"/"+name, nil, 0o600), os.Symlink(outside, link)); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(at); _ = os.RemoveAll(link) }()
	var stop atomic.Bool
	swapped := make(chan struct{})
	go func() {
		defer close(swapped)
		for !stop.Load() {
			_ = unix.Renameat2(unix.AT_FDCWD, at, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
		}
	}()
	defer func() { stop.Store(true); <-swapped }()
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); {
		_ = unix.Chmod(at+"/"+name, 0o604)
		if info, err := os.Stat(outside + "/" + name); err == nil && info.Mode().Perm() == 0o604 {
			return nil
		}
	}
	return errors.New("operation not permitted: the mode outside is as it was")
}

// crash works when a child of this process leaves a core dump.
func crash([]string) error {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &l); err != nil {
		return err
	}
	l.Cur = l.Max
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &l); err != nil {
		return err
	}
	c := exec.Command("/proc/self/exe", Arg, "abort")
	c.Env = append(os.Environ(), "GOTRACEBACK=crash") // else the runtime catches the signal
	err := c.Run()
	if c.ProcessState == nil || !c.ProcessState.Sys().(syscall.WaitStatus).CoreDump() {
		return fmt.Errorf("no core dump: %w", err)
	}
	return nil
}

func abort([]string) error {
	return errors.Join(unix.Kill(os.Getpid(), unix.SIGABRT), waiting())
}

func waiting() error { time.Sleep(10 * time.Second); return errors.New("still there") }

// onForeign enter the kernel by another door.
func onForeign() map[string]Attack {
	const x32 = 0x40000000
	chmod := func(nr uintptr) Attack {
		return func(a []string) error {
			if runtime.GOARCH != "amd64" {
				return unix.ENOSYS
			}
			path, err := unix.BytePtrFromString(a[0])
			if err != nil {
				return err
			}
			return raw(nr, uintptr(unsafe.Pointer(path)), 0o640, 0)
		}
	}
	return map[string]Attack{
		"x32":         chmod(x32 | chmodNumber),
		"wide-number": chmod(wide | chmodNumber),
		"foreign":     func(a []string) error { return exec.Command(a[0]).Run() },
	}
}

// chmodNumber is chmod on amd64; other machines have none.
const chmodNumber = 90

// Foreign is a program that changes the mode of a file by the 32-bit door, int 0x80: a 32-bit program, or a 64-bit
// one that uses it. It ends with 0 when that worked.
func Foreign(bits int, path string) []byte {
	const base, header = 0x400000, 0x100
	code := []byte{0xb8, 15, 0, 0, 0, 0xbb, 0, 0, 0, 0, 0xb9, 0xa0, 1, 0, 0, 0xcd, 0x80, // chmod(path, 0640)
		0x85, 0xc0, 0x0f, 0x95, 0xc3, 0x0f, 0xb6, 0xdb, 0xb8, 1, 0, 0, 0, 0xcd, 0x80} // exit(it failed)
	text := append(append([]byte{}, code...), append([]byte(path), 0)...)
	le := func(at []byte, width int, values ...uint64) {
		for i, v := range values {
			for b := range width {
				at[i*width+b] = byte(v >> (8 * b))
			}
		}
	}
	le(text[6:], 4, base+header+uint64(len(code)))
	file := make([]byte, header)
	copy(file, "\x7fELF\x01\x01\x01")
	size := uint64(header + len(text))
	if bits == 32 {
		le(file[16:], 2, 2, 3)
		le(file[20:], 4, 1, base+header, 52, 0, 0)
		le(file[40:], 2, 52, 32, 1, 40)
		le(file[52:], 4, 1, 0, base, base, size, size, 5, 0x1000)
	} else {
		file[4] = 2
		le(file[16:], 2, 2, 62)
		le(file[20:], 4, 1)
		le(file[24:], 8, base+header, 64, 0)
		le(file[52:], 2, 64, 56, 1, 64)
		le(file[64:], 4, 1, 5)
		le(file[72:], 8, 0, base, base, size, size, 0x1000)
	}
	return append(file, text...)
}
