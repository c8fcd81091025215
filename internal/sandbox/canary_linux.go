package sandbox

import (
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// systemAttempts are those that only this system has.
func systemAttempts() []attempt {
	return []attempt{
		{"memory", tryMemory, []unix.Errno{unix.EPERM, unix.EACCES, unix.ESRCH, unix.ENOSYS}, nil},
		// This process may have closed its own /proc to everyone (conceal), itself included.
		{"environ", func(t bait) error { return openedFor(environOf(t.pid), unix.O_RDONLY) },
			[]unix.Errno{unix.EACCES, unix.EPERM, unix.ENOENT}, func(t bait) error { _, err := os.Lstat(environOf(t.pid)); return err }},
		// In a namespace of its own a child may have no name for root.
		{"privileges", tryPrivileges, []unix.Errno{unix.EPERM, unix.EINVAL}, func(bait) error { _, err := capabilities(); return err }},
	}
}

func environOf(pid int) string { return "/proc/" + strconv.Itoa(pid) + "/environ" }

// tryMemory reads the memory of the process that confines.
func tryMemory(t bait) error {
	if t.apart && t.pid < 16 {
		return unix.ESRCH // as in trySignal
	}
	var here [8]byte
	local := []unix.Iovec{{Base: &here[0]}}
	local[0].SetLen(len(here))
	_, err := unix.ProcessVMReadv(t.pid, local, []unix.RemoteIovec{{Base: t.address, Len: len(here)}}, 0)
	return err
}

// tryPrivileges works for a process that has a capability, may gain one by a program, or gets one by asking.
func tryPrivileges(bait) error {
	if sealed, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil || sealed != 1 {
		return err
	}
	held, err := capabilities()
	if err != nil || held {
		return err
	}
	if unix.Geteuid() != 0 {
		if _, _, no := unix.RawSyscall(unix.SYS_SETRESUID, 0, 0, 0); no != 0 {
			return no
		}
		return nil
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	all := [2]unix.CapUserData{{Effective: 1 << unix.CAP_SYS_ADMIN, Permitted: 1 << unix.CAP_SYS_ADMIN}}
	return unix.Capset(&header, &all[0])
}

func capabilities() (held bool, err error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false, err
	}
	return data[0].Permitted|data[0].Effective|data[0].Inheritable|data[1].Permitted|data[1].Effective|data[1].Inheritable != 0, nil
}

func addressOf(mark *[8]byte) uintptr { return uintptr(unsafe.Pointer(mark)) }

// socketName is a name that fits into an address, whatever lies above the directory that is held open.
func socketName(dir int) string { return "/proc/self/fd/" + strconv.Itoa(dir) + "/" + stageSocket }

// bootID names this start of the machine.
func bootID() string {
	var text [64]byte
	fd, err := unix.Open("/proc/sys/kernel/random/boot_id", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, text[:])
	const length = 36
	if err != nil || n <= length {
		return ""
	}
	return string(text[:length])
}

// programID is the stat of a program, "" when there is none; the program that runs is itself, wherever it lies now.
func programID(path string) string {
	if path == "" {
		path = "/proc/self/exe"
	}
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return ""
	}
	id := strconv.AppendUint(make([]byte, 0, 64), st.Dev, 36)
	for _, n := range []int64{int64(st.Ino), st.Size, st.Mtim.Sec, st.Mtim.Nsec} {
		id = strconv.AppendInt(append(id, ' '), n, 36)
	}
	return string(id)
}

func (t bait) socketAt() (name string, done func(), err error) {
	dir, err := unix.Open(t.dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", nil, err
	}
	return socketName(dir), func() { _ = unix.Close(dir) }, nil
}

// listen opens the socket of the stage.
func (t bait) listen() (int, error) {
	name, done, err := t.socketAt()
	if err != nil {
		return -1, err
	}
	defer done()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: name}); err != nil {
		return -1, closing(fd, err)
	}
	if err := unix.Listen(fd, 4); err != nil {
		return -1, closing(fd, err)
	}
	return fd, nil
}

// controlUnix is tryUnix without leaving the directory that this whole process is in.
func controlUnix(t bait) error {
	name, done, err := t.socketAt()
	if err != nil {
		return err
	}
	defer done()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: name}); err != nil {
		return closing(fd, err)
	}
	return unix.Close(fd)
}
