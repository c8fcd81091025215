package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// verbView is what a command of a pack takes and does: the answer to hcpx exec PACK VERB --help.
type verbView struct {
	PackID    string             `json:"pack_id"`
	VerbKey   string             `json:"verb_key"`
	Usage     string             `json:"usage,omitempty"` // of the face (§12.1)
	Summary   string             `json:"summary"`
	Operation protocol.Operation `json:"operation"`
	Land      protocol.Land      `json:"land"`
	Confirm   bool               `json:"confirm"`
	Args      []argView          `json:"args"`
	Example   string             `json:"example"`
}

// argView is one argument.
type argView struct {
	Name        string `json:"name"`
	Flag        string `json:"flag,omitempty"` // of the face
	Type        string `json:"type"`
	Format      string `json:"format,omitempty"`
	Required    bool   `json:"required"`
	Default     string `json:"default,omitempty"`
	Description string `json:"description,omitempty"`
}

// helpFor shows a command's help; of exec with a pack and a verb, theirs.
func (d *deps) helpFor(c *cobra.Command) error {
	if ids := c.Flags().Args(); commandPath(c) == "exec" && len(ids) >= 2 {
		return d.verbHelp(ids[0], ids[1])
	}
	return d.help(c)
}

func (d *deps) verbHelp(packID, verb string) error {
	a, err := d.app()
	if err != nil {
		return err
	}
	cmd, entry, refusal := a.Verb(packID, verb)
	if refusal != nil {
		return refusal
	}
	v := verbView{PackID: packID, VerbKey: verb, Summary: cmd.Summary, Operation: entry.Operation, Land: entry.Land, Confirm: entry.Confirm}
	schema := a.ArgsSchema(packID, verb)
	v.Args = argViews(schema)
	v.Example = verbExample(v, cmd.Examples, schema)
	return d.show(v, func(p *page) { verbPage(p, v) })
}

func argViews(schema *jsondoc.Node) []argView {
	args := []argView{}
	root := typing{schema, schema}
	for _, m := range root.properties() {
		t := typing{schema, m.Value}
		a := argView{Name: m.Key, Type: t.name(), Format: t.format(), Required: root.demands(m.Key)}
		if def := m.Value.Get("default"); def != nil {
			a.Default = string(def.Append(nil))
		}
		if about := m.Value.Get("description"); about != nil {
			a.Description = about.Text
		}
		args = append(args, a)
	}
	return args
}

// name says a type in words: integer, array of string, one of a|b.
func (t typing) name() string {
	for _, s := range t.variants() {
		if e := s.Get("enum"); e != nil {
			var options []string
			for _, o := range e.Items {
				options = append(options, orWord(o.Text, string(o.Append(nil))))
			}
			return strings.Join(options, "|")
		}
		names := typeNames(s)
		if len(names) == 1 && names[0] == "array" {
			return "array of " + typing{t.root, s.Get("items")}.name()
		}
		if len(names) > 0 {
			return strings.Join(names, " or ")
		}
	}
	return "any"
}

// format is the format that a text must have, "" when none is named; of an array it is that of its items.
func (t typing) format() string {
	for _, s := range t.variants() {
		if f := s.Get("format"); f != nil {
			return f.Text
		}
	}
	if t.takes("array") {
		return t.items().format()
	}
	return ""
}

func listsText(list *jsondoc.Node, text string) bool {
	if list == nil {
		return false
	}
	for _, item := range list.Items {
		if item.Kind == jsondoc.String && item.Text == text {
			return true
		}
	}
	return false
}

func verbExample(v verbView, examples []*jsondoc.Node, schema *jsondoc.Node) string {
	argv := []string{"hcpx", "exec", v.PackID, v.VerbKey}
	if v.Confirm {
		argv = append(argv, "--confirm")
	}
	var words []string
	if len(examples) > 0 {
		words = wordsOf(examples[0], schema)
	}
	if len(words) > 0 {
		argv = append(append(argv, "--"), words...)
	}
	return quoted(argv)
}

// wordsOf says arguments as words, the other way round of buildArgs: what the schema types back to the same
// value as k=v, anything else as k:=JSON.
func wordsOf(args, schema *jsondoc.Node) []string {
	var words []string
	if args == nil {
		return nil
	}
	for _, m := range args.Members {
		plain := m.Key + "=" + string(m.Value.Append(nil))
		if m.Value.Kind == jsondoc.String {
			plain = m.Key + "=" + m.Value.Text
		}
		back, bad := buildArgs([]string{plain}, schema)
		if len(bad) > 0 || !back.Equal(jsondoc.Obj(m)) {
			plain = m.Key + ":=" + string(m.Value.Append(nil))
		}
		words = append(words, plain)
	}
	return words
}

func verbPage(p *page, v verbView) {
	p.raw(clean(stopped(v.Summary)) + "\n\n")
	p.line("%s/%s: %s", v.PackID, v.VerbKey, effect(v.Operation, v.Land, v.Confirm))
	if len(v.Args) > 0 {
		p.head("Arguments")
		var rows [][]cell
		for _, a := range v.Args {
			rows = append(rows, row("  "+a.Name, a.about(a.Type), a.Description))
		}
		p.table(nil, rows)
	}
	p.head("Example")
	p.raw("  " + v.Example + "\n")
}
