package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commandHelp is what a command says of itself: the one source of the help page, of `--help --json` and
// of docs/cli.md.
type commandHelp struct {
	Name     string        `json:"name"`
	Usage    string        `json:"usage"`
	Summary  string        `json:"summary"`
	About    string        `json:"about,omitempty"`
	Examples []string      `json:"examples"`
	Flags    []flagHelp    `json:"flags"`
	Commands []commandHelp `json:"commands"`
	Group    string        `json:"group,omitempty"`
}

// flagHelp is one flag.
type flagHelp struct {
	Name    string `json:"name"`
	Value   string `json:"value,omitempty"` // what stands behind it; empty for a switch
	Summary string `json:"summary"`
}

type helpOptions struct{ Topic []string }

func newHelpCmd(d *deps) *cobra.Command {
	c := command(text{
		use: "help [COMMAND]", short: "Show what a command does and takes", example: "hcpx help exec\nhcpx exec --help",
	}, cobra.ArbitraryArgs, func(c *cobra.Command, args []string) error {
		return runHelp(c.Context(), d, helpOptions{Topic: args}, c.Root())
	})
	c.ValidArgsFunction = func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, e := range table() {
			if !e.hidden {
				names = append(names, e.name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	return c
}

func runHelp(_ context.Context, d *deps, o helpOptions, root *cobra.Command) error {
	topic := root
	for i, word := range o.Topic {
		next := child(topic, word)
		switch {
		case next == nil && i == 0:
			return d.faceTopic(o.Topic)
		case next == nil:
			return d.unknownCommand(strings.Join(o.Topic, " "))
		}
		topic = next
	}
	return d.help(topic)
}

func child(c *cobra.Command, name string) *cobra.Command {
	for _, sub := range c.Commands() {
		if sub.Name() == name {
			return sub
		}
	}
	return nil
}

// help shows the help of c.
func (d *deps) help(c *cobra.Command) error {
	h := describe(c)
	return d.show(h, func(p *page) {
		if c.HasParent() {
			commandPage(p, h, flagsOf(c.Root().PersistentFlags(), nil))
		} else {
			rootPage(p, h)
		}
	})
}

// describe reads a command's own words.
func describe(c *cobra.Command) commandHelp {
	h := commandHelp{
		Name: commandPath(c), Usage: usageLine(c), Summary: c.Short, About: c.Long,
		Examples: strings.Split(c.Example, "\n"), Flags: flagsOf(c.Flags(), c.Root().PersistentFlags()), Commands: []commandHelp{},
	}
	if !c.HasParent() {
		h.Name, h.Flags = c.Name(), flagsOf(c.PersistentFlags(), nil)
		for _, e := range table() {
			if sub := child(c, e.name); sub != nil && !e.hidden {
				s := describe(sub)
				s.Group = e.group
				h.Commands = append(h.Commands, s)
			}
		}
		return h
	}
	for _, sub := range c.Commands() {
		h.Commands = append(h.Commands, describe(sub))
	}
	return h
}

// usageLine is the whole form: program, parents, name, operands.
func usageLine(c *cobra.Command) string {
	if !c.HasParent() {
		return c.Use
	}
	return c.Parent().CommandPath() + " " + c.Use
}

// flagsOf lists the flags of a set that are not those of another.
func flagsOf(set, without *pflag.FlagSet) []flagHelp {
	flags := []flagHelp{}
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" || without != nil && without.Lookup(f.Name) == f {
			return
		}
		value, summary := pflag.UnquoteUsage(f)
		flags = append(flags, flagHelp{Name: "--" + f.Name, Value: value, Summary: summary})
	})
	return flags
}

func rootPage(p *page, h commandHelp) {
	p.raw(h.About + "\n")
	p.head("Usage")
	p.raw("  " + h.Usage + " [--flags]\n  hcpx PACK WORDS… [--flags]    a command of an activated pack\n")
	for _, g := range groups() {
		p.head(g)
		var rows [][]cell
		for _, c := range h.Commands {
			if c.Group == g {
				rows = append(rows, row("  "+c.Name, c.Summary))
			}
		}
		p.table(nil, rows)
	}
	p.head("Flags of every command")
	flagTable(p, h.Flags)
	p.next("hcpx help COMMAND", "hcpx demo")
}

func commandPage(p *page, h commandHelp, global []flagHelp) {
	p.raw(h.Summary + ".\n")
	if h.About != "" {
		p.raw("\n" + h.About + "\n")
	}
	p.head("Usage")
	p.raw("  " + h.Usage + "\n")
	p.head("Example")
	for _, e := range h.Examples {
		p.raw("  " + e + "\n")
	}
	if len(h.Commands) > 0 {
		p.head("Commands")
		var rows [][]cell
		for _, c := range h.Commands {
			rows = append(rows, row("  "+strings.TrimPrefix(c.Usage, "hcpx "), c.Summary))
		}
		p.table(nil, rows)
	}
	if len(h.Flags) > 0 {
		p.head("Flags")
		flagTable(p, h.Flags)
	}
	names := make([]string, len(global))
	for i, f := range global {
		names[i] = f.Name
	}
	p.raw("\n" + p.paint(faint, "Every command: "+strings.Join(names, " ")) + "\n")
}

func flagTable(p *page, flags []flagHelp) {
	var rows [][]cell
	for _, f := range flags {
		rows = append(rows, row("  "+strings.TrimSpace(f.Name+" "+f.Value), f.Summary))
	}
	p.table(nil, rows)
}
