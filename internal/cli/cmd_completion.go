package cli

import (
	"bytes"
	"context"
	"slices"

	"github.com/spf13/cobra"
)

type completionOptions struct{ Shell string }

// completionView is a script with the shell that reads it.
type completionView struct {
	Shell  string `json:"shell"`
	Script string `json:"script"`
}

func shells() []string { return []string{"bash", "zsh", "fish"} }

func newCompletionCmd(d *deps, run runner[completionOptions]) *cobra.Command {
	c := command(text{
		use: "completion bash|zsh|fish", short: "Print the completion script of a shell",
		example: "source <(hcpx completion bash)\nhcpx completion zsh > ~/.zfunc/_hcpx\nhcpx completion fish > ~/.config/fish/completions/hcpx.fish",
	}, operands(1, 1, "a shell: bash, zsh or fish"), func(c *cobra.Command, args []string) error {
		if !slices.Contains(shells(), args[0]) {
			return usage("completion", "There is no completion for %q, only for bash, zsh and fish", clean(args[0]))
		}
		return run(c.Context(), d, completionOptions{Shell: args[0]})
	})
	c.ValidArgs, c.ValidArgsFunction = shells(), nil
	return c
}

func runCompletion(_ context.Context, d *deps, o completionOptions) error {
	// The script asks the program itself; only its name stands in it.
	root := &cobra.Command{Use: d.env.Name}
	var b bytes.Buffer
	var err error
	switch o.Shell {
	case "bash":
		err = root.GenBashCompletionV2(&b, true)
	case "zsh":
		err = root.GenZshCompletion(&b)
	default:
		err = root.GenFishCompletion(&b, true)
	}
	if err != nil {
		return broken("make the completion script", err)
	}
	return d.show(completionView{o.Shell, b.String()}, func(p *page) { p.raw(b.String()) })
}
