//go:build unix

package audit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// lock waits for the lock of an open file; the kernel frees it when the process dies or closes it.
func lock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// openFile opens a regular file. Unlike os.OpenFile it does not offer it to the poller, which takes no
// regular files: five system calls less at each open.
func openFile(path string, flag int, perm uint32) (*os.File, error) {
	for {
		fd, err := syscall.Open(path, flag|syscall.O_CLOEXEC|syscall.O_NONBLOCK, perm) // a pipe must not be waited for
		if err == nil {
			return regular(fd, path)
		}
		if !errors.Is(err, syscall.EINTR) {
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// noFollow refuses a link in the place of a file of the audit.
const noFollow = syscall.O_NOFOLLOW

func regular(fd int, path string) (*os.File, error) {
	var st syscall.Stat_t
	err := syscall.Fstat(fd, &st)
	if err == nil && st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		err = errors.New("it is no regular file")
	}
	if err == nil {
		err = syscall.SetNonblock(fd, false) // or os.NewFile offers it to the poller
	}
	if err != nil {
		return nil, errors.Join(&fs.PathError{Op: "open", Path: path, Err: err}, syscall.Close(fd))
	}
	return os.NewFile(uintptr(fd), path), nil
}

// readStart reads the first bytes of a short file, at most limit, by one call.
func readStart(f *os.File, limit int) ([]byte, error) {
	text := make([]byte, limit)
	for {
		n, err := syscall.Pread(int(f.Fd()), text, 0)
		if err == nil {
			return text[:n], nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return nil, &fs.PathError{Op: "read", Path: f.Name(), Err: err}
		}
	}
}

const (
	exclusive = syscall.LOCK_EX
	shared    = syscall.LOCK_SH
	free      = syscall.LOCK_UN
)

// syncPath makes a file, or the names in a directory, durable.
func syncPath(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// makeDir makes a directory, 0700, and its name durable.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return syncPath(filepath.Dir(dir))
}

// writable asks whether this process may write to a path.
func writable(path string) error {
	const mayWrite = 2
	if err := syscall.Access(path, mayWrite); err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}
