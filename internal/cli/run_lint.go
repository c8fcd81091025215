package cli

import (
	"fmt"
	"path"

	"hcpx/internal/protocol"
)

// showIssues writes findings as file:line:column, code and sentence, with the hint below.
func showIssues(p *page, issues []protocol.Issue) {
	for _, i := range issues {
		s := bad
		if i.Severity == protocol.SeverityWarning {
			s = warn
		}
		place := fmt.Sprintf("%s:%d:%d", path.Join(i.Dir, i.File), i.Line, i.Column)
		p.raw(clean(place) + ": " + p.paint(s, clean(string(i.Code))) + " " + clean(i.Message) + "\n")
		if i.Hint != "" {
			p.raw(p.paint(faint, "  hint: ") + clean(i.Hint) + "\n")
		}
	}
}
