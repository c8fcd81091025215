package pack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/protocol"
)

const (
	surface = `{"hcp":{"version":"1.1"},"id":"tiny","version":"1.0.0","summary":"Tiny.","adapter":"wrap","wrap":{"bin":"true"},` +
		`"verbs":{"go":{"summary":"Go","argv":[],"examples":[{"args":{}}]}}}`
	rules   = `{"surface_id":"tiny","verbs":{"go":{"operation":"read","privacy":{"land":"personal"}}}}`
	harness = "# Tiny\n\nGoes.\n\n`hcpx exec tiny go`\n"
)

// tree is a good pack with more files.
func tree(more map[string]*fstest.MapFile) fstest.MapFS {
	out := fstest.MapFS{
		"surface.json": {Data: []byte(surface), Mode: 0o644},
		"policy.json":  {Data: []byte(rules), Mode: 0o644},
		"HARNESS.md":   {Data: []byte(harness), Mode: 0o644},
	}
	for name, f := range more {
		if out[name] = f; f == nil {
			delete(out, name)
		}
	}
	return out
}

func file(data string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(data), Mode: 0o644} }
func link(target string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink | 0o777}
}

// shownIssues are issues as "code file".
func shownIssues(issues []protocol.Issue) []string {
	var out []string
	for _, i := range issues {
		out = append(out, fmt.Sprintf("%s %s %d:%d", i.Code, i.File, i.Line, i.Column))
	}
	return out
}

