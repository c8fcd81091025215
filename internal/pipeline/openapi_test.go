package pipeline

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/adapter/openapi"
	"hcpx/internal/approval"
	"hcpx/internal/audit"
	"hcpx/internal/grant"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// heard is a request as it arrived.
type heard struct {
	line, host string
	header     http.Header
	body       []byte
}

// cityServer keeps what arrives and answers by path.
type cityServer struct {
	*httptest.Server
	mu   sync.Mutex
	seen []heard
	then func() // beside each answer, when set
}

func newCityServer(t testing.TB) *cityServer {
	c := &cityServer{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		c.mu.Lock()
		c.seen = append(c.seen, heard{r.Method + " " + r.RequestURI, r.Host, r.Header.Clone(), body})
		c.mu.Unlock()
		if c.then != nil {
			c.then()
		}
		switch {
		case strings.HasPrefix(r.URL.Path, "/v1/picture"):
			w.Header().Set("Content-Type", "image/png")
			_, _ = w.Write([]byte("\x89PNG" + r.Header.Get("Authorization")))
		case strings.HasPrefix(r.URL.Path, "/v1/denied"):
			w.WriteHeader(403)
			_, _ = fmt.Fprintf(w, "no: %v %s", r.Header, r.RequestURI)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"n":12345678901234567890.10,"echo":%q}`, r.Header.Get("Authorization")+r.URL.RawQuery+r.Header.Get("Cookie"))
		}
	}))
	t.Cleanup(c.Close)
	return c
}

const cityDocument = `{"openapi":"3.1.0","paths":{
"/things/{id}":{"get":{"operationId":"show","security":[{"q":[]}],"parameters":[{"name":"id","in":"path","required":true,"schema":{}},{"name":"tags","in":"query","style":"pipeDelimited","explode":false,"schema":{"type":"array"}},
  {"name":"filter","in":"query","style":"deepObject","schema":{"type":"object"}},{"name":"free","in":"query","allowReserved":true,"schema":{"type":"string"}},{"name":"X-Trace","in":"header","schema":{"type":"string"}},{"name":"lang","in":"cookie","schema":{"type":"string"}}]},
 "put":{"operationId":"change","security":[{"b":[]}],"parameters":[{"name":"id","in":"path","required":true,"schema":{}}],"requestBody":{"content":{"application/json":{"schema":{"type":"object","properties":{"name":{},"pin":{"type":"string","writeOnly":true}}}}}}}},
"/forms":{"post":{"operationId":"form","security":[{"c":[]}],"requestBody":{"content":{"application/x-www-form-urlencoded":{"schema":{"type":"object","properties":{"a":{},"l":{"type":"array"}}}}}}}},
"/files":{"post":{"operationId":"upload","requestBody":{"required":true,"content":{"multipart/form-data":{"schema":{"type":"object","properties":{"title":{"type":"string"},"file":{"type":"string","format":"binary"}}}}}}}},
"/notes":{"post":{"operationId":"note","requestBody":{"content":{"text/plain":{"schema":{"type":"string"}}}}}},
"/picture":{"get":{"operationId":"picture","security":[{"b":[]}]}},
"/denied":{"get":{"operationId":"denied","security":[{"b":[],"q":[]}]}}},
"components":{"securitySchemes":{"b":{"type":"http","scheme":"bearer"},"q":{"type":"apiKey","in":"query","name":"key"},"c":{"type":"apiKey","in":"cookie","name":"sid"}}}}`

// city installs an openapi pack; its calls go to the server alone.
func (r *rig) city(t testing.TB, c *cityServer) {
	t.Helper()
	a := openapi.New(openapi.Options{Now: r.clock})
	r.p.Gate.Adapters[manifest.OpenAPI] = a
	verbs, entries := map[string]any{}, map[string]any{}
	for _, op := range []string{"show", "change", "form", "upload", "note", "picture", "denied"} {
		verbs[op] = map[string]any{"summary": "It", "operation_id": op}
		entry := map[string]any{"operation": "write", "privacy": map[string]string{"land": "personal"}}
		switch op {
		case "show", "picture", "denied":
			entry["operation"] = "read"
		case "change":
			entry["confirm"] = map[string]string{"message": "Change {id}?"}
		}
		entries[op] = entry
	}
	verbs["deliver"] = map[string]any{"summary": "It", "operation_id": "upload"}
	entries["deliver"] = map[string]any{"operation": "write", "privacy": map[string]string{"land": "personal"}, "confirm": map[string]string{"message": "Deliver {file}?"}}
	surface := writtenAny(t, map[string]any{"hcp": map[string]string{"version": "1.1"}, "id": "city", "version": "1.0.0", "summary": "A city.", "adapter": "openapi",
		"openapi": map[string]string{"document": "openapi.json", "server": c.URL + "/v1"}, "binding": map[string]string{"mode": "mock", "hub": "none", "inject": "auto"}, "verbs": verbs})
	src := fstest.MapFS{"surface.json": {Data: surface}, "policy.json": {Data: writtenAny(t, map[string]any{"surface_id": "city", "verbs": entries})},
		"HARNESS.md": {Data: []byte("# City\n\nA city.\n")}, "openapi.json": {Data: []byte(cityDocument)}}
	if err := r.store.Install("city", src, store.Meta{PackID: "city", Version: "1.0.0", InstalledAt: testNow}); err != nil {
		t.Fatal(err)
	}
	r.activate("city", true)
}

func writtenAny(t testing.TB, v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// plannedRequest is the request as a plan shows it.
type plannedRequest struct {
	Method, URL string
	Headers     map[string]string
	Credential  []string
	Body        *string
	BodyBytes   int    `json:"body_bytes"`
	BodySHA256  string `json:"body_sha256"`
}

// §15.1: over random calls of an openapi pack, what plan showed is what arrived, byte for byte, but for the credential, which
// stands where the plan says and nowhere in what is answered or recorded.
func Test_15_1_TheRequestThatIsPlannedIsTheOneThatArrives(t *testing.T) {
	c := newCityServer(t)
	r := newRig(t)
	r.city(t, c)
	land := r.store.LandDir(store.LandKey{Tenant: "local", Land: protocol.Personal, Principal: "human:ada", Pack: "city"})
	if err := os.MkdirAll(land, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(land, "a.bin"), []byte("\x00\r\n--file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(120) {
		d := rand.New(rand.NewPCG(seed, 36))
		text := func() any {
			return []any{"", "a", "a/b c", "ü&=+#?%41", "..x", "x;y,z|w", json.Number("1.50"), json.Number("12345678901234567890"), true, "[redacted]"}[d.IntN(10)]
		}
		some := func(args map[string]any, name string, v any) {
			if d.IntN(2) == 0 {
				args[name] = v
			}
		}
		args, verb := map[string]any{}, []string{"show", "change", "form", "upload", "note"}[d.IntN(5)]
		switch verb {
		case "show":
			args["id"] = text()
			some(args, "tags", []any{text(), "t"})
			some(args, "filter", map[string]any{"k": text(), "l": []any{text()}})
			some(args, "free", fmt.Sprint(text()))
			some(args, "X-Trace", "t r "+fmt.Sprint(d.IntN(9)))
			some(args, "lang", "de; x=ü")
		case "change":
			args["id"] = text()
			some(args, "name", text())
			some(args, "pin", "1234")
			some(args, "other", map[string]any{"deep": []any{text()}})
		case "form":
			some(args, "a", text())
			some(args, "l", []any{text(), text()})
		case "upload":
			args["file"] = "a.bin"
			some(args, "title", fmt.Sprint(text()))
		case "note":
			some(args, "body", fmt.Sprint(text()))
		}
		envelope := writtenAny(t, map[string]any{"pack_id": "city", "verb_key": verb, "args": args, "confirm": verb == "change"})
		planned := r.p.Plan(context.Background(), r.s, envelope)
		before := len(c.seen)
		done := r.exec(string(envelope))
		if !planned.OK || !done.OK {
			if planned.OK != done.OK || planned.Error.Code != done.Error.Code || len(c.seen) != before {
				t.Fatalf("seed %d: %s\nplan %+v\nexec %+v", seed, envelope, planned.Error, done.Error)
			}
			continue
		}
		if len(c.seen) != before+1 {
			t.Fatalf("seed %d: %d requests", seed, len(c.seen)-before)
		}
		arrived(t, c.URL, planned.Result, c.seen[before])
		if strings.Contains(string(done.Result), "hcp-mock") || strings.Contains(string(planned.Result), "hcp-mock") {
			t.Fatalf("seed %d: the credential is shown: %s", seed, done.Result)
		}
	}
	all := string(writtenAny(t, r.log.entries))
	if strings.Contains(all, "hcp-mock") || strings.Contains(all, "1234\"") || strings.Contains(all, `pin\":\"1`) {
		t.Error("the audit holds a secret")
	}
	if !strings.Contains(all, `"url":"`+c.URL+`/v1/`) || !strings.Contains(all, `"status":200`) {
		t.Error("the audit tells neither request nor answer")
	}
}

