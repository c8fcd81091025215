package cli

import "github.com/spf13/cobra"

// The approvals' commands (§15.2): who sees a request, decides about it, or takes it back.

// approvalOptions name one request; Preview and Yes are approve's, All is list's.
type approvalOptions struct {
	ID      string
	Preview string // the hash of the preview that was looked at
	Yes     bool
	All     bool
}

func newApprovalsCmd(d *deps) *cobra.Command {
	return family(text{
		use: "approvals", short: "See and decide what agents ask to run",
		long: "An agent's write that needs confirmation is refused with an approval_id. Another person, who could run it himself,\n" +
			"approves exactly that; the agent repeats it with \"confirm\": \"ID\" (--approval ID), once, within 15 minutes of asking.",
		example: "hcpx approvals watch\nhcpx approvals show 01JDZ3Q4W5X6Y7Z8A9B0C1D2E3\nhcpx approvals approve 01JDZ3Q4W5X6Y7Z8A9B0C1D2E3",
	},
		newApprovalsListCmd(d, runApprovalsList),
		newApprovalCmd(d, "show", "Show exactly what a request would run", runApprovalsShow),
		newApprovalsWatchCmd(d, runApprovalsWatch),
		newApproveCmd(d, runApprove),
		newApprovalCmd(d, "reject", "Say no to a pending request", runReject),
		newApprovalCmd(d, "withdraw", "Take back your own request, or your approval while it is unspent", runWithdraw),
	)
}

func newApprovalsListCmd(d *deps, run runner[approvalOptions]) *cobra.Command {
	var o approvalOptions
	c := command(text{
		use: "list [--all]", short: "List the requests that are open", example: "hcpx approvals list --all",
	}, none(), func(c *cobra.Command, _ []string) error { return run(c.Context(), d, o) })
	c.Flags().BoolVar(&o.All, "all", false, "also those that were decided, spent or expired, as long as they are kept")
	return c
}

func newApprovalsWatchCmd(d *deps, run runner[approvalOptions]) *cobra.Command {
	return command(text{
		use: "watch", short: "Print the pending requests, and new ones as they come, until Ctrl-C",
		long:    "With --json each is one line of JSON.",
		example: "hcpx approvals watch",
	}, none(), func(c *cobra.Command, _ []string) error { return run(c.Context(), d, approvalOptions{}) })
}

// newApprovalCmd is a command over one request.
func newApprovalCmd(d *deps, name, short string, run runner[approvalOptions]) *cobra.Command {
	return approvalCmd(d, text{use: name + " ID", short: short, example: "hcpx approvals " + name + " 01JDZ3Q4W5X6Y7Z8A9B0C1D2E3"}, &approvalOptions{}, run)
}

func newApproveCmd(d *deps, run runner[approvalOptions]) *cobra.Command {
	var o approvalOptions
	c := approvalCmd(d, text{
		use: "approve ID [--preview HASH]", short: "Let a request run, once and exactly as shown",
		long:    "On a terminal it shows the request and asks. Without one, or with --json, it does not ask.",
		example: "hcpx approvals approve 01JDZ3Q4W5X6Y7Z8A9B0C1D2E3",
	}, &o, run)
	c.Flags().StringVar(&o.Preview, "preview", "", "approve only if the preview still has this `HASH`, which show gave")
	c.Flags().BoolVar(&o.Yes, "yes", false, "approve without being asked")
	return c
}

func approvalCmd(d *deps, t text, o *approvalOptions, run runner[approvalOptions]) *cobra.Command {
	c := command(t, operands(1, 1, "the id of a request"), func(c *cobra.Command, args []string) error {
		o.ID = args[0]
		return run(c.Context(), d, *o)
	})
	c.ValidArgsFunction = d.completeApprovals
	return c
}
