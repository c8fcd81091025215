//go:build unix

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// bait is what the attempts are made on.
type bait struct {
	dir     string // a directory with the files of stage
	pid     int    // the process that confines
	address uintptr
	other   []string // a program that is not the child's, with arguments
	// apart says that the child counts processes by numbers of its own, so that a low one means another process.
	apart bool
}

// attempt is one thing that no command may do. An error that is not among refusals decides nothing.
type attempt struct {
	name     string
	try      func(t bait) error
	refusals []unix.Errno
	// control is what shows, outside the sandbox, that the thing can be done at all; nil is try itself.
	control func(t bait) error
}

// The files of a stage, and what they hold.
const (
	stageRead, stageCut, stageMove, stageMode, stageTimes = "read", "truncate", "rename", "chmod", "utime"
	stageSocket                                           = "socket"
	stageText                                             = "kept"
	stageTime                                             = 1_000_000_000
)

// attempts are all of them, in the order in which they are made.
func attempts() []attempt {
	closed := []unix.Errno{unix.EACCES, unix.EPERM, unix.ENOENT, unix.EROFS}
	list := []attempt{
		{"signal", trySignal, []unix.Errno{unix.EPERM, unix.ESRCH, unix.EACCES}, nil},
		{"read", func(t bait) error { _, err := os.ReadFile(t.at(stageRead)); return err }, closed, nil},
		{"create", func(t bait) error {
			return openedFor(t.at("created"), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY)
		}, closed, nil},
		{"truncate", func(t bait) error { return unix.Truncate(t.at(stageCut), 0) }, closed, nil},
		{"rename", func(t bait) error { return unix.Rename(t.at(stageMove), t.at("renamed")) }, append(slices.Clip(closed), unix.EXDEV), nil},
		{"chmod", func(t bait) error { return unix.Chmod(t.at(stageMode), 0o640) }, closed, nil},
		{"utime", func(t bait) error {
			return unix.Utimes(t.at(stageTimes), []unix.Timeval{{Sec: 1}, {Sec: 1}})
		}, closed, nil},
		{"exec", tryExec, closed, canExec},
		{"inet", func(bait) error { return closedSocket(unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)) },
			[]unix.Errno{unix.EACCES, unix.EPERM, unix.EAFNOSUPPORT}, nil},
		{"unix", tryUnix, append(slices.Clip(closed), unix.EAFNOSUPPORT), controlUnix},
	}
	return append(list, systemAttempts()...)
}

func (t bait) at(name string) string { return filepath.Join(t.dir, name) }

func openedFor(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o600)
	return closedSocket(fd, err)
}

func closedSocket(fd int, err error) error {
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func trySignal(t bait) error {
	if t.apart && t.pid < 16 {
		return unix.ESRCH // the number names a process of the child's own tree
	}
	return unix.Kill(t.pid, 0)
}

func tryExec(t bait) error {
	pid, err := syscall.ForkExec(t.other[0], t.other, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}})
	if err != nil {
		return err
	}
	_, err = syscall.Wait4(pid, nil, 0, nil)
	return err
}

// canExec asks without a start: this process has other children to wait for.
func canExec(t bait) error { return unix.Access(t.other[0], unix.X_OK) }

// tryUnix names the socket by a short path, whatever lies above it.
func tryUnix(t bait) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Chdir(t.dir); err != nil {
		return err
	}
	return unix.Connect(fd, &unix.SockaddrUnix{Name: stageSocket})
}

// stage makes the files of a bait, and a socket that listens.
func (t bait) stage() (listener int, err error) {
	if err := os.Mkdir(t.dir, 0o700); err != nil {
		return -1, err
	}
	for _, name := range []string{stageRead, stageCut, stageMove, stageMode, stageTimes} {
		if err := os.WriteFile(t.at(name), []byte(stageText), 0o600); err != nil {
			return -1, err
		}
	}
	if err := unix.Utimes(t.at(stageTimes), []unix.Timeval{{Sec: stageTime}, {Sec: stageTime}}); err != nil {
		return -1, err
	}
	return t.listen()
}