// arrived holds a request against its plan.
func arrived(t *testing.T, origin string, plan []byte, got heard) {
	t.Helper()
	var p struct{ Request plannedRequest }
	if err := json.Unmarshal(plan, &p); err != nil {
		t.Fatal(err)
	}
	q := p.Request
	line, want := got.line, http.Header{}
	for name, value := range q.Headers {
		want.Set(name, value)
	}
	want.Set("Accept-Encoding", "gzip")
	if len(got.body) > 0 || q.Method == "POST" || q.Method == "PUT" {
		want.Set("Content-Length", fmt.Sprint(len(got.body)))
	}
	for _, place := range q.Credential {
		switch place {
		case "query key":
			line = strings.TrimSuffix(line, "key=hcp-mock-credential")
			line = strings.TrimRight(line, "&?")
		case "header Authorization":
			want.Set("Authorization", "Bearer hcp-mock-credential")
		case "cookie sid":
			want.Set("Cookie", strings.TrimPrefix(want.Get("Cookie")+"; sid=hcp-mock-credential", "; "))
		default:
			t.Fatalf("a place that nobody knows: %s", place)
		}
	}
	if diff := cmp.Diff(q.Method+" "+strings.TrimPrefix(q.URL, origin), line); diff != "" {
		t.Fatal(diff)
	}
	if diff := cmp.Diff(want, got.header); diff != "" {
		t.Fatal(diff)
	}
	sum := sha256.Sum256(got.body)
	if q.BodySHA256 == "" && len(got.body) > 0 || q.BodySHA256 != "" && (q.BodySHA256 != hex.EncodeToString(sum[:]) || q.BodyBytes != len(got.body)) || q.Body != nil && *q.Body != string(got.body) {
		t.Fatalf("the body: %+v, arrived %q", q, got.body)
	}
}

