//go:build unix

package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"hcpx/internal/protocol"
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

// readFile reads a file of the store whole.
func readFile(path string) ([]byte, error) {
	f, err := openFile(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// locked runs fn while it holds the lock file, which the kernel frees when a process dies.
func (s *FS) locked(path string, fn func() error) error {
	return s.flocked(path, os.O_CREATE|os.O_RDONLY, syscall.LOCK_EX, fn)
}

// lockedToRead makes no lock file and keeps no other reader out.
func (s *FS) lockedToRead(path string, fn func() error) error {
	return s.flocked(path, os.O_RDONLY, syscall.LOCK_SH, fn)
}

const (
	patience    = 30 * time.Second      // no act of the store holds a lock nearly as long
	longestNap  = 20 * time.Millisecond // between two looks at a lock that is held
	shortestNap = time.Millisecond
)

// flocked waits for a lock as long as a living process may need, and not when the caller was cancelled.
func (s *FS) flocked(path string, flags, how int, fn func() error) (err error) {
	f, err := openFile(path, flags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	limit := s.o.patience
	if limit == 0 {
		limit = patience
	}
	var late <-chan time.Time
	for nap := shortestNap; ; nap = min(2*nap, longestNap) {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		switch {
		case err == nil:
			return fn()
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return &os.PathError{Op: "lock", Path: path, Err: err}
		case late == nil:
			late = time.After(limit)
		}
		select {
		case <-s.o.Done:
			return protocol.Fail(protocol.Canceled, "Cancelled while it waited for the lock "+path+"; nothing was changed.")
		case <-late:
			return protocol.Fail(protocol.InternalError, fmt.Sprintf("Another process has held the lock %s for %v, and nothing was changed. End that process, or try again once it has ended.", path, limit)).
				WithHint("fuser -v " + protocol.Word(path))
		case <-time.After(nap):
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
