package binding

import (
	"context"
	"net/url"
	"time"

	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// revokeTime bounds all requests of one revocation: what is kept is deleted afterwards, whatever was answered.
const revokeTime = 10 * time.Second

// Ended says what became of the tokens that a server gave when what was kept of them was deleted (RFC 7009).
type Ended struct {
	Server  string `json:"server,omitempty"` // who was asked; "" for nobody
	Revoked bool   `json:"revoked"`
	Message string `json:"message"`
}

// revoker is where tokens are given back, and as which client: what was consented to, whatever the pack says later.
type revoker struct {
	URL        string `json:"url"`
	ClientID   string `json:"client_id,omitempty"`
	ClientAuth string `json:"client_auth,omitempty"`
}

// revokerOf is the source's, nil when it names none.
func revokerOf(src *manifest.Source) *revoker {
	if src.RevokeURL == "" {
		return nil
	}
	return &revoker{src.RevokeURL, src.ClientID, src.ClientAuth}
}

// Forget implements Hub: the tokens of a server are given back first, as well as it takes them, and what is kept is deleted in
// any case. Whoever mints meanwhile has ended before or finds nothing.
func (h *hub) Forget(ctx context.Context, name string) (*Ended, *protocol.Error) {
	if h.Secrets == nil {
		return nil, nil
	}
	unlock, err := h.Secrets.Lock(ctx, name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	ended := h.giveBack(ctx, name)
	return ended, h.Secrets.Delete(ctx, name)
}

// giveBack revokes what a record holds; nil when it holds nothing of a server, or cannot be read.
func (h *hub) giveBack(ctx context.Context, name string) *Ended {
	if h.conceal() != nil || h.Net.Dial == nil || h.Now == nil {
		return nil
	}
	r, err := h.load(ctx, name)
	if err != nil || r == nil {
		return nil
	}
	tokens := r.living(h.Now())
	switch {
	case len(tokens) == 0:
		return nil
	case r.Revoke == nil:
		return &Ended{Message: "Its pack names no address for revocation, so the tokens that the server gave run out by themselves."}
	}
	ctx, cancel := context.WithTimeout(ctx, revokeTime)
	defer cancel()
	at := host(r.Revoke.URL)
	for _, t := range tokens {
		if err := h.revoke(ctx, r, t); err != nil {
			return &Ended{Server: at, Message: "Not all of the tokens were revoked, and those that were not run out by themselves: " + protocol.Clause(err.Message) + "."}
		}
	}
	return &Ended{Server: at, Revoked: true, Message: "The server " + at + " answered that the tokens are revoked."}
}

// lent is one token that a server gave, and which kind.
type lent struct{ value, kind string }

// living are the tokens that may be good still, the one that makes others first.
func (r *record) living(now time.Time) []lent {
	var all []lent
	if r.Refresh != "" {
		all = append(all, lent{r.Refresh, "refresh_token"})
	}
	for _, t := range r.Tokens {
		if t.Expires.IsZero() || now.Before(t.Expires.Add(Skew)) {
			all = append(all, lent{t.Value, "access_token"})
		}
	}
	return all
}

// revoke gives one token back. A server that takes no access tokens back has taken the refresh token.
func (h *hub) revoke(ctx context.Context, r *record, t lent) *protocol.Error {
	c := call{to: r.Revoke.URL, form: url.Values{"token": {t.value}, "token_type_hint": {t.kind}}}
	h.identify(&manifest.Source{ClientID: r.Revoke.ClientID, ClientAuth: r.Revoke.ClientAuth}, r.Client, &c)
	a, err := h.wire().post(ctx, c)
	if err != nil || a.status >= 200 && a.status < 300 {
		return err
	}
	_, err = h.understand(a, r.Revoke.URL)
	if word, _ := err.Details["error"].(string); word == "unsupported_token_type" && t.kind == "access_token" && r.Refresh != "" {
		return nil
	}
	return err
}
