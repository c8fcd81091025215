package cli

import (
	"github.com/spf13/cobra"
)

// The commands of a session (§11.1, §11.2, §9.3): activate, deactivate, connect, disconnect,
// availability, whoami.

// packsOptions are several packs.
type packsOptions struct{ IDs []string }

func newActivateCmd(d *deps, run runner[packsOptions]) *cobra.Command {
	return d.morePacks(text{
		use: "activate PACK…", short: "Make the commands of packs usable in this session", example: "hcpx activate transit ledger",
	}, run)
}

func newDeactivateCmd(d *deps, run runner[packsOptions]) *cobra.Command {
	return d.morePacks(text{
		use: "deactivate PACK…", short: "Take packs out of this session, and their connection too", example: "hcpx deactivate transit",
	}, run)
}

// morePacks makes a command that takes ids of packs and no flags.
func (d *deps) morePacks(t text, run runner[packsOptions]) *cobra.Command {
	c := command(t, operands(1, -1, "the id of a pack"), func(c *cobra.Command, args []string) error {
		return run(c.Context(), d, packsOptions{IDs: args})
	})
	c.ValidArgsFunction = d.packIDs(-1)
	return c
}

func newConnectCmd(d *deps, run runner[packOptions]) *cobra.Command {
	return d.onePack(text{
		use: "connect PACK", short: "Establish the binding of an activated pack",
		long: "Shows where the credential comes from, asks for what is needed, and mints once. A secret is asked for without echo on a\n" +
			"terminal, else it is one line of standard input (name:password for both); it is never an argument.",
		example: "hcpx connect transit",
	}, run)
}

func newDisconnectCmd(d *deps, run runner[packOptions]) *cobra.Command {
	return d.onePack(text{
		use: "disconnect PACK", short: "End the binding of a pack in this session",
		long:    "What is kept for it is deleted when no other session and no other pack of its family uses it.",
		example: "hcpx disconnect transit",
	}, run)
}

func newAvailabilityCmd(d *deps, run runner[packsOptions]) *cobra.Command {
	c := command(text{
		use: "availability [PACK…]", short: "Show how far each pack is, and which commands would run",
		long:    "A command that would not run names the first reason. Project and workspace stand under needs.",
		example: "hcpx availability\nhcpx availability ledger --json",
	}, operands(0, -1, "ids of packs"), func(c *cobra.Command, args []string) error {
		return run(c.Context(), d, packsOptions{IDs: args})
	})
	c.ValidArgsFunction = d.packIDs(-1)
	return c
}

type whoamiOptions struct{}

func newWhoamiCmd(d *deps, run runner[whoamiOptions]) *cobra.Command {
	return command(text{
		use: "whoami", short: "Show who acts, in which session, project and workspace", example: "hcpx whoami\nhcpx whoami --as agent:claude-code",
	}, none(), func(c *cobra.Command, _ []string) error { return run(c.Context(), d, whoamiOptions{}) })
}