// What an upstream says in its refusal holds the credential in no form, and neither does the file of its bytes.
func Test_8_4_AnUpstreamEchoIsMasked(t *testing.T) {
	c := newCityServer(t)
	r := newRig(t)
	r.city(t, c)
	denied := r.exec(`{"pack_id":"city","verb_key":"denied"}`)
	if denied.OK || denied.Error.Code != protocol.UpstreamError || denied.Error.Step != 9 || denied.Error.Details["status"] != 403 {
		t.Fatalf("%+v", denied.Error)
	}
	if text := string(denied.AppendJSON(nil)); strings.Contains(text, "hcp-mock") || !strings.Contains(text, "Bearer [redacted]") {
		t.Error(text)
	}
	picture := r.exec(`{"pack_id":"city","verb_key":"picture"}`)
	var out struct {
		File  string
		Bytes int
	}
	if err := json.Unmarshal(picture.Result, &out); err != nil || !picture.OK {
		t.Fatalf("%v %+v", err, picture.Error)
	}
	data, err := os.ReadFile(out.File)
	info, fault := os.Stat(out.File)
	if err != nil || fault != nil || info.Mode().Perm() != 0o600 || !bytes.Equal(data, []byte("\x89PNGBearer [redacted]")) || len(data) != out.Bytes || !strings.Contains(out.File, "data/local/results/run-") {
		t.Errorf("%q %v %+v", data, err, out)
	}
}

