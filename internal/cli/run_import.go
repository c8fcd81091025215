package cli

import (
	"context"
	"strconv"
	"strings"
)

// runImportOpenAPI asks the daemon's own part, which the core does not have (§11).
func runImportOpenAPI(ctx context.Context, d *deps, o ImportOptions) error {
	if d.env.Daemon == nil || d.env.Daemon.ImportOpenAPI == nil {
		return componentMissing("import openapi", "reachable from here")
	}
	report, failure := d.env.Daemon.ImportOpenAPI(ctx, o)
	if failure != nil {
		return failure
	}
	for _, list := range []*[]string{&report.Left, &report.Decide} {
		if *list == nil {
			*list = []string{}
		}
	}
	return d.show(report, func(p *page) { showImport(p, report) })
}

// showImport tells what stands in the pack, what does not, and what is left to a person.
func showImport(p *page, r ImportReport) {
	p.styled(good, "%s %s written to %s", r.ID, r.Version, r.Dir)
	p.facts([2]string{"server", r.Server}, [2]string{"credential", r.Credential},
		[2]string{"commands", strconv.Itoa(r.Read) + " read, " + strconv.Itoa(r.Write) + " write with confirm"})
	if len(r.Left) > 0 {
		p.head("Left out")
		const most = 20
		for i, line := range r.Left {
			if i == most {
				p.line("  and %d more; --json names them", len(r.Left)-most)
				break
			}
			p.line("  %s", line)
		}
	}
	p.head("To decide")
	for _, line := range r.Decide {
		p.line("  %s", line)
	}
	dir := r.Dir // which add would take for the id of a pack without a slash
	if !strings.Contains(dir, "/") {
		dir = "./" + dir
	}
	p.next("hcpx lint "+quote(dir), "hcpx add "+quote(dir))
}
