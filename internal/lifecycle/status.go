package lifecycle

import (
	"errors"
	"fmt"
	"slices"

	"hcpx/internal/audit"
	"hcpx/internal/gate"
	"hcpx/internal/protect"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// health gathers findings. It reads only: no credential is minted, nothing is refreshed or written
// (HCP-12.1-9).
type health struct {
	*Lifecycle
	s    protocol.Session
	st   *store.State
	view HealthView
}

// Status says in one page whether the runtime is healthy (HCP-12.1-7): store, state, audit, and each pack
// with its files.
func (l *Lifecycle) Status(s protocol.Session) HealthView {
	h := l.reading().health(s)
	if h.st != nil {
		h.packs(h.packStands)
	}
	return h.done()
}

func (l *Lifecycle) health(s protocol.Session) *health {
	h := &health{Lifecycle: l, s: s, view: HealthView{Home: l.Store.Home(), Session: s.ID, Active: []string{}, Findings: []Finding{}}}
	st, err := l.state()
	if err != nil {
		h.fail("state", "state.json", err.Message, err.Hint)
	} else {
		h.st = st
		h.view.Active = append(h.view.Active, st.Session(s.ID).Activated...)
		h.ok("state", "state.json", fmt.Sprintf("It can be read. Grants: %d, allowed programs: %d.", len(st.Grants), len(st.Bins)))
	}
	h.settingsStand()
	h.auditStands()
	h.sandboxStands()
	h.bootstrapStands()
	h.changesFinished()
	h.runsFinished()
	return h
}

// settingsStand: a settings file that is not understood holds every exec up, and says so here (§12.1.7).
func (h *health) settingsStand() {
	if h.Settings == nil {
		h.ok("settings", "settings", "They can be read.")
		return
	}
	h.fail("settings", "settings", h.Settings.Message, "hcpx config show")
}

func (h *health) auditStands() {
	if h.AuditHealth == nil {
		return
	}
	if err := h.AuditHealth(); err != nil {
		fix := "hcpx audit verify"
		if errors.Is(err, audit.ErrAnchor) {
			fix = "hcpx config show"
		}
		h.fail("audit", "audit", "The audit is not well: "+sentenceEnd(err.Error())+".", fix)
		return
	}
	h.ok("audit", "audit", "It can be written, and its head fits.")
}

// sandboxStands: a rule that is missing here is no fault of the runtime; the commands that need it are
// refused, and doctor says which.
func (h *health) sandboxStands() {
	facts := h.Gate.Sandbox.Facts()
	if facts.Backend == "" {
		h.fail("sandbox", "kernel", "Nothing here can confine a command, so sandboxed commands are refused.", "hcpx doctor")
		return
	}
	h.ok("sandbox", "kernel", fmt.Sprintf("Commands are confined by %s, ABI %d.", facts.Backend, facts.ABI))
}

func (h *health) bootstrapStands() {
	switch err := h.bootstrapIntact(); {
	case err == nil:
		h.ok("pack", gate.Bootstrap, "It is installed and intact.")
	case errors.Is(err, store.ErrNotInstalled):
		h.ok("pack", gate.Bootstrap, "It is installed on first use.")
	default:
		h.warn("pack", gate.Bootstrap, "The bootstrap pack does not stand: "+sentenceEnd(plainReason(err))+".", "hcpx repair")
	}
}

// changesFinished names what a crash cut off. It is read as if it were done, and the next change does it.
func (h *health) changesFinished() {
	left, err := h.Store.Reader().Unfinished()
	if err != nil {
		h.fail("store", "packs", "The packs cannot be looked at: "+sentenceEnd(err.Error())+".", "hcpx repair")
	}
	for _, id := range left {
		h.warn("store", id, "A change of it was cut off; the next change finishes it.", "hcpx repair")
	}
}

// runsFinished names runs that were killed with their runtime before anybody looked at what they changed (§10.2).
func (h *health) runsFinished() {
	left, err := protect.Left(h.Store.Home())
	if err != nil {
		h.fail("store", "quarantine", "Runs that were cut off cannot be looked for: "+sentenceEnd(err.Error())+".", "hcpx repair")
	}
	for _, l := range left {
		h.warn("store", l.Root, "The run "+l.Run+" of "+l.Command+" was cut off; what the host may run later may have changed since, and repair puts it back.", "hcpx repair")
	}
}

// packs looks at each installed pack, and at what the state says of packs that are not there.
func (h *health) packs(look func(id string)) {
	ids, err := h.Store.Packs()
	if err != nil {
		h.fail("store", "packs", "The packs cannot be listed: "+sentenceEnd(err.Error())+".", "hcpx repair")
		return
	}
	h.view.Packs = len(ids)
	for _, id := range ids {
		if id != gate.Bootstrap {
			look(id)
		}
	}
	for _, id := range h.view.Active {
		if id != gate.Bootstrap && !slices.Contains(ids, id) {
			h.warn("pack", id, "It is activated in this session, but not installed.", protocol.InSession("hcpx deactivate "+id, h.s.ID))
		}
	}
}

// packStands: the files are those that were installed (§2.4).
func (h *health) packStands(id string) {
	if _, err := h.Gate.Installed(id); err != nil {
		h.fail("pack", id, err.Message, err.Hint)
		return
	}
	h.ok("pack", id, "Its files are those that were installed.")
}

func (h *health) add(level, area, subject, message, fix string) {
	h.view.Findings = append(h.view.Findings, Finding{Area: area, Subject: subject, Level: level, Message: message, Fix: fix})
}

func (h *health) ok(area, subject, message string) { h.add(LevelOK, area, subject, message, "") }
func (h *health) warn(area, subject, message, fix string) {
	h.add(LevelWarning, area, subject, message, fix)
}
func (h *health) fail(area, subject, message, fix string) {
	h.add(LevelFailure, area, subject, message, fix)
}

// done gives the view its level: the worst finding's, and its exit code (HCP-12.1-7).
func (h *health) done() HealthView {
	h.view.Level = LevelOK
	for _, f := range h.view.Findings {
		switch {
		case f.Level == LevelFailure:
			h.view.Level, h.view.Exit = LevelFailure, 1
		case f.Level == LevelWarning && h.view.Exit == 0:
			h.view.Level, h.view.Exit = LevelWarning, 2
		}
	}
	return h.view
}
