package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// private is the directory that a run has for itself (§10.2): HOME, TMPDIR, and a directory of links for
// PATH, which the command can read but not change.
type private struct {
	root  string
	links []Link
}

// newPrivate makes the directory under scratch.
func newPrivate(scratch string, spec *Spec) (private, error) {
	root, err := os.MkdirTemp(scratch, "run-")
	if err != nil {
		return private{}, err
	}
	p := private{root: root, links: spec.Links}
	if err := p.fill(spec); err != nil {
		return private{}, errors.Join(err, p.remove())
	}
	return p, nil
}

func (p private) fill(spec *Spec) error {
	for _, part := range []string{homePart, tempPart, binPart} {
		if err := os.Mkdir(p.part(part), 0o700); err != nil {
			return err
		}
	}
	bin := p.part(binPart) + "/"
	if err := os.Symlink(spec.Program.Path, bin+spec.Program.Name); err != nil {
		return err
	}
	for _, use := range spec.Uses {
		if err := os.Symlink(use.Path, bin+use.Name); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return p.link()
}

func (p private) part(name string) string { return p.root + "/" + name }

// link puts the declared reads under ~ at their place in HOME.
func (p private) link() error {
	for _, l := range p.links {
		if l.HomeRel == "" {
			continue
		}
		at := filepath.Join(p.part(homePart), l.HomeRel)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return err
		}
		if err := os.Symlink(l.Target, at); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// grants are the rules of the directory: HOME and TMPDIR writable, the links readable.
func (p private) grants() ([]grant, error) {
	list := []grant{
		{path: p.part(homePart), rights: rightsWrite},
		{path: p.part(tempPart), rights: rightsWrite},
		{path: p.part(binPart), rights: rightsRead},
	}
	for i := range list {
		var st unix.Stat_t
		if err := unix.Lstat(list[i].path, &st); err != nil {
			return nil, fmt.Errorf("%s: %w", list[i].path, err)
		}
		list[i].id, list[i].dir = identity{st.Dev, st.Ino}, true
	}
	return list, nil
}

// empty makes the directory as new, for the next run of the same policy. It fails when a command replaced
// one of its directories, and the launcher is thrown away then.
func (p private) empty() error {
	for _, part := range []string{homePart, tempPart} {
		if err := os.Chmod(p.part(part), 0o700); err != nil {
			return err
		}
		entries, err := os.ReadDir(p.part(part))
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := removeAll(p.part(part) + "/" + e.Name()); err != nil {
				return err
			}
		}
	}
	return p.link()
}

func (p private) remove() error { return removeAll(p.root) }

// removeAll removes a tree whose directories may have lost their permissions. Nothing of the command is
// alive by then, so nothing is swapped under the walk.
func removeAll(path string) error {
	if os.RemoveAll(path) == nil {
		return nil
	}
	err := filepath.WalkDir(path, func(at string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			return os.Chmod(at, 0o700)
		}
		return err
	})
	return errors.Join(os.RemoveAll(path), ifLeft(path, err))
}

// ifLeft keeps a failed walk quiet once the tree is gone.
func ifLeft(path string, err error) error {
	if _, gone := os.Lstat(path); errors.Is(gone, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ownScratch makes the directory of private directories and holds it to mode 0700.
func ownScratch(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("the directory for private directories is not absolute: %q", path)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if st.Mode&0o077 != 0 || int(st.Uid) != unix.Geteuid() {
		return fmt.Errorf("%s is open to others; it must be yours with mode 0700", path)
	}
	return nil
}
