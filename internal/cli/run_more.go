package cli

import (
	"context"

	"hcpx/internal/conformance"
	"hcpx/internal/protocol"
)

func runConformance(ctx context.Context, d *deps, o conformanceOptions) error {
	p := d.outPage()
	report, err := conformance.Run(ctx, target{d.env}, conformance.Options{Vectors: o.Vectors, Done: func(v conformance.Outcome) {
		if !d.json() {
			showVector(p, v)
		}
	}})
	if err != nil {
		return protocol.Fail(protocol.NotFound, sentence(err.Error())).WithHint("hcpx conformance")
	}
	if err := d.show(report, func(p *page) {
		p.raw("\n")
		if report.OK {
			p.styled(good, "%d vectors passed", report.Passed)
		} else {
			p.styled(bad, "%d vectors passed, %d failed", report.Passed, report.Failed)
		}
	}); err != nil {
		return err
	}
	if !report.OK {
		return exit(1)
	}
	return nil
}

func showVector(p *page, v conformance.Outcome) {
	mark, s := "pass", good
	if !v.OK {
		mark, s = "FAIL", bad
	}
	p.raw(p.paint(s, mark) + "  " + clean(v.Vector) + "  " + p.paint(faint, clean(v.Section)) + "\n")
	if v.Detail != "" {
		p.line("      %s", v.Detail)
	}
}
