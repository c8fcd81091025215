package audit

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// How a file is locked.
const (
	exclusive = iota
	shared
	free
)

// lockOffset is far behind the end of every file: what is locked here cannot be read or written.
const lockOffset = 1 << 30

// lock waits for the lock of an open file; the system frees it when the process dies or closes it.
func lock(f *os.File, how int) error {
	at := &windows.Overlapped{OffsetHigh: lockOffset}
	switch how {
	case free:
		return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, at)
	case exclusive:
		return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, at)
	}
	return windows.LockFileEx(windows.Handle(f.Fd()), 0, 0, 1, 0, at)
}

// noFollow: a link needs a right of its own there.
const noFollow = 0

func openFile(path string, flag int, perm uint32) (*os.File, error) {
	return os.OpenFile(path, flag, fs.FileMode(perm))
}

// readStart reads the first bytes of a short file, at most limit.
func readStart(f *os.File, limit int) ([]byte, error) {
	text := make([]byte, limit)
	n, err := f.ReadAt(text, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return text[:n], err
}

// syncPath makes a file durable; a directory cannot be flushed here.
func syncPath(path string) error {
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// makeDir makes a directory.
func makeDir(dir string) error { return os.MkdirAll(dir, 0o700) }

// writable asks whether a path is marked read-only.
func writable(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&0o200 == 0 {
		err = &fs.PathError{Op: "write", Path: path, Err: fs.ErrPermission}
	}
	return err
}
