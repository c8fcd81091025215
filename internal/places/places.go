// Package places holds the directories that stay closed whatever a pack declares or a caller names (§10.2,
// §9.2): the runtime's store, its configuration with the audit's key, and the stores of credentials. A
// workspace and a declared read ask the same function, so that neither opens what the other keeps shut.
//
// Nouns: Places (where these directories are for one user; made once, where the runtime is wired). It follows
// links and looks whether a credential store exists; it opens nothing. What lint can say of a path as it is
// written is protocol.ClosedRead.
package places

import (
	"os"
	"path/filepath"
	"strings"

	"hcpx/internal/protocol"
)

// Places are absolute paths, "" where there is none.
type Places struct {
	Home   string // the user's home
	Config string // $XDG_CONFIG_HOME where it is absolute, "" = ~/.config: it holds hcpx/audit.key
	Store  string // $HCP_HOME
	Key    string // HCP_VAULT_KEY_FILE, where it names the key of the vault (§8.3)
}

// Own is the runtime's directory of configuration, in which the audit's key lies (§15.4).
func (p Places) Own() string {
	switch {
	case p.Config != "":
		return filepath.Join(p.Config, "hcpx")
	case p.Home != "":
		return filepath.Join(p.Home, ".config", "hcpx")
	}
	return ""
}

// Closed names what dir must be kept apart from, "" when there is nothing. It is judged where its links lead,
// as far as it exists. The store and the configuration count where they would be made; a credential store and
// an older ~/.config/hcpx count where they exist.
func (p Places) Closed(dir string) string {
	if what := p.Runtime(dir); what != "" {
		return what
	}
	dir = Resolve(dir)
	configs := []string{p.Config}
	if p.Home != "" {
		configs = append(configs, filepath.Join(p.Home, ".config"))
	}
	for _, c := range configs {
		for _, name := range protocol.ConfigCredentials {
			if store := filepath.Join(c, name); c != "" && there(dir, store) {
				return "the credential store " + store
			}
		}
	}
	for _, name := range protocol.HomeCredentials {
		if store := filepath.Join(p.Home, name); p.Home != "" && there(dir, store) {
			return "the credential store " + store
		}
	}
	return ""
}

// ClosedRead says why a declared read stays closed, however an operator decides; "" when it may be allowed
// (§10.2): by its words, by where it leads, and by what lies there.
func (p Places) ClosedRead(declared string) string {
	_, why := p.OpenRead(declared)
	return why
}

// OpenRead is where a declared read leads, and why that stays closed. Whoever opens it opens this path: a link that
// changes after it was judged leads nowhere else.
func (p Places) OpenRead(declared string) (real, why string) {
	real = Resolve(p.Target(declared))
	if why := protocol.ClosedRead(declared); why != "" {
		return real, why
	}
	judged := real
	if home := Resolve(p.Home); p.Home != "" && Within(real, home) {
		judged = "~" + strings.TrimPrefix(real, home)
	}
	if why := protocol.ClosedRead(judged); why != "" {
		return real, why
	}
	if what := p.Closed(real); what != "" {
		return real, "it is, holds or lies in " + what
	}
	return real, ""
}

// Target is the absolute path of a declared read.
func (p Places) Target(declared string) string {
	if rel, home := strings.CutPrefix(declared, "~/"); home {
		return filepath.Join(p.Home, rel)
	}
	return declared
}

// Runtime is Closed for what is the runtime's own alone: not even the source of a credential lies there (§8.3).
func (p Places) Runtime(dir string) string {
	dir = Resolve(dir)
	if p.Store != "" && overlap(dir, Resolve(p.Store)) {
		return "the store"
	}
	if own := p.Own(); own != "" && overlap(dir, Resolve(own)) {
		return "the configuration of hcpx"
	}
	if p.Home != "" && there(dir, filepath.Join(p.Home, ".config", "hcpx")) {
		return "the configuration of hcpx"
	}
	if p.HoldsKey(dir) {
		return "the key of the vault " + p.Key
	}
	return ""
}

// HoldsKey says whether a path is the key of the vault, a directory around it, or lies below its name.
func (p Places) HoldsKey(path string) bool {
	return p.Key != "" && overlap(Resolve(path), Resolve(p.Key))
}

// there says whether dir overlaps a place that exists.
func there(dir, place string) bool {
	_, err := os.Lstat(place)
	return err == nil && overlap(dir, Resolve(place))
}

// overlap says whether one path is the other or lies below it.
func overlap(a, b string) bool { return Within(a, b) || Within(b, a) }

// Within says whether path is dir or lies below it.
func Within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// maxLinks bounds a chain of links, as the kernel does.
const maxLinks = 40

// Resolve follows links as far as the path exists, those that dangle too; what does not exist yet keeps its
// name.
func Resolve(path string) string { return resolve(path, maxLinks) }

func resolve(path string, links int) string {
	path = filepath.Clean(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	parent = resolve(parent, links)
	path = filepath.Join(parent, filepath.Base(path))
	to, err := os.Readlink(path)
	switch {
	case err != nil || links == 0:
		return path
	case !filepath.IsAbs(to):
		to = filepath.Join(parent, to)
	}
	return resolve(to, links-1)
}
