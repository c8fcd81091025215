package redteamtest

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// call is one system call with arguments that do no harm: where it is not refused, it fails for another reason or
// changes nothing.
type call struct {
	name string
	nr   uintptr
	args []uintptr
	root bool // the kernel asks for a privilege before it looks at the arguments
	lack string
}

// calls are system calls that must not be reached at all.
func calls() []call {
	const bad = ^uintptr(0)
	text := uintptr(unsafe.Pointer(&[]byte("nothing\x00")[0]))
	zero := uintptr(unsafe.Pointer(&[256]byte{}))
	return []call{
		{"mount", unix.SYS_MOUNT, []uintptr{text, text, text, 0, 0}, true, ""},
		{"umount2", unix.SYS_UMOUNT2, []uintptr{text, 0}, true, ""},
		{"pivot_root", unix.SYS_PIVOT_ROOT, []uintptr{text, text}, true, ""},
		{"chroot", unix.SYS_CHROOT, []uintptr{text}, false, ""},
		{"open_tree", unix.SYS_OPEN_TREE, []uintptr{bad, text, 1}, true, ""},
		{"move_mount", unix.SYS_MOVE_MOUNT, []uintptr{bad, text, bad, text, 0}, true, ""},
		{"fsopen", unix.SYS_FSOPEN, []uintptr{text, 0}, true, ""},
		{"fspick", unix.SYS_FSPICK, []uintptr{bad, text, 0}, true, ""},
		{"fsmount", unix.SYS_FSMOUNT, []uintptr{bad, 0, 0}, true, ""},
		{"fsconfig", unix.SYS_FSCONFIG, []uintptr{bad, 0, 0, 0, 0}, false, ""},
		{"mount_setattr", unix.SYS_MOUNT_SETATTR, []uintptr{bad, text, 0, zero, 32}, true, ""},
		{"setns", unix.SYS_SETNS, []uintptr{bad, 0}, false, ""},
		{"bpf", unix.SYS_BPF, []uintptr{0, zero, 16}, true, "not implemented"},
		{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, []uintptr{zero, 0, bad, bad, 0}, false, "permission denied|not implemented"},
		{"userfaultfd", unix.SYS_USERFAULTFD, []uintptr{1}, false, "not implemented"},
		{"kexec_load", unix.SYS_KEXEC_LOAD, []uintptr{0, 17, 0, 0}, true, "not implemented|not permitted"},
		{"init_module", unix.SYS_INIT_MODULE, []uintptr{zero, 0, zero}, true, "not implemented|not permitted"},
		{"delete_module", unix.SYS_DELETE_MODULE, []uintptr{text, 0}, true, "not implemented|not permitted"},
		{"add_key", unix.SYS_ADD_KEY, []uintptr{text, text, 0, 0, 0}, false, "not implemented"},
		{"request_key", unix.SYS_REQUEST_KEY, []uintptr{text, text, 0, 0}, false, "not implemented"},
		{"keyctl", unix.SYS_KEYCTL, []uintptr{0, 0xfffffffd, 0}, false, "not implemented"},
		{"fanotify_init", unix.SYS_FANOTIFY_INIT, []uintptr{1 << 20, 0}, true, "not implemented"},
		{"quotactl", unix.SYS_QUOTACTL, []uintptr{bad, text, 0, zero}, false, "not implemented"},
		{"swapon", unix.SYS_SWAPON, []uintptr{0, 0}, true, "not implemented"},
		{"reboot", unix.SYS_REBOOT, []uintptr{0, 0, 0, 0}, true, ""},
		{"settimeofday", unix.SYS_SETTIMEOFDAY, []uintptr{1, 0}, false, ""},
		{"clock_settime", unix.SYS_CLOCK_SETTIME, []uintptr{0, 1}, false, ""},
		{"adjtimex", unix.SYS_ADJTIMEX, []uintptr{1}, false, ""},
		{"acct", unix.SYS_ACCT, []uintptr{text}, true, "not implemented"},
		{"syslog", unix.SYS_SYSLOG, []uintptr{10, 0, 0}, true, ""},
		{"sethostname", unix.SYS_SETHOSTNAME, []uintptr{zero, bad}, true, ""},
		{"msgget", unix.SYS_MSGGET, []uintptr{0x7ead, 0}, false, "not implemented"},
		{"semget", unix.SYS_SEMGET, []uintptr{0x7ead, 1, 0}, false, "not implemented"},
		{"shmat", unix.SYS_SHMAT, []uintptr{bad, 0, 0}, false, "not implemented"},
		{"memfd_secret", unix.SYS_MEMFD_SECRET, []uintptr{bad}, false, "not implemented"},
		{"io_uring_enter", unix.SYS_IO_URING_ENTER, []uintptr{bad, 0, 0, 0, 0, 0}, false, "not implemented|not permitted"},
		{"io_uring_register", unix.SYS_IO_URING_REGISTER, []uintptr{bad, 0, 0, 0}, false, "not implemented|not permitted"},
		{"execveat", unix.SYS_EXECVEAT, []uintptr{bad, text, 0, 0, 0}, false, ""},
		{"openat2", unix.SYS_OPENAT2, []uintptr{bad, text, zero, 24}, false, "not implemented"},
		{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, []uintptr{bad, zero, 0}, true, ""},
		{"process_mrelease", unix.SYS_PROCESS_MRELEASE, []uintptr{bad, 0}, false, "not implemented"},
	}
}

