package lifecycle

import (
	"errors"
	"os"

	"hcpx/internal/gate"
	"hcpx/internal/grant"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// The statuses of a pack (HCP-11.2-2a), one of which is reported: the highest stage that it reached.
const (
	StatusAvailable   = "available"
	StatusInstalled   = "installed"
	StatusActivated   = "activated"
	StatusConnected   = "connected"
	StatusExecutable  = "executable"
	StatusUnavailable = "unavailable"
)

// Availability reports the four flags of §11.2, of the named packs or of all that are installed. It asks
// the same gate as exec, in the order of the steps, and writes nothing.
func (l *Lifecycle) Availability(s protocol.Session, ids []string) (AvailabilityView, *protocol.Error) {
	l = l.reading()
	view := AvailabilityView{Packs: []PackAvailability{}}
	st, err := l.state()
	if err != nil {
		return view, err
	}
	if len(ids) == 0 {
		all, err := l.Store.Packs()
		if err != nil {
			return view, storeFault(err, "The packs cannot be listed")
		}
		ids = all
	}
	a := available{l, s, st, grant.NewSet(st.Grants)}
	for _, id := range ids {
		view.Packs = append(view.Packs, a.pack(id))
	}
	return view, nil
}

// available is one call of Availability.
type available struct {
	*Lifecycle
	s      protocol.Session
	st     *store.State
	grants *grant.Set
}

func (a available) pack(id string) PackAvailability {
	out := PackAvailability{PackID: id, Status: StatusUnavailable, Commands: map[string]CommandAvailability{}, Sense: map[string]SenseAvailability{}}
	meta, err := a.Store.Meta(id)
	switch {
	case errors.Is(err, store.ErrNotInstalled):
		return a.absent(out)
	case err != nil:
		out.Installed, out.Reason = true, string(protocol.PackTampered)
		return out
	}
	out.Installed, out.Version = true, meta.Version
	out.Activated = a.Gate.Activated(a.st, a.s.ID, id) == nil
	loaded, refusal := a.Gate.Installed(id)
	if refusal != nil {
		out.Reason = string(refusal.Code)
		return out
	}
	out.Connected = a.Gate.Connected(a.st, a.s.ID, loaded) == nil
	broken := ""
	for _, c := range loaded.Manifest.Commands {
		one, fault := a.command(loaded, c)
		out.Commands[c.Key] = one
		out.Executable = out.Executable || one.Executable
		if fault != "" {
			broken = fault
		}
	}
	for _, t := range loaded.Manifest.Triggers {
		out.Sense[t.Key] = SenseAvailability{}
	}
	out.Status, out.Reason = a.status(out, broken)
	return out
}

// absent is a pack that the store does not have: one that ships with the program is available, any
// other id is unavailable, and neither is an error.
func (a available) absent(out PackAvailability) PackAvailability {
	if a.shipped(out.PackID) {
		out.Status = StatusAvailable
		return out
	}
	out.Reason = string(protocol.PackNotInstalled)
	return out
}

// status is the highest stage reached (HCP-11.2-2a), or unavailable when nothing runs and something is
// broken rather than not allowed.
func (a available) status(p PackAvailability, broken string) (status, reason string) {
	switch {
	case p.Executable:
		return StatusExecutable, ""
	case broken != "":
		return StatusUnavailable, broken
	case p.Activated && p.Connected:
		return StatusConnected, ""
	case p.Activated:
		return StatusActivated, ""
	}
	return StatusInstalled, ""
}

// command is one command (§11.2: executable is per command); broken names what no grant or allowance would mend.
func (a available) command(l *gate.Loaded, c *manifest.Command) (out CommandAvailability, broken string) {
	out.Needs = []string{}
	e := l.Policy.Verb(c.Key)
	if e != nil {
		out.Operation, out.Land, out.Confirm = e.Operation, e.Land, e.Confirm
		out.Needs = a.Gate.Needs(l, c.Key)
	}
	if w := l.Manifest.Wrap; w != nil && l.ID != gate.Bootstrap {
		out.Native = w.Isolation == "native-local"
		out.Network = w.Network.Mode
	}
	if l.Manifest.OpenAPI != nil {
		out.Network = "hosts" // the one server of the manifest
	}
	first, broken := a.refusal(l, c)
	if first == nil {
		out.Executable = true
		return out, ""
	}
	out.Reason = first.Code
	return out, broken
}

// refusal is the first code with which exec would refuse (§11.2): steps 2, 3, 4, the connected check of
// 7, the checks of 8. Project and workspace are no part of it. Brokenness is looked for behind the first
// refusal too, since a pack that is not activated can be broken as well.
func (a available) refusal(l *gate.Loaded, c *manifest.Command) (first *protocol.Error, broken string) {
	keep := func(err *protocol.Error) {
		if first == nil {
			first = err
		}
	}
	keep(a.Gate.Activated(a.st, a.s.ID, l.ID))
	verb, err := a.Gate.Verb(a.st, a.s.ID, l, c.Key)
	if err != nil {
		keep(err)
		if reason, _ := err.Details["reason"].(string); reason == "lint" {
			broken = string(protocol.NotExecutable)
		}
		return first, broken
	}
	keep(a.grants.Evaluate(a.Gate.Ask(a.s, verb, a.s.Project, false)).Err)
	keep(a.Gate.Connected(a.st, a.s.ID, l))
	nowhere := a.s
	nowhere.Project, nowhere.Workspace, nowhere.GitDirs = "", "", nil
	if _, err := a.Gate.World(a.st, nowhere, verb, nil); err != nil {
		keep(err)
		if gone(err) {
			broken = string(err.Code)
		}
	}
	return first, broken
}

// gone says whether a program that was allowed or shipped is not there any more.
func gone(err *protocol.Error) bool {
	path, _ := err.Details["path"].(string)
	if err.Code != protocol.BinNotAllowed || path == "" {
		return false
	}
	_, fault := os.Stat(path)
	return errors.Is(fault, os.ErrNotExist)
}
