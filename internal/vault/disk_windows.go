package vault

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// foreign and open cannot be told from a file's mode here: a user's profile is kept by its access list.
func foreign(fs.FileInfo) bool { return false }

func open(fs.FileInfo) bool { return false }

// openFile opens a regular file, not through a link.
func openFile(path string, flags int) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &oddError{"no regular file"}
	}
	return os.OpenFile(path, flags, 0o600)
}

// tryLock takes the lock of an open file when nobody holds it; the system frees it when the process dies.
func tryLock(f *os.File) (bool, error) {
	const flags = windows.LOCKFILE_FAIL_IMMEDIATELY | windows.LOCKFILE_EXCLUSIVE_LOCK
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

// syncDir has nothing to do: a directory cannot be flushed here, and a rename is journalled.
func syncDir(string) error { return nil }

// full says whether a disk is used up.
func full(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}
