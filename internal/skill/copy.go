package skill

import (
	"slices"
	"strings"
	"unicode"
)

// Row is one command in the table of the copy.
type Row struct {
	Verb      string
	Operation string
	Land      string
	Confirm   bool
	Summary   string
}

// Copy makes the Agent Skill that activate stores (§5.4): front matter with the pack's id as name and the
// lead as description, the pack's text without its own front matter, then the commands and how to call
// them. Equal inputs give equal bytes.
func Copy(packID string, src []byte, rows []Row) []byte {
	s, _ := Parse(src)
	var b strings.Builder
	b.WriteString("---\nname: " + scalar(packID) + "\ndescription: " + scalar(s.description(packID)) + "\n---\n\n")
	body := strings.TrimRight(strings.TrimLeft(s.src[s.body:], "\r\n"), " \t\r\n")
	b.WriteString(body + "\n")
	b.WriteString(s.ending())
	b.WriteString("\n## Commands of " + packID + "\n\n")
	if len(rows) == 0 {
		b.WriteString("This pack has no commands.\n")
		return []byte(b.String())
	}
	b.WriteString("| command | operation | land | confirm | summary |\n| --- | --- | --- | --- | --- |\n")
	gated := false
	for _, r := range rows {
		confirm := "no"
		if r.Confirm {
			confirm, gated = "yes", true
		}
		b.WriteString("| `" + r.Verb + "` | " + r.Operation + " | " + r.Land + " | " + confirm + " | " + cell(r.Summary) + " |\n")
	}
	b.WriteString("\nCall a command with `hcpx exec " + packID + " <verb_key> -- k=v`, one `k=v` for each argument; `--json` prints the whole\n" +
		"result envelope, `--plan` shows what would run and runs nothing.\n")
	if gated {
		b.WriteString("A command whose confirm is yes runs only with a confirmation (`--confirm`). Without one the answer is\n" +
			"`confirm_required`: ask the person first.\n")
	}
	return []byte(b.String())
}

// description is the lead, or what can be said without one.
func (s *Skill) description(packID string) string {
	if s.Lead != "" {
		return s.Lead
	}
	return "Commands of the pack " + packID + "."
}

// ending closes a fence or comment that the text left open, so that the table is seen as one. What stands
// open in a list or quote ends with it.
func (s *Skill) ending() string {
	if len(s.blocks) == 0 {
		return ""
	}
	last := s.blocks[len(s.blocks)-1]
	if !last.open || !last.top {
		return ""
	}
	return last.closer + "\n"
}

// plain says whether a text is letters, digits and quiet punctuation, begins with a letter, and is no word
// that YAML 1.1 or 1.2 reads as something else.
func plain(s string) bool {
	for i, r := range s {
		if !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r) && !strings.ContainsRune(" .,;()/_'+-", r)) {
			return false
		}
	}
	words := []string{"", "y", "n", "yes", "no", "on", "off", "true", "false", "null"}
	return !slices.Contains(words, strings.ToLower(s)) && !strings.HasSuffix(s, " ")
}

// scalar writes a text as a YAML value on one line: plain where no reader could take it for anything else,
// else in double quotes, where JSON's escapes hold.
func scalar(s string) string {
	if plain(s) {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r&0xfffe == 0xfffe:
			b.WriteString(escaped(r))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// escaped is a code point as YAML's \U escape.
func escaped(r rune) string {
	const digits = "0123456789abcdef"
	out := []byte(`\U00000000`)
	for i := len(out) - 1; r > 0; i-- {
		out[i] = digits[r&15]
		r >>= 4
	}
	return string(out)
}

// cell makes a text fit into one cell of a table.
func cell(s string) string {
	return strings.ReplaceAll(oneLine(s), "|", `\|`)
}
