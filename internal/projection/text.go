package projection

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"hcpx/internal/jsondoc"
	"hcpx/internal/skill"
)

// standsAlone is how much of the instructions a host keeps at least, in characters.
const standsAlone = 512

// Shape is how a host sees commands (§12.2).
type Shape string

// The two shapes.
const (
	Single   Shape = "single"   // one tool, whatever is activated
	Commands Shape = "commands" // a tool for each command
)

// Instructions are what a host puts before its model at the start (§12.2.3): how to call, then the leads. The first 512
// characters stand alone.
func Instructions(packs []Pack, shape Shape) string {
	how := `Run one with the tool hcp: {"pack_id", "verb_key", "args"}. `
	if shape == Commands {
		how = "Each command is a tool, PACK__COMMAND. "
	}
	start := "hcpx runs commands of packs under grants, a sandbox and an audit. Read a pack's skill before you first use it: " +
		`hcp__read_skill {"pack_id"}. ` + how +
		"A refusal says why in error.message and what to do in error.hint; a command marked confirm needs a person's yes. "
	start += named(packs, standsAlone-utf8.RuneCountInString(start))
	if len(packs) == 0 {
		return start
	}
	return start + "\n\n" + Leads(packs)
}

// named lists the packs as far as the room goes.
func named(packs []Pack, room int) string {
	if len(packs) == 0 {
		return "No pack is activated here; a person does that with: hcpx add PACK"
	}
	list := "Packs: "
	for i, p := range packs {
		left, one := len(packs)-i, p.ID
		if i > 0 {
			one = ", " + one
		}
		more := fmt.Sprintf(" and %d more, which hcp__read_skill {} lists.", left)
		if last := left == 1; len(list)+len(one)+1 > room || !last && len(list)+len(one)+len(more) > room {
			return list + strings.TrimPrefix(more, " and ")
		}
		list += one
	}
	return list + "."
}

// Leads are the leads of the packs, a line each.
func Leads(packs []Pack) string {
	var b strings.Builder
	for _, p := range packs {
		b.WriteString("- " + p.ID + ": " + About(p) + "\n")
	}
	return b.String()
}

func About(p Pack) string {
	if p.Lead != "" {
		return p.Lead
	}
	return "Commands of the pack " + p.ID + "."
}

// Skill is the whole text of a pack for one who calls by tools (§5.4, §12.2.3): an Agent Skill, with the commands that
// the Principal can run and the schema of each one's arguments.
func Skill(p Pack) []byte {
	rows := make([]skill.Row, len(p.Commands))
	for i, c := range p.Commands {
		rows[i] = skill.Row{Verb: c.Key, Operation: string(c.Operation), Land: string(c.Land), Confirm: c.Confirm, Summary: c.Summary}
	}
	out := skill.Copy(p.ID, p.Text, rows)
	if len(rows) == 0 {
		return out
	}
	var b strings.Builder
	b.WriteString("\n## Calling by tools\n\nWhere the tool `hcp` is there, it runs them, and the shell is not needed:\n" +
		"`{\"pack_id\": \"" + p.ID + "\", \"verb_key\": …, \"args\": {…}}`, with `confirm` or `project` beside them where needed. The arguments of\n" +
		"each, as JSON Schema:\n")
	for _, c := range p.Commands {
		b.WriteString("\n`" + c.Key + "` " + c.Marks() + "\n\n```json\n" + fenced(own(c)) + "\n```\n")
	}
	return append(out, b.String()...)
}

// Front is the front matter of Skill, as JSON.
func Front(p Pack) *jsondoc.Node {
	return jsondoc.Obj(jsondoc.Member{Key: "name", Value: jsondoc.Str(p.ID)}, jsondoc.Member{Key: "description", Value: jsondoc.Str(About(p))})
}

// fenced is JSON that cannot end the fence around it: a backtick stands in its strings alone.
func fenced(n *jsondoc.Node) string { return strings.ReplaceAll(string(n.Append(nil)), "`", `\u0060`) }
