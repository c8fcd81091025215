package lifecycle

import (
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// List names the installed packs. It writes nothing.
func (l *Lifecycle) List(s protocol.Session) (ListView, *protocol.Error) {
	l = l.reading()
	view := ListView{Packs: []ListedPack{}}
	st, err := l.state()
	if err != nil {
		return view, err
	}
	ids, fault := l.Store.Packs()
	if fault != nil {
		return view, storeFault(fault, "The packs cannot be listed")
	}
	for _, id := range ids {
		view.Packs = append(view.Packs, l.listed(st, s, id))
	}
	return view, nil
}

func (l *Lifecycle) listed(st *store.State, s protocol.Session, id string) ListedPack {
	p := ListedPack{PackID: id, Activated: l.Gate.Activated(st, s.ID, id) == nil}
	meta, err := l.Store.Meta(id)
	if err != nil {
		p.Problem = string(protocol.PackTampered)
		return p
	}
	p.Version, p.Digest, p.Source = meta.Version, meta.Record.Digest, meta.Source
	p.InstalledAt, p.InstalledBy = meta.InstalledAt, meta.InstalledBy
	if before, err := l.Store.Previous(id); err == nil {
		p.Previous = before.Version
	}
	loaded, refusal := l.Gate.Installed(id)
	if refusal != nil {
		p.Problem = string(refusal.Code)
		return p
	}
	p.Name, p.Summary = loaded.Manifest.Name, loaded.Manifest.Summary
	p.Connected = l.Gate.Connected(st, s.ID, loaded) == nil
	return p
}
