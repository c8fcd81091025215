package cli

import (
	"bytes"
	"context"
	"slices"

	"github.com/spf13/cobra"

	"hcpx/internal/manifest"
)

// completionOptions names a shell, and the pack whose link is to be completed; "" is hcpx itself.
type completionOptions struct{ Shell, Face string }

// completionView is a script with the shell that reads it.
type completionView struct {
	Shell  string `json:"shell"`
	Script string `json:"script"`
}

func shells() []string { return []string{"bash", "zsh", "fish"} }

func newCompletionCmd(d *deps, run runner[completionOptions]) *cobra.Command {
	c := command(text{
		use: "completion bash|zsh|fish [PACK]", short: "Print the completion script of a shell",
		long:    "It completes hcpx, and the commands, flags and values of activated packs; for PACK, the link of hcpx face install.",
		example: "source <(hcpx completion bash)\nhcpx completion zsh > ~/.zfunc/_hcpx\nhcpx completion fish > ~/.config/fish/completions/hcpx.fish",
	}, operands(1, 2, "a shell: bash, zsh or fish, and the pack of a link"), func(c *cobra.Command, args []string) error {
		if !slices.Contains(shells(), args[0]) {
			return usage("completion", "There is no completion for %q, only for bash, zsh and fish", clean(args[0]))
		}
		o := completionOptions{Shell: args[0]}
		if len(args) > 1 {
			if o.Face = args[1]; !manifest.ValidID(o.Face) {
				return usage("completion", "%q cannot be the id of a pack", clean(o.Face))
			}
		}
		return run(c.Context(), d, o)
	})
	c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return shells(), quiet
		case 1:
			return d.activePacks(), quiet
		}
		return nil, quiet
	}
	return c
}

func runCompletion(_ context.Context, d *deps, o completionOptions) error {
	// The script asks the program itself; only its name stands in it.
	root := &cobra.Command{Use: orWord(o.Face, d.env.Name)}
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
