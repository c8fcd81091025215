package cli

import (
	"context"
	"slices"
	"strings"

	"hcpx/internal/app"
	"hcpx/internal/lifecycle"
	"hcpx/internal/protocol"
)

// operation is one of the lifecycle's.
type operation[V any] func(*lifecycle.Lifecycle, protocol.Session) (V, *protocol.Error)

// stage runs an operation and shows its view. The bootstrap pack is there from first use (§11.4).
func stage[V any](d *deps, do operation[V], text func(*page, V)) error {
	a, s, err := d.appAndSession()
	if err != nil {
		return turnedAway(a, s, err)
	}
	life, refusal := a.Lifecycle(s)
	if refusal != nil {
		return refusal
	}
	_, err = answered(d, s, life, do, text)
	return err
}

// turnedAway puts a caller without a valid Principal into the audit; a wrong command line is no denial (§9.7).
func turnedAway(a *app.App, s protocol.Session, err error) error {
	if e := asFailure(err); a != nil && e.Code == protocol.Unauthenticated {
		return a.Health().Refuse(s, e)
	}
	return err
}

// look is stage for what writes nothing at all, and works on a damaged store (§12.1.9).
func look[V any](d *deps, do operation[V], text func(*page, V)) (V, error) {
	a, s, err := d.appAndSession()
	if err != nil {
		var none V
		return none, err
	}
	return answered(d, s, a.Health(), do, text)
}

func answered[V any](d *deps, s protocol.Session, life *lifecycle.Lifecycle, do operation[V], text func(*page, V)) (V, error) {
	v, refusal := do(life, s)
	if refusal != nil {
		return v, refusal
	}
	return v, d.show(v, func(p *page) { text(p, v) })
}

func (d *deps) appAndSession() (*app.App, protocol.Session, error) {
	a, err := d.app()
	if err != nil {
		return nil, protocol.Session{}, err
	}
	s, err := d.who()
	return a, s, err
}

// runLint needs neither store nor session (§11.3): it looks at directories.
func runLint(_ context.Context, d *deps, o lintOptions) error {
	a, err := d.app()
	if err != nil {
		return err
	}
	v, refusal := a.Health().Lint(o.Dirs)
	if refusal != nil {
		return refusal
	}
	err = d.show(v, func(p *page) {
		showIssues(p, v.Issues)
		failures, warnings := count(v.Issues)
		switch {
		case failures+warnings == 0:
			p.styled(good, "no issues")
			p.next("hcpx install " + strings.Join(o.Dirs, " "))
		default:
			p.line("%s, %s", counted(failures, "error", "errors"), counted(warnings, "warning", "warnings"))
		}
	})
	if err == nil && protocol.HasErrors(v.Issues) {
		err = exit(protocol.LintFailed.Exit())
	}
	return err
}

func count(issues []protocol.Issue) (failures, warnings int) {
	for _, i := range issues {
		if i.Severity == protocol.SeverityError {
			failures++
		} else {
			warnings++
		}
	}
	return failures, warnings
}

func runInstall(_ context.Context, d *deps, o installOptions) error {
	return stage(d, func(l *lifecycle.Lifecycle, s protocol.Session) (lifecycle.InstallView, *protocol.Error) {
		return l.Install(s, o.Sources, lifecycle.InstallOptions{
			AllowBin: o.AllowBin, AllowRead: o.AllowRead, AllowPassThrough: o.AllowPassThrough,
			Force: o.Force, AcceptPolicyChange: o.AcceptPolicyChange, Ask: d.asker(s),
		})
	}, func(p *page, v lifecycle.InstallView) {
		var next []string
		for _, one := range v.Packs {
			showInstalled(p, one)
			if one.Activated {
				next = append(next, d.here("hcpx availability "+one.PackID))
			} else {
				next = append(next, d.here("hcpx activate "+one.PackID))
			}
		}
		p.next(next...)
	})
}

