package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hcpx/internal/disk"
	"hcpx/internal/protocol"
)

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
	return s.flocked(path, os.O_CREATE|os.O_RDONLY, false, fn)
}

// lockedToRead makes no lock file and keeps no other reader out.
func (s *FS) lockedToRead(path string, fn func() error) error {
	return s.flocked(path, os.O_RDONLY, true, fn)
}

// patience: no act of the store holds a lock nearly as long.
const patience = 30 * time.Second

// flocked waits for a lock as long as a living process may need, and not when the caller was cancelled.
func (s *FS) flocked(path string, flags int, shared bool, fn func() error) (err error) {
	f, err := openFile(path, flags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	limit := s.o.patience
	if limit == 0 {
		limit = patience
	}
	switch err := disk.Lock(f, shared, limit, s.o.Done); {
	case err == nil:
		return fn()
	case errors.Is(err, disk.ErrDone):
		return protocol.Fail(protocol.Canceled, "Cancelled while it waited for the lock "+path+"; nothing was changed.")
	case errors.Is(err, disk.ErrLate):
		return protocol.Fail(protocol.InternalError, fmt.Sprintf("Another process has held the lock %s for %v, and nothing was changed. End that process, or try again once it has ended.", path, limit)).
			WithHint("fuser -v " + protocol.Word(path))
	default:
		return &os.PathError{Op: "lock", Path: path, Err: err}
	}
}

// openFile opens a file of the store. Anything else in its place is damage.
func openFile(path string, flags int) (*os.File, error) {
	f, err := disk.Open(path, flags)
	var odd *disk.OddError
	if !errors.As(err, &odd) {
		return f, err
	}
	what := odd.Error()
	if !strings.HasPrefix(odd.What, "no ") {
		what += ", not a file"
	}
	return nil, &DamagedError{path, 1, 1, what}
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
