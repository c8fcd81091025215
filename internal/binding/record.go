package binding

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// record is what is kept under one name. It is read and written whole.
type record struct {
	Source   string           `json:"source"` // what it was made for; no other source is served from it
	Secret   string           `json:"secret,omitempty"`
	Username string           `json:"username,omitempty"`
	Client   string           `json:"client_secret,omitempty"`
	Refresh  string           `json:"refresh_token,omitempty"`
	Scopes   []string         `json:"scopes,omitempty"` // that were consented to
	Tokens   map[string]token `json:"tokens,omitempty"` // by what they are for
	Revoke   *revoker         `json:"revoke,omitempty"` // where they are given back
	// Renewing is when a renewal was begun whose end is not known: the refresh token may be used up.
	Renewing string `json:"renewing,omitempty"`
}

// token is one that was minted and may be handed out again while it lasts.
type token struct {
	Value   string    `json:"access_token"`
	Issued  time.Time `json:"issued"`
	Expires time.Time `json:"expires"` // zero: not known, so never handed out again
}

// lasts says whether the token outlives a run that begins now (§8.4), with Skew allowed for clocks that differ. A clock
// that went back to before the token was issued proves nothing.
func (t token) lasts(now time.Time, run time.Duration) bool {
	return !t.Expires.IsZero() && now.After(t.Issued.Add(-Skew)) && now.Add(run+Skew).Before(t.Expires)
}

// identity is what a record is bound to (§8.5): a family shares a consent only for the same token_url and client_id, and
// a kept secret only for the same source.
func identity(src *manifest.Source) string {
	parts := []string{src.Kind, src.TokenURL, src.ClientID, src.ClientAuth}
	if src.Kind == manifest.KindBasic {
		parts = append(parts, src.Username)
	}
	return digest(parts...)
}

// purpose is what a token is good for, within one record.
func purpose(src *manifest.Source, subject string) string {
	scopes := slices.Clone(src.Scopes)
	slices.Sort(scopes)
	return digest(strings.Join(scopes, " "), src.Audience, src.Resource, src.RequestedType, src.SubjectType, subject)
}

func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])
}

// load reads the record of a name; nil when there is none.
func (h *hub) load(ctx context.Context, name string) (*record, *protocol.Error) {
	raw, found, err := h.Secrets.Get(ctx, name)
	if err != nil || !found {
		return nil, err
	}
	defer clear(raw)
	var r record
	if json.Unmarshal(raw, &r) != nil {
		return nil, failed(Unkept, "What is kept for "+name+" cannot be read; connect again.")
	}
	return &r, nil
}

// mine is load for a mint: nothing there, or something of another source, is refused.
func (h *hub) mine(ctx context.Context, src *manifest.Source, s Scope) (*record, *protocol.Error) {
	r, err := h.load(ctx, s.Name())
	switch {
	case err != nil:
		return nil, err
	case r == nil:
		return nil, failed(Missing, "Nothing is kept for "+s.Name()+"; connect again.")
	case r.Source != identity(src):
		return nil, failed(Denied, "What is kept for "+s.Name()+" was made for another source.")
	}
	return r, nil
}

// save writes the record, without tokens that are over.
func (h *hub) save(ctx context.Context, name string, r *record) *protocol.Error {
	now := h.Now()
	maps.DeleteFunc(r.Tokens, func(_ string, t token) bool { return !t.lasts(now, 0) })
	raw, fault := json.Marshal(r)
	if fault != nil {
		return failed(Unkept, "What must be kept for "+name+" cannot be written.")
	}
	defer clear(raw)
	return h.Secrets.Set(ctx, name, raw)
}

// kept gives the secret that a person typed at connect: sources token and basic.
func (h *hub) kept(ctx context.Context, src *manifest.Source, s Scope) (*Minted, *protocol.Error) {
	r, err := h.mine(ctx, src, s)
	if err != nil {
		return nil, err
	}
	value, err := fit([]byte(r.Secret), "What is kept for "+s.Name())
	if err != nil {
		return nil, err
	}
	if src.Kind == manifest.KindToken {
		return &Minted{held: &credential{token: value}}, nil
	}
	pair := []byte(r.Username + ":" + r.Secret) // as an Authorization header has it
	return &Minted{held: &credential{username: []byte(r.Username), password: value, hidden: [][]byte{pair}}}, nil
}
