package binding

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// grantOf is the grant_type of each way to a token.
const (
	grantDevice   = "urn:ietf:params:oauth:grant-type:device_code"
	grantCode     = "authorization_code"
	grantRefresh  = "refresh_token"
	grantClient   = "client_credentials"
	grantExchange = "urn:ietf:params:oauth:grant-type:token-exchange"
)

// farClock is how far the server's clock may be from this one before a refusal is laid to it.
const farClock = 2 * time.Minute

// issued is a token endpoint's good answer.
type issued struct {
	token
	refresh string
	scopes  []string
}

// ask sends one grant to the token endpoint of the source.
func (h *hub) ask(ctx context.Context, src *manifest.Source, client string, form url.Values) (issued, *protocol.Error) {
	c := call{to: src.TokenURL, form: form}
	h.identify(src, client, &c)
	sent := h.Now()
	a, err := h.wire().post(ctx, c)
	if err != nil {
		return issued{}, err
	}
	root, err := h.understand(a, src.TokenURL)
	if err != nil {
		return issued{}, h.apart(err, a, src)
	}
	return tokenOf(root, src, sent)
}

func (h *hub) wire() wire { return wire{h.Net, h.Now} }

// identify says who the client is, in the one way that the source names: nothing else is tried when it fails.
func (h *hub) identify(src *manifest.Source, client string, c *call) {
	switch src.ClientAuth {
	case manifest.ClientBasic:
		c.id, c.secret = src.ClientID, client
	case manifest.ClientPost:
		c.form.Set("client_id", src.ClientID)
		c.form.Set("client_secret", client)
	default:
		if src.ClientID != "" {
			c.form.Set("client_id", src.ClientID)
		}
	}
}

// understand takes the JSON object of a good answer; anything else has its reason. What a server says in words of its
// own is never repeated: it may hold what was sent.
func (h *hub) understand(a answer, to string) (*jsondoc.Node, *protocol.Error) {
	who := "The server " + host(to)
	root, faults := jsondoc.Parse(a.body, jsondoc.Limits{Bytes: maxBody, Depth: 16})
	object := len(faults) == 0 && root.Kind == jsondoc.Object
	word := ""
	if object {
		if n := root.Get("error"); n != nil && n.Kind == jsondoc.String {
			word = known(n.Text)
		}
	}
	switch {
	case a.status >= 300 && a.status < 400:
		return nil, failed(Server, who+" wants to send the request elsewhere, and no redirect is followed with a credential.")
	case a.status == 429 || a.status >= 500:
		return nil, failed(Server, fmt.Sprintf("%s failed with the status %d.", who, a.status))
	case word == "temporarily_unavailable" || word == "server_error":
		return nil, failed(Server, who+" failed: "+word+".")
	case a.status >= 400 || word != "":
		return nil, no(a, who, word)
	case a.status != 200:
		return nil, failed(Malformed, fmt.Sprintf("%s answered with the status %d, which gives no token.", who, a.status))
	case !object:
		return nil, failed(Malformed, who+" gave an answer that is no JSON object.")
	}
	return root, nil
}

// apart lays a refused exchange to clocks that are far apart: what is exchanged was signed by the clock of a machine. No
// other grant depends on the clock of who asks.
func (h *hub) apart(err *protocol.Error, a answer, src *manifest.Source) *protocol.Error {
	if src.Kind != manifest.KindTokenExchange || reasonOf(err) != Denied || a.date.IsZero() {
		return err
	}
	apart := h.Now().Sub(a.date).Abs()
	if apart <= farClock {
		return err
	}
	return failed(Clock, fmt.Sprintf("%s; its clock and this machine's are %s apart.", protocol.Clause(err.Message), apart.Round(time.Second))).With("error", err.Details["error"])
}

// no is a server's refusal.
func no(a answer, who, word string) *protocol.Error {
	if word == "" {
		word = fmt.Sprintf("status %d", a.status)
	}
	return failed(Denied, who+" refused: "+word+".").With("error", word)
}

// known is an error code of the standards as it is; another one says nothing.
func known(word string) string {
	switch word {
	case "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type", "invalid_scope", "invalid_target",
		"access_denied", "unsupported_response_type", "unsupported_token_type", "server_error", "temporarily_unavailable",
		"authorization_pending", "slow_down", "expired_token", "interaction_required", "login_required", "consent_required":
		return word
	}
	return "an error that is none of the standards"
}

// tokenOf reads a token answer (RFC 6749 §5.1). What is no bearer token cannot be used as one.
func tokenOf(root *jsondoc.Node, src *manifest.Source, sent time.Time) (issued, *protocol.Error) {
	who := "The server " + host(src.TokenURL)
	text := func(key string) string {
		if n := root.Get(key); n != nil && n.Kind == jsondoc.String {
			return n.Text
		}
		return ""
	}
	kind := strings.ToLower(text("token_type"))
	if kind != "bearer" && (kind != "n_a" || src.Kind != manifest.KindTokenExchange) {
		return issued{}, failed(Malformed, who+" gave no bearer token.")
	}
	value, err := fit([]byte(text("access_token")), "What "+host(src.TokenURL)+" gave as access token")
	if err != nil {
		return issued{}, err
	}
	got := issued{token: token{Value: string(value), Issued: sent}, refresh: text("refresh_token"), scopes: strings.Fields(text("scope"))}
	seconds, err := lifetime(root.Get("expires_in"), who)
	if err != nil {
		return issued{}, err
	}
	if seconds > 0 {
		got.Expires = sent.Add(seconds)
	}
	return got, nil
}

// longestToken bounds what a server may claim: a token is not counted on beyond it.
const longestToken = 24 * time.Hour

// lifetime reads expires_in, a number or, as some servers write it, digits in a string; 0 = not said.
func lifetime(n *jsondoc.Node, who string) (time.Duration, *protocol.Error) {
	if n == nil || n.Kind == jsondoc.Null {
		return 0, nil
	}
	seconds, ok := secondsOf(n)
	if !ok || seconds < 1 {
		return 0, failed(Malformed, who+" gave a token whose time is over, or is no number.")
	}
	return time.Duration(min(seconds, longestToken.Seconds())) * time.Second, nil
}

// secondsOf is a number, also one in a text; whole seconds count, and how many there can be bounds who asks.
func secondsOf(n *jsondoc.Node) (float64, bool) {
	if n.Kind != jsondoc.Number && (n.Kind != jsondoc.String || n.Text == "" || strings.Trim(n.Text, "0123456789.") != "") {
		return 0, false
	}
	seconds, err := strconv.ParseFloat(n.Text, 64)
	return seconds, err == nil || errors.Is(err, strconv.ErrRange) // then it is infinite, or next to nothing
}

// target adds scope, audience and resource, as far as the source names them.
func target(src *manifest.Source, scopes []string, form url.Values) {
	for key, value := range map[string]string{"scope": strings.Join(scopes, " "), "audience": src.Audience, "resource": src.Resource} {
		if value != "" {
			form.Set(key, value)
		}
	}
}
