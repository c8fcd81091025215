package redteamtest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// onHandles reach files by other things than their names.
func onHandles() map[string]Attack {
	return map[string]Attack{
		"reopen": onPath(func(fd int, _ []string) error {
			return closedFd(unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY, 0))
		}),
		"reopen-write": onPath(func(fd int, _ []string) error {
			return closedFd(unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_WRONLY, 0))
		}),
		"link-fd": onPath(func(fd int, a []string) error {
			return unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, a[1], unix.AT_SYMLINK_FOLLOW)
		}),
		"exec-fd": onPath(func(fd int, _ []string) error { return start(fmt.Sprintf("/proc/self/fd/%d", fd), "nothing") }),
		"execveat": onPath(func(fd int, _ []string) error {
			// Without arguments the kernel would give the program one; this one never returns when it works.
			return raw6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(&[]byte{0}[0])), 0, 0, unix.AT_EMPTY_PATH)
		}),
		"xattr-path": onPath(func(fd int, _ []string) error {
			return unix.Setxattr(fmt.Sprintf("/proc/self/fd/%d", fd), "user.test", []byte("1"), 0)
		}),
		"openat": func(a []string) error { // O_PATH of the directory, then the name in it
			dir, err := unix.Open(filepath.Dir(a[0]), unix.O_PATH, 0)
			if err != nil {
				return err
			}
			return closedFd(unix.Openat(dir, filepath.Base(a[0]), unix.O_RDONLY, 0))
		},
		"handle": func(a []string) error {
			handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, a[0], 0)
			if err != nil {
				return err
			}
			dir, err := unix.Open(a[1], unix.O_RDONLY|unix.O_DIRECTORY, 0)
			if err != nil {
				return err
			}
			return closedFd(unix.OpenByHandleAt(dir, handle, unix.O_RDONLY))
		},
		"swap": func(a []string) error {
			return unix.Renameat2(unix.AT_FDCWD, a[0], unix.AT_FDCWD, a[1], unix.RENAME_EXCHANGE)
		},
		"rename-back": func(a []string) error { // and leave everything as it was
			if err := os.Rename(a[0], a[1]); err != nil {
				return err
			}
			return os.Rename(a[1], a[0])
		},
		"tmpfile": func(a []string) error { return closedFd(unix.Open(a[0], unix.O_TMPFILE|unix.O_WRONLY, 0o600)) },
		"symlink": func(a []string) error { return os.Symlink("/", a[0]) },
		"lease":   lease,
		"notify":  notify,
		"watch": func(a []string) error {
			fd, err := unix.InotifyInit()
			if err != nil {
				return err
			}
			_, err = unix.InotifyAddWatch(fd, a[0], unix.IN_ALL_EVENTS)
			return err
		},
		"futex": futex,
		"map":   mapped,
		"acl":   acl,
		"mmap-exec": func(a []string) error {
			fd, err := unix.Open(a[0], unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			_, err = unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
			return err
		},
	}
}

// onPath opens a path as a mere handle, which needs no right to the file.
func onPath(try func(fd int, a []string) error) Attack {
	return func(a []string) error {
		fd, err := unix.Open(a[0], unix.O_PATH, 0)
		if err != nil {
			return err
		}
		return try(fd, a)
	}
}

// lease makes whoever opens a file wait for this process.
func lease(a []string) error {
	fd, err := unix.Open(a[0], unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
	return err
}

// notify asks for a signal whenever something happens in a directory.
func notify(a []string) error {
	fd, err := unix.Open(a[0], unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	const create, again = 4, 1 << 31
	_, err = unix.FcntlInt(uintptr(fd), 1026, create|again)
	return err
}

// mapped shares the memory of a file.
func mapped(a []string) error {
	f, err := os.OpenFile(a[0], os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return errors.Join(err, f.Close())
}

// futex wakes whoever waits on the first word of a file that is shared.
func futex(a []string) error {
	f, err := os.Open(a[0])
	if err != nil {
		return err
	}
	memory, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	return raw6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&memory[0])), 1, 1)
}

// acl lets everybody in by an access list.
func acl(a []string) error {
	list := binary.LittleEndian.AppendUint32(nil, 2)
	for _, entry := range [][2]uint16{{1, 6}, {4, 4}, {0x20, 4}} { // owner, group, others
		list = binary.LittleEndian.AppendUint16(list, entry[0])
		list = binary.LittleEndian.AppendUint16(list, entry[1])
		list = binary.LittleEndian.AppendUint32(list, 0xffffffff)
	}
	return unix.Setxattr(a[0], "system.posix_acl_access", list, 0)
}
