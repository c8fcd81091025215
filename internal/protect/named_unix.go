//go:build unix

package protect

import (
	"fmt"
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
	trees  trees
	home   string // of the user, for ~/
	git    []gitPlace
	given  int // how many of them were known; the others are of submodules that an index names
	spots  []spot
	files  []spot            // indexes
	by     map[string]string // which index a spot or a place is of, by the key of its directory
	known  map[spot]bool
	sound  map[string]bool // spots that lead to a git directory that was given
	failed map[string]bool // indexes that are not understood, or name more than is looked at
	read   map[string]bool // configuration of one place
	reads  int
	spent  int64 // bytes of indexes
	err    error // the first
}

// maxReads bounds how often a file of configuration is read.
const maxReads = maxNodes / 4

// named finds the places that the configuration of the git directories names, and the git directories of submodules that
// an index names. Values of the user's own configuration aren't looked for. What fails doesn't keep the rest from it.
func named(ts trees, home string, git []gitPlace) *namer {
	n := &namer{trees: ts, home: home, git: git, given: len(git), by: map[string]string{}, known: map[spot]bool{},
		sound: map[string]bool{}, failed: map[string]bool{}}
	for i := 0; i < len(n.git); i++ {
		n.place(n.git[i], i < n.given)
	}
	return n
}

// fail notes an error of a place, and that the index which named it is one to put back.
func (n *namer) fail(index string, err error) {
	if n.failed[index] = true; n.err == nil {
		n.err = err
	}
}

func (n *namer) place(g gitPlace, given bool) {
	if g.Shelf {
		return
	}
	at, index := filepath.Join(n.trees[g.Tree].path, g.Rel), key(g.Tree, g.Rel)
	if !given { // what it does is the fault of the index that names it
		index = n.by[index]
	}
	works, values := n.configured(g, at, index)
	for _, hooks := range values["core.hookspath"] {
		for _, work := range append([]string{at}, works...) { // a bare one's hooks are called in it
			n.add(n.abs(work, hooks), spot{Nature: hooksDir}, index)
		}
	}
	sum := 20
	if slices.Contains(values["extensions.objectformat"], "sha256") {
		sum = 32
	}
	for i, work := range works {
		links := &gitlinks{work: work, sum: sum, spent: n.spent, far: work != n.trees[0].path && !strings.HasPrefix(work, n.trees[0].path+"/")}
		if err := links.read(at); err != nil {
			n.fail(index, fmt.Errorf("%s: %w", filepath.Join(at, "index"), err))
		}
		n.spent = links.spent
		if i == 0 {
			n.indexes(g, links.files, work)
		}
		for _, dir := range links.dirs {
			n.link(filepath.Join(work, dir), index)
		}
	}
}

// indexes are the files of an index. That of a worktree elsewhere is only known by its number and times.
func (n *namer) indexes(g gitPlace, files []string, work string) {
	for _, name := range files {
		s := spot{Tree: g.Tree, Rel: path.Join(g.Rel, name), Nature: indexFile}
		if g.Linked && work != n.trees[0].path {
			s.Nature = farIndex
		}
		n.files = append(n.files, s)
	}
}

// configured are the directories in which the place may be checked out, and all values of its configuration: which of
// them git takes is said by conditions and by extensions, so that each counts.
func (n *namer) configured(g gitPlace, at, index string) (works []string, values map[string][]string) {
	values, n.read = map[string][]string{}, map[string]bool{}
	for _, file := range [...]string{"config", "config.worktree"} {
		n.config(filepath.Join(at, file), values, index)
	}
	switch root := n.trees[0].path; {
	case g.Linked:
		works = append(works, filepath.Dir(led(joined(at, line(filepath.Join(at, "gitdir"))))))
	case g.Alias != ".git" && path.Base(g.Rel) == ".git":
		works = append(works, filepath.Dir(at))
	case g.Alias == ".git" || len(values["core.worktree"]) == 0:
		works = append(works, root)
	}
	for _, dir := range values["core.worktree"] {
		work := led(n.abs(at, dir))
		if works = append(works, work); g.Alias != ".git" && !g.Linked {
			n.add(filepath.Join(work, ".git"), spot{Alias: g.Alias, Nature: gitEntry}, "")
		}
	}
	return works, values
}

