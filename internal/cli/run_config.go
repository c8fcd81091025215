package cli

import (
	"context"
	"fmt"

	"hcpx/internal/settings"
)

// settingsView answers config show.
type settingsView struct {
	Home     string         `json:"home"`
	Settings []settings.Row `json:"settings"`
}

func runConfigShow(_ context.Context, d *deps, _ healthOptions) error {
	a, err := d.app()
	if err != nil {
		return err
	}
	v := settingsView{a.Home(), a.Settings().Rows()}
	return d.show(v, func(p *page) {
		p.facts([2]string{"store", v.Home})
		p.raw("\n")
		var rows [][]cell
		for _, r := range v.Settings {
			rows = append(rows, []cell{{text: r.Key}, {text: fmt.Sprint(r.Value)}, {r.From, faint}})
		}
		p.table([]string{"setting", "value", "from"}, rows)
	})
}
