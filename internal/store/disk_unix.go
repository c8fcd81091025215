//go:build unix

package store

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// foreign says whether a file belongs to neither this user nor root.
func foreign(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || st.Uid != 0 && int(st.Uid) != os.Geteuid()
}

// openFile opens a file of the store: a regular one, not through a link, and without waiting for another
// process. Anything else in its place is damage.
func openFile(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0o600)
	switch {
	case errors.Is(err, syscall.ELOOP):
		return nil, &DamagedError{path, 1, 1, "it is a symbolic link, not a file"}
	case errors.Is(err, syscall.ENXIO):
		return nil, &DamagedError{path, 1, 1, "it is a socket, not a file"}
	case errors.Is(err, syscall.EISDIR):
		return nil, &DamagedError{path, 1, 1, "it is a directory, not a file"}
	case err != nil:
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &DamagedError{path, 1, 1, "it is no regular file"}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// tryLock takes the lock of an open file when nobody holds it; the kernel frees it when the process dies.
func tryLock(f *os.File, shared bool) (bool, error) {
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return false, nil
	}
	return err == nil, err
}

// syncDir makes names in a directory durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
