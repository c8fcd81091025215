//go:build unix

package protect

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// open makes the quarantine of the run.
func (m *mender) open() error {
	if m.shelf != "" {
		return nil
	}
	shelf := filepath.Join(quarantineDir(m.home), m.before.Run)
	if err := os.MkdirAll(shelf, 0o700); err != nil {
		return err
	}
	m.shelf = shelf
	return nil
}

// place is where the next thing goes in the quarantine.
func (m *mender) place(k string) (string, error) {
	if err := m.open(); err != nil {
		return "", err
	}
	m.kept++
	at := filepath.Join(m.shelf, strconv.Itoa(m.kept))
	m.where[k] = at
	return at, nil
}

// keep moves what stands at a name to the quarantine, as it is. On another file system a link and a file are copied;
// what is larger, or a directory, stays beside the workspace's root under a name that nothing runs.
func (m *mender) keep(k string, dir int, name string) error {
	at, err := m.place(k)
	if err != nil {
		return err
	}
	err = unix.Renameat(dir, name, unix.AT_FDCWD, at)
	if !errors.Is(err, unix.EXDEV) {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	switch kind := nodeOf(&st).Kind; {
	case kind == kindLink:
		to, err := target(dir, name)
		if err == nil {
			err = os.Symlink(string(to), at)
		}
		return errors.Join(err, unix.Unlinkat(dir, name, 0))
	case kind == kindFile && st.Size <= maxBytes && copyFrom(dir, name, at) == nil:
		return unix.Unlinkat(dir, name, 0)
	}
	tree, _ := unkey(k)
	aside := fmt.Sprintf("hcpx-quarantine-%s-%d", m.before.Run, m.kept)
	m.where[k] = filepath.Join(m.trees[tree].path, aside)
	return unix.Renameat(dir, name, int(m.trees[tree].handle.Fd()), aside)
}

func copyFrom(dir int, name, to string) error {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	from := os.NewFile(uintptr(fd), name)
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return errors.Join(err, from.Close())
	}
	_, err = io.Copy(out, io.LimitReader(from, maxBytes))
	return errors.Join(err, out.Close(), from.Close())
}

// rewrite gives a file that is still the same one its old content, mode, owner and time. It is not done when the
// file can't be opened so.
func (m *mender) rewrite(k string, dir int, name string, was, is *node) (done bool, err error) {
	if was.SHA256 == is.SHA256 {
		fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return false, nil
		}
		return true, finish(dir, name, os.NewFile(uintptr(fd), name), was)
	}
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, nil
	}
	f := os.NewFile(uintptr(fd), name)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Ino != is.Ino || uint64(st.Dev) != is.Dev {
		return false, f.Close()
	}
	at, err := m.place(k)
	if err == nil {
		err = copyFrom(dir, name, at)
	}
	if err != nil {
		return false, errors.Join(f.Close(), os.Remove(at)) // it will be moved instead
	}
	if err := f.Truncate(0); err != nil {
		return false, errors.Join(err, f.Close())
	}
	return true, m.fill(dir, name, f, was)
}

// create makes a file anew.
func (m *mender) create(dir int, name string, was *node) error {
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	return m.fill(dir, name, os.NewFile(uintptr(fd), name), was)
}

// fill writes the old content from the journal, and closes the file.
func (m *mender) fill(dir int, name string, f *os.File, was *node) error {
	content, err := os.Open(filepath.Join(m.journal, contentFile))
	if err != nil {
		return errors.Join(err, f.Close())
	}
	_, err = io.Copy(f, io.NewSectionReader(content, was.Offset, was.Size))
	if err = errors.Join(err, content.Close()); err != nil {
		return errors.Join(err, f.Close())
	}
	return finish(dir, name, f, was)
}

// finish gives a file owner, mode and time, in the order in which they hold, and closes it. An owner that can't be
// given shows in the next look.
func finish(dir int, name string, f *os.File, was *node) error {
	fd := int(f.Fd())
	_ = unix.Fchown(fd, int(was.UID), int(was.GID))
	err := unix.Fchmod(fd, was.Mode)
	times := []unix.Timespec{unix.NsecToTimespec(was.Mtime), unix.NsecToTimespec(was.Mtime)}
	return errors.Join(err, f.Close(), unix.UtimesNanoAt(dir, name, times, unix.AT_SYMLINK_NOFOLLOW))
}

// own gives a directory its owner and mode.
func own(dir int, name string, was *node) error {
	_ = unix.Fchownat(dir, name, int(was.UID), int(was.GID), unix.AT_SYMLINK_NOFOLLOW)
	return chmodAt(dir, name, was.Mode)
}
