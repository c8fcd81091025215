//go:build unix

package protect

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	gentle  bool   // only compares
	kept    int    // how many things lie in the quarantine of this run
	shelf   string // that quarantine, once it is there
	where   map[string]string
	faults  map[string]error // of the last round
	lost    map[string]error // what the journal doesn't hold any more
	lent    []lent
	bad     map[string]bool // directories of indexes that are to be put back
	begun   map[string]bool // what another process began to put back
	tried   bool
	mask    func(string) string // of the run, while it is there
}

// name is a path as it is written and told. Whoever puts back after a run that had a credential and was killed can't
// know it, so a name that was not there before is not told.
func (m *mender) name(k string) string {
	if m.mask != nil {
		return m.mask(m.trees.show(k))
	}
	if !m.before.Secret || m.before.Nodes[k] != nil {
		return m.trees.show(k)
	}
	tree, rel := unkey(k)
	for rel = path.Dir(rel); rel != "." && m.before.Nodes[key(tree, rel)] == nil; {
		rel = path.Dir(rel)
	}
	return path.Join(m.trees.show(key(tree, rel)), "[redacted]")
}

// lent is a directory that got rights for the time of mending.
type lent struct {
	dir  *os.File
	mode uint32
}

// rounds are enough for a .git that comes back to be looked into, and for what was in it to be put back.
const rounds = 3

// mend puts back and looks again, until nothing differs or nothing helps. What still differs is told as not restored;
// the error says why, where there was one.
func (m *mender) mend() ([]Change, error) {
	found, err := m.differ()
	if err != nil {
		return nil, errors.Join(err, m.giveBack())
	}
	var order []string
	first := map[string]Change{}
	m.where, m.lost = map[string]string{}, map[string]error{}
	note := func() {
		for _, k := range found.keys {
			if _, known := first[k]; !known && !m.covers(found, k) {
				first[k] = Change{Path: m.name(k), Before: m.before.Nodes[k].state(), After: found.now[k].state()}
				order = append(order, k)
			}
		}
	}
	for round := 0; round < rounds && len(found.keys) > 0; round++ {
		note()
		m.undo(found)
		if err := m.giveBack(); err != nil {
			m.fault(key(0, "."), err)
		}
		if found, err = m.differ(); err != nil {
			return m.told(order, first, nil), errors.Join(err, m.giveBack())
		}
	}
	note()
	changes := m.told(order, first, found.keys)
	if err := m.giveBack(); err != nil {
		return changes, err
	}
	if len(found.keys) == 0 {
		return changes, nil
	}
	var faults []error
	for _, k := range slices.Sorted(maps.Keys(m.faults)) {
		faults = append(faults, fmt.Errorf("%s: %w", m.name(k), m.faults[k]))
	}
	return changes, errors.Join(faults...)
}

// told are the changes in order; what still differs is not restored.
func (m *mender) told(order []string, first map[string]Change, differ []string) []Change {
	var changes []Change
	for _, k := range order {
		c := first[k]
		c.Kept, c.Restored = m.where[k], differ != nil && !slices.Contains(differ, k)
		changes = append(changes, c)
	}
	for i, p := range m.trees.moved() {
		changes = append(changes, Change{Path: p, Before: m.trees[i].node.state()})
	}
	_ = m.note(changes) // who asked is told of each all the same
	return changes
}

func (m *mender) fault(k string, err error) { m.faults[k] = errors.Join(m.faults[k], err) }

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
func (ts trees) moved() map[int]string {
	moved := map[int]string{}
	for i, t := range ts {
		var st unix.Stat_t
		if err := unix.Stat(t.path, &st); err != nil || st.Ino != t.node.Ino || uint64(st.Dev) != t.node.Dev {
			moved[i] = t.path
		}
	}
	return moved
}

