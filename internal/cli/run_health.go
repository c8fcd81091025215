package cli

import (
	"context"
	"fmt"
	"strings"

	"hcpx/internal/lifecycle"
	"hcpx/internal/protocol"
)

func runStatus(_ context.Context, d *deps, _ healthOptions) error {
	return d.health((*lifecycle.Lifecycle).Status, "hcpx doctor")
}

func runDoctor(_ context.Context, d *deps, _ healthOptions) error {
	return d.health((*lifecycle.Lifecycle).Doctor, "hcpx repair")
}

// health shows findings; the exit code is 0 healthy, 2 on a warning, 1 on a failure (HCP-12.1-7).
func (d *deps) health(examine func(*lifecycle.Lifecycle, protocol.Session) lifecycle.HealthView, next string) error {
	a, s, err := d.appAndSession()
	if err != nil && asFailure(err).Code != protocol.Unauthenticated { // which is a finding
		return err
	}
	v := examine(a.Health(), s)
	if err := d.show(v, func(p *page) { showHealth(p, v, next) }); err != nil {
		return err
	}
	return exit(v.Exit)
}

func showHealth(p *page, v lifecycle.HealthView, next string) {
	p.facts([2]string{"store", v.Home}, [2]string{"session", v.Session},
		[2]string{"packs", fmt.Sprintf("%d installed, activated: %s", v.Packs, orWord(strings.Join(v.Active, " "), "none"))})
	p.raw("\n")
	var rows [][]cell
	for _, f := range v.Findings {
		rows = append(rows, []cell{{f.Level, levelStyle(f.Level)}, {text: f.Area}, {text: f.Subject}, {text: f.Message}})
		if f.Fix != "" {
			rows = append(rows, []cell{{}, {}, {}, {"fix: " + f.Fix, faint}})
		}
	}
	p.table(nil, rows)
	showRules(p, v.Rules)
	p.raw("\n" + p.paint(levelStyle(v.Level), clean(v.Level)) + "\n")
	if v.Level == lifecycle.LevelFailure {
		p.next(next)
	}
}

func showRules(p *page, rules []lifecycle.SandboxRule) {
	if len(rules) == 0 {
		return
	}
	p.raw("\n")
	var rows [][]cell
	for _, r := range rules {
		s := good
		if r.State != "enforced" {
			s = warn
		}
		rows = append(rows, []cell{{text: r.Rule}, {r.State, s}, {text: r.Mechanism}, {r.Detail, faint}})
	}
	p.table([]string{"sandbox rule", "state", "by", ""}, rows)
}

func levelStyle(level string) style {
	switch level {
	case lifecycle.LevelOK:
		return good
	case lifecycle.LevelWarning:
		return warn
	default:
		return bad
	}
}

// runRepair exits 0 only when nothing is left that it could not put right.
func runRepair(_ context.Context, d *deps, _ healthOptions) error {
	if a, s, err := d.appAndSession(); err != nil {
		return turnedAway(a, s, err)
	}
	v, err := look(d, (*lifecycle.Lifecycle).Repair, func(p *page, v lifecycle.RepairView) {
		if !v.Changed {
			p.line("nothing to repair")
		}
		for _, done := range v.Done {
			p.line("%s", done)
		}
		for _, kept := range v.Kept {
			p.line("kept %s", kept)
		}
		for _, left := range v.Left {
			p.styled(warn, "left: %s", left)
		}
		p.next("hcpx doctor")
	})
	if err == nil && len(v.Left) > 0 {
		return exit(1)
	}
	return err
}

func runSetupStatus(_ context.Context, d *deps, _ healthOptions) error {
	_, err := look(d, (*lifecycle.Lifecycle).SetupStatus, showSetup)
	return err
}

func runSetupApply(_ context.Context, d *deps, _ healthOptions) error {
	return stage(d, (*lifecycle.Lifecycle).SetupApply, showSetup)
}

func runSetupUpdate(_ context.Context, d *deps, _ healthOptions) error {
	return stage(d, (*lifecycle.Lifecycle).SetupUpdate, showSetup)
}

func showSetup(p *page, v lifecycle.SetupView) {
	var rows [][]cell
	for _, k := range v.Packs {
		state := ""
		if k.Changed {
			state = "changed"
		}
		rows = append(rows, row(k.PackID, k.Version, "skill "+k.Skill, state))
	}
	p.table([]string{"pack", "version", "skill", ""}, rows)
}
