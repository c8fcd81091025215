package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
)

// The groups of the help page, in its order.
const (
	groupPacks   = "Packs"
	groupSession = "Session"
	groupRun     = "Run"
	groupRights  = "Rights"
	groupHealth  = "Health"
	groupMore    = "More"
)

func groups() []string {
	return []string{groupRun, groupPacks, groupSession, groupRights, groupHealth, groupMore}
}

// entry is one top-level command. build is called only for the command that is named.
type entry struct {
	name, group string
	hidden      bool // forms of the bootstrap pack and of generators, not for the help page
	build       func(*deps) *cobra.Command
}

// table lists the top-level commands in the order of the help page.
func table() []entry {
	return []entry{
		{"exec", groupRun, false, with(newExecCmd, runExec)},
		{"availability", groupRun, false, with(newAvailabilityCmd, runAvailability)},
		{"mcp", groupRun, false, with(newMCPCmd, runMCP)},
		{"demo", groupRun, false, with(newDemoCmd, runDemo)},
		{"add", groupPacks, false, with(newAddCmd, runAdd)},
		{"import", groupPacks, false, newImportCmd},
		{"lint", groupPacks, false, with(newLintCmd, runLint)},
		{"install", groupPacks, false, with(newInstallCmd, runInstall)},
		{"uninstall", groupPacks, false, with(newUninstallCmd, runUninstall)},
		{"rollback", groupPacks, false, with(newRollbackCmd, runRollback)},
		{"list", groupPacks, false, with(newListCmd, runList)},
		{"face", groupPacks, false, newFaceCmd},
		{"activate", groupSession, false, with(newActivateCmd, runActivate)},
		{"deactivate", groupSession, false, with(newDeactivateCmd, runDeactivate)},
		{"connect", groupSession, false, with(newConnectCmd, runConnect)},
		{"disconnect", groupSession, false, with(newDisconnectCmd, runDisconnect)},
		{"whoami", groupSession, false, with(newWhoamiCmd, runWhoami)},
		{"allow", groupRights, false, with(newAllowCmd, runAllow)},
		{"grant", groupRights, false, with(newGrantCmd, runGrant)},
		{"revoke", groupRights, false, with(newRevokeCmd, runRevoke)},
		{"grants", groupRights, false, with(newGrantsCmd, runGrants)},
		{"approvals", groupRights, false, newApprovalsCmd},
		{"status", groupHealth, false, with(newStatusCmd, runStatus)},
		{"doctor", groupHealth, false, with(newDoctorCmd, runDoctor)},
		{"repair", groupHealth, false, with(newRepairCmd, runRepair)},
		{"audit", groupHealth, false, newAuditCmd},
		{"config", groupHealth, false, newConfigCmd},
		{"conformance", groupMore, false, with(newConformanceCmd, runConformance)},
		{"version", groupMore, false, with(newVersionCmd, runVersion)},
		{"completion", groupMore, false, with(newCompletionCmd, runCompletion)},
		{"man", groupMore, true, with(newManCmd, runMan)},
		{"setup", groupMore, true, newSetupCmd},
		{"skill", groupMore, true, with(newSkillCmd, runSkill)},
	}
}

// runner does a command's work with parsed options; tests of parsing pass their own.
type runner[O any] func(ctx context.Context, d *deps, o O) error

// with binds a constructor to its runner.
func with[O any](build func(*deps, runner[O]) *cobra.Command, run runner[O]) func(*deps) *cobra.Command {
	return func(d *deps) *cobra.Command { return build(d, run) }
}

// text is what a command says of itself.
type text struct {
	use     string // name and operands
	short   string
	long    string // "" when short says all
	example string
}

// command makes a command of its text; the operands are checked by args before run sees them.
func command(t text, args cobra.PositionalArgs, run func(c *cobra.Command, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: t.use, Short: t.short, Long: t.long, Example: t.example,
		Args: args, RunE: run,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     cobra.NoFileCompletions,
	}
}

// family makes a command that only holds others.
func family(t text, members ...*cobra.Command) *cobra.Command {
	var names []string
	for _, m := range members {
		names = append(names, m.Name())
	}
	c := command(t, cobra.ArbitraryArgs, func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usage(c.Name(), "hcpx %s has no command %q, only %s", c.Name(), clean(args[0]), strings.Join(names, ", "))
		}
		return usage(c.Name(), "hcpx %s needs one of %s", c.Name(), strings.Join(names, ", "))
	})
	c.AddCommand(members...)
	return c
}

// operands demands between least and most operands, most < 0 being without end; what names them.
func operands(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usage(commandPath(c), "hcpx %s needs %s", commandPath(c), what)
		case most == 0 && len(args) > 0:
			return usage(commandPath(c), "hcpx %s takes no operand, and %q is one", commandPath(c), clean(args[0]))
		case most >= 0 && len(args) > most:
			return usage(commandPath(c), "hcpx %s takes %s, and %q is one too many", commandPath(c), what, clean(args[most]))
		}
		return nil
	}
}

func none() cobra.PositionalArgs { return operands(0, 0, "") }
