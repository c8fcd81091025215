package cli

import (
	"github.com/spf13/cobra"
)

// The health commands (§12.1.3, §12.1.7, §12.1.9): status, doctor, repair, setup, config, audit. All but
// repair and setup apply|update are read: they mint nothing and write nothing.

type healthOptions struct{}

func plainCmd(d *deps, t text, run runner[healthOptions]) *cobra.Command {
	return command(t, none(), func(c *cobra.Command, _ []string) error { return run(c.Context(), d, healthOptions{}) })
}

func newStatusCmd(d *deps, run runner[healthOptions]) *cobra.Command {
	return plainCmd(d, text{
		use: "status", short: "Show in one page whether this runtime is healthy",
		long: "Exit 0 when healthy, 2 on a warning, 1 on a failure.", example: "hcpx status",
	}, run)
}

func newDoctorCmd(d *deps, run runner[healthOptions]) *cobra.Command {
	return plainCmd(d, text{
		use: "doctor", short: "Examine store, packs, programs and sandbox, with a fix for each finding",
		long: "It changes nothing; hcpx repair does. Exit 0 when healthy, 2 on a warning, 1 on a failure.", example: "hcpx doctor",
	}, run)
}

func newRepairCmd(d *deps, run runner[healthOptions]) *cobra.Command {
	return plainCmd(d, text{
		use: "repair", short: "Rebuild a damaged state and keep the damaged file", example: "hcpx repair",
	}, run)
}

func newConfigCmd(d *deps) *cobra.Command {
	return family(text{
		use: "config", short: "Show the settings and where each comes from", example: "hcpx config show",
	}, plainCmd(d, text{
		use: "show", short: "Show every setting and where it comes from", example: "hcpx config show",
	}, runConfigShow))
}

func newSetupCmd(d *deps) *cobra.Command {
	return family(text{
		use: "setup", short: "What is installed and linked, and to bring it up to date", example: "hcpx setup status",
	},
		plainCmd(d, text{use: "status", short: "Show what is installed and whether its skills are current", example: "hcpx setup status"}, runSetupStatus),
		plainCmd(d, text{use: "apply", short: "Install the bootstrap pack and make missing skill copies", example: "hcpx setup apply"}, runSetupApply),
		plainCmd(d, text{use: "update", short: "Make the skill copies of activated packs again", example: "hcpx setup update"}, runSetupUpdate),
	)
}

func newSkillCmd(d *deps, run runner[packOptions]) *cobra.Command {
	return d.onePack(text{use: "skill PACK", short: "Print the skill of an activated pack", example: "hcpx skill git"}, run)
}
