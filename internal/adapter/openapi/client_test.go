package openapi

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"hcpx/internal/protocol"
)

// waits records pauses and takes none.
type waits struct{ list []time.Duration }

func (w *waits) sleep(ctx context.Context, d time.Duration) error {
	w.list = append(w.list, d)
	return ctx.Err()
}

func Test_3_6_Retries(t *testing.T) {
	ok := said("200 OK", "application/json", "1")
	busy := said("503 Service Unavailable", "text/plain", "later")
	after := func(value string) string {
		return strings.Replace(busy, "Content-Type", "Retry-After: "+value+"\r\nContent-Type", 1)
	}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, method string
		answers      []string
		sent         int
		waited       []time.Duration
		ok           bool
	}{
		{"get, after 503", "get", []string{busy, busy, ok}, 3, []time.Duration{250 * time.Millisecond, 500 * time.Millisecond}, true},
		{"get, four at most", "get", []string{busy}, 4, []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second}, false},
		{"put and delete too", "put", []string{strings.Replace(busy, "503", "429", 1), ok}, 2, []time.Duration{250 * time.Millisecond}, true},
		{"delete", "delete", []string{strings.Replace(busy, "503", "502", 1), strings.Replace(busy, "503", "504", 1), ok}, 3, []time.Duration{250 * time.Millisecond, 500 * time.Millisecond}, true},
		{"post never", "post", []string{busy, ok}, 1, nil, false},
		{"patch never", "patch", []string{busy, ok}, 1, nil, false},
		{"options never", "options", []string{"close", ok}, 1, nil, false},
		{"not on 500", "get", []string{strings.Replace(busy, "503", "500", 1), ok}, 1, nil, false},
		{"seconds", "get", []string{after("3"), ok}, 2, []time.Duration{3 * time.Second}, true},
		{"a date", "get", []string{after("Mon, 30 Nov 2026 12:00:07 GMT"), ok}, 2, []time.Duration{7 * time.Second}, true},
		{"longer than there is time", "get", []string{after("3600"), ok}, 1, nil, false},
		{"a connection that breaks off", "get", []string{"reset", "close", ok}, 3, []time.Duration{250 * time.Millisecond, 500 * time.Millisecond}, true},
		{"half an answer", "get", []string{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nhalf", ok}, 2, []time.Duration{250 * time.Millisecond}, true},
		{"no HTTP", "post", []string{"SSH-2.0-x\r\nConnection: close\r\n\r\n", ok}, 1, nil, false},
		{"post that breaks off", "post", []string{"reset", ok}, 1, nil, false},
	} {
		s, w := record(t, c.answers...), &waits{}
		cmd := fixture{server: s.url(), document: op(c.method, "/x", "")}.command(t, Options{Now: func() time.Time { return now }, Sleep: w.sleep})
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		_, err := send(t, ctx, cmd, `{}`)
		cancel()
		if sent := len(s.seen()); sent != c.sent || (err == nil) != c.ok || len(w.list) != len(c.waited) {
			t.Errorf("%s: %d sent, waited %v, %+v", c.name, sent, w.list, err)
			continue
		}
		for i, d := range c.waited {
			if w.list[i] != d {
				t.Errorf("%s: waited %v, want %v", c.name, w.list, c.waited)
			}
		}
		if err != nil && err.Code != protocol.UpstreamError {
			t.Errorf("%s: %+v", c.name, err)
		}
	}
}

