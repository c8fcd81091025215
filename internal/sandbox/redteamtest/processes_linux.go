package redteamtest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// onVictims reach one other process, whose number is the first argument.
func onVictims() map[string]Attack {
	each := map[string]func(pid int) error{
		"tkill":        func(p int) error { return raw(unix.SYS_TKILL, uintptr(p), 0, 0) },
		"tgkill":       func(p int) error { return unix.Tgkill(p, p, 0) },
		"killpg":       func(p int) error { return killGroup(p) },
		"queue":        func(p int) error { return queued(unix.SYS_RT_SIGQUEUEINFO, p) },
		"queue-thread": func(p int) error { return queued(unix.SYS_RT_TGSIGQUEUEINFO, p) },
		"timer":        threadTimer,
		"robust":       robustList,
		"kcmp":         func(p int) error { return raw6(unix.SYS_KCMP, uintptr(p), uintptr(p), 0, 0, 0, 0) },
		"madvise":      func(p int) error { return onPidfd(p, madvise) },
		"move-pages":   func(p int) error { return raw6(unix.SYS_MOVE_PAGES, uintptr(p), 0, 0, 0, 0, 0) },
		"migrate":      migrate,
		"vmwrite":      vmWrite,
		"attach": func(p int) error {
			if err := unix.PtraceAttach(p); err != nil {
				return err
			}
			_, err := unix.Wait4(p, nil, unix.WALL, nil)
			return errors.Join(err, unix.PtraceDetach(p)) // it goes on
		},
		"setns": func(p int) error {
			return onPidfd(p, func(fd int) error { return unix.Setns(fd, unix.CLONE_NEWUTS) })
		},
		"policy": func(p int) error {
			return raw(unix.SYS_SCHED_SETSCHEDULER, uintptr(p), 0, uintptr(unsafe.Pointer(new(int32))))
		},
		"param": func(p int) error {
			return raw(unix.SYS_SCHED_SETPARAM, uintptr(p), uintptr(unsafe.Pointer(new(int32))), 0)
		},
		"attr": func(p int) error {
			attr, err := unix.SchedGetAttr(p, 0)
			if err != nil {
				return err
			}
			return unix.SchedSetAttr(p, attr, 0)
		},
		"ioprio": func(p int) error { return raw(unix.SYS_IOPRIO_SET, 1, uintptr(p), 2<<13|4) },
		"own-ex": func(p int) error {
			owner := [2]int32{1, int32(p)} // F_OWNER_PID
			return raw(unix.SYS_FCNTL, 0, unix.F_SETOWN_EX, uintptr(unsafe.Pointer(&owner)))
		},
		"own-ioctl":  func(p int) error { return onSocketpair(p, 0x8901) },
		"own-socket": func(p int) error { return onSocketpair(p, 0x8902) },
		"limits": func(p int) error {
			return unix.Prlimit(p, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1 << 16, Max: 1 << 16}, nil)
		},
	}
	all := map[string]Attack{}
	for name, try := range each {
		all[name] = func(a []string) error { return try(pid(a[0])) }
	}
	return all
}

func raw6(nr uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, no := unix.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); no != 0 {
		return no
	}
	return nil
}

func killGroup(of int) error {
	group, err := unix.Getpgid(of)
	if err != nil {
		return err
	}
	return unix.Kill(-group, 0)
}

// queued sends signal 0 with a value.
func queued(nr uintptr, to int) error {
	info := [128]byte{}
	binary.NativeEndian.PutUint32(info[8:], 0xffffffff) // SI_QUEUE
	at := uintptr(unsafe.Pointer(&info[0]))
	if nr == unix.SYS_RT_TGSIGQUEUEINFO {
		return raw6(nr, uintptr(to), uintptr(to), 0, at)
	}
	return raw6(nr, uintptr(to), 0, at)
}

