package lifecycle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hcpx/internal/adapter/openapi"
	"hcpx/internal/protocol"
)

const tripDocument = `{ "openapi": "3.1.0", "paths": { "/trips": { "get": { "operationId": "planTrip", "parameters": [ { "name": "from", "in": "query", "schema": { "type": "string" } } ] } } } }`

// §3.6: install compiles the document, a command runs from the summary, and where that is gone or another, from the document.
func Test_3_6_InstallCompilesTheDocument(t *testing.T) {
	w := newWorld(t)
	w.Gate.Adapters["openapi"] = openapi.New(openapi.Options{})
	dir := filepath.Join(t.TempDir(), "city")
	surface := `{ "hcp": { "version": "1.1" }, "id": "city", "version": "1.0.0", "summary": "Plans trips.", "adapter": "openapi",
  "openapi": { "document": "openapi.json", "server": "https://api.example.org" },
  "verbs": { "plan": { "summary": "Plan a trip", "operation_id": "planTrip", "examples": [{}] } } }`
	write(t, filepath.Join(dir, "surface.json"), surface, 0o644)
	write(t, filepath.Join(dir, "policy.json"), `{ "surface_id": "city", "verbs": { "plan": { "operation": "read", "privacy": { "land": "personal" } } } }`, 0o644)
	write(t, filepath.Join(dir, "HARNESS.md"), "# City\n\nPlan trips with `hcpx exec city plan`.\n", 0o644)
	write(t, filepath.Join(dir, "openapi.json"), tripDocument, 0o644)
	w.install(dir, InstallOptions{})
	if _, err := w.Activate(ada, []string{"city"}); err != nil {
		t.Fatal(err)
	}
	if p := w.available(ada, "city"); !p.Executable || p.Commands["plan"].Network != "hosts" {
		t.Errorf("%+v", p)
	}
	meta, err := w.Store.Meta("city")
	if err != nil {
		t.Fatal(err)
	}
	summary, err := w.Store.Compiled(meta)
	if err != nil || !strings.Contains(string(summary), `plan {"method":"GET","path":"/trips"`) || strings.Contains(string(summary), "openapi.json") {
		t.Errorf("%q %v", summary, err)
	}
	args := func() string {
		l, refusal := w.Gate.Over(w.Store.Reader()).Installed("city")
		if refusal != nil {
			t.Fatal(refusal)
		}
		s, err := l.Manifest.Command("plan").Args()
		if err != nil {
			t.Fatal(err)
		}
		return string(s.Node().Append(nil))
	}
	if got := args(); !strings.Contains(got, `"from":{"type":"string"}`) {
		t.Error(got)
	}
	// The next version's request is another one, though its manifest names the same operation.
	write(t, filepath.Join(dir, "surface.json"), strings.Replace(surface, "1.0.0", "1.1.0", 1), 0o644)
	write(t, filepath.Join(dir, "openapi.json"), strings.Replace(strings.Replace(tripDocument, "get", "delete", 1), "from", "to", 1), 0o644)
	next := w.install(dir, InstallOptions{})
	var said []string
	for _, c := range next.Changes {
		said = append(said, c.What)
	}
	if all := strings.Join(said, "\n"); !strings.Contains(all, "plan: the request that it sends changes (method)") || !strings.Contains(all, "plan: its arguments change") {
		t.Error(all)
	}
	// A document that has become another file than the record's is no pack any more, whatever the summary says.
	at := filepath.Join(w.Store.Dir("city"), "openapi.json")
	if err := os.Chmod(at, 0o644); err != nil {
		t.Fatal(err)
	}
	write(t, at, tripDocument, 0o644)
	if _, refusal := w.Gate.Installed("city"); refusal == nil || refusal.Code != protocol.PackTampered {
		t.Errorf("%+v", refusal)
	}
}
