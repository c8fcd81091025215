package openapi

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"hcpx/internal/adapter"
	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// fixture is an openapi pack in small.
type fixture struct {
	server   string // default https://api.example.org/v1
	binding  string // JSON; default none
	document string // JSON without its version
	version  string // default 3.1.0
	args     string // hand-written; default derived
	op       string // operation_id; default "op"
}

func (f fixture) manifest(t testing.TB) (*manifest.Manifest, fstest.MapFS) {
	t.Helper()
	or := func(s, d string) string {
		if s == "" {
			return d
		}
		return s
	}
	extra := ""
	if f.binding != "" {
		extra = `"binding": ` + f.binding + `, `
	}
	args := ""
	if f.args != "" {
		args = `, "args": ` + f.args
	}
	src := `{"hcp":{"version":"1.1"},"id":"city","version":"1.0.0","summary":"A city.","adapter":"openapi",` + extra + `
"openapi":{"document":"openapi.json","server":"` + or(f.server, "https://api.example.org/v1") + `"},
"verbs":{"go":{"summary":"Go","operation_id":"` + or(f.op, "op") + `"` + args + `}}}`
	m, issues := manifest.Decode([]byte(src))
	if m == nil || protocol.HasErrors(issues) {
		t.Fatalf("the manifest: %v", issues)
	}
	document := f.document
	if version := or(f.version, "3.1.0"); !strings.Contains(document, `"openapi"`) {
		document = `{"openapi":"` + version + `",` + strings.TrimPrefix(strings.TrimSpace(document), "{")
	}
	return m, fstest.MapFS{"openapi.json": {Data: []byte(document)}}
}

const mock = `{"mode":"mock","hub":"none","inject":"auto"}`

// lint is all that is said of the pack.
func (f fixture) lint(t testing.TB) []protocol.Issue {
	t.Helper()
	m, files := f.manifest(t)
	a := New(Options{})
	summary, issues := a.Summarize(m, files)
	a.Adopt(m, summary)
	for _, c := range m.Commands {
		_, found := a.Compile(m, c)
		issues = append(issues, found...)
	}
	return append(issues, m.Check()...)
}

// command compiles the one command.
func (f fixture) command(t testing.TB, o Options) *command {
	t.Helper()
	m, files := f.manifest(t)
	a := New(o)
	summary, issues := a.Summarize(m, files)
	if protocol.HasErrors(issues) {
		t.Fatalf("%+v", issues)
	}
	if !a.Adopt(m, summary) {
		t.Fatal("the summary is not taken")
	}
	c, issues := a.Compile(m, m.Commands[0])
	if c == nil {
		t.Fatalf("no command: %+v", issues)
	}
	return c.(*command)
}

// schema is the derived schema.
func (f fixture) schema(t testing.TB) *manifest.Schema {
	t.Helper()
	m, files := f.manifest(t)
	a := New(Options{})
	summary, issues := a.Summarize(m, files)
	if protocol.HasErrors(issues) {
		t.Fatalf("%+v", issues)
	}
	a.Adopt(m, summary)
	s, err := m.Commands[0].Args()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func node(t testing.TB, text string) *jsondoc.Node {
	t.Helper()
	n, faults := jsondoc.Parse([]byte(text), jsondoc.Limits{})
	if len(faults) > 0 {
		t.Fatalf("%s: %v", text, faults)
	}
	return n
}

// render is the request of some arguments.
func render(t testing.TB, c *command, args string) *adapter.Request {
	t.Helper()
	call, bad := c.Render(node(t, args))
	if len(bad) > 0 {
		t.Fatalf("%s: %v", args, bad)
	}
	return call.Request
}

// runOf is a run with a mock credential and a mask for it.
func runOf(call *adapter.Call) *adapter.Run {
	run := &adapter.Run{Call: call, Credential: func(part string) (string, bool) { return "secret-" + part, true },
		Mask: func(text []byte, _ bool) []byte {
			return bytes.ReplaceAll(text, []byte("secret-token"), []byte("[redacted]"))
		}}
	run.Limits.Output = 8 << 20
	return run
}

// send renders and runs.
func send(t testing.TB, ctx context.Context, c *command, args string) (*adapter.Output, *protocol.Error) {
	t.Helper()
	call, bad := c.Render(node(t, args))
	if len(bad) > 0 {
		t.Fatalf("%s: %v", args, bad)
	}
	return c.Run(ctx, runOf(call))
}

// recorder is a server on the loopback that keeps every byte of each request and answers what it is told, in turn; the last
// answer again and again. An answer that is "close" closes the connection.
type recorder struct {
	*net.TCPListener
	mu       sync.Mutex
	answers  []string
	requests []string
	conns    []net.Conn
	wg       sync.WaitGroup
}

func record(t testing.TB, answers ...string) *recorder {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{TCPListener: l, answers: answers}
	r.wg.Go(r.serve)
	t.Cleanup(func() {
		_ = l.Close()
		r.mu.Lock()
		for _, conn := range r.conns {
			_ = conn.Close()
		}
		r.mu.Unlock()
		r.wg.Wait()
	})
	return r
}

func (r *recorder) url() string { return "http://" + r.Addr().String() }

func (r *recorder) serve() {
	for {
		conn, err := r.AcceptTCP()
		if err != nil {
			return
		}
		r.mu.Lock()
		r.conns = append(r.conns, conn)
		r.mu.Unlock()
		r.wg.Go(func() {
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
			for in := bufio.NewReader(conn); r.one(conn, in); {
			}
		})
	}
}

// one reads a request to its end and answers it.
func (r *recorder) one(conn *net.TCPConn, in *bufio.Reader) bool {
	var raw bytes.Buffer
	req, err := http.ReadRequest(bufio.NewReaderSize(io.TeeReader(oneByte{in}, &raw), 1))
	if err != nil {
		return false
	}
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return false
	}
	r.mu.Lock()
	r.requests = append(r.requests, raw.String())
	answer := r.answers[min(len(r.requests), len(r.answers))-1]
	r.mu.Unlock()
	switch answer {
	case "close":
		return false
	case "reset":
		_ = conn.SetLinger(0)
		return false
	}
	if _, err := io.WriteString(conn, strings.ReplaceAll(answer, "{port}", fmt.Sprint(r.Addr().(*net.TCPAddr).Port))); err != nil {
		return false
	}
	return !strings.Contains(answer, "Connection: close")
}

// oneByte keeps a buffered reader above from taking what belongs to the next request.
type oneByte struct{ in *bufio.Reader }

func (o oneByte) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return o.in.Read(p[:1])
}

func (r *recorder) seen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.requests...)
}

// said makes an answer.
func said(status, media, body string) string {
	head := "HTTP/1.1 " + status + "\r\n"
	if media != "" {
		head += "Content-Type: " + media + "\r\n"
	}
	return head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
}