// link guards where a submodule is checked out: its .git, and the git directory that this is or points to.
func (n *namer) link(dir, index string) {
	if _, _, ok := n.inside(dir); !ok {
		return
	}
	if len(n.spots) > 2*maxNodes {
		n.fail(index, &TooMuchError{dir})
		return
	}
	rel, ok := strings.CutPrefix(dir, n.trees[0].path+"/")
	if !ok {
		rel = filepath.Base(dir)
	}
	alias, dotGit := ".git/modules/"+rel, filepath.Join(dir, ".git")
	n.add(dotGit, spot{Alias: alias, Nature: gitEntry}, index)
	if _, err := os.Lstat(dotGit); err != nil {
		return
	}
	at := led(dotGit)
	if target := gitFile(dotGit); target != "" {
		at = led(joined(dir, target))
	}
	tree, rel, ok := n.inside(at)
	if !ok {
		return
	}
	if i := slices.IndexFunc(n.git, func(g gitPlace) bool { return g.Tree == tree && g.Rel == rel }); i >= 0 {
		if i < n.given {
			n.sound[n.key(dotGit)] = true
		}
		return
	}
	f := finder{trees: n.trees}
	f.add(gitPlace{Tree: tree, Rel: rel, Alias: alias}, 0)
	if f.err == nil && len(n.git)+len(f.places) > maxNodes/8 {
		f.err = &TooMuchError{at}
	}
	if f.err != nil {
		n.fail(index, f.err)
		return
	}
	for _, g := range f.places {
		n.by[key(g.Tree, g.Rel)] = index
	}
	n.git = append(n.git, f.places...)
}

// inside is where a path is in the trees.
func (n *namer) inside(p string) (tree int, rel string, ok bool) {
	for i, t := range n.trees {
		if rel, ok := strings.CutPrefix(p, t.path+"/"); ok {
			return i, rel, true
		}
	}
	return 0, "", false
}

func (n *namer) key(p string) string {
	tree, rel, _ := n.inside(p)
	return key(tree, rel)
}

// config reads a file of configuration and what it includes, whether the condition of an include holds or not.
func (n *namer) config(at string, values map[string][]string, index string) {
	if n.read[at] {
		return
	}
	n.read[at] = true
	n.reads++
	text, more := small(at)
	if more || n.reads > maxReads {
		n.fail(index, &TooMuchError{at})
		return
	}
	for _, s := range parseConfig(text) {
		if s.value == "" {
			continue
		}
		values[s.key] = append(values[s.key], s.value)
		if s.key == "include.path" || strings.HasPrefix(s.key, "includeif.") && strings.HasSuffix(s.key, ".path") {
			file := n.abs(filepath.Dir(at), s.value)
			n.add(file, spot{Nature: fileName}, index)
			n.config(file, values, index)
		}
	}
}

// abs is a path as git takes it in a value, with its .. that may stand behind a link.
func (n *namer) abs(base, value string) string {
	if rest, ok := strings.CutPrefix(value, "~/"); ok && n.home != "" {
		return n.home + "/" + rest
	}
	return joined(base, value)
}

func joined(base, p string) string {
	if filepath.IsAbs(p) {
		return p
	}
	return base + "/" + p
}

// add guards a path as it is written, and where its links lead, as far as that lies in a tree.
func (n *namer) add(at string, s spot, index string) {
	for _, p := range [...]string{filepath.Clean(at), led(at)} {
		for i, t := range n.trees {
			rel, ok := strings.CutPrefix(p, t.path+"/")
			if s.Tree, s.Rel = i, rel; !ok || n.known[s] {
				continue
			}
			n.known[s] = true
			n.spots = append(n.spots, s)
			if k := key(i, rel); n.by[k] == "" {
				n.by[k] = index
			}
		}
	}
}

// led is where the links of a path lead, though nothing be there.
func led(at string) string {
	done, rest := "/", strings.TrimPrefix(at, "/")
	for steps := 0; rest != "" && steps < 4*maxDepth; {
		name, tail, _ := strings.Cut(rest, "/")
		next := filepath.Join(done, name)
		if name == ".." { // Join took it away, after the links before it
			done, rest = next, tail
			continue
		}
		to, err := os.Readlink(next)
		if err != nil {
			done, rest = next, tail
			continue
		}
		steps++
		if filepath.IsAbs(to) {
			done = "/"
		}
		rest = strings.TrimPrefix(to+"/"+tail, "/")
	}
	return filepath.Join(done, rest)
}
