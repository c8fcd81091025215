package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// faceView is a pack, or a space of it: the answer to hcpx PACK --help.
type faceView struct {
	PackID    string            `json:"pack_id"`
	Version   string            `json:"version"`
	Summary   string            `json:"summary"`
	Activated bool              `json:"activated"`
	Commands  []faceCommandView `json:"commands"`
}

// faceCommandView is one of its commands. The mark of a gated write is never left out (§12.6).
type faceCommandView struct {
	VerbKey   string             `json:"verb_key"`
	Usage     string             `json:"usage"`
	Summary   string             `json:"summary"`
	Operation protocol.Operation `json:"operation"`
	Land      protocol.Land      `json:"land"`
	Confirm   bool               `json:"confirm"`
}

// faceTopic is hcpx help PACK WORDS…
func (d *deps) faceTopic(topic []string) error {
	global := d.flags // reading a face sets them anew
	l := d.faceLine(append(slices.Clone(topic), "--help"))
	d.flags = global
	if a, err := d.app(); err != nil || l.pack == nil && !slices.Contains(a.PackIDs(), l.o.Pack) {
		return d.unknownCommand(strings.Join(topic, " "))
	}
	return d.faceHelp(l)
}

// faceHelp shows a command, or what a pack or a space of it has.
func (d *deps) faceHelp(l *faceLine) error {
	a, err := d.app()
	if err != nil {
		return err
	}
	switch {
	case l.pack == nil:
		_, refusal := a.Pack(l.o.Pack)
		return lift(refusal)
	case l.command != nil:
		return d.faceVerb(l)
	case len(l.words) > 0 && len(below(l.pack.Manifest, l.words)) == 0:
		_, _, refusal := a.Verb(l.o.Pack, l.o.Verb)
		return lift(refusal)
	}
	m := l.pack.Manifest
	v := faceView{PackID: m.ID, Version: m.Version, Summary: m.Summary, Commands: []faceCommandView{}}
	if s, err := d.who(); err == nil {
		v.Activated = a.Activated(s.ID, m.ID) == nil
	}
	for _, c := range m.Commands {
		words, e := faceWords(m, c.Key), l.pack.Policy.Verb(c.Key)
		if e != nil && len(words) >= len(l.words) && slices.Equal(words[:len(l.words)], l.words) {
			v.Commands = append(v.Commands, faceCommandView{c.Key, d.faceUsage(m, c), c.Summary, e.Operation, e.Land, e.Confirm})
		}
	}
	return d.show(v, func(p *page) { d.facePage(p, v) })
}

// faceUsage is how a command is typed here: started by the pack's link, without hcpx.
func (d *deps) faceUsage(m *manifest.Manifest, c *manifest.Command) string {
	return d.faceName(m) + " " + strings.Join(faceWords(m, c.Key), " ")
}

func (d *deps) faceName(m *manifest.Manifest) string {
	if d.env.Face == m.ID {
		return m.ID
	}
	return "hcpx " + m.ID
}

func (d *deps) facePage(p *page, v faceView) {
	p.raw(clean(stopped(v.Summary)) + "\n")
	p.head("Commands")
	var rows [][]cell
	for _, c := range v.Commands {
		rows = append(rows, row("  "+c.Usage, effect(c.Operation, c.Land, c.Confirm), c.Summary))
	}
	p.table(nil, rows)
	switch {
	case !v.Activated:
		p.next(d.here("hcpx activate " + v.PackID))
	case len(v.Commands) > 0:
		p.next(v.Commands[0].Usage + " --help")
	}
}

// effect is what a command does, in a few words.
func effect(operation protocol.Operation, land protocol.Land, confirm bool) string {
	text := string(operation) + ", land " + string(land)
	if confirm {
		text += ", needs confirmation"
	}
	return text
}

// faceVerb shows one command with its flags.
func (d *deps) faceVerb(l *faceLine) error {
	m, e := l.pack.Manifest, l.pack.Policy.Verb(l.command.Key)
	if e == nil {
		return protocol.Fail(protocol.PackTampered, fmt.Sprintf("The policy of pack %q has no entry for %q.", m.ID, l.command.Key)).WithHint("hcpx lint")
	}
	schema := l.b.schema.node
	v := verbView{PackID: m.ID, VerbKey: l.command.Key, Usage: d.faceUsage(m, l.command), Summary: l.command.Summary,
		Operation: e.Operation, Land: e.Land, Confirm: e.Confirm, Args: argViews(schema)}
	for i, a := range v.Args {
		for _, f := range l.flags {
			if f.prop == a.Name {
				v.Args[i].Flag = "--" + f.name
			}
		}
	}
	argv := strings.Fields(v.Usage)
	if len(l.command.Examples) > 0 {
		argv = append(argv, wordsOfFlags(l.command.Examples[0], schema)...)
	}
	if v.Confirm {
		argv = slices.Insert(argv, len(strings.Fields(v.Usage)), "--confirm")
	}
	v.Example = quoted(argv)
	return d.show(v, func(p *page) { faceVerbPage(p, v, l.flags) })
}

