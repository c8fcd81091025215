package imports

import (
	"strings"
	"testing"

	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
)

// §3.1: a key comes of the operationId, else of path and method, and has the form of one.
func Test_3_1_Keys(t *testing.T) {
	for _, c := range []struct{ id, method, path, want string }{
		{"listPets", "get", "/pets", "list-pets"},
		{"repos/get-content", "get", "/x", "repos.get-content"},
		{"drive.files.list", "get", "/x", "files.list"}, // the pack is drive
		{"Pets_FindByTag", "get", "/x", "pets-find-by-tag"},
		{"getUserIDs", "get", "/x", "get-user-ids"},
		{"HTTPServerV2", "get", "/x", "http-server-v2"},
		{"2fa.enable", "post", "/x", "op-2fa.enable"},
		{"users.2fa.enable", "post", "/x", "users-2fa.enable"},
		{"a.b.c.d.e.f.g", "get", "/x", "a-b-c.d.e.f.g"},
		{"получить", "get", "/лодки/{id}", "get-by-id"},
		{"", "get", "/", "get"},
		{"", "get", "/api/v1/users", "users.get"},
		{"", "get", "/users/{userId}", "users.get-by-user-id"},
		{"", "post", "/users/{id}/repos", "users.repos.create"},
		{"", "put", "/a/b/c/d/e/f", "a-b-c.d.e.f.replace"},
		{"", "delete", "/users/{id}.json", "users.id-json.delete"},
		{"putLifecycleConfigurationOfTheBucketByTheNameOfTheOwner", "put", "/x", "put-lifecycle-configuration-bucket-name-owner"},
		{"putLifecycleConfigurationOfTheVersionedBucketByTheNameOfTheOwner", "put", "/x", "put-lifecycle-configuration-owner-x3eec3"},
	} {
		if got := newKeyer("drive").key(c.id, c.method, c.path); got != c.want || !manifest.ValidKey(got) {
			t.Errorf("%q %s %s: %s, not %s", c.id, c.method, c.path, got, c.want)
		}
	}
}

// §3.1, §12.2: whatever the document calls its operations, keys are valid and no two make one tool name, which no host cuts.
func Test_3_1_NoTwoKeysAreOne(t *testing.T) {
	k := newKeyer(strings.Repeat("p", maxID))
	seen := map[string]string{}
	for _, id := range []string{"a.b", "a_b", "a-b", "aB", "a b", "", "", "x" + strings.Repeat("Long", 30), "x" + strings.Repeat("Long", 30), "x" + strings.Repeat("Long", 31), "ß", "9", "get", "a..b", "_", "-"} {
		for _, method := range []string{"get", "post"} {
			for _, path := range []string{"/a/b", "/a/{b}", "/a-b", "/" + strings.Repeat("deep/", 40)} {
				key := k.key(id, method, path)
				tool := strings.ReplaceAll(manifest.ToolName(k.pack, key), "-", "_")
				at := id + " " + method + " " + path
				if other, taken := seen[tool]; taken || !manifest.ValidKey(key) || len(tool) > toolName {
					t.Errorf("%q has the key %q, as %q", at, key, other)
				}
				seen[tool] = at
			}
		}
	}
}

// §2.2: an id is short, valid and not reserved.
func Test_2_2_Ids(t *testing.T) {
	for _, c := range []struct{ asked, title, host, want string }{
		{"mine", "Petstore", "", "mine"},
		{"", "GitHub v3 REST API", "", "github"},
		{"", "Swagger Petstore - OpenAPI 3.0", "", "petstore"},
		{"", "Ada's official Harbour", "", "ada-harbour"},
		{"", "The Search API", "", "search-api"}, // search is reserved
		{"", "API", "api.harbour.example", "harbour"},
		{"", "1Password Connect", "", "connect-api"},
		{"", "Лодки", "", "api"},
		{"", "Amazon Elastic Compute Cloud", "", "amazon-elastic"},
		{"", strings.Repeat("x", 100), "", "api"},
	} {
		if got := packID(c.asked, c.title, c.host); got != c.want || !manifest.ValidID(got) || manifest.Reserved(got) {
			t.Errorf("%q %q: %s, not %s", c.title, c.host, got, c.want)
		}
	}
}

// §13.2: a version is SemVer, whatever the document has.
func Test_13_2_Versions(t *testing.T) {
	for said, want := range map[string]string{"1.2.3": "1.2.3", "v2": "2.0.0", "2022-11-05": "2022.11.5", "1.0.0-beta.1": "1.0.0", "": "0.1.0", "latest": "0.1.0",
		"Wed Oct 15 2025": "0.1.0", "99999999999999999999.1": "1.0.0", "01.02": "1.2.0"} {
		if got := packVersion(said); got != want {
			t.Errorf("%q: %s, not %s", said, got, want)
		}
	}
}

