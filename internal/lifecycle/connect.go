package lifecycle

import (
	"hcpx/internal/binding"
	"hcpx/internal/gate"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// Connect establishes the binding of an activated pack by one trial mint (§8.5, §11.1). Public is always
// connected, and nothing is done.
func (l *Lifecycle) Connect(s protocol.Session, id string) (ConnectView, *protocol.Error) {
	view := ConnectView{Session: s.ID, PackID: id}
	st, err := l.state()
	if err != nil {
		return view, err
	}
	if err := l.may(s, st, protocol.PackConnect, subject{"connect", id, l.plane(id)}); err != nil {
		return view, err
	}
	loaded, err := l.Gate.Pack(st, s.ID, id)
	if err != nil {
		return view, err
	}
	b := &loaded.Manifest.Binding
	view.Mode = modeOf(b)
	if binding.Connected(b, id == gate.Bootstrap) {
		view.Connected = true
		return view, nil
	}
	if err := l.Gate.Hub.Connect(b, scopeOf(s, loaded.Manifest)); err != nil {
		return view, err
	}
	view.Changed, err = l.update(s, "connect", id, func(st *store.State) (any, *protocol.Error) {
		if err := l.Gate.Activated(st, s.ID, id); err != nil {
			return nil, err // deactivated in between: nothing is connected that is not activated
		}
		if !st.SetConnected(s.ID, id, true) {
			return nil, nil
		}
		return map[string]any{"mode": view.Mode}, nil
	})
	if err != nil {
		// Nothing is connected, so the hub keeps nothing of it. The first fault is the answer.
		_ = l.Gate.Hub.Disconnect(b, scopeOf(s, loaded.Manifest))
	}
	view.Connected = err == nil
	return view, err
}

// Disconnect ends the binding of a pack in this session. What is not connected is no error. It needs the
// capability of connect: an agent that may not make a person's connection may not end it alone either
// (deactivate, which ends both for the session, is free by §11.1).
func (l *Lifecycle) Disconnect(s protocol.Session, id string) (ConnectView, *protocol.Error) {
	view := ConnectView{Session: s.ID, PackID: id}
	st, err := l.state()
	if err != nil {
		return view, err
	}
	if err := l.may(s, st, protocol.PackConnect, subject{"disconnect", id, l.plane(id)}); err != nil {
		return view, err
	}
	loaded, missing := l.Gate.Installed(id)
	if missing == nil {
		view.Mode = modeOf(&loaded.Manifest.Binding)
		view.Connected = binding.Connected(&loaded.Manifest.Binding, id == gate.Bootstrap)
	}
	changed, err := l.update(s, "disconnect", id, func(st *store.State) (any, *protocol.Error) {
		if !st.SetConnected(s.ID, id, false) {
			return nil, nil
		}
		return map[string]any{"mode": view.Mode}, nil
	})
	if err != nil {
		return view, err
	}
	view.Changed = changed
	if changed && missing == nil {
		err = l.Gate.Hub.Disconnect(&loaded.Manifest.Binding, scopeOf(s, loaded.Manifest))
	}
	return view, err
}

func scopeOf(s protocol.Session, m *manifest.Manifest) binding.Scope {
	return binding.Scope{Tenant: s.Tenant, Session: s.ID, Pack: m.ID, Family: m.Family}
}

func modeOf(b *manifest.Binding) string {
	if b.Mode == "" {
		return binding.Public
	}
	return b.Mode
}
