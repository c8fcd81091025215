//go:build unix

package protect

import (
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// gitPlace is a directory of git: the tree it lies in, and where.
type gitPlace struct {
	Tree   int    `json:"tree"`
	Rel    string `json:"rel"`
	Linked bool   `json:"linked,omitempty"` // only a worktree's
	Shelf  bool   `json:"shelf,omitempty"`  // none yet, but below modules/, where submodules are looked for
	Alias  string `json:"alias"`            // how a policy names it
}

// names are what is guarded in it.
func (g gitPlace) names() []string {
	switch {
	case g.Linked:
		return linkedNames[:]
	case g.Shelf:
		return []string{"HEAD"} // with it the directory becomes a git directory
	}
	return gitNames[:]
}

// shelves are its directories in which every directory is one of git.
func (g gitPlace) shelves() []string {
	switch {
	case g.Linked:
		return nil
	case g.Shelf:
		return []string{g.Rel}
	}
	return []string{path.Join(g.Rel, "worktrees"), path.Join(g.Rel, "modules")}
}

// gitPlaces finds the git directories of a workspace as they are before the run: .git, or where it points to within
// the workspace; the root itself when it is a bare repository; those elsewhere; and in each of them the
// directories of linked worktrees and submodules.
func gitPlaces(ts trees) ([]gitPlace, error) {
	var all finder
	all.trees = ts
	root := ts[0].path
	dotGit := filepath.Join(root, ".git")
	info, err := os.Lstat(dotGit)
	switch {
	case err != nil:
		if isGitDir(root) {
			all.add(gitPlace{Rel: ".", Alias: ".git"}, 0)
		}
	case info.IsDir():
		all.add(gitPlace{Rel: ".git", Alias: ".git"}, 0)
	default:
		all.pointed(dotGit, info.Mode().IsRegular())
	}
	for i := 1; i < len(ts); i++ {
		all.add(gitPlace{Tree: i, Rel: ".", Alias: ".git"}, 0)
	}
	return all.places, all.err
}

// isGitDir is how git knows one, without what it says of HEAD's content.
func isGitDir(dir string) bool {
	_, head := os.Lstat(filepath.Join(dir, "HEAD"))
	info, err := os.Stat(filepath.Join(dir, "objects"))
	return head == nil && err == nil && info.IsDir()
}

type finder struct {
	trees  trees
	places []gitPlace
	err    error
}

// pointed adds where .git points to, as far as that lies in the workspace, be anything there or not.
func (f *finder) pointed(dotGit string, file bool) {
	target := dotGit
	if file {
		if target = gitFile(dotGit); target == "" {
			return
		}
	}
	if rel, ok := f.inside(led(joined(filepath.Dir(dotGit), target))); ok {
		f.add(gitPlace{Rel: rel, Alias: ".git"}, 0)
	}
}

// gitFile is where a .git that is a file points to, "" when it says nothing.
func gitFile(at string) string {
	target, ok := strings.CutPrefix(line(at), "gitdir: ")
	if !ok {
		return ""
	}
	return target
}

func (f *finder) inside(at string) (string, bool) {
	rel, ok := strings.CutPrefix(at, f.trees[0].path+"/")
	return rel, ok && at != ""
}

// full notes that more is there than is remembered.
func (f *finder) full(g gitPlace, depth int) bool {
	if len(f.places) > maxNodes/8 || depth > maxDepth {
		f.err = &TooMuchError{f.trees.show(key(g.Tree, g.Rel))}
	}
	return f.err != nil
}

// add adds a git directory with its linked worktrees and submodules.
func (f *finder) add(g gitPlace, depth int) {
	if f.full(g, depth) {
		return
	}
	f.places = append(f.places, g)
	f.common(g, depth)
	for _, name := range f.dirs(g, "worktrees") {
		f.places = append(f.places, gitPlace{Tree: g.Tree, Rel: path.Join(g.Rel, "worktrees", name), Linked: true, Alias: g.Alias + "/worktrees/" + name})
	}
	f.modules(gitPlace{Tree: g.Tree, Rel: path.Join(g.Rel, "modules"), Alias: g.Alias + "/modules"}, depth+1)
}

// common adds the directory in which git finds what this one shares with others.
func (f *finder) common(g gitPlace, depth int) {
	at := filepath.Join(f.trees[g.Tree].path, g.Rel)
	to := line(filepath.Join(at, "commondir"))
	if to == "" {
		return
	}
	rel, ok := f.inside(led(joined(at, to)))
	if ok && !slices.ContainsFunc(f.places, func(o gitPlace) bool { return o.Tree == 0 && o.Rel == rel && !o.Linked && !o.Shelf }) {
		f.add(gitPlace{Rel: rel, Alias: g.Alias}, depth+1)
	}
}

// modules adds the git directories of submodules. The name of one may have slashes, so that what is none holds more.
func (f *finder) modules(at gitPlace, depth int) {
	for _, name := range f.dirs(at, ".") {
		next := gitPlace{Tree: at.Tree, Rel: path.Join(at.Rel, name), Alias: at.Alias + "/" + name}
		if _, err := os.Lstat(filepath.Join(f.trees[next.Tree].path, next.Rel, "HEAD")); err == nil {
			f.add(next, depth+1)
			continue
		}
		if f.full(next, depth) {
			return
		}
		next.Shelf = true
		f.places = append(f.places, next)
		f.modules(next, depth+1)
	}
}

// dirs are the directories in a directory of the place, none when it is missing or a link.
func (f *finder) dirs(g gitPlace, name string) []string {
	l := looker{trees: f.trees}
	names, err := l.list(g.Tree, path.Join(g.Rel, name))
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.ELOOP) && f.err == nil {
			f.err = err
		}
		return nil // it isn't there, or is a link, which its node says
	}
	if len(names) > maxNodes {
		f.err = &TooMuchError{f.trees.show(key(g.Tree, path.Join(g.Rel, name)))}
		return nil
	}
	var dirs []string
	for _, n := range names {
		info, err := os.Lstat(filepath.Join(f.trees[g.Tree].path, g.Rel, name, n))
		if err == nil && info.IsDir() {
			dirs = append(dirs, n)
		}
	}
	return dirs
}

// line is what a small file of git's says: a path, without the ends of lines behind it.
func line(at string) string {
	text, _ := small(at)
	return strings.TrimRight(text, "\r\n")
}

// maxText is how much of a file is read to be understood.
const maxText = 4 << 20

// small is the text of a regular file, "" when it is none or can't be read; more says that it is longer.
func small(at string) (text string, more bool) {
	f, err := os.OpenFile(at, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", false
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	b, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err != nil {
		return "", false
	}
	return string(b), len(b) > maxText
}
