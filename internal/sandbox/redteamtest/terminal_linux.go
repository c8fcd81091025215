package redteamtest

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// wide is a set bit above the 32 that the kernel looks at.
const wide = 1 << 32

// onTerminals reach the terminal of whoever runs hcpx.
func onTerminals() map[string]Attack {
	return map[string]Attack{
		"tty":          func([]string) error { return closedFd(unix.Open("/dev/tty", unix.O_RDWR, 0)) },
		"ptmx":         func([]string) error { return closedFd(unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY, 0)) },
		"tiocsti":      func([]string) error { return notPermitted(inject(0, unix.TIOCSTI)) },
		"tiocsti-wide": func([]string) error { return notPermitted(inject(0, wide|unix.TIOCSTI)) },
		"tioclinux":    func([]string) error { return notPermitted(inject(0, unix.TIOCLINUX)) },
		"type":         func(a []string) error { return typed(a[0], unix.TIOCSTI) },
		"type-wide":    func(a []string) error { return typed(a[0], wide|unix.TIOCSTI) },
		"take-tty": func(a []string) error {
			if _, err := unix.Setsid(); err != nil && !errors.Is(err, unix.EPERM) { // who leads one has no need
				return err
			}
			fd, err := unix.Open(a[0], unix.O_RDWR, 0)
			if err != nil {
				return err
			}
			if err := unix.IoctlSetInt(fd, unix.TIOCSCTTY, 0); err != nil {
				return err
			}
			return closedFd(unix.Open("/dev/tty", unix.O_RDWR, 0))
		},
		"join-group": func(a []string) error {
			group, err := unix.Getpgid(pid(a[0]))
			if err != nil {
				return err
			}
			return unix.Setpgid(0, group)
		},
	}
}

// inject asks a terminal to take a byte as if it was typed.
func inject(fd int, request uintptr) error {
	key := []byte{' '}
	_, _, no := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), request, uintptr(unsafe.Pointer(&key[0])))
	if no != 0 {
		return no
	}
	return nil
}

// typed pushes a key into a terminal, by its name or by any descriptor that is one.
func typed(name string, request uintptr) error {
	fd, err := unix.Open(name, unix.O_RDWR|unix.O_NOCTTY, 0)
	if err == nil {
		return inject(fd, request)
	}
	for fd := range 16 {
		if again := inject(fd, request); again == nil {
			return nil
		} else if !errors.Is(again, unix.EBADF) {
			err = fmt.Errorf("%w; %d: %w", err, fd, again)
		}
	}
	return err
}

// onDevices open the devices of the machine.
func onDevices() map[string]Attack {
	return map[string]Attack{
		"open": func(a []string) error { return closedFd(unix.Open(a[0], unix.O_RDONLY|unix.O_NONBLOCK, 0)) },
		"open-write": func(a []string) error {
			return closedFd(unix.Open(a[0], unix.O_WRONLY|unix.O_NONBLOCK, 0))
		},
		"mknod": func(a []string) error {
			kinds := map[string]uint32{"char": unix.S_IFCHR, "block": unix.S_IFBLK, "socket": unix.S_IFSOCK, "fifo": unix.S_IFIFO}
			return unix.Mknod(a[1], kinds[a[0]]|0o600, int(unix.Mkdev(1, 3)))
		},
		"shm-exec": func(a []string) error { return planted("/dev/shm/"+a[1], a[0]) },
		"plant":    func(a []string) error { return planted(a[1], a[0]) },
	}
}

// planted writes code somewhere and starts it there.
func planted(at, from string) error {
	code, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(at, code, 0o755); err != nil {
		return err
	}
	return errors.Join(start(at, "nothing"), os.Remove(at))
}
