//go:build unix

package protect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// mender compares a look before with what stands there now, and puts back what was there.
type mender struct {
	home    string
	before  *record
	trees   trees
	journal string
	kept    int    // how many things lie in the quarantine of this run
	shelf   string // that quarantine, once it is there
	where   map[string]string
}

// diffs are the keys that differ, parents first, and what stands there now.
type diffs struct {
	keys []string
	now  view
}

// rounds are enough for a .git that comes back to be looked into, and for what was in it to be put back.
const rounds = 3

// mend puts back and looks again, until nothing differs or nothing helps. What still differs is told as not restored.
func (m *mender) mend() ([]Change, error) {
	found, err := m.differ()
	if err != nil {
		return nil, err
	}
	var order []string
	first := map[string]Change{}
	m.where = map[string]string{}
	for range rounds {
		for _, k := range found.keys {
			if _, known := first[k]; !known && !m.covers(found, k) {
				first[k] = Change{Path: m.trees.show(k), Before: m.before.Nodes[k].state(), After: found.now[k].state()}
				order = append(order, k)
			}
		}
		if len(found.keys) == 0 {
			break
		}
		if err := m.undo(found); err != nil {
			return nil, err
		}
		if found, err = m.differ(); err != nil {
			return nil, err
		}
	}
	var changes []Change
	for _, k := range order {
		c := first[k]
		c.Kept, c.Restored = m.where[k], !slices.Contains(found.keys, k)
		changes = append(changes, c)
	}
	for i, p := range m.moved() {
		changes = append(changes, Change{Path: p, Before: m.trees[i].node.state()})
	}
	return changes, m.note(changes)
}

// covers says whether a difference is only that of a directory above it, which is told instead.
func (m *mender) covers(d diffs, k string) bool {
	tree, rel := unkey(k)
	for at := path.Dir(rel); at != "."; at = path.Dir(at) {
		up := key(tree, at)
		if slices.Contains(d.keys, up) && kindOf(m.before.Nodes[up]) != kindOf(d.now[up]) {
			return true
		}
	}
	return false
}

// moved are the trees whose path means another directory now.
func (m *mender) moved() map[int]string {
	moved := map[int]string{}
	for i, t := range m.trees {
		var st unix.Stat_t
		if err := unix.Stat(t.path, &st); err != nil || st.Ino != t.node.Ino || uint64(st.Dev) != t.node.Dev {
			moved[i] = t.path
		}
	}
	return moved
}

// differ looks and compares.
func (m *mender) differ() (diffs, error) {
	git := m.before.Git
	l := &looker{trees: m.trees, git: git, hooks: m.before.Hooks, before: m.before.Nodes, view: view{}}
	if n, err := l.node(0, ".git"); err != nil {
		return diffs{}, err
	} else if n != nil && n.Kind == kindDir && !slices.ContainsFunc(git, func(g gitPlace) bool { return g.Tree == 0 && g.Rel == ".git" }) {
		l.git = append(slices.Clone(git), gitPlace{0, ".git", false, ".git"})
	}
	if err := l.all(); err != nil {
		return diffs{}, err
	}
	d := diffs{now: l.view}
	for k := range m.before.Nodes {
		if l.view[k] == nil {
			d.keys = append(d.keys, k)
		}
	}
	for k := range l.view {
		d.keys = append(d.keys, k)
	}
	d.keys = slices.DeleteFunc(d.keys, func(k string) bool {
		return same(k, m.before.Nodes[k], l.view[k]) || covered(m.before.May, m.alias(k))
	})
	slices.Sort(d.keys)
	return d, nil
}

// alias is the path by which a policy means the key: what lies in a git directory is below .git, wherever that is.
func (m *mender) alias(k string) string {
	tree, rel := unkey(k)
	best, alias := -1, rel
	for _, g := range m.before.Git {
		if g.Tree != tree || len(g.Rel) <= best {
			continue
		}
		if rest, ok := strings.CutPrefix(rel, g.Rel+"/"); ok {
			best, alias = len(g.Rel), g.Alias+"/"+rest
		} else if g.Rel == "." && slices.Contains(gitNames[:], strings.SplitN(rel, "/", 2)[0]) {
			best, alias = 0, g.Alias+"/"+rel
		}
	}
	return alias
}

// same compares what stood at a name with what stands there. A directory that came or went changes nothing by
// itself, but .git must be the one that it was.
func same(k string, was, is *node) bool {
	wasDir, isDir := was == nil || was.Kind == kindDir, is == nil || is.Kind == kindDir
	switch {
	case k == key(0, ".git") && was != nil && was.Kind == kindDir:
		return is != nil && is.Kind == kindDir && was.Ino == is.Ino && was.Dev == is.Dev && was.owned(is)
	case wasDir && isDir:
		return was == nil || is == nil || was.owned(is)
	case was == nil || is == nil || was.Kind != is.Kind:
		return false
	}
	switch was.Kind {
	case kindLink:
		return bytes.Equal(was.Target, is.Target)
	case kindOther:
		return was.Ino == is.Ino && was.Dev == is.Dev && was.owned(is)
	case kindFile:
		if was.SHA256 == "" { // it could not be read before either
			return was.Ino == is.Ino && was.Dev == is.Dev && was.Ctime == is.Ctime && was.Size == is.Size
		}
		return was.SHA256 == is.SHA256 && was.owned(is)
	}
	return false
}

func (n *node) owned(other *node) bool {
	return n.Mode == other.Mode && n.UID == other.UID && n.GID == other.GID
}

