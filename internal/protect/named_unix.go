//go:build unix

package protect

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// spot is a place beside the list: git's configuration names it, or it is where a submodule's .git stands.
type spot struct {
	Tree   int    `json:"tree"`
	Rel    string `json:"rel"`
	Alias  string `json:"alias,omitempty"` // how a policy names it, "" as it stands
	Nature nature `json:"nature,omitempty"`
}

// namer finds what the configuration of git directories names in the trees: directories of hooks, included files,
// and where submodules are checked out.
type namer struct {
	trees trees
	home  string // of the user, for ~/
	git   []gitPlace
	spots []spot
	read  map[string]bool
	err   error
}

// maxIncludes bounds how many files of configuration are read.
const maxIncludes = 64

// named are the places that the configuration of the git directories names, and the git directories of submodules that
// the index names. Values of the user's own configuration aren't looked for.
func named(ts trees, home string, git []gitPlace) ([]gitPlace, []spot, error) {
	n := &namer{trees: ts, home: home, read: map[string]bool{}, git: git}
	for i := 0; i < len(n.git) && n.err == nil; i++ {
		n.place(n.git[i])
	}
	return n.git, n.spots, n.err
}

func (n *namer) place(g gitPlace) {
	at := filepath.Join(n.trees[g.Tree].path, g.Rel)
	root := n.trees[0].path
	if g.Shelf || g.Linked && resolved(at, line(filepath.Join(at, "gitdir"))) != filepath.Join(root, ".git") {
		return
	}
	values := map[string]string{}
	for _, file := range [...]string{"config", "config.worktree"} {
		n.config(filepath.Join(at, file), values, 0)
	}
	work := root
	switch dir := values["core.worktree"]; {
	case g.Alias == ".git" || g.Linked:
	case dir != "":
		work = n.abs(at, dir)
		n.add(filepath.Join(work, ".git"), spot{Alias: g.Alias, Nature: gitEntry})
	case path.Base(g.Rel) == ".git":
		work = filepath.Dir(at)
	}
	if hooks := values["core.hookspath"]; hooks != "" {
		n.add(n.abs(work, hooks), spot{Nature: hooksDir})
	}
	sum := 20
	if values["extensions.objectformat"] == "sha256" {
		sum = 32
	}
	for _, link := range gitlinks(at, work, sum) {
		n.link(filepath.Join(work, link))
	}
}

// link guards where a submodule is checked out: its .git, and the git directory that this is or points to.
func (n *namer) link(dir string) {
	rel, ok := strings.CutPrefix(dir, n.trees[0].path+"/")
	if !ok {
		return
	}
	alias, dotGit := ".git/modules/"+rel, filepath.Join(dir, ".git")
	n.add(dotGit, spot{Alias: alias, Nature: gitEntry})
	at := led(dotGit)
	if target := gitFile(dotGit); target != "" {
		at = resolved(dir, target)
	}
	rel, ok = strings.CutPrefix(at, n.trees[0].path+"/")
	if !ok || slices.ContainsFunc(n.git, func(g gitPlace) bool { return g.Tree == 0 && g.Rel == rel }) {
		return
	}
	if _, err := os.Lstat(filepath.Join(at, "HEAD")); err != nil {
		return
	}
	f := finder{trees: n.trees}
	f.add(gitPlace{Rel: rel, Alias: alias}, 0)
	n.git, n.err = append(n.git, f.places...), errors.Join(n.err, f.err)
	if len(n.git) > maxNodes/8 {
		n.err = &TooMuchError{filepath.Join(n.trees[0].path, rel)}
	}
}

// config reads a file of configuration and what it includes, whether the condition of an include holds or not.
func (n *namer) config(at string, values map[string]string, depth int) {
	if n.read[at] {
		return
	}
	if n.read[at] = true; len(n.read) > maxIncludes+maxNodes/4 || depth > maxIncludes {
		n.err = &TooMuchError{at}
		return
	}
	text, more := small(at)
	if more {
		n.err = &TooMuchError{at}
		return
	}
	for _, s := range parseConfig(text) {
		values[s.key] = s.value
		if s.value == "" || s.key != "include.path" && (!strings.HasPrefix(s.key, "includeif.") || !strings.HasSuffix(s.key, ".path")) {
			continue
		}
		file := n.abs(filepath.Dir(at), s.value)
		n.add(file, spot{Nature: fileName})
		n.config(file, values, depth+1)
	}
}

// abs is a path as git takes it in a value.
func (n *namer) abs(base, value string) string {
	if rest, ok := strings.CutPrefix(value, "~/"); ok && n.home != "" {
		return filepath.Join(n.home, rest)
	}
	if filepath.IsAbs(value) {
		return filepath.Clean(value)
	}
	return filepath.Join(base, value)
}

// add guards a path as it is written, and where its links lead, as far as that lies in a tree.
func (n *namer) add(at string, s spot) {
	for _, p := range [...]string{at, led(at)} {
		for i, t := range n.trees {
			rel, ok := strings.CutPrefix(p, t.path+"/")
			if s.Tree, s.Rel = i, rel; ok && !slices.Contains(n.spots, s) {
				n.spots = append(n.spots, s)
			}
		}
	}
}

// led is where the links of a path lead, as far as it exists.
func led(at string) string {
	for head, tail := at, ""; ; head, tail = path.Dir(head), path.Join(path.Base(head), tail) {
		if real, err := filepath.EvalSymlinks(head); err == nil {
			return filepath.Join(real, tail)
		}
		if head == path.Dir(head) {
			return at
		}
	}
}
