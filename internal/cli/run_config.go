package cli

import (
	"context"

	"hcpx/internal/settings"
)

// settingsView answers config show. With problems no setting holds, and none is listed.
type settingsView struct {
	Home     string             `json:"home"`
	Settings []settings.Row     `json:"settings"`
	Problems []settings.Problem `json:"problems,omitempty"`
}

func runConfigShow(_ context.Context, d *deps, _ healthOptions) error {
	a, err := d.app()
	if err != nil {
		return err
	}
	// Who acts is no matter here, and whether that is known: the session finds the workspace, and so its hcp.toml.
	_, _ = d.who()
	set, fault := a.Settings()
	v := settingsView{Home: a.Home(), Settings: []settings.Row{}}
	if fault == nil {
		v.Settings = set.Rows()
	} else {
		v.Problems = decode[[]settings.Problem](fault.Details["problems"])
	}
	if err := d.show(v, func(p *page) { showSettings(p, v) }); err != nil || fault == nil {
		return err
	}
	return exit(1)
}

func showSettings(p *page, v settingsView) {
	p.facts([2]string{"store", v.Home})
	p.raw("\n")
	for _, bad := range v.Problems {
		p.styled(warn, "%s", bad)
		if bad.Hint != "" {
			p.line("  hint: %s", bad.Hint)
		}
	}
	if len(v.Problems) > 0 {
		p.line("No setting holds while this stands; commands that run or change something are refused.")
		return
	}
	var rows [][]cell
	for _, r := range v.Settings {
		rows = append(rows, []cell{{text: r.Key}, {text: r.Value}, {r.From, faint}, {r.Note, faint}})
	}
	p.table([]string{"setting", "value", "from", ""}, rows)
}