// §3.6: a server is https, or http to this machine; variables have their defaults, a relative one starts from the document.
func Test_3_6_Servers(t *testing.T) {
	for _, c := range []struct{ list, base, want string }{
		{`[{"url":"https://A.example/v1/"}]`, "", "https://a.example/v1"},
		{`[{"url":"http://a.example"},{"url":"https://b.example"}]`, "", "https://b.example"},
		{`[{"url":"http://127.0.0.1:8080/x"}]`, "", "http://127.0.0.1:8080/x"},
		{`[{"url":"http://localhost/"}]`, "", "http://localhost"},
		{`[{"url":"https://{a}.example:{p}/{v}","variables":{"a":{"default":"x"},"p":{"enum":["444","8443"]},"v":{"default":"v3"}}}]`, "", "https://x.example:444/v3"},
		{`[{"url":"https://{a}.example"}]`, "", ""},
		{`[{"url":"/v2"}]`, "https://c.example/docs/openapi.json", "https://c.example/v2"},
		{`[{"url":"v2"}]`, "https://c.example/docs/openapi.json", "https://c.example/docs/v2"},
		{`[{"url":"/v2"}]`, "", ""},
		{`[{"url":"https://user:pass@a.example"}]`, "", ""},
		{`[{"url":"https://a.example/?key=1"}]`, "", ""},
		{`[{"url":"https://a.example/x/../y"}]`, "", ""},
		{`[{"url":"https://169.254.169.254/"},{"url":"https://[fe80::1]/"},{"url":"https://bücher.example"},{"url":"https://a.example:0"}]`, "", ""},
		{`[{"url":"wss://a.example"},{"url":7},{},[]]`, "", ""},
	} {
		list, faults := jsondoc.Parse([]byte(c.list), jsondoc.Limits{})
		if len(faults) > 0 {
			t.Fatal(c.list, faults)
		}
		got := ""
		if found := serversOf(list, c.base); len(found) > 0 {
			got = found[0].String()
		}
		if got != c.want {
			t.Errorf("%s: %q, not %q", c.list, got, c.want)
		}
	}
}

// §3.6: where the document names no server, an operation needs its own; one that a pack may not have leaves it out.
func Test_3_6_NoOperationGoesToAnothersServer(t *testing.T) {
	paths := `"paths":{"/x":{"get":{"operationId":"x"}},"/y":{"servers":[{"url":"https://b.example/v2"}],"get":{"operationId":"y"}},"/z":{"servers":[{"url":"http://c.example"}],"get":{"operationId":"z"}}}}`
	for name, c := range map[string]struct {
		head, keys, server string
		o                  Options
	}{
		"no server":      {`{"openapi":"3.0.0",`, "y", "https://b.example/v2", Options{}},
		"one of its own": {`{"openapi":"3.0.0","servers":[{"url":"https://b.example"}],`, "x y", "https://b.example", Options{}},
		"an asked one":   {`{"openapi":"3.0.0",`, "x y", "https://b.example", Options{Server: "https://b.example"}},
		"one for theirs": {`{"openapi":"3.0.0","servers":[{"url":"//b.example/v2"}],`, "x y", "https://test.example/v3", Options{Server: "https://test.example/v3"}},
		"the same again": {`{"openapi":"3.0.0","servers":[{"url":"http://c.example"}],`, "x y z", "https://test.example", Options{Server: "https://test.example"}},
	} {
		m := made(t, Source{Name: "doc", Text: []byte(c.head + paths)}, c.o)
		var keys []string
		for _, v := range m.file(t, "surface.json").Get("verbs").Members {
			keys = append(keys, v.Key)
		}
		if got := strings.Join(keys, " "); got != c.keys || m.Report.Server != c.server {
			t.Errorf("%s: %s at %s, left %v", name, got, m.Report.Server, m.Report.Left)
		}
	}
	if _, err := Build(Source{Name: "doc", Text: []byte(`{"openapi":"3.0.0","servers":[{"url":"http://b.example"}],` + paths)}, Options{}); err == nil || err.Details["reason"] != string(noServer) {
		t.Errorf("an unusable server: %v", err)
	}
}

// §3.6: what operations have as servers of their own on the pack's origin goes before their paths.
func Test_3_6_ServersOfAnOperation(t *testing.T) {
	src := Source{Name: "doc", Text: []byte(`{"openapi":"3.0.0","servers":[{"url":"https://a.example/v1"}],"paths":{
		"/x":{"get":{"operationId":"x"}},"/y":{"servers":[{"url":"https://a.example/v2"}],"get":{"operationId":"y"}},
		"/z":{"get":{"operationId":"z","servers":[{"url":"https://b.example"},{"url":"https://a.example"}]}},"/n":{"get":{"operationId":"n","servers":[{"url":"https://b.example"}]}}}}`)}
	for name, c := range map[string]struct {
		o             Options
		server, paths string
		left          int
	}{
		"all":             {Options{}, "https://a.example", "/v1/x /v2/y /z", 1},
		"of one server":   {Options{Include: []string{"operation:x"}}, "https://a.example/v1", "/x", 0},
		"asked elsewhere": {Options{Server: "https://test.example/v1"}, "https://test.example", "/v1/x /v2/y /z", 1},
	} {
		m := made(t, src, c.o)
		var paths []string
		for _, p := range m.file(t, "openapi.json").Get("paths").Members {
			paths = append(paths, p.Key)
		}
		server := m.file(t, "surface.json").Get("openapi").Get("server").Text
		if got := strings.Join(paths, " "); server != c.server || got != c.paths || len(m.Report.Left) != c.left {
			t.Errorf("%s: %s %s, left %v", name, server, got, m.Report.Left)
		}
	}
}