func kindOf(n *node) string {
	if n == nil {
		return ""
	}
	return n.Kind
}

// state is what a Change tells of a node.
func (n *node) state() *State {
	if n == nil {
		return nil
	}
	s := &State{Kind: n.Kind, Mode: fmt.Sprintf("%04o", n.Mode), SHA256: n.SHA256}
	switch n.Kind {
	case kindLink:
		s.Mode, s.SHA256 = "", sumOf(n.Target)
	case kindFull:
		s.Kind = kindDir
	}
	return s
}

// undo takes away what stands in the place of something else, then puts back what is missing.
func (m *mender) undo(d diffs) error {
	gone := map[string]bool{}
	for _, k := range d.keys {
		was, is := m.before.Nodes[k], d.now[k]
		if is == nil || m.aboveGone(k, gone) {
			continue
		}
		away, err := m.clear(k, was, is)
		if err != nil {
			return fmt.Errorf("%s: %w", m.trees.show(k), err)
		}
		gone[k] = away
	}
	for _, k := range d.keys {
		was := m.before.Nodes[k]
		if was == nil || d.now[k] != nil && !gone[k] && !m.aboveGone(k, gone) {
			continue
		}
		if err := m.put(k, was); err != nil {
			return fmt.Errorf("%s: %w", m.trees.show(k), err)
		}
	}
	return nil
}

func (m *mender) aboveGone(k string, gone map[string]bool) bool {
	tree, rel := unkey(k)
	for at := path.Dir(rel); at != "."; at = path.Dir(at) {
		if gone[key(tree, at)] {
			return true
		}
	}
	return false
}

// clear makes room at a name; away says that nothing stands there any more. A file that is the same one gets its old
// content in its place, so that its other names have it again too.
func (m *mender) clear(k string, was, is *node) (away bool, err error) {
	dir, name, err := m.parent(k)
	if err != nil {
		return false, err
	}
	defer unix.Close(dir)
	if was != nil && was.Kind == kindDir && is.Kind == kindDir {
		if k != key(0, ".git") || was.Ino == is.Ino && was.Dev == is.Dev {
			return false, own(dir, name, was)
		}
		if m.sibling(was) == "" {
			return false, own(dir, name, was) // the old one can't be found: what matters in the new one is put right
		}
	}
	if was != nil && was.Kind == kindFile && is.Kind == kindFile && was.Ino == is.Ino && was.Dev == is.Dev && was.SHA256 != "" {
		if done, err := m.rewrite(k, dir, name, was, is); done || err != nil {
			return false, err
		}
	}
	return true, m.keep(k, dir, name)
}

// parent opens the directory of a key.
func (m *mender) parent(k string) (int, string, error) {
	tree, rel := unkey(k)
	dir, err := m.trees[tree].open(path.Dir(rel))
	return dir, path.Base(rel), err
}

// put puts back what stood at a key.
func (m *mender) put(k string, was *node) error {
	if err := m.parents(k); err != nil {
		return err
	}
	dir, name, err := m.parent(k)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	switch was.Kind {
	case kindDir:
		if k == key(0, ".git") {
			if old := m.sibling(was); old != "" {
				return unix.Renameat(dir, old, dir, name)
			}
		}
		if err := unix.Mkdirat(dir, name, was.Mode|0o700); err != nil && !errors.Is(err, unix.EEXIST) {
			return err
		}
		return own(dir, name, was)
	case kindLink:
		err = unix.Symlinkat(string(was.Target), dir, name)
	case kindFile:
		if was.SHA256 != "" {
			err = m.create(dir, name, was)
		}
	}
	if errors.Is(err, unix.EEXIST) {
		err = nil // it came back with a directory above; the next look judges it
	}
	return err // nil too for a device, a socket, a file that could not be read: told as not restored
}

// parents makes the directories above a key again.
func (m *mender) parents(k string) error {
	tree, rel := unkey(k)
	parts := strings.Split(rel, "/")
	for i := 1; i < len(parts); i++ {
		at := key(tree, strings.Join(parts[:i], "/"))
		was := m.before.Nodes[at]
		dir, name, err := m.parent(at)
		if err != nil {
			return err
		}
		if was == nil {
			was = &node{Kind: kindDir, Mode: 0o755, UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
		}
		if err = unix.Mkdirat(dir, name, was.Mode|0o700); err == nil {
			err = own(dir, name, was)
		} else if errors.Is(err, unix.EEXIST) {
			err = nil
		}
		if err = errors.Join(err, unix.Close(dir)); err != nil {
			return err
		}
	}
	return nil
}

// sibling finds the directory that was .git under another name in the root, "" when it isn't there.
func (m *mender) sibling(was *node) string {
	l := looker{trees: m.trees}
	names, err := l.list(0, ".")
	if err != nil {
		return ""
	}
	for _, name := range names {
		var st unix.Stat_t
		err := unix.Fstatat(int(m.trees[0].handle.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == nil && name != ".git" && st.Ino == was.Ino && uint64(st.Dev) == was.Dev {
			return name
		}
	}
	return ""
}

// note writes what was done beside what was kept.
func (m *mender) note(changes []Change) error {
	if len(changes) == 0 {
		return nil
	}
	if err := m.open(); err != nil {
		return err
	}
	text, err := json.MarshalIndent(struct {
		Run       string   `json:"run"`
		Command   string   `json:"command"`
		Workspace string   `json:"workspace"`
		Changes   []Change `json:"changes"`
	}{m.before.Run, m.before.Command, m.trees[0].path, changes}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(m.shelf, "changes.json"), append(text, '\n'), 0o600)
}