func Test_3_6_Redirects(t *testing.T) {
	to := func(status, where string) string {
		return "HTTP/1.1 " + status + "\r\nLocation: " + where + "\r\nContent-Length: 0\r\n\r\n"
	}
	ok := said("200 OK", "application/json", "1")
	for _, c := range []struct {
		name, method string
		answers      []string
		status       int // of the refusal; 0 = followed
		last         string
	}{
		{"within the origin", "get", []string{to("302 Found", "/y?b=1"), to("308 Permanent Redirect", "z"), ok}, 0, "GET /z?key=secret-token "},
		{"absolute, with an echo of the key", "get", []string{to("301 Moved", "http://127.0.0.1:{port}/y?key=old&a=1#f"), ok}, 0, "GET /y?a=1&key=secret-token "},
		{"to another port", "get", []string{to("302 Found", "http://127.0.0.1:1/y")}, 302, "GET /x?"},
		{"to another name of this machine", "get", []string{to("302 Found", "http://localhost:{port}/y")}, 302, "GET /x?"},
		{"to another scheme", "get", []string{to("302 Found", "https://127.0.0.1:{port}/y")}, 302, "GET /x?"},
		{"with a user", "get", []string{to("302 Found", "http://a:b@127.0.0.1:{port}/y")}, 302, "GET /x?"},
		{"nowhere", "get", []string{to("302 Found", "")}, 302, "GET /x?"},
		{"not of a post", "post", []string{to("303 See Other", "/y"), ok}, 303, "POST /x?"},
		{"not of a put", "put", []string{to("307 Temporary Redirect", "/y"), ok}, 307, "PUT /x?"},
		{"in a circle", "get", []string{to("302 Found", "/x")}, 302, "GET /x?"},
		{"not modified", "get", []string{"HTTP/1.1 304 Not Modified\r\n\r\n"}, 304, "GET /x?"},
	} {
		s := record(t, c.answers...)
		cmd := fixture{server: s.url(), binding: mock, document: op(c.method, "/x", `,"security":[{"q":[]}]`)}.command(t, Options{})
		_, err := send(t, context.Background(), cmd, `{}`)
		seen := s.seen()
		if (err == nil) != (c.status == 0) || err != nil && (err.Code != protocol.UpstreamError || err.Details["status"] != c.status) {
			t.Errorf("%s: %+v", c.name, err)
		}
		if !strings.HasPrefix(seen[len(seen)-1], c.last) || len(seen) > 11 {
			t.Errorf("%s: %d sent, the last %q", c.name, len(seen), seen[len(seen)-1])
		}
	}
}

