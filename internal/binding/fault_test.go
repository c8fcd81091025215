package binding_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"hcpx/internal/binding"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// answering writes raw bytes as the whole answer, and ends the connection.
func answering(raw string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		conn, out, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return false
		}
		_, _ = out.WriteString(raw)
		_ = out.Flush()
		_ = conn.Close()
		return true
	}
}

func status(code int, body string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(body))
		return true
	}
}

// §8.4: each way in which a server fails has its reason; nothing is minted, one request is sent, no other credential is
// tried, and no byte of what was sent or answered stands in the error.
func Test_8_4_EachFailureOfAServerHasItsReason(t *testing.T) {
	r := newRig(t)
	b, s := bound(binding.User, r.source(manifest.KindOAuth2, "native")), scope("transit", "")
	r.connect(b, s, "")
	r.clock.forward(time.Hour)
	const echo = "leaked-value-of-the-server"
	stolen := 0
	thief := newProvider(t)
	thief.faulty(func(http.ResponseWriter, *http.Request) bool { stolen++; return false })
	hang := make(chan struct{})
	for name, c := range map[string]struct {
		fault func(http.ResponseWriter, *http.Request) bool
		want  binding.Reason
	}{
		"500":             {status(500, `{"error":"`+echo+`"}`), binding.Server},
		"503 in HTML":     {status(503, "<h1>"+echo), binding.Server},
		"429":             {status(429, ""), binding.Server},
		"unavailable":     {status(400, `{"error":"temporarily_unavailable"}`), binding.Server},
		"denied":          {status(400, `{"error":"unauthorized_client","error_description":"`+echo+`"}`), binding.Denied},
		"denied in a 200": {status(200, `{"error":"access_denied"}`), binding.Denied},
		"denied oddly":    {status(403, `{"error":"`+echo+`"}`), binding.Denied},
		"no JSON":         {status(200, echo), binding.Malformed},
		"half JSON":       {status(200, `{"access_token":"`+echo), binding.Malformed},
		"an array":        {status(200, `["`+echo+`"]`), binding.Malformed},
		"twice a token":   {status(200, `{"access_token":"`+echo+`","access_token":"other-value","token_type":"bearer"}`), binding.Malformed},
		"no token":        {status(200, `{"token_type":"bearer"}`), binding.Malformed},
		"no text":         {status(200, `{"access_token":12345678901,"token_type":"bearer"}`), binding.Malformed},
		"a short token":   {status(200, `{"access_token":"abc","token_type":"bearer"}`), binding.Malformed},
		"two lines":       {status(200, `{"access_token":"`+echo+`\nX: y","token_type":"bearer"}`), binding.Malformed},
		"no bearer":       {status(200, `{"access_token":"`+echo+`","token_type":"dpop"}`), binding.Malformed},
		"over already":    {status(200, `{"access_token":"`+echo+`","token_type":"bearer","expires_in":0}`), binding.Malformed},
		"no time":         {status(200, `{"access_token":"`+echo+`","token_type":"bearer","expires_in":"soon"}`), binding.Malformed},
		"huge":            {status(200, `{"access_token":"`+strings.Repeat("x", 1<<20)+`","token_type":"bearer"}`), binding.Malformed},
		"huge, unsaid":    {answering("HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat("x", 1<<20)), binding.Malformed},
		"huge head":       {answering("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n"), binding.Malformed},
		"many heads":      {answering("HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 1<<16) + "\r\n"), binding.Malformed},
		"no HTTP":         {answering("220 " + echo + "\r\n\r\n"), binding.Malformed},
		"two lengths":     {answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}"), binding.Malformed},
		"bad chunks":      {answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), binding.Malformed},
		"endless interim": {answering(strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 100)), binding.Malformed},
		"compressed":      {answering("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}"), binding.Malformed},
		"cut off":         {answering("HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n{}"), binding.Server},
		"closed":          {answering(""), binding.Server},
		"hang":            {func(http.ResponseWriter, *http.Request) bool { <-hang; return true }, binding.Timeout},
		"elsewhere": {func(w http.ResponseWriter, req *http.Request) bool {
			http.Redirect(w, req, thief.srv.URL+"/oauth/token", http.StatusTemporaryRedirect)
			return true
		}, binding.Server},
	} {
		t.Run(name, func(t *testing.T) {
			o := r.options()
			if name == "hang" {
				o.Net.Timeout = 200 * time.Millisecond
			}
			r := &rig{provider: r.provider, Hub: binding.NewHub(o), box: r.box, clock: r.clock}
			r.faulty(c.fault)
			before := r.count()
			err := r.refusedMint(b, s)
			if err.Details["reason"] != string(c.want) {
				t.Errorf("%v %v", err, err.Details)
			}
			requests, _ := r.sent()
			if text := fmt.Sprint(err, err.Hint, err.Details); strings.Contains(text, echo) || strings.Contains(text, requests[before].Get("refresh_token")) {
				t.Errorf("the error shows what was sent or answered: %s", text)
			}
			if r.count() != before+1 || stolen > 0 {
				t.Errorf("%d requests, %d at another server", r.count()-before, stolen)
			}
		})
	}
	close(hang)
	r.faulty(nil)
	if _, reused := r.token(b, s, time.Minute); reused {
		t.Error("after all failures the kept consent must still mint anew")
	}
}

// A good answer may come in chunks, after an interim one, or end with the connection.
func Test_8_4_WhatHTTPAllowsIsUnderstood(t *testing.T) {
	r := newRig(t)
	b, s := bound(binding.Mothership, r.source(manifest.KindClientCredentials, "sid1")), scope("ledger", "")
	const body = `{"access_token":"a-good-token","token_type":"Bearer","expires_in":"3600"}`
	for name, raw := range map[string]string{
		"chunks":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x;a=b\r\n%s\r\n%X\r\n%s\r\n0\r\n\r\n", 10, body[:10], len(body)-10, body[10:]),
		"interim": "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: " + fmt.Sprint(len(body)) + "\r\n\r\n" + body,
		"to end":  "HTTP/1.0 200\r\n\r\n" + body,
	} {
		t.Run(name, func(t *testing.T) {
			r.faulty(answering(raw))
			s.Pack = strings.ReplaceAll(name, " ", "-")
			r.connect(b, s, "verysecret")
			if got, _ := r.token(b, s, time.Minute); got != "a-good-token" {
				t.Errorf("%q", got)
			}
		})
	}
}

// A server that cannot be proved, or is nowhere, gets no request.
func Test_8_4_AServerThatIsNotProvedGetsNothing(t *testing.T) {
	r := newRig(t)
	b, s := bound(binding.Mothership, r.source(manifest.KindClientCredentials, "sid1")), scope("ledger", "")
	r.connect(b, s, "verysecret")
	r.clock.forward(time.Hour)
	before := r.count()
	mint := func(change func(*binding.Options, *manifest.Source)) *protocol.Error {
		t.Helper()
		o, src := r.options(), *b.From
		change(&o, &src)
		m, err := binding.NewHub(o).Mint(t.Context(), bound(binding.Mothership, &src), s, 0)
		if m != nil || err == nil {
			t.Fatalf("%v, %v", m, err)
		}
		return err
	}
	for name, c := range map[string]struct {
		change func(*binding.Options, *manifest.Source)
		want   binding.Reason
	}{
		"unknown authority": {func(o *binding.Options, _ *manifest.Source) { o.Net.Roots = nil }, binding.Denied},
		"another time":      {func(o *binding.Options, _ *manifest.Source) { o.Now = func() time.Time { return time.Unix(1<<33, 0) } }, binding.Clock},
		"nothing listens": {func(o *binding.Options, _ *manifest.Source) {
			o.Net.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("connection refused") }
		}, binding.Server},
		"never answers": {func(o *binding.Options, _ *manifest.Source) {
			o.Net.Timeout = 100 * time.Millisecond
			o.Net.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
		}, binding.Timeout},
	} {
		if err := mint(c.change); err.Details["reason"] != string(c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r.count() != before {
		t.Error("a request was sent")
	}
	for _, address := range []string{"169.254.169.254:80", "[fe80::1]:80", "0.0.0.0:80", "[::ffff:169.254.169.254]:443"} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if conn, err := binding.Dial(ctx, "tcp", address); err == nil || !strings.Contains(err.Error(), "no credential") {
			t.Errorf("%s: %v, %v", address, conn, err)
		}
		cancel()
	}
}

// §8.4: a refresh token that replaces another is kept before anything else; where it can't be, that is told, and the
// token is not used. A store that takes nothing is found before the old one is used up.
func Test_8_4_WhatCannotBeKeptIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		failing int // which write of the renewal
		asked   int // renewals that the server saw
		message string
	}{
		"before": {1, 0, "being renewed could not be kept"},
		"after":  {2, 1, "The server renewed the token, and the one that replaces what is kept could not be kept"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			b, s := bound(binding.User, r.source(manifest.KindOAuth2, "native")), scope("transit", "")
			r.connect(b, s, "")
			r.clock.forward(time.Hour)
			from := r.box.sets
			r.box.full = func(n int) bool { return n == from+c.failing }
			err := r.refusedMint(b, s)
			if err.Details["reason"] != string(binding.Unkept) || !strings.Contains(err.Message, c.message) || r.asked("refresh_token") != c.asked {
				t.Errorf("%v %v, asked %d", err, err.Details, r.asked("refresh_token"))
			}
			r.box.full = nil
			if c.asked == 0 {
				if _, reused := r.token(b, s, time.Minute); reused {
					t.Error("nothing was used up, so it must renew now")
				}
				return
			}
			// The next one finds the mark of the renewal that was cut off, and says that something may be lost.
			if err := r.refusedMint(b, s); err.Details["reason"] != string(binding.Revoked) || !strings.Contains(err.Message, "was cut off") {
				t.Errorf("%v", err)
			}
		})
	}
}

// A mint that its caller gives up is none.
func Test_8_4_ACancelledMintGivesNothing(t *testing.T) {
	r := newRig(t)
	b, s := bound(binding.User, r.source(manifest.KindOAuth2, "native")), scope("transit", "")
	r.connect(b, s, "")
	r.clock.forward(time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan struct{})
	r.faulty(func(http.ResponseWriter, *http.Request) bool { cancel(); <-done; return true })
	m, err := r.Mint(ctx, b, s, time.Minute)
	close(done)
	if m != nil || err == nil || err.Code != protocol.BindingFailed || err.Details["reason"] != string(binding.Canceled) {
		t.Errorf("%v, %v", m, err)
	}
}
