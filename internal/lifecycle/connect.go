package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"hcpx/internal/binding"
	"hcpx/internal/gate"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// Person is who connects, as a face offers it.
type Person = binding.Person

// ConnectOptions are who connects, at the face; empty where nobody can be asked or told.
type ConnectOptions struct {
	Person Person
	// Ask shows the exact source of this machine before it is read for the first time; nil: the act itself is the
	// consent.
	Ask Ask
}

// Connect establishes the binding of an activated pack by one trial mint (§8.5, §11.1). Public is always
// connected, and nothing is done. The binding is the caller's, and its session uses it.
func (l *Lifecycle) Connect(ctx context.Context, s protocol.Session, id string, o ConnectOptions) (ConnectView, *protocol.Error) {
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
	c := connecting{l: l, s: s, loaded: loaded, o: o, scope: scopeOf(s, loaded.Manifest)}
	err = c.run(ctx, &view)
	view.Connected = err == nil
	return view, err
}

// connecting is one connect on its way.
type connecting struct {
	l      *Lifecycle
	s      protocol.Session
	loaded *gate.Loaded
	o      ConnectOptions
	scope  binding.Scope
}

// run holds the name of what is kept from the first look to the last write, so that no disconnect elsewhere takes away
// what this one has just brought about.
func (c *connecting) run(ctx context.Context, view *ConnectView) *protocol.Error {
	l, b, name := c.l, &c.loaded.Manifest.Binding, c.scope.Name()
	if err := l.Gate.Hub.Supported(b); err != nil {
		return err
	}
	if err := c.endpoint(); err != nil {
		return err
	}
	keeps := b.From != nil && b.From.Keeps()
	if keeps {
		release, err := l.Gate.Hub.Hold(ctx, name)
		if err != nil {
			return err
		}
		defer release()
	}
	st, err := l.state()
	if err != nil {
		return err
	}
	before, bound := st.Bound(c.s.ID, c.loaded.ID)
	next := store.Bound{Owner: string(c.s.Principal), Source: binding.Consent(b)}
	if keeps {
		next.Secret = name
	}
	c.scope.Here = bound && before.Secret == name && before.Owner == next.Owner
	parked := !bound && st.Session(c.s.ID).Bindings[c.loaded.ID] == next // by a deactivation of somebody who may not end it
	c.scope.Elsewhere = parked || slices.ContainsFunc(st.UsersOf(name), func(user string) bool { return user != c.s.ID+"/"+c.loaded.ID })
	c.scope.Joins = !bound && !parked && !slices.ContainsFunc(st.UsersOf(name), func(user string) bool { return strings.HasSuffix(user, "/"+c.loaded.ID) })
	view.Source = sourceOf(b)
	if err := c.agreed(bound && before == next); err != nil {
		return err
	}
	if keeps {
		if err := l.note(name, true); err != nil {
			return err
		}
	}
	made, err := l.Gate.Hub.Connect(ctx, b, c.scope, c.o.Person)
	if err == nil {
		view.Shared = made.Shared
		view.Changed, err = c.record(next, made)
	}
	if err != nil && keeps && !c.scope.Here {
		_, _ = l.forget(ctx, name) // held already; the first fault is the answer, and doctor tells what is left
	}
	if err == nil && bound && before.Secret != next.Secret {
		view.Revocations, err = l.sweep(ctx, []string{before.Secret})
	}
	return err
}

// endpoint is §8.3: a mothership's endpoint is the operator's. Where the settings name none, he is the person who connects and is
// shown it.
func (c *connecting) endpoint() *protocol.Error {
	b := &c.loaded.Manifest.Binding
	named, err := c.l.Gate.Rules.Endpoint(b)
	if err != nil || named || b.Mode != manifest.ModeMothership || c.s.Principal.Human() {
		return err
	}
	return protocol.Fail(protocol.OperatorRequired, fmt.Sprintf("Pack %q gets its tokens of a mothership, and its manifest alone names the endpoint; a person connects it, or the operator names the endpoint.", c.loaded.ID)).
		With("setting", "mothership.endpoints").WithHint("hcpx config show")
}

// agreed asks before a source of this machine is read for the first time (§8.3).
func (c *connecting) agreed(before bool) *protocol.Error {
	b := &c.loaded.Manifest.Binding
	if before || b.From == nil || b.Mode != binding.Local || c.o.Ask == nil {
		return nil
	}
	if c.o.Ask(Consent{Question: "connect", Packs: []ConsentPack{{PackID: c.loaded.ID, Version: c.loaded.Version, Credential: sourceOf(b)}}}) {
		return nil
	}
	return protocol.Fail(protocol.Canceled, "Nothing was connected, and the source was not read.").WithHint(protocol.InSession("hcpx connect "+c.loaded.ID, c.s.ID))
}

// record writes the connection into the state, with its entry in the audit.
func (c *connecting) record(next store.Bound, made binding.Made) (bool, *protocol.Error) {
	l, id := c.l, c.loaded.ID
	b := &c.loaded.Manifest.Binding
	return l.update(c.s, "connect", id, func(st *store.State) (any, *protocol.Error) {
		if err := l.Gate.Activated(st, c.s.ID, id); err != nil {
			return nil, err // deactivated in between: nothing is connected that is not activated
		}
		detail := map[string]any{"mode": modeOf(b)}
		if !binding.Sourced(b) {
			if !st.SetConnected(c.s.ID, id, true) {
				return nil, nil
			}
			return detail, nil
		}
		if !st.Bind(c.s.ID, id, next) && !made.Asked {
			return nil, nil
		}
		detail["source"], detail["owner"] = sourceOf(b), next.Owner
		if next.Secret != "" {
			detail["kept"] = next.Secret
		}
		return detail, nil
	})
}