func Test_3_6_Answers(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write([]byte(`{"zipped":true}`))
	_ = z.Close()
	for _, c := range []struct{ name, answer, want string }{
		{"numbers keep their text", said("200 OK", "application/json", `{"n":12345678901234567890.10}`), `{"n":12345678901234567890.10}`},
		{"+json", said("201 Created", "application/hal+json; charset=utf-8", `[1]`), `[1]`},
		{"chunked", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[1\r\n1\r\n]\r\n0\r\n\r\n", `[1]`},
		{"gzip", strings.Replace(said("200 OK", "application/json", zipped.String()), "Content-Type", "Content-Encoding: gzip\r\nContent-Type", 1), `{"zipped":true}`},
		{"text", said("200 OK", "text/plain", "line\n"), `"line\n"`},
		{"no text", said("200 OK", "text/plain", ""), `""`},
		{"latin1", said("200 OK", "text/plain; charset=ISO-8859-1", "\xe9"), `"é"`},
		{"not quite text", said("200 OK", "text/plain", "a\xffb"), `"a�b"`},
		{"no kind", said("200 OK", "", `{"a":1}`), `{"a":1}`},
		{"nothing", said("204 No Content", "", ""), `null`},
		{"nothing as JSON", said("200 OK", "application/json", ""), `null`},
		{"a BOM", said("200 OK", "application/json", "\xef\xbb\xbf1"), `1`},
		{"the token", said("200 OK", "application/json", `{"echo":"secret-token"}`), `{"echo":"[redacted]"}`},
		{"bytes", said("200 OK", "image/png", "\x89PNG secret-token"), `{"file":"/kept/answer.png","bytes":15,"media_type":"image/png"}`},
		{"bytes of no kind", said("200 OK", "", "\x00\xff"), `{"file":"/kept/answer.bin","bytes":2}`},
		{"broken JSON", said("200 OK", "application/json", "{\n \"a\": }"), "invalid_result"},
		{"JSON twice", said("200 OK", "application/json", `{"a":1,"a":2}`), "invalid_result"},
		{"another encoding", strings.Replace(said("200 OK", "application/json", "x"), "Content-Type", "Content-Encoding: br\r\nContent-Type", 1), "invalid_result"},
		{"too much, said before", "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", "output_too_large"},
		{"too much, chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2000\r\n" + strings.Repeat("x", 8192) + "\r\n0\r\n\r\n", "output_too_large"},
		{"an error", said("404 Not Found", "text/plain", "no secret-token "+strings.Repeat("é", 5000)), "upstream_error"},
	} {
		s := record(t, c.answer)
		cmd := fixture{server: s.url(), document: op("get", "/x", "")}.command(t, Options{})
		call, _ := cmd.Render(node(t, `{}`))
		run := runOf(call)
		run.Limits.Output = 4096
		run.Keep = func(name string, data []byte) (string, error) { return "/kept/" + name, nil }
		out, err := cmd.Run(context.Background(), run)
		got := ""
		if err != nil {
			got = string(err.Code)
		} else {
			got = string(out.Value.Append(nil))
		}
		if got != c.want {
			t.Errorf("%s: %s (%+v), want %s", c.name, got, err, c.want)
		}
		if c.name == "an error" {
			excerpt := err.Details["body"].(string)
			if err.Details["status"] != 404 || !strings.HasPrefix(excerpt, "no [redacted] éé") || len(excerpt) > 4096 || strings.Contains(excerpt, "\ufffd") {
				t.Errorf("%d bytes: %.60q %v", len(excerpt), excerpt, err.Details["status"])
			}
		}
	}
	head := record(t, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n")
	if out, err := send(t, context.Background(), fixture{server: head.url(), document: op("head", "/x", "")}.command(t, Options{}), `{}`); err != nil || string(out.Value.Append(nil)) != "null" {
		t.Errorf("%+v", err)
	}
}

// A server that hangs is left at once when the run is cancelled, and when its time is over.
func Test_3_6_CancelAndTimeout(t *testing.T) {
	for _, half := range []string{"", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n[1,"} {
		for _, want := range []protocol.Code{protocol.Canceled, protocol.Timeout} {
			ctx, cancel := context.WithCancel(context.Background())
			asked, release := make(chan struct{}), make(chan struct{})
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if half != "" {
					w.Header().Set("Content-Length", "9")
					_, _ = io.WriteString(w, "[1,")
					w.(http.Flusher).Flush()
				}
				close(asked)
				<-release
			}))
			if want == protocol.Timeout {
				ctx, cancel = context.WithTimeout(context.Background(), 150*time.Millisecond)
			} else {
				go func() { <-asked; cancel() }()
			}
			_, err := send(t, ctx, fixture{server: s.URL, document: op("post", "/x", "")}.command(t, Options{}), `{}`)
			if err == nil || err.Code != want || !strings.Contains(err.Message, "not known") {
				t.Errorf("%q %s: %+v", half, want, err)
			}
			cancel()
			close(release)
			s.Close()
		}
	}
}

// Where no connection is made nothing was sent, which is known; where it breaks off that is not.
func Test_3_6_WhetherItWasCarriedOut(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	for _, want := range []string{"whether it was carried out is not known", "nothing was sent"} {
		_, err := send(t, context.Background(), fixture{server: s.URL, document: op("post", "/x", "")}.command(t, Options{}), `{}`)
		if err == nil || err.Code != protocol.UpstreamError || !strings.HasSuffix(err.Message, "; "+want+".") {
			t.Errorf("%s: %+v", want, err)
		}
		s.Close() // and from here on nobody listens there
	}
}