func showInstalled(p *page, one lifecycle.InstalledPack) {
	name := one.PackID + " " + one.Version
	switch {
	case one.Error != nil:
		p.raw(p.paint(bad, "not installed ") + clean(orWord(one.PackID, one.Source)) + ": " + clean(one.Error.Message) + "\n")
		explainDetails(p, one.Error)
		if one.Error.Hint != "" {
			p.raw(p.paint(faint, "hint: ") + clean(one.Error.Hint) + "\n")
		}
		return
	case !one.Changed:
		p.line("unchanged %s", name)
	case one.Previous != "":
		p.raw(p.paint(good, "installed ") + clean(name) + " in place of " + clean(one.Previous) + "\n")
	default:
		p.raw(p.paint(good, "installed ") + clean(name) + "\n")
	}
	showIssues(p, one.Issues)
	showDifferences(p, one.Changes)
	if net := strings.Join(one.Network, " "); net != "" && net != "none" {
		p.styled(warn, "  network %s", net)
	}
	for _, a := range one.Allowed {
		p.line("  allowed %s", a)
	}
	for _, n := range one.Needs {
		p.styled(warn, "  needs %s %s: %s", n.Kind, n.Name, n.Hint)
	}
	if one.Note != "" {
		p.line("  %s", one.Note)
	}
}

// showDifferences tells what a version changes, and marks what lets the pack do more (§13.3).
func showDifferences(p *page, changes []lifecycle.Change) {
	for _, c := range changes {
		if c.Widens {
			p.styled(warn, "  may do more: %s", c.What)
		} else {
			p.line("  changed: %s", c.What)
		}
	}
}

func runUninstall(ctx context.Context, d *deps, o uninstallOptions) error {
	return stage(d, func(l *lifecycle.Lifecycle, s protocol.Session) (lifecycle.UninstallView, *protocol.Error) {
		return l.Uninstall(ctx, s, o.ID, lifecycle.UninstallOptions{Force: o.Force, Purge: o.Purge, Ask: d.asker(s)})
	}, func(p *page, v lifecycle.UninstallView) {
		if !v.Changed {
			p.line("%s was not installed", v.PackID)
			return
		}
		p.raw(p.paint(good, "uninstalled ") + clean(v.PackID) + "\n")
		if len(v.Sessions) > 0 {
			p.line("  taken out of %s", strings.Join(v.Sessions, ", "))
		}
		if v.Purged {
			p.line("  its data were removed")
		}
		showRevocations(p, v.Revocations)
		if len(v.Callers) > 0 {
			p.styled(warn, "note: it is called by composites of %s, which do not run without it", strings.Join(v.Callers, ", "))
		}
	})
}

func runRollback(_ context.Context, d *deps, o packOptions) error {
	return stage(d, func(l *lifecycle.Lifecycle, s protocol.Session) (lifecycle.RollbackView, *protocol.Error) {
		return l.Rollback(s, o.ID)
	}, func(p *page, v lifecycle.RollbackView) {
		p.raw(p.paint(good, "rolled back ") + clean(v.PackID) + " from " + clean(v.Replaced) + " to " + clean(v.Version) + "\n")
		showDifferences(p, v.Changes)
		p.next(d.here("hcpx availability " + v.PackID))
	})
}

func runAdd(_ context.Context, d *deps, o addOptions) error {
	return stage(d, func(l *lifecycle.Lifecycle, s protocol.Session) (lifecycle.AddView, *protocol.Error) {
		return l.Add(s, o.Name, lifecycle.AddOptions{Yes: o.Yes, InstallOptions: lifecycle.InstallOptions{Ask: d.asker(s)}})
	}, func(p *page, v lifecycle.AddView) {
		showInstalled(p, v.Pack)
		if v.Activated {
			p.line("activated in session %s", v.Session)
		}
		next := []string{d.here("hcpx availability " + v.Pack.PackID), "hcpx skill " + v.Pack.PackID}
		if v.Connect != "" {
			next = slices.Insert(next, 0, v.Connect)
		}
		p.next(next...)
	})
}

func runList(_ context.Context, d *deps, _ listOptions) error {
	return stage(d, func(l *lifecycle.Lifecycle, s protocol.Session) (lifecycle.ListView, *protocol.Error) {
		return l.List(s)
	}, func(p *page, v lifecycle.ListView) {
		var rows [][]cell
		for _, k := range v.Packs {
			state, s := "installed", plain
			switch {
			case k.Problem != "":
				state, s = k.Problem, bad
			case k.Connected && k.Activated:
				state, s = "connected", good
			case k.Activated:
				state, s = "activated", good
			}
			rows = append(rows, []cell{{text: k.PackID}, {text: k.Version}, {state, s}, {text: k.Summary}})
		}
		p.table([]string{"pack", "version", "state", "summary"}, rows)
		p.next(d.here("hcpx availability"))
	})
}
