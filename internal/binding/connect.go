package binding

import (
	"context"
	"slices"

	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// Connect asks for what the source needs, keeps it, and runs one trial mint (§8.5).
func (h *hub) Connect(ctx context.Context, b *manifest.Binding, s Scope, p Person) (Made, *protocol.Error) {
	if err := h.Supported(b); err != nil {
		return Made{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, maxVisit)
	defer cancel()
	var made Made
	if b.From != nil && b.From.Keeps() {
		if err := h.conceal(); err != nil {
			return made, err
		}
		var err *protocol.Error
		if made, err = h.establish(ctx, b.From, s, p); err != nil {
			return made, err
		}
	}
	m, err := h.Mint(ctx, b, s, 0)
	if err != nil {
		return made, err
	}
	defer m.Release()
	if _, _, err = m.Env(b.Inject); err != nil {
		return made, err
	}
	files, err := m.Files(b.Files)
	for _, content := range files {
		clear(content)
	}
	return made, err
}

// establish brings about what is kept: what stands already where others use it, else by asking.
func (h *hub) establish(ctx context.Context, src *manifest.Source, s Scope, p Person) (Made, *protocol.Error) {
	made := Made{Keeps: true}
	old, err := h.load(ctx, s.Name())
	if err != nil && reasonOf(err) != Unkept || err != nil && s.Elsewhere {
		return made, err
	}
	if old != nil && old.Source != identity(src) {
		if s.Elsewhere && s.Family != "" {
			return made, failed(Denied, "The family "+s.Family+" is bound to another source, and a pack cannot join a family to take its consent.")
		}
		old = nil
	}
	if !s.Here && !s.Elsewhere {
		old = nil // a leftover that nobody consented to
	}
	if old != nil && !s.joins(src, old) && (!s.Here || !src.Asks()) && old.covers(src) && h.stands(ctx, src, s) {
		made.Shared = !s.Here
		return made, h.renameRevoker(ctx, src, s.Name())
	}
	made.Asked = true
	joins := s.joins(src, old)
	again := protocol.InSession("hcpx connect "+s.Pack, s.Session)
	if joins {
		s.Pack += ", the same one that the family " + s.Family + " has"
	}
	r, err := h.obtain(ctx, src, obtaining{s, p, old})
	if err != nil {
		return made, err
	}
	if joins && r.Secret == old.Secret && r.Username == old.Username {
		made.Shared = true
		return made, nil
	} else if joins {
		return made, failed(Denied, "The family "+s.Family+" has another credential, and a pack joins it with the same one only.").WithHint(again)
	}
	unlock, err := h.Secrets.Lock(ctx, s.Name())
	if err != nil {
		return made, err
	}
	defer unlock()
	if err := h.save(ctx, s.Name(), r); err != nil {
		return made, unkept(err, "The credential")
	}
	return made, nil
}

// renameRevoker keeps where tokens are given back, when a source that names it is consented to and what is kept was made before.
func (h *hub) renameRevoker(ctx context.Context, src *manifest.Source, name string) *protocol.Error {
	to := revokerOf(src)
	if to == nil {
		return nil
	}
	unlock, err := h.Secrets.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := h.load(ctx, name)
	if err != nil || r == nil || r.Source != identity(src) || r.Revoke != nil && *r.Revoke == *to {
		return err
	}
	r.Revoke = to
	return h.save(ctx, name, r)
}

// joins: a pack comes to a family whose source has nothing that shows it to be the same, as a server and a client do. What
// was given to another pack is then this one's once it is given again (§8.5).
func (s Scope) joins(src *manifest.Source, old *record) bool {
	return old != nil && s.Joins && src.TokenURL == ""
}

// stands says whether what is kept still mints. A server that cannot be asked now is no reason to ask a person again:
// the trial mint will say what is wrong.
func (h *hub) stands(ctx context.Context, src *manifest.Source, s Scope) bool {
	if src.Kind != manifest.KindOAuth2 {
		return true
	}
	m, err := h.remote(ctx, src, s, 0)
	m.Release()
	return err == nil || reasonOf(err) != Revoked && reasonOf(err) != Denied
}

// obtaining is what a source is asked with; old is what was kept, nil for nothing.
type obtaining struct {
	s   Scope
	p   Person
	old *record
}

func (h *hub) obtain(ctx context.Context, src *manifest.Source, o obtaining) (*record, *protocol.Error) {
	r := &record{Source: identity(src), Scopes: slices.Clone(src.Scopes), Revoke: revokerOf(src)}
	if o.old != nil {
		if r.Revoke == nil {
			r.Revoke = o.old.Revoke
		}
		for _, scope := range o.old.Scopes {
			if !slices.Contains(r.Scopes, scope) {
				r.Scopes = append(r.Scopes, scope) // the other members keep theirs
			}
		}
	}
	var err *protocol.Error
	if src.ClientAuth != "" && src.ClientAuth != manifest.ClientNone {
		if r.Client, err = o.secret(ctx, "client secret of "+src.ClientID, func(old *record) string { return old.Client }); err != nil {
			return nil, err
		}
	}
	switch {
	case src.Kind == manifest.KindToken:
		r.Secret, err = o.secret(ctx, "token", func(old *record) string { return old.Secret })
	case src.Kind == manifest.KindBasic:
		err = o.login(ctx, src, r)
	case src.Kind == manifest.KindTokenExchange && src.SubjectFile == "" && src.SubjectEnv == "":
		r.Secret, err = o.secret(ctx, "token that is exchanged", func(old *record) string { return old.Secret })
	case src.Kind == manifest.KindOAuth2 && src.Flow == manifest.FlowCode:
		err = h.browser(ctx, src, o.p, r)
	case src.Kind == manifest.KindOAuth2:
		err = h.device(ctx, src, o.p, r)
	}
	return r, err
}

// secret asks for one; an empty answer keeps the one that is kept.
func (o obtaining) secret(ctx context.Context, what string, kept func(*record) string) (string, *protocol.Error) {
	if o.p.Secret == nil {
		return "", nobody(o.s)
	}
	value, err := o.p.Secret(ctx, "The "+what+" for "+o.s.Pack)
	if err != nil {
		return "", err
	}
	defer clear(value)
	return o.chosen(value, what, kept)
}

func (o obtaining) chosen(value []byte, what string, kept func(*record) string) (string, *protocol.Error) {
	if len(value) == 0 && o.old != nil {
		return kept(o.old), nil
	}
	if len(value) == 0 {
		return "", failed(Missing, "No "+what+" was given, so nothing was connected.")
	}
	fitting, err := fit(value, "The "+what)
	return string(fitting), err
}

func (o obtaining) login(ctx context.Context, src *manifest.Source, r *record) *protocol.Error {
	if o.p.Login == nil {
		return nobody(o.s)
	}
	name, password, err := o.p.Login(ctx, src.Username)
	if err != nil {
		return err
	}
	defer clear(password)
	if src.Username != "" {
		name = src.Username
	}
	if name == "" && len(password) == 0 && o.old != nil {
		name = o.old.Username
	}
	if name == "" {
		return failed(Missing, "No name was given, so nothing was connected.")
	}
	if _, err := fit([]byte("........"+name), "The name"); err != nil {
		return err
	}
	r.Username = name
	r.Secret, err = o.chosen(password, "password", func(old *record) string { return old.Secret })
	return err
}

// nobody: a face without a person gives no secret, and none is looked for elsewhere.
func nobody(s Scope) *protocol.Error {
	return failed(Missing, "The pack "+s.Pack+" needs something of a person to be connected, and nobody can be asked here.").
		WithHint(protocol.InSession("hcpx connect "+s.Pack, s.Session))
}