func Test_2_1_Files(t *testing.T) {
	device := &fstest.MapFile{Mode: fs.ModeDevice | 0o644}
	for name, c := range map[string]struct {
		more map[string]*fstest.MapFile
		lim  Limits
		want []string
	}{
		"good":                     {},
		"more files":               {more: map[string]*fstest.MapFile{"LICENSE": file("x"), "bin/tool": file("x"), "evals/a.json": file("{}"), "notes/ü/x": file("x")}},
		"all missing":              {more: map[string]*fstest.MapFile{"surface.json": nil, "policy.json": nil, "HARNESS.md": nil, "x": file("")}, want: []string{"pack.missing-file HARNESS.md 1:1", "pack.missing-file policy.json 1:1", "pack.missing-file surface.json 1:1"}},
		"required is a link":       {more: map[string]*fstest.MapFile{"surface.json": link("other.json"), "other.json": file(surface)}, want: []string{"pack.irregular-file surface.json 1:1"}},
		"required is a directory":  {more: map[string]*fstest.MapFile{"policy.json": nil, "policy.json/x": file("x")}, want: []string{"pack.irregular-file policy.json 1:1"}},
		"required has 1 MiB":       {more: map[string]*fstest.MapFile{"HARNESS.md": file(harness + strings.Repeat("x", 1<<20-len(harness)))}},
		"required is too large":    {more: map[string]*fstest.MapFile{"HARNESS.md": file(harness + strings.Repeat("x", 1<<20-len(harness)+1))}, want: []string{"pack.too-large HARNESS.md 1:1"}},
		"device":                   {more: map[string]*fstest.MapFile{"dev/null": device}, want: []string{"pack.irregular-file dev/null 1:1"}},
		"fifo":                     {more: map[string]*fstest.MapFile{"f": {Mode: fs.ModeNamedPipe}}, want: []string{"pack.irregular-file f 1:1"}},
		"socket":                   {more: map[string]*fstest.MapFile{"s": {Mode: fs.ModeSocket}}, want: []string{"pack.irregular-file s 1:1"}},
		"control character":        {more: map[string]*fstest.MapFile{"a\nb": file("x")}, want: []string{`pack.irregular-file a\nb 1:1`}},
		"control in directory":     {more: map[string]*fstest.MapFile{"a\x1bb/c": file("x")}, want: []string{`pack.irregular-file a\x1bb 1:1`}},
		"files":                    {lim: Limits{Files: 4}, more: map[string]*fstest.MapFile{"a": file("x")}},
		"too many files":           {lim: Limits{Files: 4}, more: map[string]*fstest.MapFile{"a": file("x"), "b": file("x")}, want: []string{"pack.too-large . 1:1"}},
		"too many links":           {lim: Limits{Files: 4}, more: map[string]*fstest.MapFile{"a": link("b"), "b": file("x")}, want: []string{"pack.too-large . 1:1"}},
		"too many directories":     {lim: Limits{Files: 4}, more: map[string]*fstest.MapFile{"a/b/c/d/e": file("x")}, want: []string{"pack.too-large . 1:1"}},
		"very many in a directory": {lim: Limits{Files: 1}, want: []string{"pack.too-large . 1:1"}},
		"bytes":                    {lim: Limits{Bytes: int64(len(surface) + len(rules) + len(harness) + 9)}, more: map[string]*fstest.MapFile{"x": file("123456789")}},
		"too many bytes":           {lim: Limits{Bytes: int64(len(surface) + len(rules) + len(harness) + 9)}, more: map[string]*fstest.MapFile{"x": file("1234567890")}, want: []string{"pack.too-large . 1:1"}},
		"long path":                {more: map[string]*fstest.MapFile{strings.Repeat("abcdefg/", 128) + "x": file("x")}, want: []string{"pack.too-large " + (strings.Repeat("abcdefg/", 10) + "…") + " 1:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, issues := Load(tree(c.more), c.lim)
			if diff := cmp.Diff(c.want, shownIssues(issues)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func Test_2_1_Links(t *testing.T) {
	for name, c := range map[string]struct {
		more map[string]*fstest.MapFile
		bad  string
	}{
		"beside":                {map[string]*fstest.MapFile{"a": link("surface.json")}, ""},
		"up and down":           {map[string]*fstest.MapFile{"d/a": link("../e/b"), "e/b": file("x")}, ""},
		"dangling":              {map[string]*fstest.MapFile{"a": link("nowhere/else")}, ""},
		"to the pack itself":    {map[string]*fstest.MapFile{"d/a": link("..")}, ""},
		"absolute":              {map[string]*fstest.MapFile{"a": link("/etc/passwd")}, "a"},
		"drive":                 {map[string]*fstest.MapFile{"a": link(`C:\x`)}, "a"},
		"out":                   {map[string]*fstest.MapFile{"d/a": link("../../x")}, "d/a"},
		"out and in again":      {map[string]*fstest.MapFile{"a": link("../pack/x")}, "a"},
		"out over a link":       {map[string]*fstest.MapFile{"d/e/up": link("../.."), "a": link("d/e/up/../x")}, "a"},
		"in over a link":        {map[string]*fstest.MapFile{"d/e/up": link(".."), "a": link("d/e/up/../surface.json")}, ""},
		"to itself":             {map[string]*fstest.MapFile{"a": link("a")}, "a"},
		"circle":                {map[string]*fstest.MapFile{"a": link("b"), "b": link("a")}, "a"},
		"over an absolute link": {map[string]*fstest.MapFile{"z": link("y/x"), "y": link("/etc")}, "y"},
	} {
		t.Run(name, func(t *testing.T) {
			_, issues := Load(tree(c.more), Limits{})
			if c.bad == "" && len(issues) > 0 {
				t.Fatalf("refused: %v", issues)
			}
			if c.bad != "" && (len(issues) == 0 || issues[0].Code != "pack.symlink-escape" || issues[0].File != c.bad) {
				t.Fatalf("want pack.symlink-escape in %s, got %v", c.bad, shownIssues(issues))
			}
		})
	}
}

// broken fails to open one name.
type broken struct {
	fstest.MapFS
	name string
}

func (b broken) Open(name string) (fs.File, error) {
	if name == b.name {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return b.MapFS.Open(name)
}

func Test_2_1_Unreadable(t *testing.T) {
	for _, name := range []string{".", "sub", "sub/x", "surface.json", "HARNESS.md"} {
		_, issues := Load(broken{tree(map[string]*fstest.MapFile{"sub/x": file("x")}), name}, Limits{})
		if diff := cmp.Diff([]string{"pack.unreadable " + name + " 1:1"}, shownIssues(issues)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// onDisk writes a good pack with more files and returns its directory.
func onDisk(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny")
	for name, data := range map[string]string{"surface.json": surface, "policy.json": rules, "HARNESS.md": harness, "bin/tool": "#!/bin/sh\n", "docs/a/b": "b"} {
		write(t, filepath.Join(dir, name), data)
	}
	must(t, os.Chmod(filepath.Join(dir, "bin/tool"), 0o755))
	must(t, os.Symlink("docs/a/b", filepath.Join(dir, "b")))
	return dir
}

func write(t testing.TB, path, data string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(data), 0o644))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func rooted(t testing.TB, dir string) fs.FS {
	t.Helper()
	root, err := os.OpenRoot(dir)
	must(t, err)
	t.Cleanup(func() { root.Close() })
	return root.FS()
}

func Test_2_1_OnDisk(t *testing.T) {
	dir := onDisk(t)
	must(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o644))
	must(t, os.Symlink("/etc", filepath.Join(dir, "etc")))
	p, issues := Load(rooted(t, dir), Limits{})
	if diff := cmp.Diff([]string{"pack.symlink-escape etc 1:1", "pack.irregular-file fifo 1:1"}, shownIssues(issues)); diff != "" {
		t.Error(diff)
	}
	if p.ID != "tiny" || p.Manifest == nil || p.Policy == nil || string(p.Skill) != harness {
		t.Errorf("%+v", p)
	}
	var files []string
	for _, f := range p.Files {
		files = append(files, string(f.Mode)+" "+f.Path)
	}
	if diff := cmp.Diff([]string{"- HARNESS.md", "l b", "x bin/tool", "- docs/a/b", "- policy.json", "- surface.json"}, files); diff != "" {
		t.Error(diff)
	}
}

func TestOpenReadsManifestAndPolicyOnly(t *testing.T) {
	fsys := tree(map[string]*fstest.MapFile{"HARNESS.md": nil})
	p, err := Open(fsys)
	if err != nil || p.ID != "tiny" || p.Manifest.Command("go") == nil || p.Policy.Verb("go") == nil || p.Skill != nil {
		t.Fatalf("%+v %v", p, err)
	}
	for name, data := range map[string]*fstest.MapFile{"surface.json": file(`{"id":"tiny"}`), "policy.json": file(`[]`)} {
		if _, err := Open(tree(map[string]*fstest.MapFile{name: data})); err == nil {
			t.Errorf("opened with a broken %s", name)
		}
		if _, err := Open(tree(map[string]*fstest.MapFile{name: nil})); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("opened without %s: %v", name, err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	fsys := rooted(b, onDisk(b))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Open(fsys); err != nil {
			b.Fatal(err)
		}
	}
}
