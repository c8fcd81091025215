package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// manOptions names a command; none is the whole program.
type manOptions struct{ Topic []string }

// manView is one manual page in roff.
type manView struct {
	Name string `json:"name"`
	Page string `json:"page"`
}

func newManCmd(d *deps, run runner[manOptions]) *cobra.Command {
	return command(text{
		use: "man [COMMAND]", short: "Print the manual page of the program or of a command", example: "hcpx man exec | man -l -",
	}, cobra.ArbitraryArgs, func(c *cobra.Command, args []string) error {
		return run(c.Context(), d, manOptions{Topic: args})
	})
}

func runMan(_ context.Context, d *deps, o manOptions) error {
	root := d.tree([]string{"help"})
	topic := root
	for _, word := range o.Topic {
		if topic = child(topic, word); topic == nil {
			return d.unknownCommand(strings.Join(o.Topic, " "))
		}
	}
	h := describe(topic)
	v := manView{Name: strings.Join(append([]string{"hcpx"}, o.Topic...), "-")}
	v.Page = manPage(v.Name, h, flagsOf(root.PersistentFlags(), nil))
	return d.show(v, func(p *page) { p.raw(v.Page) })
}

// manPage writes roff in the manner of man(7).
func manPage(name string, h commandHelp, global []flagHelp) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1\n.SH NAME\n%s \\- %s\n", roff(strings.ToUpper(name)), roff(name), roff(h.Summary))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(h.Usage))
	if h.About != "" {
		fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", roff(h.About))
	}
	if len(h.Commands) > 0 {
		b.WriteString(".SH COMMANDS\n")
		for _, c := range h.Commands {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(strings.TrimPrefix(c.Usage, "hcpx ")), roff(c.Summary))
		}
	}
	b.WriteString(".SH OPTIONS\n")
	flags := global
	if h.Name != "hcpx" {
		flags = append(append([]flagHelp{}, h.Flags...), global...)
	}
	for _, f := range flags {
		fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(f.Name+" "+f.Value)), roff(f.Summary))
	}
	b.WriteString(".SH EXAMPLES\n.nf\n")
	for _, e := range h.Examples {
		b.WriteString(roff(e) + "\n")
	}
	b.WriteString(".fi\n.SH EXIT STATUS\n0 done, 1 it ran and failed, 3 refused, 64 wrong command line, envelope or arguments, 70 the runtime is broken.\n" +
		"doctor and status: 0 healthy, 2 a warning, 1 a failure.\n")
	return b.String()
}

// roff takes the meaning from backslashes, dashes and lines that begin like a request.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