// Disconnect ends the binding of a pack in this session, and deletes what is kept when no other member or session needs
// it. What is not connected is no error. It needs the
// capability of connect: an agent that may not make a person's connection may not end it alone either
// (deactivate, which ends both for the session, is free by §11.1, and deletes nothing without that capability).
func (l *Lifecycle) Disconnect(ctx context.Context, s protocol.Session, id string) (ConnectView, *protocol.Error) {
	view := ConnectView{Session: s.ID, PackID: id}
	st, err := l.state()
	if err != nil {
		return view, err
	}
	if err := l.may(s, st, protocol.PackConnect, subject{"disconnect", id, l.plane(id)}); err != nil {
		return view, err
	}
	if loaded, missing := l.Gate.Installed(id); missing == nil {
		view.Mode = modeOf(&loaded.Manifest.Binding)
		view.Connected = binding.Connected(&loaded.Manifest.Binding, id == gate.Bootstrap)
	}
	secret := ""
	view.Changed, err = l.update(s, "disconnect", id, func(st *store.State) (any, *protocol.Error) {
		secret = st.Session(s.ID).Bindings[id].Secret
		if !st.SetConnected(s.ID, id, false) {
			return nil, nil
		}
		return map[string]any{"mode": view.Mode}, nil
	})
	if err != nil {
		return view, err
	}
	view.Revocations, err = l.sweep(ctx, []string{secret})
	return view, err
}

// sweepTime bounds how long what is kept is waited for, where no caller's context does.
const sweepTime = 30 * time.Second

// sweep deletes what is kept under the names and no connection uses any more (§8.5). What another process is just
// connecting is looked at again once it has come to its end.
func (l *Lifecycle) sweep(ctx context.Context, names []string) (ended []Revocation, err *protocol.Error) {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	for _, name := range names {
		if name == "" {
			continue
		}
		release, err := l.Gate.Hub.Hold(ctx, name)
		if err != nil {
			return ended, unswept(name, err)
		}
		e, err := l.forget(ctx, name)
		release()
		if e != nil {
			ended = append(ended, *e)
		}
		if err != nil {
			return ended, unswept(name, err)
		}
	}
	return ended, nil
}

// forget is sweep's act on one name that is held.
func (l *Lifecycle) forget(ctx context.Context, name string) (*Revocation, *protocol.Error) {
	st, err := l.state()
	if err != nil {
		return nil, err
	}
	if len(st.UsersOf(name)) > 0 || !slices.Contains(st.Secrets, name) {
		return nil, nil
	}
	ended, err := l.Gate.Hub.Forget(ctx, name)
	if err != nil {
		return ended, err
	}
	return ended, l.note(name, false)
}

func unswept(name string, why *protocol.Error) *protocol.Error {
	e := protocol.Fail(protocol.BindingFailed, "Nothing uses what is kept for "+name+" any more, but it could not be deleted: "+protocol.Clause(why.Message)+".")
	return e.WithHint("hcpx repair")
}

// note keeps in the state which names may hold a secret: before one is kept, and after it is gone.
func (l *Lifecycle) note(name string, kept bool) *protocol.Error {
	err := l.Store.Update(func(st *store.State) error {
		if slices.Contains(st.Secrets, name) == kept {
			return errUnchanged
		}
		if kept {
			st.KeepSecret(name)
		} else {
			st.DropSecret(name)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errUnchanged) {
		return storeFault(err, "The state cannot be changed")
	}
	return nil
}

func scopeOf(s protocol.Session, m *manifest.Manifest) binding.Scope {
	return binding.Scope{Tenant: s.Tenant, Session: s.ID, Owner: string(s.Principal), Pack: m.ID, Family: m.Family}
}

func modeOf(b *manifest.Binding) string {
	if b.Mode == "" {
		return binding.Public
	}
	return b.Mode
}

// sourceOf names exactly what a mint will read or ask, for consent, audit and view (§8.3).
func sourceOf(b *manifest.Binding) string {
	src := b.From
	if src == nil {
		return ""
	}
	switch src.Kind {
	case manifest.KindEnv:
		return "the variable " + src.Name + " of this process, read at each run"
	case manifest.KindFile:
		if src.Pointer != "" {
			return "the text at " + src.Pointer + " in the file " + src.Path + ", read at each run"
		}
		return "the first line of the file " + src.Path + ", read at each run"
	case manifest.KindCommand:
		words := make([]string, len(src.Argv))
		for i, word := range src.Argv {
			words[i] = protocol.Word(word)
		}
		return "the first line of what this program prints, run outside the sandbox at each run: " + strings.Join(words, " ")
	case manifest.KindToken:
		return "a token that you give, kept for you"
	case manifest.KindBasic:
		return "a name and a password that you give, kept for you"
	}
	words := "tokens of " + src.TokenURL
	if src.ClientID != "" {
		words += " as the client " + src.ClientID
	}
	if len(src.Scopes) > 0 {
		words += ", for " + strings.Join(src.Scopes, " ")
	}
	switch {
	case src.SubjectFile != "":
		words += ", for what stands in " + src.SubjectFile
	case src.SubjectEnv != "":
		words += ", for what the variable " + src.SubjectEnv + " holds"
	case src.Kind == manifest.KindOAuth2:
		words += ", after you agreed at " + src.AuthURL
	}
	if src.RevokeURL != "" {
		words += "; given back at " + src.RevokeURL
	}
	return words
}