// disturbed names the attempts whose traces stand in the stage, whatever the child says.
func (t bait) disturbed(listener int) ([]string, error) {
	var found []string
	for _, name := range []string{stageRead, stageCut, stageMove, stageMode, stageTimes} {
		text, err := os.ReadFile(t.at(name))
		info, gone := os.Lstat(t.at(name))
		switch {
		case name == stageMove && errors.Is(gone, os.ErrNotExist):
			found = append(found, name)
		case err != nil || gone != nil:
			return nil, errors.Join(err, gone)
		case !bytes.Equal(text, []byte(stageText)), info.Mode() != 0o600,
			name == stageTimes && info.ModTime() != time.Unix(stageTime, 0):
			found = append(found, name)
		}
	}
	entries, err := os.ReadDir(t.dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if e.Name() == "created" {
			found = append(found, "create")
		}
	}
	if connected(listener) {
		found = append(found, "unix")
	}
	return found, nil
}

// connected says whether somebody reached the listening socket since it was asked.
func connected(listener int) bool {
	fd, _, err := unix.Accept(listener)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}

// controls make every attempt outside the sandbox, where each must work; it names those that do not.
func (t bait) controls() (failed []string) {
	for _, a := range attempts() {
		try := a.control
		if try == nil {
			try = a.try
		}
		if try(t) != nil {
			failed = append(failed, a.name)
		}
	}
	return failed
}

// others are programs that are found on most machines and are not the child's.
func others() [][]string {
	return [][]string{{"/bin/true"}, {"/usr/bin/true"}, {"/bin/sh", "-c", ":"}, {"/usr/bin/env"}}
}

// canaryMain is the child (Inner): it makes the attempts and says how each ended, then leaves a process in a
// session of its own behind.
func canaryMain(args []string) int {
	switch {
	case len(args) >= 7 && args[0] == "try":
		t := bait{dir: args[1], apart: args[4] == "apart", other: args[6:]}
		pid, err := strconv.Atoi(args[2])
		address, err2 := strconv.ParseUint(args[3], 16, 64)
		if err != nil || err2 != nil {
			return 2
		}
		t.pid, t.address = pid, uintptr(address)
		return t.tryAll(args[5])
	case len(args) == 2 && args[0] == "linger":
		return linger(args[1])
	}
	return 2
}

func (t bait) tryAll(jail string) int {
	var report []byte
	report = appendEnd(report, "inside", writeInside(jail))
	for _, a := range attempts() {
		report = appendEnd(report, a.name, a.try(t))
	}
	report = appendEnd(report, "linger", leaveBehind(jail))
	if _, err := os.Stdout.Write(report); err != nil {
		return 1
	}
	return 0
}

// appendEnd is one line of the report: the error number, 0 for an attempt that worked, -1 for another failure.
func appendEnd(report []byte, name string, err error) []byte {
	number := 0
	if err != nil {
		number = -1
		if no := unix.Errno(0); errors.As(err, &no) {
			number = int(no)
		}
	}
	return fmt.Appendf(report, "%s %d\n", name, number)
}

// writeInside is the child's own control: what lies beside the forbidden directory can be reached and written.
func writeInside(jail string) error {
	text, err := os.ReadFile(filepath.Join(jail, stageRead))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(jail, "written"), text, 0o600)
}

// leaveBehind starts a process that leaves the session and waits until it holds its lock.
func leaveBehind(jail string) error {
	var ends [2]int
	if err := unix.Pipe(ends[:]); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	unix.CloseOnExec(ends[0])
	unix.CloseOnExec(ends[1])
	begin := func(session bool) error {
		_, err := syscall.ForkExec(self, []string{CanaryName, "linger", jail},
			&syscall.ProcAttr{Files: []uintptr{0, uintptr(ends[1]), uintptr(ends[1])}, Sys: &syscall.SysProcAttr{Setsid: session}})
		return err
	}
	if err = begin(true); errors.Is(err, unix.EPERM) {
		err = begin(false) // no session may begin where the operator accepted less (§10.5)
	}
	if err != nil {
		return err
	}
	_ = unix.Close(ends[1])
	var up [2]byte
	if n, err := unix.Read(ends[0], up[:]); err != nil || n != 2 {
		return fmt.Errorf("the process that was to be left behind ended: %w", err)
	}
	return nil
}

// lingerTime is how long the process that is left behind lives when nothing ends it: longer than the run may.
const lingerTime = 2 * canaryWall

// linger holds a lock until it is told to end.
func linger(jail string) int {
	fd, err := unix.Open(filepath.Join(jail, lingerLock), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil || unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return 1
	}
	if _, err := os.Stdout.WriteString("up"); err != nil {
		return 1
	}
	const nap = 50 * time.Millisecond
	for lived := time.Duration(0); lived < lingerTime; lived += nap {
		if _, err := os.Lstat(filepath.Join(jail, lingerStop)); err == nil {
			break
		}
		time.Sleep(nap)
	}
	return 0
}