func Test_3_6_AddressesAreJudgedBeforeAByteIsSent(t *testing.T) {
	addr := func(s string) netip.Addr { return netip.MustParseAddr(s) }
	var dialed []string
	o := Options{
		Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			dialed = append(dialed, address)
			return nil, errors.New("down")
		},
		Sleep: func(context.Context, time.Duration) error { return nil },
	}
	for name, c := range map[string]struct {
		server string
		leads  []netip.Addr
		want   string
	}{
		"public":             {"https://api.example.org", []netip.Addr{addr("2606:4700::1"), addr("93.184.216.34")}, "93.184.216.34:443 [2606:4700::1]:443"},
		"private":            {"https://api.example.org", []netip.Addr{addr("10.0.0.1"), addr("192.168.1.1"), addr("fc00::1"), addr("100.64.0.1")}, ""},
		"loopback":           {"https://api.example.org", []netip.Addr{addr("127.0.0.1"), addr("::1"), addr("::ffff:127.0.0.1")}, ""},
		"metadata":           {"https://api.example.org", []netip.Addr{addr("169.254.169.254"), addr("fd00:ec2::254"), addr("64:ff9b::a9fe:a9fe")}, ""},
		"one of them public": {"https://api.example.org:8443", []netip.Addr{addr("10.0.0.1"), addr("93.184.216.34")}, "93.184.216.34:8443"},
		"a private server":   {"https://10.1.2.3", nil, "10.1.2.3:443"},
		"this machine":       {"http://localhost:8080", []netip.Addr{addr("93.184.216.34")}, "127.0.0.1:8080 [::1]:8080"},
	} {
		dialed = nil
		asked := 0
		o.Resolve = func(_ context.Context, host string) ([]netip.Addr, error) { asked++; return c.leads, nil }
		_, err := send(t, context.Background(), fixture{server: c.server, document: op("post", "/x", "")}.command(t, o), `{}`)
		if got := strings.Join(dialed, " "); got != c.want || asked > 1 {
			t.Errorf("%s: dialed %q, asked %d times", name, got, asked)
		}
		if err == nil || err.Code != protocol.UpstreamError || (err.Details["reason"] == "address") != (c.want == "") {
			t.Errorf("%s: %+v", name, err)
		}
	}
}

// Over TLS the server proves itself; what an error says never holds the key.
func Test_3_6_TLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `"`+r.Proto+`"`)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	f := fixture{server: s.URL, binding: mock, document: op("get", "/x", `,"security":[{"q":[]}]`)}
	out, err := send(t, context.Background(), f.command(t, Options{Roots: roots}), `{}`)
	if err != nil || out.Value.Text != "HTTP/1.1" {
		t.Fatalf("%+v", err)
	}
	_, err = send(t, context.Background(), f.command(t, Options{}), `{}`)
	if err == nil || err.Details["reason"] != "certificate" || err.Details["attempts"] != 1 || strings.Contains(err.Message, "secret") {
		t.Errorf("%+v", err)
	}
	f.server = "http://127.0.0.1:1"
	_, err = send(t, context.Background(), f.command(t, Options{Sleep: func(context.Context, time.Duration) error { return nil }}), `{}`)
	if err == nil || err.Details["attempts"] != 4 || strings.Contains(err.Message, "secret") || !strings.Contains(err.Message, "refused") {
		t.Errorf("%+v", err)
	}
}

// §3.6: a POST is sent once, also where net/http would send it again by itself: with a key, on a connection that was kept
// and breaks, with no body and with an empty one.
func Test_3_6_APostIsSentOnce(t *testing.T) {
	for name, body := range map[string]string{"no body": "", "an empty body": content("text/plain", `{"type":"string"}`, "")} {
		s := record(t, said("200 OK", "application/json", `1`), "close", said("200 OK", "application/json", `1`))
		c := fixture{server: s.url(), document: op("post", "/x", `,"parameters":[{"name":"Idempotency-Key","in":"header","schema":{}}]`+body)}.command(t, Options{})
		args := `{"Idempotency-Key":"k"}`
		if body != "" {
			args = `{"Idempotency-Key":"k","body":""}`
		}
		for range 2 {
			_, _ = send(t, context.Background(), c, args) // the second breaks
		}
		if n := len(s.seen()); n != 2 {
			t.Errorf("%s: two POSTs arrived %d times", name, n)
		}
	}
}
