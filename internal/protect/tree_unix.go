//go:build unix

package protect

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// tree is a directory that was opened before the run: what its path means later doesn't matter.
type tree struct {
	path   string
	handle *os.File
	node   *node
}

type trees []tree

// openTrees opens the workspace and the git directories elsewhere, but for one that lies in another of them.
func openTrees(paths []string) (trees, error) {
	var ts trees
	for i, p := range paths {
		if i > 0 && slices.ContainsFunc(paths, func(other string) bool { return strings.HasPrefix(p, other+"/") }) {
			continue
		}
		t, err := openTree(p)
		if err != nil {
			return nil, errors.Join(err, ts.close())
		}
		ts = append(ts, t)
	}
	return ts, nil
}

func openTree(p string) (tree, error) {
	fd, err := unix.Open(p, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return tree{}, fmt.Errorf("%s: %w", p, err)
	}
	var st unix.Stat_t
	t := tree{path: p, handle: os.NewFile(uintptr(fd), p)}
	if err := unix.Fstat(fd, &st); err != nil {
		return tree{}, errors.Join(err, t.handle.Close())
	}
	t.node = nodeOf(&st)
	t.node.Born = born(fd, "")
	return t, nil
}

// reopen opens the trees of a journal: the same directories, or ErrGone. One that the run left so that nobody may
// look into it is opened all the same, and its mode is left for the look.
func reopen(places []place) (trees, error) {
	var ts trees
	for _, p := range places {
		t, err := openTree(p.Path)
		if errors.Is(err, os.ErrPermission) {
			t, err = openDark(p)
		}
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
			return nil, errors.Join(ErrGone, ts.close())
		}
		if err != nil {
			return nil, errors.Join(err, ts.close())
		}
		ts = append(ts, t)
		if !p.is(t.place()) {
			return nil, errors.Join(ErrGone, ts.close())
		}
	}
	return ts, nil
}

// openDark opens a directory whose owner may not read it, if it is the one.
func openDark(p place) (tree, error) {
	var st unix.Stat_t
	if err := unix.Lstat(p.Path, &st); err != nil || st.Ino != p.Ino || uint64(st.Dev) != p.Dev {
		return tree{}, errors.Join(err, ErrGone)
	}
	mode := uint32(st.Mode) & 0o7777
	if err := chmodAt(unix.AT_FDCWD, p.Path, mode|0o700); err != nil {
		return tree{}, fmt.Errorf("%s: %w", p.Path, err)
	}
	t, err := openTree(p.Path)
	if err != nil {
		return t, err
	}
	t.node.Mode = mode
	if err := unix.Fchmod(int(t.handle.Fd()), mode); err != nil {
		return tree{}, errors.Join(err, t.handle.Close())
	}
	return t, nil
}

func (t tree) place() place { return place{t.path, t.node.Dev, t.node.Ino, t.node.Born} }

func (ts trees) close() error {
	var err error
	for _, t := range ts {
		err = errors.Join(err, t.handle.Close())
	}
	return err
}

// show is a key for people: a path in the workspace as it looks from there, others whole.
func (ts trees) show(k string) string {
	tree, rel := unkey(k)
	if tree == 0 {
		return rel
	}
	return filepath.Join(ts[tree].path, rel)
}

// open opens a directory beneath the tree, one step at a time and through no link. The caller closes it.
func (t tree) open(rel string) (int, error) {
	const how = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd := int(t.handle.Fd())
	for part := range strings.SplitSeq(rel, "/") {
		next, err := unix.Openat(fd, part, how, 0)
		if fd != int(t.handle.Fd()) {
			err = errors.Join(err, unix.Close(fd))
		}
		if err != nil {
			return -1, fmt.Errorf("%s: %w", filepath.Join(t.path, rel), err)
		}
		fd = next
	}
	return fd, nil
}
