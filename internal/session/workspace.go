package session

import (
	"os"
	"path/filepath"

	"hcpx/internal/places"
)

// Workspace is the land local (§9.2). Without a Root, Reason is a sentence that says why.
type Workspace struct {
	Root    string
	GitDirs []string // git directories that lie elsewhere and point back here
	Reason  string
}

// marks make a directory a workspace.
var marks = [...]string{".git", ".hg", ".jj", "hcp.toml"}

// FindWorkspace finds the land local (§9.2): the named directory, else the nearest ancestor with a mark,
// else the caller's directory. "/" and the home directory count only when named; one that is, holds or
// lies in a closed place never does (§10.2). Links are resolved first.
func FindWorkspace(dir, named string, closed places.Places) Workspace {
	start := dir
	if named != "" {
		start = named
		if !filepath.IsAbs(named) {
			start = filepath.Join(dir, named)
		}
	}
	root, err := filepath.EvalSymlinks(start)
	if err != nil {
		return Workspace{Reason: "The directory " + start + " cannot be read."}
	}
	if info, err := os.Stat(root); err != nil || !info.IsDir() || !filepath.IsAbs(root) {
		return Workspace{Reason: start + " is not a directory."}
	}
	if named == "" {
		root = marked(root)
		if root == filepath.Dir(root) || closed.Home != "" && root == places.Resolve(closed.Home) {
			return Workspace{Reason: root + " is too wide to be taken as a workspace; name it with --workspace if it is meant."}
		}
	}
	if what := closed.Closed(root); what != "" {
		return Workspace{Reason: root + " cannot be a workspace: it is, holds or lies in " + what + "."}
	}
	w := Workspace{Root: root}
	for _, dir := range gitDirs(root) {
		if closed.Closed(dir) == "" {
			w.GitDirs = append(w.GitDirs, dir)
		}
	}
	return w
}

// marked is the nearest ancestor of dir with a mark, else dir.
func marked(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		for _, m := range marks {
			if exists(filepath.Join(at, m)) {
				return at
			}
		}
		if at == filepath.Dir(at) {
			return dir
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
