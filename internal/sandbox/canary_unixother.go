//go:build unix && !linux

package sandbox

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// systemAttempts are those that only this system has.
func systemAttempts() []attempt { return nil }

func addressOf(*[8]byte) uintptr { return 0 }

// bootID names this start of the machine; where the system tells none, no proof is kept.
func bootID() string {
	id, err := bootSession()
	if err != nil {
		return ""
	}
	return id
}

// programID is the stat of a program, "" when there is none.
func programID(path string) string {
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return ""
		}
		path = self
	}
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return ""
	}
	seconds, nanos := st.Mtim.Unix()
	id := strconv.AppendUint(make([]byte, 0, 64), st.Ino, 36)
	for _, n := range []int64{int64(st.Dev), st.Size, seconds, nanos} {
		id = strconv.AppendInt(append(id, ' '), n, 36)
	}
	return string(id)
}

// listen opens the socket of the stage; a store too deep for a socket's address cannot be tested.
func (t bait) listen() (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return -1, err
	}
	unix.CloseOnExec(fd)
	err = errors.Join(unix.SetNonblock(fd, true), unix.Bind(fd, &unix.SockaddrUnix{Name: t.at(stageSocket)}))
	if err == nil {
		err = unix.Listen(fd, 4)
	}
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// controlUnix is tryUnix without leaving the directory that this whole process is in.
func controlUnix(t bait) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return errors.Join(unix.Connect(fd, &unix.SockaddrUnix{Name: t.at(stageSocket)}), unix.Close(fd))
}
