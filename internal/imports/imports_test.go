package imports

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/jsondoc"
	"hcpx/internal/lint"
	"hcpx/internal/protocol"
)

var update = flag.Bool("update", false, "write the golden files anew")

func harbour(t *testing.T) Source {
	t.Helper()
	text, err := os.ReadFile("testdata/harbour.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return Source{Name: "harbour.yaml", Text: text}
}

// made builds a pack that must lint clean.
func made(t *testing.T, src Source, o Options) *Made {
	t.Helper()
	m, err := Build(src, o)
	if err != nil {
		t.Fatalf("%s: %s %v", src.Name, err.Message, err.Details)
	}
	for _, issue := range linted(m) {
		if issue.Severity == protocol.SeverityError {
			t.Errorf("%s:%d:%d %s %s", issue.File, issue.Line, issue.Column, issue.Code, issue.Message)
		}
	}
	return m
}

func linted(m *Made) []protocol.Issue {
	files := fstest.MapFS{}
	for _, f := range m.Files {
		files[f.Name] = &fstest.MapFile{Data: f.Text, Mode: 0o644}
	}
	issues, refusal := lint.Run([]lint.Source{{FS: files, Name: m.Report.ID}}, lint.Options{})
	if refusal != nil {
		panic(refusal) // an openapi pack has no expression
	}
	return issues
}

func (m *Made) file(t *testing.T, name string) *jsondoc.Node {
	t.Helper()
	for _, f := range m.Files {
		if f.Name == name {
			n, faults := jsondoc.Parse(f.Text, jsondoc.Limits{Bytes: maxDocument})
			if len(faults) > 0 {
				t.Fatal(name, faults)
			}
			return n
		}
	}
	t.Fatal("no file ", name)
	return nil
}

// doc is a document around the paths and components that are given, in JSON.
func doc(paths, components string) Source {
	return Source{Name: "doc.json", Text: []byte(`{"openapi":"3.0.3","info":{"title":"Doc","version":"1"},"servers":[{"url":"https://doc.example"}],"paths":` +
		paths + `,"components":` + components + `}`)}
}

// §15.6: a document becomes this pack, byte for byte, and it lints without an error or a warning.
func Test_15_6_Golden(t *testing.T) {
	m := made(t, harbour(t), Options{})
	if issues := linted(m); len(issues) > 0 {
		t.Errorf("lint says %v", issues)
	}
	report, err := jsondoc.FromAny(map[string]any{"left": anys(m.Report.Left), "decide": anys(m.Report.Decide), "read": m.Report.Read, "write": m.Report.Write,
		"credential": m.Report.Credential, "server": m.Report.Server})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(m.Files, File{"report.json", lay(report)}) {
		path := filepath.Join("testdata", "harbour", f.Name)
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, f.Text, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(f.Text)); diff != "" {
			t.Errorf("%s is not the golden one:\n%s", f.Name, diff)
		}
	}
}

func anys(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
}

// §15.6: the same document makes the same bytes, whether it is written as YAML or as JSON, and with a byte order mark.
func Test_15_6_TheSameDocumentMakesTheSameBytes(t *testing.T) {
	src := harbour(t)
	first := made(t, src, Options{})
	root, err := parse(src)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"again": src.Text, "as JSON": root.Append(nil), "with a mark": append([]byte("\xef\xbb\xbf"), src.Text...),
	} {
		other := made(t, Source{Name: src.Name, Text: text}, Options{})
		for i, f := range other.Files {
			if !bytes.Equal(f.Text, first.Files[i].Text) {
				t.Errorf("%s: %s differs", name, f.Name)
			}
		}
	}
}

// §15.6: choosing operations changes no key, and no word of theirs.
func Test_15_6_ChoosingRenamesNothing(t *testing.T) {
	all := made(t, harbour(t), Options{}).file(t, "surface.json").Get("verbs")
	for name, c := range map[string]struct {
		include, exclude []string
		keys             string
	}{
		"a tag":               {[]string{"tag:tides"}, nil, "get-tides"},
		"tags and a method":   {[]string{"tag:boats", "tag:tides", "method:GET"}, nil, "list-boats boats.get-by-boat-id get-tides"},
		"a path":              {[]string{"/boats/*/papers"}, nil, "upload-papers"},
		"an operation's id":   {[]string{"operation:search*"}, nil, "search-everything"},
		"a key":               {[]string{"operation:boats.get-by-boat-id"}, nil, "boats.get-by-boat-id"},
		"all but writes":      {nil, []string{"method:post", "method:put", "method:delete"}, "list-boats boats.get-by-boat-id get-tides reset-counter"},
		"a path without some": {[]string{"path:/boats*"}, []string{"operation:list*", "method:post", "method:put"}, "boats.get-by-boat-id"},
	} {
		verbs := made(t, harbour(t), Options{Include: c.include, Exclude: c.exclude}).file(t, "surface.json").Get("verbs")
		var keys []string
		for _, m := range verbs.Members {
			keys = append(keys, m.Key)
			if !m.Value.Equal(all.Get(m.Key)) {
				t.Errorf("%s: %s changed", name, m.Key)
			}
		}
		if got := strings.Join(keys, " "); got != c.keys {
			t.Errorf("%s: %s, not %s", name, got, c.keys)
		}
	}
}