// §3.6: files come from the land alone, and one that is not there is an argument that is not valid.
func Test_3_6_FilesComeFromTheLandAlone(t *testing.T) {
	c := newCityServer(t)
	r := newRig(t)
	r.city(t, c)
	land := r.store.LandDir(store.LandKey{Tenant: "local", Land: protocol.Personal, Principal: "human:ada", Pack: "city"})
	if err := os.MkdirAll(filepath.Join(land, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"out": outside, "up": "../../..", "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(land, link)); err != nil {
			t.Skip("no links here")
		}
	}
	for _, name := range []string{"out", "up/x", "../x", outside, "none", "dir", "loop", ""} {
		res := r.exec(string(writtenAny(t, map[string]any{"pack_id": "city", "verb_key": "upload", "args": map[string]any{"file": name}})))
		if res.OK || res.Error.Code != protocol.InvalidArgs || res.Error.Step != 5 || !strings.Contains(string(res.AppendJSON(nil)), `"pointer":"/file"`) {
			t.Errorf("%q: %+v", name, res.Error)
		}
	}
	if len(c.seen) > 0 {
		t.Errorf("%d requests were sent", len(c.seen))
	}
}

// §4.5, §15.2: a gated request is shown whole before it is sent, without what is secret in it, and an approval is bound to it.
func Test_15_2_AGatedRequestIsShown(t *testing.T) {
	c := newCityServer(t)
	r := newRig(t)
	r.city(t, c)
	if err := r.store.Update(func(st *store.State) error {
		st.Grants = append(st.Grants, grant.Grant{Principal: "*", Effect: grant.Allow, Capabilities: protocol.Capabilities})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	r.s.Principal = "agent:a"
	envelope := `{"pack_id":"city","verb_key":"change","args":{"id":"7","name":"Rex","pin":"123456"}%s}`
	res := r.exec(fmt.Sprintf(envelope, ""))
	shown := string(res.AppendJSON(nil))
	if res.OK || res.Error.Code != protocol.ConfirmRequired || !strings.Contains(shown, `"method":"PUT","url":"`+c.URL+`/v1/things/7"`) || strings.Contains(shown, "123456") || !strings.Contains(shown, "[redacted]") {
		t.Fatal(shown)
	}
	id, _ := res.Error.Details["approval_id"].(string)
	kept, err := r.p.approvals.Find(id)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(kept.Plan); !strings.Contains(text, `"method":"PUT"`) || strings.Contains(text, "123456") {
		t.Error(text)
	}
	if len(c.seen) > 0 {
		t.Error("it was sent")
	}
	if kinds := r.log.kinds(); kinds != audit.Denial {
		t.Error(kinds)
	}
}

// §15.2: an approved composite sends the file that the person saw. One that has changed by the step's turn is another step,
// which nobody approved.
func Test_15_2_AStepSendsWhatWasShown(t *testing.T) {
	const composite = `{"hcp":{"version":"1.1"},"id":"post","version":"1.0.0","summary":"Post.","adapter":"composite",
"verbs":{"go":{"summary":"Go","steps":[{"id":"see","pack":"city","verb":"show","args":"{id: \"1\"}"},{"id":"up","pack":"city","verb":"deliver","args":"{file: \"a.txt\"}"}],"output":".steps.up"}}}`
	const envelope = `{"pack_id":"post","verb_key":"go"}`
	for _, changes := range []bool{false, true} {
		c := newCityServer(t)
		r := newRig(t)
		r.city(t, c)
		r.install("post", composite, `{"surface_id":"post","verbs":{"go":{"operation":"write","privacy":{"land":"personal"},"confirm":true}}}`)
		r.activate("post", false)
		r.asAgent()
		land := r.store.LandDir(store.LandKey{Tenant: "local", Land: protocol.Personal, Principal: r.s.Principal, Pack: "city"})
		file := filepath.Join(land, "a.txt")
		write := func(text string) {
			if err := os.MkdirAll(land, 0o700); err != nil {
				t.Error(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Error(err)
			}
		}
		write("agreed")
		id := r.asked(envelope)
		r.decided(id, approval.Approved, "human:ada")
		if changes {
			c.then = func() { write("something else") }
		}
		res := r.exec(with(envelope, id))
		c.mu.Lock()
		sent := c.seen
		c.mu.Unlock()
		switch {
		case !changes:
			if !res.OK || len(sent) != 2 || !bytes.Contains(sent[1].body, []byte("agreed")) {
				t.Errorf("%+v, %d requests", res.Error, len(sent))
			}
		case res.OK || res.Error.Code != protocol.StepFailed || len(sent) != 1:
			t.Errorf("%+v, %d requests", res.Error, len(sent))
		case res.Error.Details["error"].(*protocol.Error).Code != protocol.ConfirmRequired:
			t.Errorf("%+v", res.Error.Details["error"])
		}
	}
}
