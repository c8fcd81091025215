package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Main runs one command line and gives its exit code. It is the only entry of this room; the bootstrap
// pack enters by the same tree, in process (builtin.go).
func Main(ctx context.Context, env Env) int {
	d := newDeps(env)
	defer d.close()
	return d.run(ctx, faced(env))
}

// run builds what args name and executes it. A panic becomes internal with exit 70, never a success.
func (d *deps) run(ctx context.Context, args []string) (code int) {
	d.asJSON, d.done = d.asJSON || wantsJSON(args), ctx.Done()
	defer func() {
		if r := recover(); r != nil {
			code = d.finish(broken("finish this command", fmt.Errorf("%v", r)))
		}
	}()
	if d.env.Daemon == nil && daemons(args) {
		return d.finish(d.handOver(args))
	}
	root := d.tree(args)
	if root == nil {
		return d.finish(d.face(ctx, args))
	}
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = d.helpErr
	}
	return d.finish(err)
}

// tree is the root with the command that args name, or with all of them for help and completion; nil when the first
// word is none of hcpx's own, so that a pack may have it (§12.1). Own words come first and are found without a store.
func (d *deps) tree(args []string) *cobra.Command {
	name, rest := commandWord(args)
	completing := strings.HasPrefix(name, cobra.ShellCompRequestCmd)
	all := name == "" || name == "help" || completing
	if d.env.Face != "" && !completing {
		return nil
	}
	root, known := newRoot(d), all
	if completing {
		d.completes(root, rest)
	}
	for _, e := range table() {
		if all || e.name == name {
			c := e.build(d)
			c.Hidden = e.hidden
			root.AddCommand(c)
			known = true
		}
	}
	if !known {
		return nil
	}
	return root
}

// newRoot is hcpx itself: the global flags, and help when no command is named.
func newRoot(d *deps) *cobra.Command {
	root := &cobra.Command{
		Use:   "hcpx COMMAND",
		Short: "Run the commands of harness packs through one governed pipeline",
		Long: "hcpx takes a pack (a directory with a manifest, a policy and a skill), checks it, installs it, and runs its\n" +
			"commands for people and agents: grants, arguments, confirmation, sandbox and audit, in one fixed order.",
		Example:           "hcpx demo\nhcpx add git\nhcpx exec git log -- limit=5",
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              cobra.NoArgs,
		RunE:              func(c *cobra.Command, _ []string) error { return d.help(c) },
		PersistentPreRunE: func(c *cobra.Command, _ []string) error { return d.flags.check(c) },
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetOut(d.env.Out)
	root.SetErr(d.env.Err)
	root.SetHelpCommand(newHelpCmd(d))
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		if err := d.helpFor(c); err != nil {
			d.helpErr = err
		}
	})
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage(commandPath(c), "%s", flagSentence(err))
	})
	d.flags.register(root.PersistentFlags())
	root.InitDefaultHelpFlag() // known before the words are searched, so that --help takes no value
	return root
}

// commandPath names a command without the program: "audit tail".
func commandPath(c *cobra.Command) string {
	_, path, _ := strings.Cut(c.CommandPath(), " ")
	return path
}

// commandWord is the first word of args that is neither a flag nor a global flag's value, and what follows it.
func commandWord(args []string) (word string, rest []string) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--":
			return "", nil
		case strings.HasPrefix(a, "--") && !strings.Contains(a, "=") && takesValue(a[2:]):
			i++
		case strings.HasPrefix(a, "-"):
		default:
			return a, args[i+1:]
		}
	}
	return "", nil
}

// wantsJSON sees --json even where the flags cannot be read, so that the error is JSON too.
func wantsJSON(args []string) bool {
	for _, a := range args {
		if a == "--" {
			return false
		}
		if a == "--json" || a == "--json=true" || a == "--stream" { // which implies it (§6.8)
			return true
		}
	}
	return false
}
