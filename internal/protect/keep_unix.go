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

// place is where the next thing goes in the quarantine: nothing lies there yet, of an earlier restoration either.
func (m *mender) place(k string) (string, error) {
	if err := m.open(); err != nil {
		return "", err
	}
	for m.kept++; exists(filepath.Join(m.shelf, strconv.Itoa(m.kept))); {
		m.kept++
	}
	return filepath.Join(m.shelf, strconv.Itoa(m.kept)), nil
}

// keep moves what stands at a name to the quarantine, as it is. On another file system a link and a file are copied;
// what is larger, a directory, and all when the quarantine takes nothing, stays in the tree's root under a name that
// nothing runs.
func (m *mender) keep(k string, dir int, name string) error {
	at, err := m.place(k)
	if err == nil {
		if err = renameNew(dir, name, unix.AT_FDCWD, at); errors.Is(err, unix.EXDEV) {
			err = moveFar(dir, name, at)
		}
	}
	if err == nil {
		m.where[k] = at
		return nil
	}
	tree, _ := unkey(k)
	root := int(m.trees[tree].handle.Fd())
	if fault := m.lend(root); fault != nil {
		return errors.Join(err, fault)
	}
	for i := 1; ; i++ {
		aside := fmt.Sprintf("hcpx-quarantine-%s-%d", m.before.Run, i)
		fault := renameNew(dir, name, root, aside)
		if errors.Is(fault, unix.EEXIST) {
			continue
		}
		if fault != nil {
			return errors.Join(err, fault)
		}
		m.where[k] = filepath.Join(m.trees[tree].path, aside)
		return nil
	}
}

var errLarge = errors.New("too much to be copied to another file system")

// moveFar moves to another file system.
func moveFar(dir int, name, at string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	var err error
	switch kind := nodeOf(&st).Kind; {
	case kind == kindLink:
		var to []byte
		if to, err = target(dir, name); err == nil {
			err = os.Symlink(string(to), at)
		}
	case kind == kindFile && st.Size <= maxBytes:
		err = copyFrom(dir, name, at)
	default:
		return errLarge
	}
	if err != nil {
		return err
	}
	return unix.Unlinkat(dir, name, 0)
}

// copyFrom copies a file to a new one, or leaves none.
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
	if err = errors.Join(err, out.Close(), from.Close()); err != nil {
		err = errors.Join(err, os.Remove(to))
	}
	return err
}

// held says whether the journal still holds the content of a file, before anything is touched for it.
func (m *mender) held(k string, was *node) error {
	if was == nil || was.Kind != kindFile || was.SHA256 == "" {
		return nil
	}
	err, known := m.lost[k]
	if !known {
		err = m.content(was, io.Discard)
		m.lost[k] = err
	}
	return err
}

var errLost = errors.New("the journal does not hold what stood there")

// hopeless says that nothing but lost content kept things from being put back.
func (m *mender) hopeless() bool {
	for _, err := range m.faults {
		if !errors.Is(err, errLost) {
			return false
		}
	}
	return len(m.faults) > 0
}

// content writes the old content of a file, and says whether it was that.
func (m *mender) content(was *node, to io.Writer) error {
	f, err := os.Open(filepath.Join(m.journal, contentFile))
	if err != nil {
		return errors.Join(errLost, err)
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), io.NewSectionReader(f, was.Offset, was.Size))
	if err = errors.Join(err, f.Close()); err == nil && (n != was.Size || hex.EncodeToString(sum.Sum(nil)) != was.SHA256) {
		err = errLost
	}
	return err
}

// rewrite gives a file that is still the same one its old content, mode, owner and time, once what stands in it is
// kept and there is room. Where it can't be done so the file is moved instead.
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
	if err == nil {
		if err = reserve(fd, was.Size); err == nil {
			if err = m.content(was, f); err == nil {
				err = f.Truncate(was.Size)
			}
		}
		if err != nil {
			m.where[k] = at
		}
	}
	if err != nil {
		return false, f.Close() // it is moved instead
	}
	m.where[k] = at
	return true, finish(dir, name, f, was)
}

// create makes a file anew: whole beside its place, then there.
func (m *mender) create(dir int, name string, was *node) error {
	beside, fd := "", -1
	for i := 1; ; i++ {
		var err error
		beside = m.beside(i)
		fd, err = unix.Openat(dir, beside, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
	f := os.NewFile(uintptr(fd), beside)
	err := m.content(was, f)
	if err == nil {
		err = finish(dir, beside, f, was)
	} else {
		err = errors.Join(err, f.Close())
	}
	if err == nil {
		err = renameNew(dir, beside, dir, name)
	}
	if err != nil {
		err = errors.Join(err, unix.Unlinkat(dir, beside, 0))
	}
	return err
}

// finish gives a file owner, access list, mode and time, in the order in which they hold, and closes it. An owner that can't be
// given shows in the next look.
func finish(dir int, name string, f *os.File, was *node) error {
	fd := int(f.Fd())
	_ = unix.Fchown(fd, int(was.UID), int(was.GID))
	err := errors.Join(setLists(fd, "", was), unix.Fchmod(fd, was.Mode))
	times := []unix.Timespec{unix.NsecToTimespec(was.Mtime), unix.NsecToTimespec(was.Mtime)}
	return errors.Join(err, f.Close(), unix.UtimesNanoAt(dir, name, times, unix.AT_SYMLINK_NOFOLLOW))
}

// own gives a directory its owner, access lists and mode.
func own(dir int, name string, was *node) error {
	_ = unix.Fchownat(dir, name, int(was.UID), int(was.GID), unix.AT_SYMLINK_NOFOLLOW)
	return errors.Join(setLists(dir, name, was), chmodAt(dir, name, was.Mode))
}
