package manifest

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/mod/semver"
)

// Bootstrap is the id of the runtime's own pack. It is reserved like the others; lint lifts that for the
// embedded pack with Lift.
const Bootstrap = "hcp-cli"

// reserved are the ids no pack may have, so that a new built-in command breaks none (§2.2).
var reserved = []string{
	"hcp", "hcpx", "hcpxd", "help", "version", "add", "lint", "install", "activate", "connect", "exec", "availability",
	"deactivate", "uninstall", "list", "status", "doctor", "whoami", "allow", "grant", "revoke", "grants", "approvals",
	"audit", "config", "check", "init", "dev", "import", "export", "generate", "adopt", "face", "mcp", "serve", "sense",
	"pack", "push", "pull", "search", "sync", "conformance", "completion", "demo", "session", "login", "logout", "hook",
	"plan", "run", "show", "update", "upgrade", "rollback", "repair", "disconnect", "trust", "sign", "verify", "key",
	"policy", "project", "tenant", "man", Bootstrap,
}

// Reserved says whether the id belongs to the runtime (§2.2).
func Reserved(id string) bool { return slices.Contains(reserved, id) }

// ValidID says whether id has the form of a pack_id (§2.2): words of a-z and 0-9 joined by single dashes,
// the first starting with a letter, 1 to 64 characters.
func ValidID(id string) bool {
	return len(id) <= 64 && words(id, "-")
}

// ValidKey says whether key has the form of a verb_key (§3.1): one to five segments joined by dots, at
// most 64 characters. The names of stimuli have the same form (§7.1).
func ValidKey(key string) bool {
	segments := strings.Split(key, ".")
	return len(key) <= 64 && len(segments) <= 5 && !slices.ContainsFunc(segments, func(s string) bool { return !words(s, "-_") })
}

// words checks for runs of a-z and 0-9 with single joints between them, the first starting with a letter.
func words(s, joints string) bool {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	joint := false
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			joint = false
		case strings.IndexByte(joints, c) >= 0 && !joint:
			joint = true
		default:
			return false
		}
	}
	return !joint
}

// ToolName is the name of a command as a host's tool (§12.2.2).
func ToolName(pack, key string) string { return pack + "__" + strings.ReplaceAll(key, ".", "_") }

// The lengths of a tool name: over the first some hosts cut it, over the second many refuse it (§12.2).
const (
	toolNameLong = 53
	toolNameMax  = 64
)

// ownFlags are the CLI's own flags; an argument of that name has the flag --arg-NAME (§12.1).
var ownFlags = []string{
	"json", "home", "session", "as", "project", "workspace", "quiet", "color", "help", "confirm", "apply", "approval",
	"plan", "idempotency-key", "envelope", "stream", "jobs", "version",
}

// FlagName is an argument's flag on the CLI face, without the dashes: the kebab-case of the property, with
// arg- before it when the CLI has a flag of that name (§12.1).
func FlagName(prop string) string {
	name := kebab(prop)
	if name == "" || slices.Contains(ownFlags, name) {
		return strings.TrimSuffix("arg-"+name, "-")
	}
	return name
}

// kebab separates words at capitals and at everything that is neither letter nor digit.
func kebab(s string) string {
	var out []rune
	runes := []rune(s)
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			r = '-'
		case unicode.IsUpper(r) && i > 0 && startsWord(runes, i):
			out = append(out, '-')
		}
		if r != '-' || len(out) > 0 && out[len(out)-1] != '-' {
			out = append(out, unicode.ToLower(r))
		}
	}
	return strings.Trim(squeeze(string(out)), "-")
}

// startsWord: fromStop and HTTPServer each have one seam.
func startsWord(runes []rune, i int) bool {
	before := runes[i-1]
	return unicode.IsLower(before) || unicode.IsDigit(before) ||
		unicode.IsUpper(before) && i+1 < len(runes) && unicode.IsLower(runes[i+1])
}

func squeeze(s string) string {
	for strings.Contains(s, "--") {
		s = strings.ReplaceAll(s, "--", "-")
	}
	return s
}

// validVersion says whether v is a SemVer 2.0 version: three numbers, no v before them (§3).
func validVersion(v string) bool {
	core := v
	if i := strings.IndexAny(v, "-+"); i >= 0 {
		core = v[:i]
	}
	return strings.Count(core, ".") == 2 && semver.IsValid("v"+v)
}

// supported says whether hcp.version is 1.<minor>; every one of them is accepted (§13.1, §13.2).
func supported(version string) bool {
	minor, ok := strings.CutPrefix(version, "1.")
	if !ok || minor == "" || len(minor) > 9 || minor != "0" && minor[0] == '0' {
		return false
	}
	return strings.IndexFunc(minor, func(r rune) bool { return r < '0' || r > '9' }) < 0
}
