package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"hcpx/internal/gate"
	"hcpx/internal/lifecycle"
	"hcpx/internal/manifest"
	"hcpx/internal/projection"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

const surface = `{"hcp":{"version":"1.1"},"id":"p","version":"1.0.0","summary":"A.","adapter":"wrap","wrap":{"bin":"./x"},"verbs":{"v":{"summary":"V.","argv":["x"],
"args":{"type":"object","properties":{"n":{"type":"integer"},"x":{"type":["number","null"]},"s":{"type":"string"},"either":{"type":["string","integer"]},"any":{},"b":{"type":"boolean"},"l":{"type":"array"},"o":{"type":"object"}}}}}}`

func schemaOf(t testing.TB) func(pack, verb string) *manifest.Schema {
	m, issues := manifest.Decode([]byte(surface))
	if m == nil {
		t.Fatal(issues)
	}
	return func(pack, verb string) *manifest.Schema {
		c := m.Command(verb)
		if pack != "p" || c == nil {
			return nil
		}
		s, err := c.Args()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// §12.2: what clients send wrong is read where it can mean one thing alone, and told in read; all else goes to the
// pipeline as it came, to the byte.
func Test_12_2_WrongInputsAreReadWhereTheyMeanOneThing(t *testing.T) {
	schema := schemaOf(t)
	for _, tt := range []struct{ name, in, want, read string }{
		{"as it should be", `{"pack_id":"p","verb_key":"v","args":{"n":1.0, "s":"1"}}`, `{"pack_id":"p","verb_key":"v","args":{"n":1.0, "s":"1"}}`, ""},
		{"nothing", ``, `{}`, ""},
		{"all of it in a string", `"{\"pack_id\":\"p\",\"verb_key\":\"v\"}"`, `{"pack_id":"p","verb_key":"v"}`, "[]"},
		{"args in a string", `{"pack_id":"p","verb_key":"v","args":"{\"n\":9007199254740993}"}`, `{"pack_id":"p","verb_key":"v","args":{"n":9007199254740993}}`, "[/args]"},
		{"args in a string, and a number in a string", `{"pack_id":"p","verb_key":"v","args":"{\"n\":\"5\"}"}`, `{"pack_id":"p","verb_key":"v","args":{"n":5}}`, "[/args /args/n]"},
		{"nulls", `{"pack_id":"p","verb_key":"v","args":null,"confirm":null,"project":null}`, `{"pack_id":"p","verb_key":"v"}`, "[/args /confirm /project]"},
		{"every type in a string", `{"pack_id":"p","verb_key":"v","args":{"n":"5","x":"1e3","b":"true","l":"[1]","o":"{}"}}`, `{"pack_id":"p","verb_key":"v","args":{"n":5,"x":1e3,"b":true,"l":[1],"o":{}}}`, "[/args/n /args/x /args/b /args/l /args/o]"},
		{"strings that may be meant", `{"pack_id":"p","verb_key":"v","args":{"s":"5","either":"5","any":"5"}}`, "", ""},
		{"strings of another type", `{"pack_id":"p","verb_key":"v","args":{"n":"5.5","b":"yes","l":"{}","x":"null"}}`, "", ""},
		{"a confirmation in a string", `{"pack_id":"p","verb_key":"v","confirm":"true"}`, "", ""},
		{"another command", `{"pack_id":"q","verb_key":"v","args":{"n":"5"}}`, "", ""},
		{"a string that is no object", `{"pack_id":"p","verb_key":"v","args":"n=5"}`, "", ""},
		{"a list of words", `{"pack_id":"p","verb_key":"v","args":["n=5"]}`, "", ""},
		{"a member named twice", `{"pack_id":"p","verb_key":"v","args":{"n":"1","n":"2"}}`, "", ""},
		{"a member named twice in a string", `{"pack_id":"p","verb_key":"v","args":"{\"n\":1,\"n\":2}"}`, "", ""},
		{"no object", `[]`, "", ""},
		{"no JSON", `{`, "", ""},
	} {
		r := requestOf([]byte(tt.in), schema)
		want := tt.want
		if want == "" {
			want = tt.in
		}
		read := ""
		if len(r.read) > 0 {
			read = "[" + strings.Join(r.read, " ") + "]"
		}
		if string(r.src) != want || read != tt.read {
			t.Errorf("%s: %s, read %s", tt.name, r.src, read)
		}
	}
}

// §12.2.2: a command's tool becomes the envelope, with its own arguments apart from what the tool adds.
func Test_12_2_2_ACommandsToolIsTheEnvelope(t *testing.T) {
	for in, want := range map[string]string{
		``:                       `{"pack_id":"p","verb_key":"v","args":{}}`,
		`{"n":9007199254740993}`: `{"pack_id":"p","verb_key":"v","args":{"n":9007199254740993}}`,
		`{"hcp_confirm":"01","n":1,"hcp_project":"x"}`: `{"pack_id":"p","verb_key":"v","confirm":"01","project":"x","args":{"n":1}}`,
		`{"n":1,"n":2}`:         `{"pack_id":"p","verb_key":"v","args":{"n":1,"n":2}}`,
		`"{\"n\":1}"`:           `{"pack_id":"p","verb_key":"v","args":{"n":1}}`,
		`5`:                     `{"pack_id":"p","verb_key":"v","args":5}`,
		`{"pack_id":"q","n":1}`: `{"pack_id":"p","verb_key":"v","args":{"pack_id":"q","n":1}}`,
	} {
		if got := commandEnvelope("p", "v", []byte(in)); string(got) != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}

// FuzzRequest: whatever a client sends, nothing panics, what is not read in another way goes on as it came, and what is
// read is JSON of the same command.
func FuzzRequest(f *testing.F) {
	f.Add(`{"pack_id":"p","verb_key":"v","args":"{\"n\":\"1\"}"}`)
	f.Add(`"{}"`)
	schema := schemaOf(f)
	f.Fuzz(func(t *testing.T, in string) {
		r := requestOf([]byte(in), schema)
		if len(r.read) == 0 && !absent([]byte(in)) && string(r.src) != in {
			t.Fatalf("%q became %q and nothing says so", in, r.src)
		}
		if r.node != nil && !json.Valid(r.src) {
			t.Fatalf("%q is no JSON", r.src)
		}
		commandEnvelope("p", "v", []byte(in))
		_ = faultOf([]byte(in), false, false)
	})
}

// FuzzLines: whatever bytes come, every line is handed on or answered, and what is answered is a message.
func FuzzLines(f *testing.F) {
	f.Add([]byte("{}\n[\n\n{\"jsonrpc\":\"2.0\",\"method\":\"x\"}"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		l := newLines(bytes.NewReader(in), &out, func() bool { return true })
		passed, err := io.ReadAll(l)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range bytes.Split(passed, []byte("\n")) {
			if faultOf(line, false, true) != nil {
				t.Fatalf("%q was handed on", line)
			}
		}
		for _, line := range bytes.Split(bytes.TrimSuffix(out.Bytes(), []byte("\n")), []byte("\n")) {
			if len(line) > 0 && !json.Valid(line) {
				t.Fatalf("the answer %q is no JSON", line)
			}
		}
	})
}

// §15.2: a question is answered once, by the call that it was asked of, while it stands; and no more than some stand.
func Test_15_2_AQuestionIsAnsweredOnce(t *testing.T) {
	now := time.Unix(0, 0)
	q := questions{now: func() time.Time { return now }}
	mine, other := sha256.Sum256([]byte("a")), sha256.Sum256([]byte("b"))
	state := q.keep(question{id: "1", bound: mine, expires: now.Add(time.Minute)})
	if q.take(state, other) != nil || q.take("x", mine) != nil {
		t.Error("a state counts for another call, or without being one")
	}
	if got := q.take(state, mine); got == nil || got.id != "1" || q.take(state, mine) != nil {
		t.Error("a state counts once")
	}
	state = q.keep(question{bound: mine, expires: now.Add(time.Minute)})
	if now = now.Add(time.Minute); q.take(state, mine) != nil {
		t.Error("a state counts after its end")
	}
	for range maxQuestions {
		q.keep(question{expires: now.Add(time.Minute)})
	}
	if q.keep(question{expires: now.Add(time.Minute)}) != "" {
		t.Error("there is no end of questions")
	}
	if now = now.Add(time.Hour); q.keep(question{expires: now.Add(time.Minute)}) == "" {
		t.Error("old questions stay")
	}
}

// §12.2: the beginning of a result is cut between characters, and what lay for a day goes.
func Test_12_2_LargeResultsGoAfterADay(t *testing.T) {
	long := strings.Repeat("é", previewBytes)
	if p := preview([]byte("x" + long)); !utf8.ValidString(p) || len(p) < previewBytes-2 {
		t.Error(len(p))
	}
	home, now, n := t.TempDir(), time.Now(), 0
	dir := filepath.Join(home, "data", "local", "results")
	st := store.OpenFS(home, store.Options{Now: func() time.Time { return now }})
	v := newServer(t.Context(), Config{Life: &lifecycle.Lifecycle{Store: st}, NewID: func() string { n++; return "r" + string(rune('0'+n)) }, Now: func() time.Time { return now }, Log: io.Discard})
	raw, err := json.Marshal(long + long + long + long + long + long + long + long + long + long + long + long + long + long + long + long)
	if err != nil {
		t.Fatal(err)
	}
	first := v.fit(protocol.Session{Tenant: "local"}, protocol.Result{OK: true, Result: raw})
	if !strings.Contains(string(first.Result), "r1/result.txt") {
		t.Errorf("%.200s", first.Result)
	}
	now = now.Add(24*time.Hour + time.Minute)
	raw = []byte(`{"a":` + string(raw) + `}`)
	if second := v.fit(protocol.Session{Tenant: "local"}, protocol.Result{OK: true, Result: raw}); !strings.Contains(string(second.Result), "r2/result.json") {
		t.Errorf("%.200s", second.Result)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != "r2" {
		t.Errorf("%v %v", left, err)
	}
	if whole := v.fit(protocol.Session{Tenant: "../elsewhere"}, protocol.Result{OK: true, Result: raw}); len(whole.Result) != len(raw) {
		t.Error("an answer that could not be left is lost")
	}
}

// executor runs a function.
type executor func(ctx context.Context, s protocol.Session, envelope []byte) protocol.Result

func (f executor) Exec(ctx context.Context, s protocol.Session, envelope []byte) protocol.Result {
	return f(ctx, s, envelope)
}
func (f executor) Plan(ctx context.Context, s protocol.Session, envelope []byte) protocol.Result {
	return f(ctx, s, envelope)
}

// face is a server over an empty store, and how a client reaches it.
func face(t *testing.T, c Config) *server {
	t.Helper()
	st := store.NewMemory(t.TempDir())
	c.Life = &lifecycle.Lifecycle{Store: st, Gate: &gate.Gate{Store: st}, Now: time.Now}
	c.Now, c.Log, c.Session = time.Now, io.Discard, protocol.Session{ID: "default", Tenant: "local"}
	if c.Pulse == nil {
		c.Pulse = func() string { return "" }
	}
	if c.Shape == "" {
		c.Shape = projection.Single
	}
	v := newServer(t.Context(), c)
	t.Cleanup(v.close)
	return v
}

func (v *server) dial(t *testing.T, version string, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	here, there := sdk.NewInMemoryTransports()
	if _, err := v.mcp.Connect(t.Context(), here, nil); err != nil {
		t.Fatal(err)
	}
	ss, err := sdk.NewClient(&sdk.Implementation{Name: "raw", Version: "1"}, o).Connect(t.Context(), there, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ss.Close() })
	return ss
}

// §12.2: a long call tells its client that it is at work, before its answer and never after; a panic is an answer.
func Test_12_2_ProgressAndPanics(t *testing.T) {
	var seen atomic.Int32
	tick := make(chan struct{}, 100)
	v := face(t, Config{Every: time.Millisecond, Exec: executor(func(ctx context.Context, s protocol.Session, env []byte) protocol.Result {
		if strings.Contains(string(env), "panic") {
			panic("a fault")
		}
		for range 3 {
			<-tick
		}
		return protocol.Result{OK: true, PackID: string(s.Principal), Result: []byte(`1`)}
	})})
	for _, version := range []string{"2025-06-18", "2026-07-28"} {
		ss := v.dial(t, version, &sdk.ClientOptions{ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			if seen.Add(1); r.Params.ProgressToken != "token" || r.Params.Progress <= 0 {
				t.Errorf("%+v", r.Params)
			}
			tick <- struct{}{}
		}})
		p := &sdk.CallToolParams{Name: "hcp", Arguments: map[string]any{}, Meta: sdk.Meta{"progressToken": "token"}}
		res, err := ss.CallTool(t.Context(), p)
		if err != nil || res.IsError || seen.Load() < 3 || !strings.Contains(res.Content[0].(*sdk.TextContent).Text, `"pack_id":"agent:raw"`) {
			t.Errorf("%s: %v %+v after %d", version, err, res, seen.Load())
		}
		res, err = ss.CallTool(t.Context(), &sdk.CallToolParams{Name: "hcp", Arguments: map[string]any{"pack_id": "panic"}})
		if err != nil || !res.IsError || !strings.Contains(res.Content[0].(*sdk.TextContent).Text, `"internal"`) {
			t.Errorf("%s: %v %+v", version, err, res)
		}
	}
}

// §12.2: a client of each version hears that a list changed, once it listed something and when that is no longer so.
func Test_12_2_ListChangedInEachVersion(t *testing.T) {
	var pulse atomic.Int32
	v := face(t, Config{Shape: projection.Commands, Pulse: func() string { return fmt.Sprint(pulse.Load()) }})
	for _, version := range []string{"2025-06-18", "2026-07-28"} {
		heard := make(chan struct{}, 10)
		ss := v.dial(t, version, &sdk.ClientOptions{ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { heard <- struct{}{} }})
		if _, err := ss.ListTools(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		for told := false; !told; { // a subscription takes effect a moment after it was asked for
			v.watch.saw(protocol.Session{Principal: "agent:raw"}, []projection.Pack{{ID: "gone"}})
			pulse.Add(1)
			v.look()
			select {
			case <-heard:
				told = true
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
}

// §12.2: over HTTP a server of this machine has no other clients than this machine's.
func Test_12_2_OriginsAndHosts(t *testing.T) {
	for origin, want := range map[string]bool{"": false, "null": false, "http://localhost:1": true, "https://127.0.0.1": true, "http://[::1]:5": true, "http://localhost.evil.example": false,
		"http://127.0.0.1.evil.example": false, "file://localhost": false, "http://10.0.0.1": false} {
		if got := originIs([]string{origin}); got != want {
			t.Errorf("%q: %v", origin, got)
		}
	}
	if !originIs(nil) || originIs([]string{"http://localhost", "http://localhost"}) {
		t.Error("no origin is one of a program; two are none")
	}
	v := face(t, Config{})
	h := v.guarded("secret", "127.0.0.1:80")
	for _, path := range []string{Path, "/", "/mcp/x"} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "http://127.0.0.1:80"+path, nil)
		if h.ServeHTTP(w, r); w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// §6.3: only step 6 asks, and never for what could not run.
func Test_15_2_OnlyAMissingConfirmationAsks(t *testing.T) {
	step := func(n int, code protocol.Code, details map[string]any) protocol.Result {
		return protocol.Denied("p", "v", &protocol.Error{Code: code, Step: n, Details: details})
	}
	for i, tt := range []struct {
		r    protocol.Result
		want bool
	}{
		{step(6, protocol.ConfirmRequired, map[string]any{"approval_id": "1"}), true},
		{step(6, protocol.ConfirmRequired, map[string]any{"approval_id": "1", "reason": "expired"}), true},
		{step(6, protocol.ConfirmRequired, map[string]any{}), true},
		{step(6, protocol.ConfirmRequired, map[string]any{"reason": "rejected"}), false},
		{step(6, protocol.ConfirmRequired, map[string]any{"reason": "blocked", "error": 1}), false},
		{step(9, protocol.StepFailed, map[string]any{"approval_id": "1"}), false},
		{step(4, protocol.GrantMissing, nil), false},
		{protocol.Result{OK: true}, false},
	} {
		if got := asks(tt.r); got != tt.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}

// §15.2, §3.6: where the caller's own word counts the person is shown the request too, with the hashes of its files.
func Test_15_2_ARequestIsShown(t *testing.T) {
	refusal := protocol.Denied("city", "plan", protocol.Fail(protocol.ConfirmRequired, "Plan it?").
		With("request", json.RawMessage(`{"method":"POST","url":"https://api.example.org/trips","files":[{"path":"a","sha256":"00ff"}]}`)))
	got := ownWord(protocol.Session{Principal: "service:ci"}, refusal)
	for _, want := range []string{"service:ci asks to run city/plan", "Plan it?", "https://api.example.org/trips", "00ff"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not shown: %s", want, got)
		}
	}
}

// §12.2, §9.3: since 2026-07-28 a request names its client itself, and skills are those of that client, in a session or without one.
func Test_12_2_SkillsAreOfTheClientThatAsks(t *testing.T) {
	p := &skillParams{}
	p.SetMeta(map[string]any{sdk.MetaKeyClientInfo: map[string]any{"name": "Other", "version": "1"}})
	v := face(t, Config{})
	if s := v.as(clientOf(nil, p)); s.Principal != "agent:other" {
		t.Errorf("%s", s.Principal)
	}
	if s := v.as(clientOf(nil, &skillParams{})); s.Principal != "agent:mcp" {
		t.Errorf("%s", s.Principal)
	}
}
