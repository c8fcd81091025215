package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"hcpx/internal/app"
	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// The face of the packs (§12.1): hcpx PACK SPACE SUB --flags is the request that hcpx exec PACK KEY -- k=v
// makes, and goes the same way (§6.6).

// faced are the words of a command line; started by a pack's link (hcpx face install), the pack is the first of them.
func faced(env Env) []string {
	switch {
	case env.Face == "":
		return env.Args
	case len(env.Args) > 0 && strings.HasPrefix(env.Args[0], cobra.ShellCompRequestCmd):
		return slices.Concat(env.Args[:1], []string{env.Face}, env.Args[1:])
	}
	return append([]string{env.Face}, env.Args...)
}

// face runs a command line whose first word is none of hcpx's own (HCP-12.1-1).
func (d *deps) face(ctx context.Context, args []string) error {
	l := d.faceLine(args)
	a, err := d.app() // what is wrong with the store's place comes before what the store has
	if err != nil {
		return err
	}
	if l.o.Pack == manifest.Bootstrap && l.pack == nil && !l.help { // which is there from first use (§11.4)
		if _, _, _, err := d.executor(); err == nil {
			l = d.faceLine(args)
		}
	}
	switch {
	case l.o.Pack == "":
		return usage("", "%s", orWord(l.fault, "No pack is named"))
	case l.pack == nil && d.env.Face == "" && !slices.Contains(a.PackIDs(), l.o.Pack):
		return d.unknownCommand(l.o.Pack)
	case l.help:
		return d.faceHelp(l)
	case !l.settled():
		return d.unnamed(a, l)
	}
	bad := l.violations()
	if empty := emptyFlag(l.own); empty != "" {
		bad = append(bad, protocol.Violation{Message: emptySentence(empty)})
	}
	if why := l.o.wrong(); why != "" {
		bad = append(bad, protocol.Violation{Message: stopped(why)})
	}
	return d.exec(ctx, l.o, func(*app.App) (*jsondoc.Node, []protocol.Violation) { return l.b.top.node(), bad })
}

// faceLine reads a command line of the face; hcpx's own flags in it are set.
func (d *deps) faceLine(args []string) *faceLine {
	l := &faceLine{args: args, own: pflag.NewFlagSet("", pflag.ContinueOnError)}
	l.lookup = func(id string) *app.Pack {
		a, err := d.app()
		if err != nil {
			return nil
		}
		p, _ := a.Pack(id) // what can't be read is refused by the pipeline
		return p
	}
	d.flags.register(l.own)
	l.o.register(l.own)
	l.own.BoolVar(&l.help, "help", false, "show what it does and takes")
	d.flags.Home = namedHome(args) // the store has the pack, and may be named behind it
	l.read()
	d.flags.nobody = l.own.Changed("as") && d.flags.As == ""
	if l.own.Changed("json") {
		d.asJSON = d.flags.JSON
	}
	if bad := d.flags.colorFault(); bad != "" {
		l.wrong("%s", bad)
	}
	return l
}

// namedHome is the value of --home, wherever it stands.
func namedHome(args []string) string {
	home := ""
	for i, a := range args {
		value, ok := strings.CutPrefix(a, "--home=")
		switch {
		case a == "--":
			return home
		case ok:
			home = value
		case a == "--home" && i+1 < len(args) && !strings.HasPrefix(args[i+1], "--"):
			home = args[i+1]
		}
	}
	return home
}

// unnamed answers a command line that names a pack, or a space of it, and no command.
func (d *deps) unnamed(a *app.App, l *faceLine) error {
	if l.fault != "" {
		return usage(l.o.Pack, "%s", l.fault)
	}
	p, refusal := a.Pack(l.o.Pack)
	if refusal != nil {
		return refusal
	}
	if s, err := d.who(); err == nil {
		if refusal := a.Activated(s.ID, l.o.Pack); refusal != nil {
			return refusal
		}
	}
	return usage(l.o.Pack, "hcpx %s needs a command: %s", l.o.Pack, strings.Join(below(p.Manifest, nil), ", "))
}

// below are the words that may follow words of a pack's commands, each once, in the order of the manifest.
func below(m *manifest.Manifest, words []string) []string {
	var next []string
	for _, c := range m.Commands {
		segments := faceWords(m, c.Key)
		if len(segments) > len(words) && slices.Equal(segments[:len(words)], words) && !slices.Contains(next, segments[len(words)]) {
			next = append(next, segments[len(words)])
		}
	}
	return next
}

// faceWords are the words of a command: its segments, without a first one that repeats the pack, unless another command
// has that shorter name.
func faceWords(m *manifest.Manifest, key string) []string {
	if short, ok := strings.CutPrefix(key, m.ID+"."); ok && m.Command(short) == nil {
		key = short
	}
	return strings.Split(key, ".")
}

// unknownCommand answers a word that is neither a command of hcpx nor a pack's: what is nearest, and how a pack comes here.
func (d *deps) unknownCommand(name string) error {
	var names []string
	for _, e := range table() {
		if !e.hidden {
			names = append(names, e.name)
		}
	}
	if a, err := d.app(); err == nil {
		names = append(names, a.PackIDs()...)
	}
	if manifest.Reserved(name) && name != manifest.Bootstrap {
		return unbuilt(name)
	}
	shown := clip(clean(name))
	said, hint := fmt.Sprintf("There is no command %q, and no pack of that name is installed", shown), "hcpx help"
	if !manifest.ValidID(name) {
		said = fmt.Sprintf("There is no command %q", shown)
	} else if !slices.Contains(app.Shipped(), name) {
		said += "; a pack is installed by hcpx add DIR"
	} else {
		said, hint = said+"; it ships with hcpx: hcpx add "+name, "hcpx add "+name
	}
	if near := protocol.Nearest(name, names); near != "" {
		if said += "; the nearest is " + near; !slices.Contains(app.Shipped(), name) {
			hint = "hcpx " + near + " --help"
		}
	}
	return protocol.Fail(protocol.UsageError, stopped(said)).WithHint(hint)
}
