package imports

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hcpx/internal/protocol"
)

// §15.6: each document that can't become a pack is refused with its reason, a sentence that names the place, and the
// next command; nothing is written.
func Test_15_6_Refusals(t *testing.T) {
	const head = `{"openapi":"3.0.0","info":{"title":"T","version":"1"},"servers":[{"url":"https://a.example"}],`
	const one = head + `"paths":{"/a":{"get":{"operationId":"a","tags":["x"]}}}}`
	for name, c := range map[string]struct {
		text   string
		o      Options
		code   protocol.Code
		reason reason
		says   string
		hint   string
	}{
		"empty":              {" \n", Options{}, protocol.ImportFailed, badSyntax, "doc is empty", "--help"},
		"broken JSON":        {"{\n  \"openapi\": \"3.0.0\",\n  oops\n}", Options{}, protocol.ImportFailed, badSyntax, "doc:3:3:", "correct"},
		"a key twice":        {"{\"openapi\":\"3.0.0\",\n\"openapi\":\"3.1.0\"}", Options{}, protocol.ImportFailed, badSyntax, "doc:2:1:", "correct"},
		"broken YAML":        {"openapi: 3.0.0\ninfo: [a\npaths: {}\n", Options{}, protocol.ImportFailed, badSyntax, "doc:", "correct"},
		"a YAML key twice":   {"openapi: 3.0.0\npaths: {}\npaths: {}\n", Options{}, protocol.ImportFailed, badSyntax, "doc:3:1:", "correct"},
		"a list":             {"- a\n", Options{}, protocol.ImportFailed, notOpenAPI, "no member \"openapi\"", "--help"},
		"another JSON":       {`{"name":"x"}`, Options{}, protocol.ImportFailed, notOpenAPI, "no member \"openapi\"", "--help"},
		"a page":             {"<html>\n<body>hello</body>", Options{}, protocol.ImportFailed, notOpenAPI, "no member", "--help"},
		"a later version":    {`{"openapi":"3.2.0"}`, Options{}, protocol.ImportFailed, notOpenAPI, `"3.2.0"`, "--help"},
		"Swagger":            {`{"swagger":"2.0","paths":{}}`, Options{}, protocol.ImportFailed, swagger2, "Swagger \"2.0\"", "convert"},
		"no paths":           {head + `"paths":{}}`, Options{}, protocol.ImportFailed, noOperations, "has no operation", "--help"},
		"none left":          {one, Options{Include: []string{"tag:y"}}, protocol.ImportFailed, noOperations, "none of them is left", "--include tag:x"},
		"all excluded":       {one, Options{Exclude: []string{"method:GET"}}, protocol.ImportFailed, noOperations, "none of them is left", "--include"},
		"a choice of nobody": {one, Options{Include: []string{"colour:red"}}, protocol.UsageError, "", "tag:NAME", "--help"},
		"no server":          {`{"openapi":"3.0.0","paths":{"/a":{"get":{}}}}`, Options{}, protocol.ImportFailed, noServer, "names no server", "--server https://"},
		"http": {`{"openapi":"3.0.0","servers":[{"url":"http://a.example"},{"url":"/v1"}],"paths":{"/a":{"get":{}}}}`, Options{},
			protocol.ImportFailed, noServer, `"http://a.example", "/v1"`, "--server https://"},
		"an asked http server": {one, Options{Server: "http://a.example"}, protocol.ImportFailed, noServer, "http://a.example", "--help"},
		"metadata":             {one, Options{Server: "https://169.254.169.254/"}, protocol.ImportFailed, noServer, "169.254", "--help"},
		"a reserved id":        {one, Options{ID: "install"}, protocol.UsageError, "", "reserved", "--id my-api"},
		"no id":                {one, Options{ID: "Not An Id"}, protocol.UsageError, "", "form of a pack's id", "--id my-api"},
		"a client id":          {one, Options{ClientID: "abc"}, protocol.UsageError, "", "authorization code", "leave --client-id out"},
		"unmet security": {head + `"security":[{"d":[]}],"components":{"securitySchemes":{"d":{"type":"http","scheme":"digest"}}},"paths":{"/a":{"get":{}}}}`, Options{},
			protocol.ImportFailed, noOperations, "could call", "--help"},
		"security of nowhere": {head + `"security":[{"d":[]}],"paths":{"/a":{"get":{}}}}`, Options{}, protocol.ImportFailed, noOperations, "could call", "--help"},
	} {
		_, err := Build(Source{Name: "doc", Text: []byte(c.text)}, c.o)
		switch {
		case err == nil:
			t.Errorf("%s: it was taken", name)
		case err.Code != c.code || !strings.Contains(err.Message, c.says) || !strings.Contains(err.Hint, c.hint) || !strings.HasSuffix(err.Message, "."):
			t.Errorf("%s: %s %q, hint %q", name, err.Code, err.Message, err.Hint)
		case c.reason != "" && err.Details["reason"] != string(c.reason):
			t.Errorf("%s: reason %v", name, err.Details["reason"])
		}
	}
}

// §15.6: a pack is written whole or not at all, and never over something else.
func Test_15_6_WhereThePackGoes(t *testing.T) {
	dir := t.TempDir()
	document := filepath.Join(dir, "harbour.yaml")
	if err := os.WriteFile(document, harbour(t).Text, 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(o Options) *protocol.Error {
		t.Helper()
		o.Source = document
		_, err := OpenAPI(context.Background(), o)
		return err
	}
	out := filepath.Join(dir, "pack")
	if err := run(Options{Out: out}); err != nil {
		t.Fatal(err.Message)
	}
	if err := run(Options{Out: out}); err == nil || err.Details["reason"] != string(exists) || !strings.Contains(err.Hint, "--force") {
		t.Errorf("a second time: %v", err)
	}
	if err := run(Options{Out: out, Force: true, Include: []string{"tag:tides"}}); err != nil {
		t.Error(err.Message)
	}
	replaced, err := os.ReadFile(filepath.Join(out, "policy.json"))
	if err != nil || strings.Contains(string(replaced), "create-boat") {
		t.Errorf("the old pack is still there: %s, %v", replaced, err)
	}
	if err := os.WriteFile(filepath.Join(out, "notes.txt"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run(Options{Out: out, Force: true}); err == nil || !strings.Contains(err.Message, "notes.txt") {
		t.Errorf("over another's file: %v", err)
	}
	if err := run(Options{Out: document}); err == nil || err.Details["reason"] != string(exists) {
		t.Errorf("over a file: %v", err)
	}
	if err := run(Options{Out: filepath.Join(document, "pack")}); err == nil || !strings.Contains(err.Message, "no directory") {
		t.Errorf("below a file: %v", err)
	}
	if err := run(Options{Out: filepath.Join(dir, "packs", "new", "harbour")}); err != nil {
		t.Errorf("below nothing: %s", err.Message)
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := run(Options{Out: filepath.Join(dir, "empty")}); err != nil {
		t.Errorf("into an empty directory: %s", err.Message)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if !slices.Equal(names, []string{"empty", "harbour.yaml", "pack", "packs"}) {
		t.Errorf("beside the packs there is %v", names)
	}
}

func Test_15_6_FilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	for name, source := range map[string]string{"absent": filepath.Join(dir, "none.json"), "a directory": dir} {
		if _, err := OpenAPI(context.Background(), Options{Source: source}); err == nil || err.Code != protocol.NotFound || !strings.Contains(err.Message, source) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
