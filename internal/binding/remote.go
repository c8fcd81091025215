package binding

import (
	"context"
	"net/url"
	"slices"
	"time"

	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// remote gives a token of a server (§8.4): one that was minted for the same purpose and outlives the run, else a new
// one. Only one process asks for it; the others wait, look again and find it.
func (h *hub) remote(ctx context.Context, src *manifest.Source, s Scope, lasts time.Duration) (*Minted, *protocol.Error) {
	subject, err := h.subject(ctx, src)
	if err != nil {
		return nil, err
	}
	if !src.Keeps() { // hub none: nothing is kept, and nothing handed out twice
		got, err := h.ask(ctx, src, "", exchangeForm(src, subject))
		if err != nil {
			return nil, err
		}
		return mintedOf(got.token, nil, subject), nil
	}
	r, err := h.mine(ctx, src, s)
	if err != nil {
		return nil, err
	}
	if m := r.again(src, subject, h.Now(), lasts); m != nil {
		return m, nil
	}
	unlock, err := h.Secrets.Lock(ctx, s.Name())
	if err != nil {
		return nil, err
	}
	defer unlock()
	if r, err = h.mine(ctx, src, s); err != nil {
		return nil, err
	}
	if m := r.again(src, subject, h.Now(), lasts); m != nil {
		return m, nil
	}
	if src.Kind == manifest.KindOAuth2 {
		return h.renew(ctx, src, s, r)
	}
	return h.anew(ctx, src, s, renewal{r, subject})
}

// subject is what is exchanged, where the machine has it; else it is kept.
func (h *hub) subject(ctx context.Context, src *manifest.Source) (string, *protocol.Error) {
	switch {
	case src.Kind != manifest.KindTokenExchange:
		return "", nil
	case src.SubjectFile != "":
		value, err := h.file(src.SubjectFile, "")
		return string(value), err
	case src.SubjectEnv != "":
		value, err := h.variable(src.SubjectEnv)
		return string(value), err
	}
	return "", ctxFault(ctx)
}

func ctxFault(ctx context.Context) *protocol.Error {
	if ctx.Err() != nil {
		return waited(ctx, "the source")
	}
	return nil
}

// again is the kept token of the same purpose, if it outlives the run; nil else.
func (r *record) again(src *manifest.Source, subject string, now time.Time, lasts time.Duration) *Minted {
	t, ok := r.Tokens[purpose(src, subject)]
	if !ok || !t.lasts(now, lasts) {
		return nil
	}
	m := mintedOf(t, r, subject)
	m.reused = true
	return m
}

// mintedOf hides what was touched along with the token.
func mintedOf(t token, r *record, subject string) *Minted {
	held := &credential{token: []byte(t.Value)}
	also := []string{subject}
	if r != nil {
		also = append(also, r.Refresh, r.Client, r.Secret)
	}
	for _, s := range also {
		if len(s) >= shortest {
			held.hidden = append(held.hidden, []byte(s))
		}
	}
	return &Minted{held: held}
}

// renewal is a record under its lock, and what is exchanged.
type renewal struct {
	*record
	subject string
}

// anew asks with a kept secret: client_credentials, token_exchange.
func (h *hub) anew(ctx context.Context, src *manifest.Source, s Scope, r renewal) (*Minted, *protocol.Error) {
	form, purposeOf := clientForm(src), r.subject
	if src.Kind == manifest.KindTokenExchange {
		subject := r.subject
		if subject == "" {
			subject = r.Secret
		}
		form = exchangeForm(src, subject)
	}
	got, err := h.ask(ctx, src, r.Client, form)
	if err != nil {
		return nil, err
	}
	r.put(src, purposeOf, got.token)
	if err := h.save(ctx, s.Name(), r.record); err != nil {
		return nil, unkept(err, "The new token")
	}
	return mintedOf(got.token, r.record, r.subject), nil
}

// renew uses the refresh token. Before it is used up the record is written once, so that a store which takes nothing is
// found in time, and a process that dies in between leaves a mark; the one that replaces it is kept before anything
// else happens.
func (h *hub) renew(ctx context.Context, src *manifest.Source, s Scope, r *record) (*Minted, *protocol.Error) {
	if r.Refresh == "" {
		return nil, failed(Revoked, "The token for "+s.Name()+" has run out, and the server gave none to renew it with.")
	}
	cut := r.Renewing
	r.Renewing = h.Now().UTC().Format(time.RFC3339)
	if err := h.save(ctx, s.Name(), r); err != nil {
		return nil, unkept(err, "That the token is being renewed")
	}
	form := url.Values{"grant_type": {grantRefresh}, "refresh_token": {r.Refresh}}
	target(src, src.Scopes, form)
	got, err := h.ask(ctx, src, r.Client, form)
	if err != nil {
		return nil, h.refused(ctx, s, r, refusal{err, cut})
	}
	old := r.Refresh
	r.Renewing = ""
	if got.refresh != "" {
		r.Refresh = got.refresh
	}
	r.put(src, "", got.token)
	if err := h.save(ctx, s.Name(), r); err != nil {
		return nil, unkept(err, "The server renewed the token, and the one that replaces what is kept")
	}
	m := mintedOf(got.token, r, old)
	return m, nil
}

// refusal is a renewal that failed, and when an earlier one was cut off.
type refusal struct {
	err *protocol.Error
	cut string
}

// refused tells revoked from other refusals, and takes the mark away where the server has certainly not renewed.
func (h *hub) refused(ctx context.Context, s Scope, r *record, f refusal) *protocol.Error {
	word, _ := f.err.Details["error"].(string)
	if reasonOf(f.err) == Denied && word == "invalid_grant" {
		f.err = failed(Revoked, "The server does not take what is kept for "+s.Name()+" any more.").With("error", word)
		if f.cut != "" {
			f.err.Message += " A renewal that began at " + f.cut + " was cut off; what replaced it may be lost."
		}
	}
	switch reasonOf(f.err) {
	case Denied, Revoked, Clock:
		r.Renewing = f.cut
		if f.cut == "" || reasonOf(f.err) == Revoked {
			_ = h.save(ctx, s.Name(), r) // a mark that stays says too much, never too little
		}
	}
	return f.err
}

// unkept is what could not be stored, said with why; the credential is not used then.
func unkept(why *protocol.Error, what string) *protocol.Error {
	e := failed(Unkept, what+" could not be kept, so it is not used: "+protocol.Clause(why.Message)+".")
	e.Hint = why.Hint
	return e
}

func (r *record) put(src *manifest.Source, subject string, t token) {
	if r.Tokens == nil {
		r.Tokens = map[string]token{}
	}
	r.Tokens[purpose(src, subject)] = t
}

func clientForm(src *manifest.Source) url.Values {
	form := url.Values{"grant_type": {grantClient}}
	target(src, src.Scopes, form)
	return form
}

// exchangeForm is RFC 8693's request.
func exchangeForm(src *manifest.Source, subject string) url.Values {
	form := url.Values{
		"grant_type": {grantExchange}, "subject_token": {subject},
		"subject_token_type": {src.SubjectType}, "requested_token_type": {src.RequestedType},
	}
	target(src, src.Scopes, form)
	return form
}

// covers says whether what was consented to holds every scope of the source.
func (r *record) covers(src *manifest.Source) bool {
	return !slices.ContainsFunc(src.Scopes, func(s string) bool { return !slices.Contains(r.Scopes, s) })
}
