package lint

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/protocol"
)

// city is an openapi pack with one command, and the document of the given name and text.
func city(document, text string) fstest.MapFS {
	files := fstest.MapFS{
		"surface.json": {Data: []byte(`{
  "hcp": { "version": "1.1" }, "id": "city", "version": "1.0.0", "summary": "Plans trips.", "adapter": "openapi",
  "openapi": { "document": "` + document + `", "server": "https://api.example.org/v1" },
  "verbs": { "plan": { "summary": "Plan a trip", "operation_id": "planTrip", "examples": [{}] } }
}`)},
		"policy.json": {Data: []byte(`{ "surface_id": "city", "verbs": { "plan": { "operation": "read", "privacy": { "land": "personal" } } } }`)},
		"HARNESS.md":  {Data: []byte("# City\n\nPlan trips with `hcpx exec city plan`.\n")},
	}
	if text != "" {
		files[document] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

const (
	jsonDocument = `{ "openapi": "3.1.0", "paths": { "/trips": { "parameters": [], "post": { "operationId": "planTrip" } } } }`
	yamlDocument = "openapi: 3.0.3\npaths:\n  /stops: {}\n  /trips:\n    post:\n      operationId: planTrip\n"
)

func Test_3_6_AnOpenAPIPackHasItsDocumentAndOperations(t *testing.T) {
	for _, c := range []struct{ name, document, text, want string }{
		{"json", "openapi.json", jsonDocument, ""},
		{"yaml", "openapi.yaml", yamlDocument, ""},
		{"yaml with one path and a flow", "openapi.yml", `openapi: "3.1"` + "\npaths: {/trips: {post: {operationId: planTrip}}}\n", ""},
		{"missing", "openapi.json", "", "openapi.document 3:28 /openapi/document"},
		{"outside", "../openapi.json", "", "openapi.document 3:28 /openapi/document"},
		{"a directory", "evals", "", "openapi.document 3:28 /openapi/document"},
		{"another kind of file", "openapi.txt", jsonDocument, "openapi.document 3:28 /openapi/document"},
		{"not JSON", "openapi.json", yamlDocument, "openapi.document openapi.json 1:1"},
		{"a name twice", "openapi.json", strings.Replace(jsonDocument, `"parameters"`, `"post": 1, "parameters"`, 1), "openapi.document openapi.json 1:75 /paths/~1trips/post"},
		{"a reference that leads nowhere", "openapi.yaml", yamlDocument + "      parameters:\n        - $ref: '#/components/parameters/P'\n", "openapi.document openapi.yaml 8:17 /paths/~1trips/post/parameters/0/$ref"},
		{"a server of its own", "openapi.json", strings.Replace(jsonDocument, `"post": {`, `"post": { "servers": [ { "url": "https://other.example.org" } ],`, 1),
			"openapi.server openapi.json 1:85 /paths/~1trips/post/servers\nopenapi.server 4:66 /verbs/plan/operation_id"},
		{"a security that a public pack has not", "openapi.json", strings.Replace(jsonDocument, `"openapi"`, `"security": [ { "key": [] } ], "openapi"`, 1), "openapi.security 4:66 /verbs/plan/operation_id"},
		{"not an object", "openapi.json", "[]", "openapi.document 3:28 /openapi/document"},
		{"an older version", "openapi.json", `{"swagger": "2.0"}`, "openapi.document 3:28 /openapi/document"},
		{"a version to come", "openapi.json", strings.Replace(jsonDocument, "3.1.0", "3.10.0", 1), "openapi.document 3:28 /openapi/document"},
		{"not YAML", "openapi.yaml", "a: [\n", "openapi.document 3:28 /openapi/document"},
		{"an older version in YAML", "openapi.yaml", "swagger: \"2.0\"\n", "openapi.document 3:28 /openapi/document"},
		{"deep YAML", "openapi.yaml", strings.Repeat("- ", 100_000), "openapi.document 3:28 /openapi/document"},
		{"no such operation", "openapi.json", strings.Replace(jsonDocument, "planTrip", "plan", 1), "openapi.operation 4:66 /verbs/plan/operation_id"},
		{"no such operation in YAML", "openapi.yaml", strings.Replace(yamlDocument, "planTrip", "plan", 1), "openapi.operation 4:66 /verbs/plan/operation_id"},
		{"an operation outside of paths", "openapi.json", strings.Replace(jsonDocument, "paths", "webhooks", 1), "openapi.operation 4:66 /verbs/plan/operation_id"},
	} {
		got := strings.ReplaceAll(strings.Join(shown(look([]Source{{FS: city(c.document, c.text), Name: "city"}}, Options{})), "\n"), "surface.json ", "")
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

// §3.6: one wrong thing is one finding: what follows from a document or server that cannot be used is not held against the
// commands, and a wrong server hides no operation that is not there.
func Test_3_6_OneFaultIsOneFinding(t *testing.T) {
	const document = `{ "openapi": "3.1.0", "paths": { "/trips/{id}": { "get": { "operationId": "planTrip", "parameters": [ { "name": "id", "in": "path", "required": true, "schema": { "type": "string" } } ] } } } }`
	pack := func(server, name, operation string) string {
		files := city("openapi.json", document)
		text := strings.NewReplacer("https://api.example.org/v1", server, `"openapi.json"`, `"`+name+`"`, `"planTrip"`, `"`+operation+`"`, `[{}]`, `[{"args":{"id":"7"}}]`).Replace(string(files["surface.json"].Data))
		files["surface.json"].Data = []byte(text)
		files["policy.json"].Data = []byte(`{ "surface_id": "city", "verbs": { "plan": { "operation": "write", "privacy": { "land": "personal" }, "confirm": { "message": "Plan {id}?" } } } }`)
		var codes []string
		for _, i := range look([]Source{{FS: files, Name: "city"}}, Options{}) {
			codes = append(codes, string(i.Code))
		}
		return strings.Join(codes, " ")
	}
	const server = "https://api.example.org/v1"
	for _, c := range []struct{ server, document, operation, want string }{
		{server, "openapi.json", "planTrip", ""},
		{"https://api.example.org:99999/", "openapi.json", "planTrip", "openapi.server"},
		{server, "other.json", "planTrip", "openapi.document"},
		{server, "openapi.json", "plan", "openapi.operation"},
		{"https://api.example.org:99999/", "openapi.json", "plan", "openapi.server openapi.operation"},
		{"https://api.example.org:99999/", "other.json", "plan", "openapi.document openapi.server"},
	} {
		if got := pack(c.server, c.document, c.operation); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func Test_3_6_ACommandNamesItsOperation(t *testing.T) {
	files := city("openapi.json", jsonDocument)
	files["surface.json"].Data = []byte(strings.Replace(string(files["surface.json"].Data), `"operation_id": "planTrip", `, "", 1))
	issues := look([]Source{{FS: files, Name: "city"}}, Options{})
	if len(issues) == 0 || !protocol.HasErrors(issues) || issues[0].Code != "openapi.operation" {
		t.Errorf("%v", shown(issues))
	}
}