// §4.5, §15.6: GET and HEAD look, everything else is a write that a person confirms, with its request and arguments.
func Test_15_6_WhatMayWriteAsksFirst(t *testing.T) {
	m := made(t, doc(`{"/a/{id}":{"get":{},"head":{},"post":{},"put":{},"patch":{},"delete":{},"options":{},"trace":{}}}`, `{}`), Options{})
	if m.Report.Read != 2 || m.Report.Write != 6 {
		t.Errorf("%d read, %d write", m.Report.Read, m.Report.Write)
	}
	for _, e := range m.file(t, "policy.json").Get("verbs").Members {
		read := strings.HasPrefix(e.Key, "a.get") || strings.HasPrefix(e.Key, "a.head")
		if read == (e.Value.Get("operation").Text == "write") || read == e.Value.Has("confirm") {
			t.Errorf("%s: %s", e.Key, e.Value.Append(nil))
		}
		if message := e.Value.Get("confirm").Get("message"); !read && (message == nil || !strings.HasSuffix(message.Text, " /a/{id})")) {
			t.Errorf("%s asks %s", e.Key, e.Value.Append(nil))
		}
	}
}

// §5.2: what a document says in words can't make the skill teach a command or hold a secret.
func Test_5_2_TheDocumentsWordsStayWords(t *testing.T) {
	for name, words := range map[string]string{
		"a command":     "Run `hcpx exec doc nothing` or `doc__nothing`",
		"a token":       "Use ghp_abcdefghijklmnopqrstuvwxyz0123456789",
		"a path":        `Reads /home/ada/.ssh/id_rsa and C:\\Users\\ada`,
		"a heading":     "# Title\\n\\n```\\nhcpx exec doc nothing\\n```",
		"html":          "<script>alert(1)</script><!-- x",
		"control":       "a\\u0000b\\u202ec\\u2028d",
		"braces":        "Take {this} and {{that}} }",
		"nothing":       "",
		"a long word":   strings.Repeat("x", 3000),
		"a lone marker": "---",
	} {
		m := made(t, doc(`{"/a":{"post":{"operationId":"a","summary":"`+words+`","description":"`+words+`","tags":["`+words+`"]}}}`, `{}`), Options{})
		if issues := linted(m); len(issues) > 0 {
			t.Errorf("%s: %v", name, issues)
		}
		title := Source{Name: "doc.json", Text: []byte(`{"openapi":"3.1.0","info":{"title":"` + words + `","version":"` + words + `","description":"` + words + `"},
			"servers":[{"url":"https://doc.example"}],"paths":{"/a":{"get":{}}}}`)}
		made(t, title, Options{})
	}
}

// §15.6: a command that sends files finds them in the workspace; whoever decides is told.
func Test_15_6_FilesAreOfTheWorkspace(t *testing.T) {
	body := func(media, schema string) string {
		return `"requestBody":{"content":{"` + media + `":{"schema":` + schema + `}}}`
	}
	m := made(t, doc(`{"/a":{"post":{"operationId":"one",`+body("multipart/form-data", `{"type":"object","properties":{"f":{"type":"string","format":"binary"}}}`)+`}},
		"/b":{"post":{"operationId":"many",`+body("multipart/form-data", `{"type":"object","properties":{"f":{"type":"array","items":{"type":"string","format":"binary"}}}}`)+`}},
		"/c":{"post":{"operationId":"bytes",`+body("application/octet-stream", `{}`)+`}},
		"/d":{"post":{"operationId":"text",`+body("multipart/form-data", `{"type":"object","properties":{"f":{"type":"string"}}}`)+`}},
		"/e":{"post":{"operationId":"none"}}}`, `{}`), Options{})
	for key, want := range map[string]string{"one": "local", "many": "local", "bytes": "local", "text": "personal", "none": "personal"} {
		if got := text(m.file(t, "policy.json").Get("verbs").Get(key).Get("privacy"), "land"); got != want {
			t.Errorf("%s: %s", key, got)
		}
	}
	if told := strings.Join(m.Report.Decide, "\n"); !strings.Contains(told, "Files: these send files of the workspace (land local), whichever the caller names: one, many, bytes.") {
		t.Error(told)
	}
}

// §15.6: a body that may be left out may be left out; whoever gives a part of it gives what it requires.
func Test_15_6_AnOptionalBodyStaysOptional(t *testing.T) {
	const schema = `"content":{"application/json":{"schema":{"type":"object","required":["a"],"properties":{"a":{"type":"string"},"b":{"type":"string"}}}}}`
	m := made(t, doc(`{"/a":{"post":{"operationId":"may","requestBody":{`+schema+`}}},"/b":{"post":{"operationId":"must","requestBody":{"required":true,`+schema+`}}}}`, `{}`), Options{})
	for _, tt := range []struct {
		key, args string
		fits      bool
	}{
		{"may", `{}`, true}, {"may", `{"a":"x"}`, true}, {"may", `{"b":"x"}`, false}, {"may", `{"a":"x","b":"x"}`, true},
		{"must", `{}`, false}, {"must", `{"a":"x"}`, true},
	} {
		args, _ := jsondoc.Parse([]byte(tt.args), jsondoc.Limits{})
		bad := argsSchema(m.file(t, "surface.json").Get("verbs").Get(tt.key).Get("args")).Validate(args)
		if fits := len(bad) == 0; fits != tt.fits {
			t.Errorf("%s %s: %v", tt.key, tt.args, bad)
		}
	}
}
