//go:build unix

package vault

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

// open says whether group or others have any right to it.
func open(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }

// openFile opens a regular file, not through a link, and without waiting for another process.
func openFile(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0o600)
	switch {
	case errors.Is(err, syscall.ELOOP):
		return nil, &oddError{"a symbolic link"}
	case errors.Is(err, syscall.ENXIO), errors.Is(err, syscall.EISDIR):
		return nil, &oddError{"no regular file"}
	case err != nil:
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &oddError{"no regular file"}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// tryLock takes the lock of an open file when nobody holds it; the kernel frees it when the process dies.
func tryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
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

// full says whether a disk, or what a user may have of it, is used up.
func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
