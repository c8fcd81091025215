package lifecycle

import (
	"context"
	"errors"
	"slices"
	"strings"

	"hcpx/internal/gate"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// UninstallOptions are the caller's answers. Without an Ask nobody is asked about other sessions.
type UninstallOptions struct {
	Force bool
	Purge bool
	Ask   Ask
}

// Uninstall removes a pack from the store and from every session (§11.1). The bootstrap pack is refused
// (HCP-11.1-5). A pack that is not installed is no error. What the operator allowed to this pack alone
// goes with it, so that no later pack of the same id inherits it.
func (l *Lifecycle) Uninstall(ctx context.Context, s protocol.Session, id string, o UninstallOptions) (UninstallView, *protocol.Error) {
	view := UninstallView{PackID: id, Sessions: []string{}, Callers: []string{}}
	st, err := l.state()
	if err != nil {
		return view, err
	}
	if err := l.may(s, st, protocol.PackInstall, subject{"uninstall", id, l.plane(id)}); err != nil {
		return view, err
	}
	if id == gate.Bootstrap {
		return view, protocol.Fail(protocol.BootstrapPack, "The bootstrap pack hcp-cli belongs to the runtime and cannot be uninstalled.").WithHint("hcpx list")
	}
	view.Sessions = append(view.Sessions, st.SessionsOf(id)...)
	secrets := secretsOf(st, id)
	if err := l.othersAgree(s, view, o); err != nil {
		return view, err
	}
	callers, err := l.callersOf(id)
	if err != nil {
		return view, err
	}
	if err := l.dropFromState(s, id, o, &view); err != nil {
		return view, err
	}
	if view.Changed {
		view.Callers = callers
	}
	if err := l.removeFiles(s, id, o, &view); err != nil {
		return view, err
	}
	view.Revocations, err = l.sweep(ctx, secrets)
	return view, err
}

// secretsOf names what is kept for the pack in any session.
func secretsOf(st *store.State, id string) []string {
	var names []string
	for _, session := range st.SessionsOf(id) {
		if name := st.Session(session).Bindings[id].Secret; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// othersAgree asks when sessions of others would lose the pack. Where nobody can be asked they lose the
// pack, which comes back by another install, but never their data.
func (l *Lifecycle) othersAgree(s protocol.Session, view UninstallView, o UninstallOptions) *protocol.Error {
	others := slices.DeleteFunc(slices.Clone(view.Sessions), func(id string) bool { return id == s.ID })
	if len(others) == 0 || o.Force {
		return nil
	}
	if o.Ask == nil || !s.Principal.Human() {
		if !o.Purge {
			return nil
		}
		return protocol.Fail(protocol.UsageError, "Nothing was removed: "+view.PackID+" is activated in "+strings.Join(others, ", ")+" too, and --purge takes its data from there; --force says that this is meant.").
			With("sessions", others).WithHint("hcpx uninstall " + view.PackID + " --purge --force")
	}
	if o.Ask(Consent{Question: "uninstall", Packs: []ConsentPack{{PackID: view.PackID}}, Sessions: others}) {
		return nil
	}
	return protocol.Fail(protocol.Canceled, "Nothing was removed: "+view.PackID+" is activated in "+strings.Join(others, ", ")+".").
		WithHint("hcpx uninstall " + view.PackID + " --force")
}

// callersOf are the composites of other packs that call a command of this one; without it they do not run.
func (l *Lifecycle) callersOf(id string) ([]string, *protocol.Error) {
	callers := []string{}
	ids, err := l.Store.Packs()
	if err != nil {
		return callers, storeFault(err, "The packs cannot be listed")
	}
	for _, other := range ids {
		if other == id {
			continue
		}
		if loaded, broken := l.Gate.Installed(other); broken == nil && l.Gate.Calls(loaded, id) {
			callers = append(callers, other)
		}
	}
	return callers, nil
}

// dropFromState takes the pack out of all sessions and lists. Its entry is the one of the whole command.
func (l *Lifecycle) dropFromState(s protocol.Session, id string, o UninstallOptions, view *UninstallView) *protocol.Error {
	_, gone := l.Store.Meta(id)
	data, fault := l.Store.HasLand(id)
	if fault != nil {
		return storeFault(fault, "The data of the pack cannot be looked at")
	}
	nothing := errors.Is(gone, store.ErrNotInstalled) && !(o.Purge && data)
	changed, err := l.update(s, "uninstall", id, func(st *store.State) (any, *protocol.Error) {
		before := len(st.Native) + len(st.Reads) + len(st.Hosts)
		st.Native = slices.DeleteFunc(st.Native, func(p string) bool { return p == id })
		st.Reads = slices.DeleteFunc(st.Reads, func(r protocol.AllowedRead) bool { return r.Pack == id })
		st.Hosts = slices.DeleteFunc(st.Hosts, func(h protocol.AllowedHost) bool { return h.Pack == id })
		sessions := st.DropPack(id)
		if nothing && len(sessions) == 0 && before == len(st.Native)+len(st.Reads)+len(st.Hosts) {
			return nil, nil
		}
		return map[string]any{"sessions": view.Sessions, "purge": o.Purge}, nil
	})
	view.Changed, view.Purged = changed, changed && o.Purge && data
	return err
}

// removeFiles removes skill, pack and, when asked, data. It is harmless when they are gone already.
func (l *Lifecycle) removeFiles(s protocol.Session, id string, o UninstallOptions, view *UninstallView) *protocol.Error {
	if !view.Changed {
		return nil
	}
	err := errors.Join(l.Store.DropSkill(id), l.Store.Remove(id))
	if o.Purge && err == nil {
		err = l.Store.PurgeLand(id)
	}
	if err != nil {
		view.Purged = false
		return l.failed(s, "uninstall", id, storeFault(err, "The pack cannot be removed"))
	}
	return nil
}