// onCalls reach the calls of the list, by name.
func onCalls() map[string]Attack {
	return map[string]Attack{
		"call": func(a []string) error {
			list := calls()
			at := slices.IndexFunc(list, func(c call) bool { return c.name == a[0] })
			if at < 0 {
				return errors.New("no such call")
			}
			return reached(raw6(list[at].nr, list[at].args...))
		},
		"mounts": func([]string) error { // what /proc/self/mountinfo tells
			request := [3]uint64{24, ^uint64(0), 0}
			return raw6(458, uintptr(unsafe.Pointer(&request)), uintptr(unsafe.Pointer(&[64]byte{})), 8, 0)
		},
		"subvolume": func(a []string) error { // on another file system the question comes through too
			fd, err := unix.Open(a[0], unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			var name [4096]byte
			return reached(raw(unix.SYS_IOCTL, uintptr(fd), 0x5000940e, uintptr(unsafe.Pointer(&name))))
		},
		"namespace": func(a []string) error {
			flags, err := strconv.ParseUint(a[0], 16, 64)
			if err != nil {
				return err
			}
			return raw(unix.SYS_UNSHARE, uintptr(flags), 0, 0)
		},
	}
}

// reached says whether a call came to its work: it was not refused at the door.
func reached(err error) error {
	for _, no := range []unix.Errno{unix.EPERM, unix.EACCES, unix.ENOSYS} {
		if errors.Is(err, no) {
			return err
		}
	}
	return nil
}

// onSockets leave by sockets of every kind.
func onSockets() map[string]Attack {
	return map[string]Attack{
		"families": families,
		"mptcp":    func([]string) error { return closedFd(unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 262)) },
		"sctp":     func([]string) error { return closedFd(unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 132)) },
		"raw":      func([]string) error { return closedFd(unix.Socket(unix.AF_INET, unix.SOCK_RAW, 1)) },
		"packet":   func([]string) error { return closedFd(unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)) },
		"vsock":    func([]string) error { return closedFd(unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)) },
		"fast-open": func(a []string) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: pid(a[0]), Addr: [4]byte{127, 0, 0, 1}})
		},
		"datagram": func(a []string) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
			if err != nil {
				return err
			}
			if err := unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrInet4{Port: pid(a[0]), Addr: [4]byte{127, 0, 0, 1}}); err != nil {
				return err
			}
			poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			if n, err := unix.Poll(poll, 2000); err != nil || n == 0 {
				return fmt.Errorf("no answer: %w", err)
			}
			_, err = unix.Read(fd, make([]byte, 16))
			return err
		},
		"listen": func([]string) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			return errors.Join(unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 1))
		},
		"unix-listen": func(a []string) error {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			return errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: a[0]}), unix.Listen(fd, 1))
		},
		"pair-send": func(a []string) error {
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
			if err != nil {
				return err
			}
			return unix.Sendto(pair[0], []byte("x"), 0, &unix.SockaddrUnix{Name: a[0]})
		},
		"pair-reconnect": func(a []string) error {
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
			if err != nil {
				return err
			}
			return unix.Connect(pair[0], &unix.SockaddrUnix{Name: a[0]})
		},
		"take-fd": takeFd,
	}
}

// families opens a socket of any family and type, but for those that network full allows when it is told so.
func families(a []string) error {
	err := errors.New("permission denied: no socket of any family")
	for family := range 46 {
		for _, kind := range []int{1, 2, 3, 4, 5, 6, 10} {
			full := len(a) > 0 && (family == unix.AF_INET || family == unix.AF_INET6) && kind <= 2 ||
				len(a) > 0 && family == unix.AF_NETLINK
			if full {
				continue
			}
			if closedFd(unix.Socket(family, kind, 0)) == nil {
				return nil
			}
		}
	}
	return err
}

// takeFd receives a descriptor from a server on a named socket, and reads what it is of.
func takeFd(a []string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: a[0]}); err != nil {
		return err
	}
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(fd, make([]byte, 1), control, 0)
	if err != nil {
		return err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) == 0 {
		return fmt.Errorf("%d messages: %w", len(messages), err)
	}
	got, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	_, err = unix.Pread(got[0], make([]byte, 1), 0)
	return err
}
