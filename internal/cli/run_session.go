package cli

import (
	"context"
	"maps"
	"slices"
	"strings"

	"hcpx/internal/lifecycle"
	"hcpx/internal/protocol"
)

func runActivate(_ context.Context, d *deps, o packsOptions) error {
	return stage(d, func(l *lifecycle.Lifecycle, s protocol.Session) (lifecycle.SessionView, *protocol.Error) {
		return l.Activate(s, o.IDs)
	}, func(p *page, v lifecycle.SessionView) {
		showChanges(p, v, "activated", "already activated")
		p.next(d.here("hcpx availability " + strings.Join(o.IDs, " ")))
	})
}

func runDeactivate(ctx context.Context, d *deps, o packsOptions) error {
	return stage(d, func(l *lifecycle.Lifecycle, s protocol.Session) (lifecycle.SessionView, *protocol.Error) {
		return l.Deactivate(ctx, s, o.IDs)
	}, func(p *page, v lifecycle.SessionView) { showChanges(p, v, "deactivated", "was not activated") })
}

func showChanges(p *page, v lifecycle.SessionView, did, didNot string) {
	for _, k := range v.Packs {
		word, s := didNot, plain
		if k.Changed {
			word, s = did, good
		}
		line := p.paint(s, word) + " " + clean(k.PackID) + " in session " + clean(v.Session)
		if k.Note != "" {
			line += " (" + clean(k.Note) + ")"
		}
		p.raw(line + "\n")
	}
}

func runConnect(ctx context.Context, d *deps, o packOptions) error {
	return stage(d, func(l *lifecycle.Lifecycle, s protocol.Session) (lifecycle.ConnectView, *protocol.Error) {
		return l.Connect(ctx, s, o.ID, lifecycle.ConnectOptions{Person: d.person(s), Ask: d.asker(s)})
	}, showConnection)
}

func runDisconnect(ctx context.Context, d *deps, o packOptions) error {
	return stage(d, func(l *lifecycle.Lifecycle, s protocol.Session) (lifecycle.ConnectView, *protocol.Error) {
		return l.Disconnect(ctx, s, o.ID)
	}, showConnection)
}

func showConnection(p *page, v lifecycle.ConnectView) {
	state := "not connected"
	if v.Connected {
		state = "connected"
	}
	if !v.Changed {
		state += ", as before"
	}
	p.line("%s (%s): %s in session %s", v.PackID, v.Mode, state, v.Session)
	if v.Source != "" {
		p.line("  from %s", v.Source)
	}
	if v.Shared {
		p.line("  a consent that stood already is used")
	}
	showRevocations(p, v.Revocations)
}

func showRevocations(p *page, list []lifecycle.Revocation) {
	for _, r := range list {
		p.line("  %s", r.Message)
	}
}

func runAvailability(_ context.Context, d *deps, o packsOptions) error {
	return stage(d, func(l *lifecycle.Lifecycle, s protocol.Session) (lifecycle.AvailabilityView, *protocol.Error) {
		return l.Availability(s, o.IDs)
	}, func(p *page, v lifecycle.AvailabilityView) {
		showAvailability(p, v)
		var next []string
		for _, id := range unconnected(v) {
			next = append(next, d.here("hcpx connect "+id))
		}
		p.next(append(next, "hcpx exec PACK VERB --plan -- …")...)
	})
}

func showAvailability(p *page, v lifecycle.AvailabilityView) {
	var rows [][]cell
	for _, k := range v.Packs {
		status := []cell{{k.PackID + " " + k.Version, strong}, {k.Status, statusStyle(k.Status)}, {}, {k.Reason, bad}}
		rows = append(rows, status)
		for _, key := range slices.Sorted(maps.Keys(k.Commands)) {
			rows = append(rows, commandRow(key, k.Commands[key]))
		}
		for _, key := range slices.Sorted(maps.Keys(k.Sense)) {
			state := "not enabled"
			if k.Sense[key].Enabled {
				state = "enabled"
			}
			rows = append(rows, row("  "+key, "sense", state))
		}
	}
	p.table([]string{"pack / command", "status", "effect", "because"}, rows)
}

// unconnected are the packs of which some command wants a credential.
func unconnected(v lifecycle.AvailabilityView) []string {
	var ids []string
	for _, k := range v.Packs {
		for _, c := range k.Commands {
			if c.Reason == protocol.NotConnected && !slices.Contains(ids, k.PackID) {
				ids = append(ids, k.PackID)
			}
		}
	}
	return ids
}

func commandRow(key string, c lifecycle.CommandAvailability) []cell {
	effect := string(c.Operation) + " " + string(c.Land)
	if c.Confirm {
		effect += " confirm"
	}
	if c.Native {
		effect += " native"
	}
	state, s := "executable", good
	if !c.Executable {
		state, s = "not", warn
	}
	why := string(c.Reason)
	if len(c.Needs) > 0 {
		why = strings.TrimSpace(why + " needs " + strings.Join(c.Needs, " and "))
	}
	return []cell{{text: "  " + key}, {state, s}, {text: effect}, {text: why}}
}

func statusStyle(status string) style {
	switch status {
	case "executable", "connected", "activated":
		return good
	case "unavailable":
		return bad
	default:
		return plain
	}
}

func runWhoami(_ context.Context, d *deps, _ whoamiOptions) error {
	_, err := look(d, func(l *lifecycle.Lifecycle, s protocol.Session) (lifecycle.WhoamiView, *protocol.Error) {
		return l.Whoami(s), nil
	}, func(p *page, v lifecycle.WhoamiView) {
		p.facts(
			[2]string{"principal", string(v.Principal)}, [2]string{"kind", v.Kind}, [2]string{"tenant", v.Tenant},
			[2]string{"session", v.Session}, [2]string{"project", v.Project}, [2]string{"workspace", v.Workspace}, [2]string{"how", v.How},
		)
	})
	return err
}

func runSkill(_ context.Context, d *deps, o packOptions) error {
	return stage(d, func(l *lifecycle.Lifecycle, s protocol.Session) (lifecycle.SkillView, *protocol.Error) {
		return l.Skill(s, o.ID)
	}, func(p *page, v lifecycle.SkillView) { p.given(terminated(v.Skill)) })
}
