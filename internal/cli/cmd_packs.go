package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// The commands on packs (§11.1): lint, install, uninstall, rollback, add, list.

type lintOptions struct{ Dirs []string }

func newLintCmd(d *deps, run runner[lintOptions]) *cobra.Command {
	c := command(text{
		use: "lint DIR…", short: "Check packs, with the exact place of each finding",
		long:    "Nothing is installed and nothing is run. Packs of one call see each other. Exit 1 when there is an error; warnings do not count.",
		example: "hcpx lint ./transit\nhcpx lint ./packs/* --json",
	}, operands(1, -1, "a pack directory"), func(c *cobra.Command, args []string) error {
		return run(c.Context(), d, lintOptions{Dirs: args})
	})
	c.ValidArgsFunction = directories
	return c
}

// installOptions are install's, and the answers that a person would give to its questions.
type installOptions struct {
	Sources                               []string
	AllowBin, AllowRead, AllowPassThrough bool
	Force, AcceptPolicyChange             bool
}

func (o *installOptions) register(f *pflag.FlagSet) {
	f.SortFlags = false
	f.BoolVar(&o.AllowBin, "allow-bin", false, "allow the programs that these packs name")
	f.BoolVar(&o.AllowRead, "allow-read", false, "allow the paths that these packs read outside their jail")
	f.BoolVar(&o.AllowPassThrough, "allow-pass-through", false, "take a pack with legacy pass-through")
	f.BoolVar(&o.Force, "force", false, "replace the same version with other content")
	f.BoolVar(&o.AcceptPolicyChange, "accept-policy-change", false, "take a newer version that may do more")
}

func newInstallCmd(d *deps, run runner[installOptions]) *cobra.Command {
	var o installOptions
	c := command(text{
		use: "install SOURCE…", short: "Lint packs and bring them into the store",
		long: "SOURCE is a directory or an archive (.tgz, .tar.gz, .zip) of one. All are linted before one is installed.\n" +
			"Without --allow-bin and --allow-read a person is asked on a terminal; elsewhere the pack is installed, nothing is\n" +
			"allowed, and the answer lists what it needs.",
		example: "hcpx install ./transit\nhcpx install ./transit --allow-bin --json",
	}, operands(1, -1, "a pack directory or archive"), func(c *cobra.Command, args []string) error {
		o.Sources = args
		return run(c.Context(), d, o)
	})
	o.register(c.Flags())
	c.ValidArgsFunction = directories
	return c
}

type uninstallOptions struct {
	ID           string
	Force, Purge bool
}

func newUninstallCmd(d *deps, run runner[uninstallOptions]) *cobra.Command {
	var o uninstallOptions
	c := command(text{
		use: "uninstall PACK", short: "Remove a pack from the store and from every session",
		long:    "The data of the pack stay unless --purge. A pack that is not installed is no error.",
		example: "hcpx uninstall transit\nhcpx uninstall transit --purge",
	}, operands(1, 1, "the id of a pack"), func(c *cobra.Command, args []string) error {
		o.ID = args[0]
		return run(c.Context(), d, o)
	})
	c.Flags().BoolVar(&o.Force, "force", false, "do not ask when other sessions use it")
	c.Flags().BoolVar(&o.Purge, "purge", false, "remove its data too")
	c.ValidArgsFunction = d.packIDs(1)
	return c
}

// packOptions is one pack.
type packOptions struct{ ID string }

func newRollbackCmd(d *deps, run runner[packOptions]) *cobra.Command {
	return d.onePack(text{
		use: "rollback PACK", short: "Go back to the version that was installed before", example: "hcpx rollback transit",
	}, run)
}

// onePack makes a command that takes the id of a pack and no flags.
func (d *deps) onePack(t text, run runner[packOptions]) *cobra.Command {
	c := command(t, operands(1, 1, "the id of a pack"), func(c *cobra.Command, args []string) error {
		return run(c.Context(), d, packOptions{ID: args[0]})
	})
	c.ValidArgsFunction = d.packIDs(1)
	return c
}

type addOptions struct {
	Name string
	Yes  bool
}

func newAddCmd(d *deps, run runner[addOptions]) *cobra.Command {
	var o addOptions
	c := command(text{
		use: "add PACK|SOURCE [--yes]", short: "Lint, install, allow and activate a pack behind one consent",
		long: "PACK is the name of a pack that ships with hcpx, SOURCE a directory or an archive (.tgz, .tar.gz, .zip) of one.\n" +
			"The consent lists programs, paths, network, credentials and what agents may already do. No grant is changed.",
		example: "hcpx add git\nhcpx add ./transit --yes",
	}, operands(1, 1, "a pack"), func(c *cobra.Command, args []string) error {
		o.Name = args[0]
		return run(c.Context(), d, o)
	})
	c.Flags().BoolVar(&o.Yes, "yes", false, "consent without being asked")
	c.ValidArgsFunction = d.shippedPacks
	return c
}

type listOptions struct{}

func newListCmd(d *deps, run runner[listOptions]) *cobra.Command {
	return command(text{
		use: "list", short: "List the installed packs", example: "hcpx list",
	}, none(), func(c *cobra.Command, _ []string) error { return run(c.Context(), d, listOptions{}) })
}

// directories completes directories.
func directories(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}
