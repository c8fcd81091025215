package imports

import (
	"fmt"
	"strings"

	"hcpx/internal/protocol"
	"hcpx/internal/skill"
)

// skill is HARNESS.md: what the API is, what must still be decided, and each command by what the document says of it. A
// line in which lint would find a credential, a path of one machine or a command that is not there is written without
// the document's words.
func (b *builder) skill() []byte {
	plain := map[int]bool{}
	for range 3 {
		lines := b.lines(plain)
		text := []byte(strings.Join(lines, "\n") + "\n")
		bad := false
		for _, issue := range skill.Check(text, skill.Names{Pack: b.id, Verbs: b.keys()}) {
			if issue.Severity == protocol.SeverityError && !plain[issue.Line] {
				plain[issue.Line], bad = true, true
			}
		}
		if !bad {
			return text
		}
	}
	all := map[int]bool{}
	for i := range b.lines(nil) {
		all[i+1] = true
	}
	return []byte(strings.Join(b.lines(all), "\n") + "\n")
}

func (b *builder) keys() []string {
	out := make([]string, len(b.chosen))
	for i, op := range b.chosen {
		out[i] = op.key
	}
	return out
}

// lines are those of the skill. Those whose number is plain have no word of the document.
func (b *builder) lines(plain map[int]bool) []string {
	var out []string
	add := func(said, instead string) {
		if plain[len(out)+1] {
			said = instead
		}
		out = append(out, said)
	}
	add("# "+prose(b.title()), "# "+b.id)
	add("", "")
	add(b.lead(), fmt.Sprintf("The commands of the API that the pack %s stands for.", b.id))
	add("", "")
	add("## What a person must still decide", "")
	add("", "")
	for _, d := range b.decide() {
		add("- "+prose(d), "- See what the import told.")
	}
	names, groups := b.groups()
	for _, name := range names {
		add("", "")
		add("## "+prose(name), "## Commands")
		add("", "")
		for _, op := range groups[name] {
			how := ""
			if !op.read() {
				how = " (a person confirms it)"
			}
			said := "- `" + op.key + "`" + how
			add(said+": "+prose(b.says(op, 160)), said)
		}
	}
	return out
}

// groups are the commands by their heading, in the document's order.
func (b *builder) groups() (names []string, groups map[string][]*operation) {
	groups = map[string][]*operation{}
	for _, op := range b.chosen {
		name := b.group(op)
		if groups[name] == nil {
			names = append(names, name)
		}
		groups[name] = append(groups[name], op)
	}
	return names, groups
}

// lead is the skill's first paragraph (§5.1).
func (b *builder) lead() string {
	said := prose(b.summary(180))
	if !strings.HasSuffix(said, ".") && !strings.HasSuffix(said, "…") {
		said += "."
	}
	return fmt.Sprintf("%s %d commands of its API: %d look, %d change something and are confirmed.", said, b.report.Read+b.report.Write, b.report.Read, b.report.Write)
}

// group is under which heading a command stands: its first tag, else the first segment of its key.
func (b *builder) group(op *operation) string {
	if len(op.tags) > 0 {
		if g := oneLine(op.tags[0], 60); g != "" {
			return g
		}
	}
	if first, _, found := strings.Cut(op.key, "."); found {
		return first
	}
	return "Commands"
}

// prose is a line that Markdown shows as it stands.
func prose(s string) string {
	s = strings.NewReplacer("<", "", ">", "", "\\", "/", "`", "'", "[", "(", "]", ")", "|", "/", "*", "", "~", "-").Replace(s)
	if s = strings.TrimLeft(s, "-+#= \t"); s == "" {
		return "…"
	}
	return s
}
