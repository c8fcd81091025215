package skill

import (
	"cmp"
	"slices"
	"strings"

	"hcpx/internal/order"
	"hcpx/internal/protocol"
)

// Names are what the pack declares: the skill may teach its Verbs and mention its Triggers.
type Names struct {
	Pack     string
	Verbs    []string
	Triggers []string
}

var (
	keyForm     = lazy(`^[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*(?:\.[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*)*$`)
	segmentForm = lazy(`^[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*$`)
)

// Check reports everything that lint says of the skill alone: its form (§5.1) and its claims (§5.2,
// HCP-14.2-5).
// With an empty pack name the commands are not judged.
func Check(src []byte, n Names) []protocol.Issue {
	s, issues := Parse(src)
	if s.blocks == nil {
		return issues
	}
	found := append(credentials(s.src), hostPaths(s.src)...)
	if n.Pack != "" {
		c := newClaims(n)
		for _, code := range codes(s.blocks) {
			c.read(code)
		}
		found = append(found, c.found...)
		found = append(found, c.untaught(s.src)...)
	}
	issues = append(issues, s.issues(found)...)
	order.By(issues, func(a, b protocol.Issue) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column), cmp.Compare(a.Code, b.Code))
	})
	return issues
}

// claims gathers what the code of a skill says about the pack's commands.
type claims struct {
	Names
	declared map[string]bool // verb keys
	group    map[string]bool // proper prefixes of verb keys, by whole segments
	spaces   map[string]bool // their first segments
	tools    map[string]string
	triggers map[string]bool
	taught   map[string]bool
	found    []finding
}

func newClaims(n Names) *claims {
	c := &claims{Names: n, declared: map[string]bool{}, group: map[string]bool{}, spaces: map[string]bool{},
		tools: map[string]string{}, triggers: map[string]bool{}, taught: map[string]bool{}}
	for _, key := range n.Verbs {
		c.declared[key] = true
		c.tools[strings.ReplaceAll(key, ".", "_")] = key
		first, _, _ := strings.Cut(key, ".")
		c.spaces[first] = true
		for i := range len(key) {
			if key[i] == '.' {
				c.group[key[:i]] = true
			}
		}
	}
	for _, key := range n.Triggers {
		c.triggers[key] = true
	}
	return c
}

// read judges one code span or block (§5.2): exec lines, the command-line face, tool names, bare keys.
func (c *claims) read(code code) {
	c.toolNames(code.text)
	prompted := !code.span && (strings.HasPrefix(code.text.s, "$ ") || strings.Contains(code.text.s, "\n$ "))
	for _, words := range commandLines(code) {
		judged := c.commandLine(code.text, words, code.shell && (!prompted || words[0].s == "$"))
		for i, w := range words {
			if i != judged {
				c.bare(code.text, w)
			}
		}
	}
}

// commandLine judges one command and returns the index of the word that it judged, or -1. Where the line may
// be output instead, as beside lines with a prompt, the pack's id alone makes no command of it.
func (c *claims) commandLine(t text, words []word, typed bool) int {
	head := 0
	for head < len(words) && (slices.Contains([]string{"$", "#", ">", "%", "sudo", "time"}, words[head].s) || strings.Contains(words[head].s, "=")) {
		head++
	}
	if typed && head < len(words) && words[head].s == c.Pack {
		return c.face(t, words, head+1)
	}
	for i, w := range words {
		if w.s != "hcpx" && w.s != "hcp" {
			continue
		}
		next := afterFlags(words, i+1)
		switch {
		case next < 0:
		case words[next].s == c.Pack:
			return c.face(t, words, next+1)
		case words[next].s == "exec":
			if id := afterFlags(words, next+1); id >= 0 && words[id].s == c.Pack {
				return c.exec(t, words, id+1)
			}
		}
	}
	return -1
}

// exec judges the verb_key of "hcpx exec <id> <key>".
func (c *claims) exec(t text, words []word, from int) int {
	i := afterFlags(words, from)
	if i < 0 || open(words[i]) {
		return -1
	}
	key := words[i].s
	if c.declared[key] {
		c.taught[key] = true
	} else {
		c.undeclared(t, words[i].at, key)
	}
	return i
}

