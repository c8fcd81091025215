package disk

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// Foreign cannot be told from a file's mode here: a user's profile is kept by its access list.
func Foreign(fs.FileInfo) bool { return false }

// Open opens a regular file, not through a link.
func Open(path string, flags int) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &OddError{irregular}
	}
	return os.OpenFile(path, flags, 0o600)
}

// lockOffset is far behind the end of every file: what is locked here cannot be read or written.
const lockOffset = 1 << 30

// TryLock takes the lock of an open file when nobody holds it; the system frees it when the process dies.
func TryLock(f *os.File, shared bool) (bool, error) {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if !shared {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &windows.Overlapped{OffsetHigh: lockOffset})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

// Sync has nothing to do: a directory cannot be flushed here, and a rename is journalled.
func Sync(string) error { return nil }