// threadTimer lets a timer signal somebody else's thread; the kernel refuses that to everybody.
func threadTimer(tid int) error {
	event := [64]byte{}
	binary.NativeEndian.PutUint32(event[8:], uint32(unix.SIGURG))
	binary.NativeEndian.PutUint32(event[12:], 4) // SIGEV_THREAD_ID
	binary.NativeEndian.PutUint32(event[16:], uint32(tid))
	var id int32
	return raw(unix.SYS_TIMER_CREATE, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&event)), uintptr(unsafe.Pointer(&id)))
}

func robustList(of int) error {
	var head, size uintptr
	return raw(unix.SYS_GET_ROBUST_LIST, uintptr(of), uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&size)))
}

func onPidfd(p int, try func(fd int) error) error {
	fd, err := unix.PidfdOpen(p, 0)
	if err != nil {
		return err
	}
	return errors.Join(try(fd), unix.Close(fd))
}

func madvise(fd int) error {
	v := unix.Iovec{}
	return raw6(unix.SYS_PROCESS_MADVISE, uintptr(fd), uintptr(unsafe.Pointer(&v)), 0, unix.MADV_COLD, 0)
}

func migrate(p int) error {
	var old, to uint64 = 1, 1
	return raw6(unix.SYS_MIGRATE_PAGES, uintptr(p), 64, uintptr(unsafe.Pointer(&old)), uintptr(unsafe.Pointer(&to)))
}

// vmWrite writes nothing, which asks for the same right.
func vmWrite(p int) error {
	_, err := unix.ProcessVMWritev(p, []unix.Iovec{{}}, []unix.RemoteIovec{{Base: 4096, Len: 0}}, 0)
	return err
}

// onSocketpair makes another process the receiver of a pipe's or a socket's signals.
func onSocketpair(p int, request uint) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return unix.IoctlSetPointerInt(pair[0], request, p)
}

// onProc look at processes by /proc.
func onProc() map[string]Attack {
	return map[string]Attack{
		"readlink": func(a []string) error { _, err := os.Readlink(a[0]); return err },
		"peek": func(a []string) error { // /proc/PID/mem at an address
			at, err := strconv.ParseInt(a[1], 16, 64)
			if err != nil {
				return err
			}
			f, err := os.Open(a[0])
			if err != nil {
				return err
			}
			_, err = f.ReadAt(make([]byte, 8), at)
			return err
		},
		"lines": func(a []string) error { // the command line of somebody else, whatever his number
			all, err := filepath.Glob("/proc/[0-9]*/cmdline")
			if err != nil {
				return err
			}
			for _, file := range all {
				if text, err := os.ReadFile(file); err == nil && bytes.Contains(text, []byte(Arg+"\x00"+a[0]+"\x00")) {
					return nil
				}
			}
			return fmt.Errorf("%d found, none of those readable", len(all))
		},
		"oom": func(a []string) error { return os.WriteFile(a[0], []byte(a[1]), 0) },
	}
}

// onSelf change what the kernel thinks of the attacker, and then try again.
func onSelf() map[string]Attack {
	return map[string]Attack{
		"change-uid": func([]string) error { return unix.Setresuid(65533, 65533, 65533) },
		"change-gid": func([]string) error { return unix.Setgroups([]int{0}) },
		"personality": func(a []string) error {
			const readImpliesExec, noRandomize, zeroPage = 0x0400000, 0x0040000, 0x0100000
			if err := raw(unix.SYS_PERSONALITY, readImpliesExec|noRandomize|zeroPage, 0, 0); err != nil {
				return err
			}
			return start("/proc/self/exe", "read", a[0])
		},
		"layers": func(a []string) error {
			if err := layers(pid(a[1])); err != nil {
				return err
			}
			return start("/proc/self/exe", "signal", a[0])
		},
		"own-filter": func(a []string) error {
			if err := ownFilter(); err != nil {
				return err
			}
			return unix.Chmod(a[0], 0o640)
		},
		"listener":    listener,
		"broker-race": brokerRace,
		"core":        core,
		"crash":       crash,
		"abort":       abort,
	}
}
