package cli

import (
	"time"

	"github.com/spf13/cobra"
)

// The audit's commands (§15.4): all of them read, and none is recorded.

type tailOptions struct{ Lines int }

type showOptions struct{ ID string }

func newAuditCmd(d *deps) *cobra.Command {
	return family(text{
		use: "audit", short: "Read and verify the record of what was run and refused",
		long:    "Each entry holds the hash of the one before. verify finds a change, a removal, a new order or a cut tail.",
		example: "hcpx audit tail\nhcpx audit verify",
	},
		newAuditTailCmd(d, runAuditTail),
		newAuditShowCmd(d, runAuditShow),
		newAuditVerifyCmd(d, runAuditVerify),
		newAuditExportCmd(d, runAuditExport),
		plainCmd(d, text{use: "head", short: "Print the signed head, to be kept elsewhere as an anchor", example: "hcpx audit head --json"}, runAuditHead),
	)
}

func newAuditTailCmd(d *deps, run runner[tailOptions]) *cobra.Command {
	var o tailOptions
	c := command(text{
		use: "tail [--lines N]", short: "Show the newest entries", example: "hcpx audit tail --lines 50",
	}, none(), func(c *cobra.Command, _ []string) error {
		if o.Lines < 1 {
			return usage("audit tail", "--lines is at least 1, not %d", o.Lines)
		}
		return run(c.Context(), d, o)
	})
	c.Flags().IntVar(&o.Lines, "lines", 20, "how `MANY` entries")
	return c
}

// verifyOptions name a text with heads that were kept outside; "" = none.
type verifyOptions struct{ Head string }

func newAuditVerifyCmd(d *deps, run runner[verifyOptions]) *cobra.Command {
	var o verifyOptions
	c := command(text{
		use: "verify [--head FILE]", short: "Check the whole chain against its signed head, and against heads kept outside",
		long: "--head reads heads out of any text: the lines of journald or syslog (audit.anchor), or of hcpx audit head --json.\n" +
			"Each must name an entry that is in the audit as it was then; nobody who owns the files alone can make that so again.",
		example: "hcpx audit verify\nhcpx audit verify --head anchors.json\nhcpx audit verify --head /var/log/auth.log",
	}, none(), func(c *cobra.Command, _ []string) error { return run(c.Context(), d, o) })
	c.Flags().StringVar(&o.Head, "head", "", "the `FILE` with heads that were kept; - for stdin")
	return c
}

func newAuditShowCmd(d *deps, run runner[showOptions]) *cobra.Command {
	return command(text{
		use: "show ID", short: "Show all entries of one run", example: "hcpx audit show 01JDZ3Q4W5X6Y7Z8A9B0C1D2E3",
	}, operands(1, 1, "the id of a run"), func(c *cobra.Command, args []string) error {
		return run(c.Context(), d, showOptions{ID: args[0]})
	})
}

// exportOptions choose the entries of an export (§15.4). Times are zero when none was given.
type exportOptions struct {
	Format          string
	Since, Until    time.Time
	Pack, Principal string
	Output          string // the file; "" = stdout
}

func newAuditExportCmd(d *deps, run runner[exportOptions]) *cobra.Command {
	var o exportOptions
	var since, until string
	c := command(text{
		use: "export [--format ndjson|cef]", short: "Write the entries out, for another place to keep or to search",
		long: "ndjson gives the lines as they stand, with their hashes and MACs; cef gives one event of the Common Event Format for each.\n" +
			"A time is 2026-01-31 or 2026-01-31T08:00:00Z. --pack and --principal take patterns with *, as in agent:*.",
		example: "hcpx audit export > audit.ndjson\nhcpx audit export --format cef --since 2026-01-31 --principal 'agent:*'",
	}, none(), func(c *cobra.Command, _ []string) (err error) {
		switch {
		case o.Format != "ndjson" && o.Format != "cef":
			return usage("audit export", "--format is ndjson or cef, not %q", o.Format)
		case d.json() && o.Output == "":
			return usage("audit export", "with --json the answer is one value, so --output must name a file for the entries")
		}
		if o.Since, err = exportTime("--since", since); err != nil {
			return err
		}
		if o.Until, err = exportTime("--until", until); err != nil {
			return err
		}
		return run(c.Context(), d, o)
	})
	c.Flags().StringVar(&o.Format, "format", "ndjson", "ndjson or cef: the `FORMAT` of a line")
	c.Flags().StringVar(&since, "since", "", "only entries of this `TIME` and later")
	c.Flags().StringVar(&until, "until", "", "only entries before this `TIME`")
	c.Flags().StringVar(&o.Output, "output", "", "write into this new `FILE` instead of stdout")
	c.Flags().StringVar(&o.Pack, "pack", "", "only entries of this `PACK`")
	c.Flags().StringVar(&o.Principal, "principal", "", "only entries of this `PRINCIPAL`")
	return c
}

// exportTime reads a moment, or a day, which is its first moment in UTC.
func exportTime(flag, word string) (time.Time, error) {
	if word == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, word); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usage("audit export", "%s is a time as 2026-01-31T08:00:00Z or 2026-01-31, not %q", flag, word)
}