func faceVerbPage(p *page, v verbView, flags argFlags) {
	p.raw(clean(stopped(v.Summary)) + "\n\n")
	p.line("%s/%s: %s", v.PackID, v.VerbKey, effect(v.Operation, v.Land, v.Confirm))
	p.head("Usage")
	p.raw("  " + clean(v.Usage) + " [--flags]\n")
	if len(v.Args) > 0 {
		p.head("Flags")
		var rows [][]cell
		for _, a := range v.Args {
			i := slices.IndexFunc(flags, func(f argFlag) bool { return f.prop == a.Name })
			name, kind := "-- "+a.Name+"=…", a.Type // named behind -- alone
			if i >= 0 {
				name, kind = flags[i].shown(a.Type)
			}
			rows = append(rows, row("  "+name, a.about(kind), a.Description))
		}
		p.table(nil, rows)
	}
	p.head("Also")
	rows := [][]cell{row("  --plan", "show what would run, and run nothing"), row("  --json", "print the result envelope")}
	if v.Operation == protocol.Write {
		rows = append([][]cell{row("  --confirm, --apply", "confirm it, where it needs that"), row("  --approval ID", "confirm by the approval of a person"),
			row("  --idempotency-key KEY", "run at most once under the key")}, rows...)
	}
	p.table(nil, rows)
	p.head("Example")
	p.raw("  " + clean(v.Example) + "\n")
}

// shown is a flag as help writes it, and what is said of its value beside.
func (f argFlag) shown(kind string) (name, about string) {
	switch {
	case f.isSwitch():
		return "--[no-]" + f.name, "switch"
	case f.takes("array"):
		return "--" + f.name + " …", kind + ", repeatable"
	case f.takes("object"):
		return "--" + f.name + " JSON", kind + ", or --" + f.name + ".NAME"
	}
	return "--" + f.name + " …", kind
}

// about is what a person must know of an argument besides its description.
func (a argView) about(kind string) string {
	if a.Format != "" {
		kind += " (" + a.Format + ")"
	}
	if a.Required {
		kind += ", required"
	}
	if a.Default != "" {
		kind += ", default " + a.Default
	}
	return kind
}

// wordsOfFlags says arguments as flags, the other way round of reading them: what would read back as something else is
// given as JSON, and what has no flag as k:=JSON behind --.
func wordsOfFlags(args, schema *jsondoc.Node) []string {
	var words, behind []string
	if args == nil {
		return nil
	}
	table := flagsOfArgs(schema)
	for _, m := range args.Members {
		i := slices.IndexFunc(table, func(f argFlag) bool { return f.prop == m.Key })
		if i < 0 {
			behind = append(behind, m.Key+":="+string(m.Value.Append(nil)))
			continue
		}
		said := table[i].words(m.Value)
		if back, bad := argsOfFlags(said, schema); len(bad) > 0 || !back.Equal(jsondoc.Obj(m)) {
			said = []string{"--" + table[i].name + ":=" + string(m.Value.Append(nil))}
		}
		words = append(words, said...)
	}
	if len(behind) > 0 {
		words = append(append(words, "--"), behind...)
	}
	return words
}

// words says one value in the plainest form; it may not read back.
func (f argFlag) words(v *jsondoc.Node) []string {
	text := string(v.Append(nil))
	switch {
	case v.Kind == jsondoc.String:
		text = v.Text
	case v.Kind == jsondoc.Bool && f.isSwitch() && v.Text == "false":
		return []string{"--no-" + f.name}
	case v.Kind == jsondoc.Bool && f.isSwitch():
		return []string{"--" + f.name}
	case v.Kind == jsondoc.Array:
		var words []string
		for _, item := range v.Items {
			words = append(words, f.words(item)...)
		}
		return words
	}
	if text == "" || strings.HasPrefix(text, "--") {
		return []string{"--" + f.name + "=" + text}
	}
	return []string{"--" + f.name, text}
}

// argsOfFlags reads flags alone, as those of a command with that schema.
func argsOfFlags(words []string, schema *jsondoc.Node) (*jsondoc.Node, []protocol.Violation) {
	l := &faceLine{args: words, own: pflag.NewFlagSet("", pflag.ContinueOnError), command: &manifest.Command{}, flags: flagsOfArgs(schema)}
	l.o.Pack, l.o.Verb, l.b.schema = "pack", "command", typing{schema, schema}
	new(globals).register(l.own)
	l.o.register(l.own)
	l.read()
	return l.b.top.node(), l.violations()
}