// face judges the words of "<id> <space> <sub>": the longest run that is a command counts, what follows are
// its arguments. The name of a group of commands alone is no claim.
func (c *claims) face(t text, words []word, from int) int {
	i := afterFlags(words, from)
	if i < 0 || words[i].s == "help" {
		return -1
	}
	var parts []string
	for _, w := range words[i:] {
		if open(w) || !segmentForm().MatchString(w.s) {
			break
		}
		parts = append(parts, w.s)
	}
	for n := len(parts); n > 0; n-- {
		key := strings.Join(parts[:n], ".")
		for _, k := range []string{key, c.Pack + "." + key} {
			if c.declared[k] {
				c.taught[k] = true
				return -1
			}
		}
	}
	key := strings.Join(parts, ".")
	if key == "" || c.group[key] || c.group[c.Pack+"."+key] {
		return -1
	}
	c.undeclared(t, words[i].at, key)
	return i
}

// toolNames judges "<id>__<key>" wherever it stands in the code.
func (c *claims) toolNames(t text) {
	prefix := c.Pack + "__"
	for at := 0; ; {
		i := strings.Index(t.s[at:], prefix)
		if i < 0 {
			return
		}
		start := at + i
		at = start + len(prefix)
		if start > 0 && nameByte(t.s[start-1]) && !strings.HasSuffix(t.s[:start], "__") {
			continue
		}
		end := at
		for end < len(t.s) && nameByte(t.s[end]) {
			end++
		}
		name := strings.TrimRight(t.s[at:end], ".-")
		if name == "" || end < len(t.s) && strings.IndexByte("<{*$", t.s[end]) >= 0 {
			continue
		}
		if key, ok := c.tools[strings.ReplaceAll(name, ".", "_")]; ok {
			c.taught[key] = true
		} else {
			c.undeclared(t, start, prefix+name)
		}
		at = end
	}
}

// bare notes a declared key, and warns of one that only looks like a command of the pack.
func (c *claims) bare(t text, w word) {
	if c.declared[w.s] {
		c.taught[w.s] = true
		return
	}
	first, rest, dotted := strings.Cut(w.s, ".")
	if !dotted || !c.spaces[first] || c.group[w.s] || c.triggers[w.s] || fileName(rest) || !keyForm().MatchString(w.s) {
		return
	}
	c.found = append(c.found, finding{code: "skill.maybe-command", at: t.source(w.at),
		message: quoted(w.s) + " looks like a command of the pack, but is not declared."})
}

// undeclared reports a command that the manifest does not have.
func (c *claims) undeclared(t text, at int, name string) {
	c.found = append(c.found, finding{code: "skill.undeclared-command", at: t.source(at),
		message: "The skill teaches " + quoted(name) + ", which the pack does not declare.",
		hint:    "declare the command in surface.json, or teach one that is declared"})
}

// untaught warns of the commands that the skill never mentions: neither in code, nor, for a key of several
// segments, in its prose.
func (c *claims) untaught(src string) []finding {
	for name := range strings.FieldsFuncSeq(src, func(r rune) bool { return r >= 0x80 || !nameByte(byte(r)) }) {
		if name = strings.Trim(name, ".-_"); strings.Contains(name, ".") && c.declared[name] {
			c.taught[name] = true
		}
	}
	var out []finding
	for _, key := range c.Verbs {
		if !c.taught[key] {
			out = append(out, finding{code: "skill.untaught-command", message: "The skill does not mention the command " + quoted(key) + "."})
		}
	}
	return out
}

// nameByte says whether b may stand in a key or tool name.
func nameByte(b byte) bool {
	return b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'z' || b == '_' || b == '-' || b == '.'
}

// fileName says whether a dotted name ends like a file's.
func fileName(rest string) bool {
	ext := rest[strings.LastIndexByte(rest, '.')+1:]
	return slices.Contains(strings.Fields("csv db go gz html jpg js json log md ndjson pdf png py sh sql svg tar toml tsv txt xml yaml yml zip"), ext)
}
