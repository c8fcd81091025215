package session

import (
	"os"
	"path/filepath"
	"strings"

	"hcpx/internal/protocol"
)

// Places are the directories that a workspace is found in and kept away from.
type Places struct {
	Dir    string // where the caller is
	Home   string // the user's home
	Store  string // $HCP_HOME
	Config string // $XDG_CONFIG_HOME, "" = ~/.config
}

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
// lies in the store, ~/.config/hcpx or a credential store never does. Links are resolved first.
func FindWorkspace(p Places, named string) Workspace {
	start := p.Dir
	if named != "" {
		start = named
		if !filepath.IsAbs(named) {
			start = filepath.Join(p.Dir, named)
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
		if root == filepath.Dir(root) || p.Home != "" && root == resolve(p.Home) {
			return Workspace{Reason: root + " is too wide to be taken as a workspace; name it with --workspace if it is meant."}
		}
	}
	if what := p.conflict(root); what != "" {
		return Workspace{Reason: root + " cannot be a workspace: it is, holds or lies in " + what + "."}
	}
	w := Workspace{Root: root}
	for _, dir := range gitDirs(root) {
		if p.conflict(dir) == "" {
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

// conflict names what dir must be kept apart from, "" when there is nothing. The store and ~/.config/hcpx
// count where they would be made; a credential store counts where it exists.
func (p Places) conflict(dir string) string {
	if p.Store != "" && overlap(dir, resolve(p.Store)) {
		return "the store"
	}
	configs := []string{p.Config}
	if p.Home != "" {
		configs = append(configs, filepath.Join(p.Home, ".config"))
	}
	var stores []string
	for _, c := range configs {
		if c == "" {
			continue
		}
		// The one in force is the first; the other may be an older one.
		if own := filepath.Join(c, "hcpx"); c == first(configs...) && overlap(dir, resolve(own)) || exists(own) && overlap(dir, resolve(own)) {
			return "the configuration of hcpx"
		}
		for _, name := range protocol.ConfigCredentials {
			stores = append(stores, filepath.Join(c, name))
		}
	}
	for _, name := range protocol.HomeCredentials {
		if p.Home != "" {
			stores = append(stores, filepath.Join(p.Home, name))
		}
	}
	for _, s := range stores {
		if exists(s) && overlap(dir, resolve(s)) {
			return "the credential store " + s
		}
	}
	return ""
}

// overlap says whether one path is the other or lies below it.
func overlap(a, b string) bool { return within(a, b) || within(b, a) }

func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// resolve follows links as far as the path exists; what does not exist yet keeps its name.
func resolve(path string) string {
	path = filepath.Clean(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if parent := filepath.Dir(path); parent != path {
		return filepath.Join(resolve(parent), filepath.Base(path))
	}
	return path
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
