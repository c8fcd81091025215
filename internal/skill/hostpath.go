package skill

import "strings"

var (
	unixHome = lazy(`^/(?:home|Users)/[A-Za-z0-9_][A-Za-z0-9_.@-]*|^/root/[A-Za-z0-9_.][A-Za-z0-9_.-]*`)
	drive    = lazy(`^:(?:\\\\?([A-Za-z0-9_.$-]+(?: [A-Za-z0-9_.$-]+)*)|/[A-Za-z0-9_.$-]+)`)
	unc      = lazy(`^(?:\\\\[A-Za-z0-9][A-Za-z0-9.-]+\\|\\{4}[A-Za-z0-9][A-Za-z0-9.-]+\\\\)[A-Za-z0-9_$-]+`)
)

// hostPaths finds paths that mean something on one machine only (§5.2, HCP-14.2-5): home directories,
// drives, network shares. URLs, regular expressions, ~ and the paths that every system has are none.
func hostPaths(src string) []finding {
	var out []finding
	add := func(at, end int) {
		out = append(out, finding{code: "skill.host-path", at: at, message: "The path " + quoted(src[at:end]) + " exists on one machine only.",
			hint: "name the place by ~, a placeholder or a variable"})
	}
	for _, root := range []string{"/home/", "/Users/", "/root/"} {
		for at := range all(src, root) {
			end := at + len(unixHome().FindString(ahead(src, at)))
			if end > at && freeBefore(src, at, "~.$*/\\^-_%}>)]") && !meta(src, end) {
				add(at, end)
			}
		}
	}
	for at := range all(src, ":") {
		if end := at + drivePath(src, at); at > 0 && end > at {
			add(at-1, end)
		}
	}
	for at := range all(src, `\\`) {
		end := at + len(unc().FindString(ahead(src, at)))
		if end > at && freeBefore(src, at, "\\^)]}:") && !meta(src, end) {
			add(at, end)
		}
	}
	return out
}

// drivePath is the length of a path on a drive, from the colon on; 0 when it is none.
func drivePath(src string, colon int) int {
	if colon == 0 || colon+1 == len(src) || src[colon+1] != '\\' && src[colon+1] != '/' {
		return 0
	}
	letter := src[colon-1]
	m := drive().FindStringSubmatchIndex(ahead(src, colon))
	if m == nil || letter|0x20 < 'a' || letter|0x20 > 'z' || !freeBefore(src, colon-1, "?\\%$_-/.") || meta(src, colon+m[1]) {
		return 0
	}
	if m[2] < 0 { // with slashes
		if letter >= 'a' {
			return 0
		}
		return m[1]
	}
	// \d, \s and their like behind a letter and a colon are more often an expression than a directory.
	if name := src[colon+m[2] : colon+m[3]]; len(name) == 1 && strings.Contains("dDwWsSbBnrtv", name) {
		return 0
	}
	return m[1]
}

// freeBefore says whether a path may begin at: no letter, digit or byte of stops stands before it.
func freeBefore(src string, at int, stops string) bool {
	if at == 0 {
		return true
	}
	b := src[at-1]
	word := b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'z' || b >= 0x80
	return !word && strings.IndexByte(stops, b) < 0
}

// meta says whether what follows makes an expression or a template of the name before it.
func meta(src string, at int) bool {
	return at < len(src) && strings.IndexByte("+*?[{|$<%(", src[at]) >= 0
}

// quoted shows a short text in quotes.
func quoted(s string) string {
	if len(s) > 80 {
		s = strings.ToValidUTF8(s[:80], "") + "…"
	}
	return `"` + s + `"`
}
