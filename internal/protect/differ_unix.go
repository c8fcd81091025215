//go:build unix

package protect

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// diffs are the keys that differ, parents first, and what stands there now.
type diffs struct {
	keys []string
	now  view
}

// differ looks and compares.
func (m *mender) differ() (diffs, error) {
	if err := m.resume(); err != nil {
		return diffs{}, err
	}
	git := m.before.Git
	l := &looker{trees: m.trees, git: git, also: m.before.Also, before: m.before.Nodes, gentle: m.gentle, view: view{}}
	if err := l.roots(); err != nil {
		return diffs{}, err
	}
	if n, err := l.node(0, ".git"); err != nil {
		return diffs{}, err
	} else if n != nil && n.Kind == kindDir && !slices.ContainsFunc(git, func(g gitPlace) bool { return g.Tree == 0 && g.Rel == ".git" }) {
		l.git = append(slices.Clone(git), gitPlace{Rel: ".git", Alias: ".git"})
	}
	if err := l.all(); err != nil {
		return diffs{}, err
	}
	now := m.since(l.git)
	maps.Copy(m.bad, now.failed)
	if err := l.late(now, m.before.Began, m.bad, func(s spot) error { return m.older(l, now, s) }); err != nil {
		return diffs{}, err
	}
	indexes, err := m.indexes(l)
	if err != nil {
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
		was, is := m.before.Nodes[k], l.view[k]
		if wrong, ok := indexes[k]; ok && !wrong {
			return true
		}
		if was == nil && is != nil && l.strict[k] {
			return m.may(k, now)
		}
		return same(k, was, is) && !m.cutOff(k, was, is) && !m.shared(k, was, is) || m.may(k, now)
	})
	slices.Sort(d.keys)
	return d, nil
}

// since finds the git directories and submodules that git would look into now and that were not known before.
func (m *mender) since(git []gitPlace) *namer {
	n := named(m.trees, m.before.User, git)
	n.git = n.git[n.given:]
	known := map[spot]bool{}
	for _, s := range m.before.Also {
		known[s] = true
	}
	n.spots = slices.DeleteFunc(n.spots, func(s spot) bool { return s.Alias == "" || known[s] })
	return n
}

// older judges a repository that became a submodule in the run and stood there before. It is not known what made it,
// so that the index is put back; when that is the old one, it goes itself. One whose git directory was looked at stays.
func (m *mender) older(l *looker, now *namer, s spot) error {
	k := key(s.Tree, s.Rel)
	index := now.by[k]
	if now.sound[k] || index == "" || m.may(k, now) {
		return nil
	}
	differs := false
	for _, f := range m.before.Files {
		if key(f.Tree, path.Dir(f.Rel)) != index {
			continue
		}
		is, err := l.index(f)
		if err != nil {
			return err
		}
		if at := key(f.Tree, f.Rel); !same(at, m.before.Nodes[at], is) {
			differs, m.bad[index] = true, true
		}
	}
	l.strict[k] = l.strict[k] || !differs
	return nil
}

// indexes are the files of indexes, and whether each is one to put back: those are looked at.
func (m *mender) indexes(l *looker) (map[string]bool, error) {
	all := map[string]bool{}
	for _, s := range m.before.Files {
		k := key(s.Tree, s.Rel)
		if all[k] = m.bad[key(s.Tree, path.Dir(s.Rel))] || m.begun[k]; !all[k] {
			continue
		}
		if _, err := l.index(s); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// may says whether the policy means a key. A root itself is never meant.
func (m *mender) may(k string, now *namer) bool {
	_, rel := unkey(k)
	return rel != "." && covered(m.before.May, m.alias(k, now))
}

// alias is the path by which a policy means the key: what lies in a git directory is below .git, wherever that is.
func (m *mender) alias(k string, now *namer) string {
	tree, rel := unkey(k)
	for _, s := range slices.Concat(m.before.Also, now.spots) {
		if s.Tree == tree && s.Rel == rel && s.Alias != "" {
			return s.Alias
		}
	}
	best, alias := -1, rel
	for _, g := range slices.Concat(m.before.Git, now.git) {
		if g.Tree != tree || len(g.Rel) <= best {
			continue
		}
		if rest, ok := strings.CutPrefix(rel, g.Rel+"/"); ok {
			best, alias = len(g.Rel), g.Alias+"/"+rest
		} else if top, _, _ := strings.Cut(rel, "/"); g.Rel == "." && (slices.Contains(gitNames[:], top) || top == "modules" || top == "worktrees" || top == "index") {
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
		return is != nil && is.Kind == kindDir && was.one(is) && was.owned(is)
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

// shared says that a new directory has an access list, and not from the one above it.
func (m *mender) shared(k string, was, is *node) bool {
	if was != nil || is == nil || is.Kind != kindDir || is.Access == nil && is.Heirs == nil {
		return false
	}
	tree, rel := unkey(k)
	for at := path.Dir(rel); ; at = path.Dir(at) {
		if above := m.before.Nodes[key(tree, at)]; above != nil || at == "." {
			return above == nil || above.Heirs == nil
		}
	}
}

// one says whether both are one and the same directory.
func (n *node) one(other *node) bool {
	return place{"", n.Dev, n.Ino, n.Born}.is(place{"", other.Dev, other.Ino, other.Born})
}

func (n *node) owned(other *node) bool {
	return n.Mode == other.Mode && n.UID == other.UID && n.GID == other.GID && bytes.Equal(n.Access, other.Access) && bytes.Equal(n.Heirs, other.Heirs)
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
	if n.Access != nil || n.Heirs != nil {
		s.Mode += "+" // as ls shows an access list
	}
	switch n.Kind {
	case kindLink:
		s.Mode, s.SHA256 = "", sumOf(n.Target)
	case kindFull:
		s.Kind = kindDir
	}
	return s
}
