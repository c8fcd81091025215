//go:build unix

package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// foreign says whether a file belongs to neither this user nor root.
func foreign(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return !ok || st.Uid != 0 && int(st.Uid) != os.Geteuid()
}

// locked runs fn while it holds the lock file, which the kernel frees when a process dies.
func locked(path string, fn func() error) error {
	return flocked(path, os.O_CREATE|os.O_RDONLY, syscall.LOCK_EX, fn)
}

// lockedToRead makes no lock file and keeps no other reader out.
func lockedToRead(path string, fn func() error) error {
	return flocked(path, os.O_RDONLY, syscall.LOCK_SH, fn)
}

func flocked(path string, flags, how int, fn func() error) (err error) {
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for {
		err = syscall.Flock(int(f.Fd()), how)
		if err == nil {
			return fn()
		}
		if !errors.Is(err, syscall.EINTR) {
			return &os.PathError{Op: "lock", Path: path, Err: err}
		}
	}
}

// syncDir makes names in a directory durable.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// removeTree removes a tree whose directories may lack the write bit; no error when there is none.
func removeTree(path string) error {
	err := os.RemoveAll(path)
	if err == nil || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	walk := filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(p, 0o700)
		}
		return ignoreGone(err)
	})
	return errors.Join(walk, os.RemoveAll(path))
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
