//go:build unix

package protect

import (
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

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
			all.add(gitPlace{0, ".", false, ".git"}, 0)
		}
	case info.IsDir():
		all.add(gitPlace{0, ".git", false, ".git"}, 0)
	default:
		all.pointed(dotGit, info.Mode().IsRegular())
	}
	for i := 1; i < len(ts); i++ {
		all.add(gitPlace{i, ".", false, ".git"}, 0)
	}
	return all.places, all.err
}

// hooksElsewhere are the directories in the workspace that core.hooksPath of its git directories names, as far as their
// own configuration says it; the value of an included file, or of the user's, isn't looked for.
func hooksElsewhere(ts trees, git []gitPlace) []string {
	var names []string
	for _, g := range git {
		for _, file := range [...]string{"config", "config.worktree"} {
			value := hooksPath(small(filepath.Join(ts[g.Tree].path, g.Rel, file)))
			if value == "" {
				continue
			}
			if !filepath.IsAbs(value) {
				value = filepath.Join(ts[0].path, value)
			}
			if rel, err := filepath.Rel(ts[0].path, value); err == nil && rel != "." && filepath.IsLocal(rel) {
				names = append(names, filepath.ToSlash(rel))
			}
		}
	}
	return names
}

// hooksPath is the last core.hooksPath of a configuration, as git itself writes it.
func hooksPath(config string) string {
	section, value := "", ""
	for text := range strings.Lines(config) {
		text = strings.TrimSpace(text)
		if rest, ok := strings.CutPrefix(text, "["); ok {
			name, after, _ := strings.Cut(rest, "]")
			section, text = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(after)
		}
		k, v, ok := strings.Cut(text, "=")
		if ok && section == "core" && strings.EqualFold(strings.TrimSpace(k), "hooksPath") {
			value = strings.Trim(strings.TrimSpace(v), `"`)
		}
	}
	return value
}

// isGitDir is how git knows one.
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

// pointed adds where .git points to, as far as that lies in the workspace.
func (f *finder) pointed(dotGit string, file bool) {
	target := dotGit
	if file {
		rest, ok := strings.CutPrefix(line(dotGit), "gitdir: ")
		if !ok {
			return
		}
		target = rest
	}
	at := resolved(filepath.Dir(dotGit), target)
	if rel, ok := f.inside(at); ok {
		f.add(gitPlace{0, rel, false, ".git"}, 0)
	}
	if common := line(filepath.Join(at, "commondir")); at != "" && common != "" {
		if rel, ok := f.inside(resolved(at, common)); ok {
			f.add(gitPlace{0, rel, false, ".git"}, 0)
		}
	}
}

func (f *finder) inside(at string) (string, bool) {
	rel, ok := strings.CutPrefix(at, f.trees[0].path+"/")
	return rel, ok && at != ""
}

// add adds a git directory with its linked worktrees and submodules.
func (f *finder) add(g gitPlace, depth int) {
	if len(f.places) > maxNodes/8 || depth > maxDepth {
		f.err = &TooMuchError{f.trees.show(key(g.Tree, g.Rel))}
		return
	}
	f.places = append(f.places, g)
	for _, name := range f.dirs(g, "worktrees") {
		f.places = append(f.places, gitPlace{g.Tree, path.Join(g.Rel, "worktrees", name), true, g.Alias + "/worktrees/" + name})
	}
	f.modules(gitPlace{g.Tree, path.Join(g.Rel, "modules"), false, g.Alias + "/modules"}, depth+1)
}

// modules adds the git directories of submodules. The name of one may have slashes, so that what is none holds more.
func (f *finder) modules(at gitPlace, depth int) {
	for _, name := range f.dirs(at, ".") {
		if f.err != nil {
			return
		}
		next := gitPlace{at.Tree, path.Join(at.Rel, name), false, at.Alias + "/" + name}
		if isGitDir(filepath.Join(f.trees[next.Tree].path, next.Rel)) {
			f.add(next, depth+1)
		} else if depth < maxDepth {
			f.modules(next, depth+1)
		}
	}
}

// dirs are the directories in a directory of the place, none when it is missing or a link.
func (f *finder) dirs(g gitPlace, name string) []string {
	l := looker{trees: f.trees}
	names, err := l.list(g.Tree, path.Join(g.Rel, name))
	if err != nil {
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

// resolved is a path as git writes it, "" when nothing is there.
func resolved(base, p string) string {
	if !filepath.IsAbs(p) {
		p = filepath.Join(base, p)
	}
	p, err := filepath.EvalSymlinks(p)
	if err != nil {
		return ""
	}
	return p
}

// line is the first line of a small file.
func line(at string) string {
	first, _, _ := strings.Cut(small(at), "\n")
	return strings.TrimSuffix(first, "\r")
}

// small is the text of a small regular file, "" when it is none.
func small(at string) string {
	f, err := os.OpenFile(at, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return ""
	}
	return string(text)
}