// undo takes away what stands in the place of something else, then puts back what is missing. What fails doesn't
// keep the rest from it.
func (m *mender) undo(d diffs) {
	m.faults = map[string]error{}
	gone := map[string]bool{}
	if err := m.mark(d.keys); err != nil {
		m.fault(key(0, "."), err) // it is put back all the same
	}
	for _, k := range d.keys {
		was, is := m.before.Nodes[k], d.now[k]
		if err := m.held(k, was); err != nil {
			m.fault(k, err)
			continue
		}
		if is == nil || m.aboveGone(k, gone) {
			continue
		}
		away, err := m.clear(k, was, is)
		if err != nil {
			m.fault(k, err)
		}
		gone[k] = away
	}
	for _, k := range d.keys {
		was := m.before.Nodes[k]
		if was == nil || m.lost[k] != nil || d.now[k] != nil && !gone[k] && !m.aboveGone(k, gone) {
			continue
		}
		if err := m.put(k, was); err != nil {
			m.fault(k, err)
		}
	}
	m.tried = true
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
	tree, rel := unkey(k)
	if rel == "." {
		fd := int(m.trees[tree].handle.Fd())
		_ = unix.Fchown(fd, int(was.UID), int(was.GID)) // shows in the next look
		return false, errors.Join(setLists(fd, "", was), unix.Fchmod(fd, was.Mode))
	}
	dir, name, err := m.parent(k)
	if err != nil {
		return false, err
	}
	defer unix.Close(dir)
	if was != nil && was.Kind == kindDir && is.Kind == kindDir {
		if k != key(0, ".git") || was.one(is) {
			return false, own(dir, name, was)
		}
		if m.sibling(was) == "" {
			return false, own(dir, name, was) // the old one can't be found: what matters in the new one is put right
		}
	}
	if was != nil && was.Kind == kindFile && is.Kind == kindFile && was.Ino == is.Ino && was.Dev == is.Dev && was.SHA256 != "" {
		if done, err := m.rewrite(k, dir, name, was, is); done {
			return false, err
		}
	}
	return true, m.keep(k, dir, name)
}

// parent opens the directory of a key, and takes the right to write there for a while.
func (m *mender) parent(k string) (int, string, error) {
	tree, rel := unkey(k)
	dir, err := m.trees[tree].open(path.Dir(rel))
	if err != nil {
		return dir, "", err
	}
	if err := m.lend(dir); err != nil {
		return -1, "", errors.Join(err, unix.Close(dir))
	}
	return dir, path.Base(rel), nil
}

// lend makes a directory of this user writable until giveBack.
func (m *mender) lend(dir int) error {
	var st unix.Stat_t
	if err := unix.Fstat(dir, &st); err != nil || st.Mode&0o300 == 0o300 || os.Geteuid() == 0 {
		return err
	}
	fd, err := unix.FcntlInt(uintptr(dir), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	mode := uint32(st.Mode) & 0o7777
	m.lent = append(m.lent, lent{os.NewFile(uintptr(fd), ""), mode})
	if err := unix.Fchmod(dir, mode|0o300); err != nil && !errors.Is(err, unix.EPERM) {
		return err
	}
	return nil // one of another user shows in what is done there
}

// giveBack takes lent rights again, the last first. A directory whose mode was put right meanwhile keeps that.
func (m *mender) giveBack() error {
	var err error
	for _, l := range slices.Backward(m.lent) {
		var st unix.Stat_t
		fd := int(l.dir.Fd())
		if fault := unix.Fstat(fd, &st); fault == nil && uint32(st.Mode)&0o7777 == l.mode|0o300 {
			err = errors.Join(err, unix.Fchmod(fd, l.mode))
		}
		err = errors.Join(err, l.dir.Close())
	}
	m.lent = nil
	return err
}

// put puts back what stood at a key.
func (m *mender) put(k string, was *node) error {
	if _, rel := unkey(k); rel == "." {
		return nil
	}
	if err := m.parents(k); err != nil {
		return err
	}
	dir, name, err := m.parent(k)
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	again := func(do func() error) error {
		err := do()
		if errors.Is(err, unix.EEXIST) { // it came back meanwhile, or with a directory above
			if err = m.keep(k, dir, name); err == nil {
				err = do()
			}
		}
		return err
	}
	switch was.Kind {
	case kindDir:
		if k == key(0, ".git") {
			if old := m.sibling(was); old != "" {
				return again(func() error { return renameNew(dir, old, dir, name) })
			}
		}
		if err := unix.Mkdirat(dir, name, was.Mode|0o700); err != nil && !errors.Is(err, unix.EEXIST) {
			return err
		}
		return own(dir, name, was)
	case kindLink:
		return again(func() error { return unix.Symlinkat(string(was.Target), dir, name) })
	case kindFile:
		if was.SHA256 != "" {
			return again(func() error { return m.create(dir, name, was) })
		}
	}
	return nil // a device, a socket, a file that could not be read: told as not restored
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
		if err == nil && name != ".git" && st.Ino == was.Ino && uint64(st.Dev) == was.Dev &&
			(was.Born == 0 || was.Born == born(int(m.trees[0].handle.Fd()), name)) {
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
	at := filepath.Join(m.shelf, "changes.json")
	for i := 2; exists(at); i++ {
		at = filepath.Join(m.shelf, fmt.Sprintf("changes-%d.json", i))
	}
	return os.WriteFile(at, append(text, '\n'), 0o600)
}
