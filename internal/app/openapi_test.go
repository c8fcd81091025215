package app

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"hcpx/internal/lifecycle"
	"hcpx/internal/protocol"
)

// §3.6, from a directory to an answer, as the program is wired: a command runs from the summary that install kept, and from
// the document where that is gone.
func Test_3_6_AnOpenAPICommandRunsFromItsSummary(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Method+" "+r.RequestURI+" "+r.Header.Get("Authorization")+" "+string(body))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":12345678901234567890}`)
	}))
	defer server.Close()
	dir := filepath.Join(t.TempDir(), "city")
	files := map[string]string{
		"surface.json": `{ "hcp": { "version": "1.1" }, "id": "city", "version": "1.0.0", "summary": "Keeps pets.", "adapter": "openapi",
  "openapi": { "document": "openapi.yaml", "server": "` + server.URL + `/v1" }, "binding": { "mode": "mock", "hub": "none", "inject": "auto" },
  "verbs": { "pet.add": { "summary": "Add a pet", "operation_id": "addPet" } } }`,
		"policy.json":  `{ "surface_id": "city", "verbs": { "pet.add": { "operation": "write", "privacy": { "land": "personal" } } } }`,
		"HARNESS.md":   "# City\n\nAdd pets with `hcpx exec city pet.add`.\n",
		"openapi.yaml": "openapi: 3.0.3\nsecurity: [{token: []}]\ncomponents:\n  securitySchemes:\n    token: {type: http, scheme: bearer}\npaths:\n  /pets/{kind}:\n    post:\n      operationId: addPet\n      parameters:\n        - {name: kind, in: path, required: true, schema: {type: string}}\n      requestBody:\n        required: true\n        content:\n          application/json:\n            schema: {type: object, required: [name], properties: {name: {type: string}}}\n",
	}
	for name, text := range files {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	o := options(t, map[string]string{"HCP_HOME": filepath.Join(t.TempDir(), "store")})
	s := protocol.Session{ID: "default", Principal: "human:ada", Tenant: "local"}
	open := func() *App {
		a, refusal := Open(o)
		if refusal != nil {
			t.Fatal(refusal)
		}
		return a
	}
	life, refusal := open().Lifecycle(s)
	if refusal == nil {
		_, refusal = life.Install(s, []string{dir}, lifecycle.InstallOptions{})
	}
	if refusal == nil {
		_, refusal = life.Activate(s, []string{"city"})
	}
	if refusal == nil {
		_, refusal = life.Connect(t.Context(), s, "city", lifecycle.ConnectOptions{})
	}
	if refusal != nil {
		t.Fatalf("%+v", refusal)
	}
	exec := func() {
		t.Helper()
		x, refusal := open().Executor(s)
		if refusal != nil {
			t.Fatal(refusal)
		}
		res := x.Exec(t.Context(), s, []byte(`{"pack_id":"city","verb_key":"pet.add","args":{"kind":"a/b","name":"Rex"}}`))
		if !res.OK || string(res.Result) != `{"id":12345678901234567890}` {
			t.Fatalf("%+v", res.Error)
		}
	}
	exec()
	kept, err := filepath.Glob(filepath.Join(open().Home(), "packs", ".compiled", "*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("%v %v", kept, err)
	}
	if text, err := os.ReadFile(kept[0]); err != nil || !strings.Contains(string(text), `pet.add {"method":"POST"`) {
		t.Errorf("%s %v", text, err)
	}
	if err := os.Remove(kept[0]); err != nil {
		t.Fatal(err)
	}
	exec()
	want := `POST /v1/pets/a%2Fb Bearer hcp-mock-credential {"name":"Rex"}`
	if len(seen) != 2 || seen[0] != want || seen[1] != want {
		t.Errorf("%q", seen)
	}
	entries, err := filepath.Glob(filepath.Join(open().Home(), "audit", "*"))
	if err != nil || len(entries) == 0 {
		t.Fatal("no audit", err)
	}
	for _, file := range entries {
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), "hcp-mock") {
			t.Errorf("%s holds the credential", file)
		}
	}
}
