package protocol

import (
	"path"
	"strings"
)

// The places that keep credentials (§10.2): below the home directory, and below ~/.config. No reads opens
// them, and no workspace is, holds or lies in one.
var (
	HomeCredentials   = [...]string{".ssh", ".aws", ".azure", ".kube", ".docker", ".netrc", "_netrc", ".npmrc", ".pypirc", ".gnupg", ".git-credentials"}
	ConfigCredentials = [...]string{"gcloud", "gh", "git/credentials"}
)

// stores are those below the home directory, and the runtime's own.
func stores() []string {
	all := append([]string{".hcp", ".config/hcpx"}, HomeCredentials[:]...)
	for _, name := range ConfigCredentials {
		all = append(all, ".config/"+name)
	}
	return all
}

// systemStores are the same outside a home directory.
func systemStores() []string {
	return []string{
		"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh", "/etc/krb5.keytab",
		"/etc/kubernetes", "/etc/npmrc", "/etc/ssl/private", "/proc", "/run/secrets", "/run/credentials", "/run/user", "/var/run/secrets", "/var/run/user",
	}
}

// ClosedRead says why §10.2 never lets an entry of reads be opened; "" when an operator may allow it. An entry
// is a plain absolute path, or one below ~; a store of credentials, what lies in one, and every directory
// above one is closed. It judges the path as written; whoever opens it judges the resolved one again, with
// the real home directory as ~.
func ClosedRead(entry string) string {
	p := strings.TrimSuffix(entry, "/")
	rel, home := strings.CutPrefix(p, "~/")
	switch {
	case entry == "~" || entry == "~/" || p == "/" || entry == "/":
		return "it is an ancestor of credential stores"
	case strings.ContainsFunc(entry, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "it holds a control character"
	case !home && !strings.HasPrefix(p, "/"):
		return "it is neither an absolute path nor one below ~/"
	case home && (path.Clean(rel) != rel || rel == ".." || strings.HasPrefix(rel, "../") || rel[0] == '/'), !home && path.Clean(p) != p:
		return "it is not a plain path"
	}
	if !home {
		if why := against(p, systemStores()); why != "" {
			return why
		}
		var inHome bool
		if rel, inHome = belowHome(p); !inHome {
			return ""
		}
		if rel == "" {
			return "it is an ancestor of credential stores"
		}
	}
	return against(rel, stores())
}

// against compares a path with a list of stores: in one, or above one.
func against(p string, closed []string) string {
	for _, store := range closed {
		switch {
		case p == store || strings.HasPrefix(p, store+"/"):
			return "it is a credential store or a place of the system or the runtime that stays closed"
		case strings.HasPrefix(store, p+"/"):
			return "it is an ancestor of credential stores"
		}
	}
	return ""
}

// belowHome takes an absolute path that lies where home directories usually are apart: rel is "" for such
// a directory itself and for the one that holds them.
func belowHome(p string) (rel string, ok bool) {
	for _, root := range []string{"/root", "/var/root"} {
		if p == root {
			return "", true
		}
		if rel, ok := strings.CutPrefix(p, root+"/"); ok {
			return rel, true
		}
	}
	for _, parent := range []string{"/home", "/Users", "/var/home", "/export/home"} {
		if p == parent {
			return "", true
		}
		if below, ok := strings.CutPrefix(p, parent+"/"); ok {
			_, rel, _ := strings.Cut(below, "/")
			return rel, true
		}
	}
	return "", p == "/var" || p == "/export"
}
