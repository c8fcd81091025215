package lint

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"hcpx/internal/pack"
	"hcpx/internal/protocol"
)

// tree makes a pack of an archive: what lies in bin is executable.
func tree(a *txtar.Archive) fstest.MapFS {
	out := fstest.MapFS{}
	for _, f := range a.Files {
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(f.Name, "bin/") {
			mode = 0o755
		}
		out[f.Name] = &fstest.MapFile{Data: f.Data, Mode: mode}
	}
	return out
}

func base(t testing.TB, name string) fstest.MapFS {
	t.Helper()
	a, err := txtar.ParseFile("testdata/" + name + ".txtar")
	if err != nil {
		t.Fatal(err)
	}
	return tree(a)
}

// shown are issues as lint would list them: code, file, place, pointer.
func shown(issues []protocol.Issue) []string {
	var out []string
	for _, i := range issues {
		line := fmt.Sprintf("%s %s %d:%d", i.Code, i.File, i.Line, i.Column)
		if i.Pointer != "" {
			line += " " + i.Pointer
		}
		out = append(out, line)
	}
	return out
}

// broken is a good pack with one fault, as testdata/broken/*.txtar tell it. The comment's lines:
//
//	base NAME          which good pack; notes when absent
//	want CODE FILE LINE:COLUMN [POINTER]
//	remove FILE, chmod FILE MODE, link FILE TARGET, fifo FILE, size FILE BYTES, unreadable FILE, dir NAME
//
// A section "edit FILE" replaces its lines with "-" before them by those with "+"; any other section is a
// file of the pack. @SECRET@ stands for a made-up secret.
type broken struct {
	source Source
	want   []string
}

// closed fails to open some names.
type closed struct {
	fstest.MapFS
	names map[string]bool
}

func (c closed) Open(name string) (fs.File, error) {
	if c.names[name] {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return c.MapFS.Open(name)
}

func load(t *testing.T, file string) broken {
	t.Helper()
	a, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	name, unreadable := "notes", map[string]bool{}
	b := broken{}
	for line := range strings.Lines(string(a.Comment)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "base" {
			name = f[1]
		}
	}
	files := base(t, name)
	b.source.Name = name
	for line := range strings.Lines(string(a.Comment)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		switch rest := f[1:]; f[0] {
		case "want":
			b.want = append(b.want, strings.Join(rest, " "))
		case "remove":
			delete(files, rest[0])
		case "chmod":
			mode, _ := strconv.ParseUint(rest[1], 8, 32)
			files[rest[0]].Mode = fs.FileMode(mode)
		case "link":
			files[rest[0]] = &fstest.MapFile{Data: []byte(rest[1]), Mode: fs.ModeSymlink | 0o777}
		case "fifo":
			files[rest[0]] = &fstest.MapFile{Mode: fs.ModeNamedPipe}
		case "size":
			n, _ := strconv.Atoi(rest[1])
			files[rest[0]].Data = append(files[rest[0]].Data, bytes.Repeat([]byte("\n"), n-len(files[rest[0]].Data))...)
		case "unreadable":
			unreadable[rest[0]] = true
		case "dir":
			b.source.Name = rest[0]
		}
	}
	for _, f := range a.Files {
		if target, ok := strings.CutPrefix(f.Name, "edit "); ok {
			edit(t, files[target], f.Data)
			continue
		}
		files[f.Name] = &fstest.MapFile{Data: f.Data, Mode: 0o644}
	}
	b.source.FS = closed{files, unreadable}
	return b
}

// edit replaces the lines marked - by those marked +; they must stand in the file once.
func edit(t *testing.T, f *fstest.MapFile, change []byte) {
	t.Helper()
	var from, to strings.Builder
	apply := func() {
		if from.Len() == 0 && to.Len() == 0 {
			return
		}
		if n := strings.Count(string(f.Data), from.String()); n != 1 {
			t.Fatalf("%d places read\n%s", n, from.String())
		}
		f.Data = []byte(strings.Replace(string(f.Data), from.String(), to.String(), 1))
		from.Reset()
		to.Reset()
	}
	// No file of this project holds what looks like a secret.
	change = bytes.ReplaceAll(change, []byte("@SECRET@"), []byte(strings.Join([]string{"q7Rk2Zp9", "Wm4Xc8Vb5", "Nt3"}, "")))
	for line := range strings.Lines(string(change)) {
		switch line[0] {
		case '-':
			if to.Len() > 0 {
				apply()
			}
			from.WriteString(line[1:])
		case '+':
			to.WriteString(line[1:])
		}
	}
	apply()
}

// later are the codes that have no case of this form, each with its reason.
var later = map[protocol.IssueCode]string{
	"openapi.document":  "openapi_test.go has a pack for it",
	"openapi.operation": "openapi_test.go has a pack for it",
	"openapi.server":    "openapi_test.go has a pack for it",
	"openapi.security":  "openapi_test.go has a pack for it",
}

func TestHCP_14_2_7_GoodPacksHaveNoIssues(t *testing.T) {
	for _, name := range []string{"notes", "daily"} {
		notes := Source{FS: base(t, "notes"), Name: "notes", Dir: "notes"}
		sources := []Source{{FS: base(t, name), Name: name, Dir: name}, notes}
		if diff := cmp.Diff([]string(nil), shown(Run(sources, Options{}))); diff != "" {
			t.Errorf("%s\n%s", name, diff)
		}
	}
}

func Test_14_2_BrokenPacks(t *testing.T) {
	files, err := filepath.Glob("testdata/broken/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	proved := map[protocol.IssueCode]bool{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		b := load(t, file)
		for _, w := range b.want {
			code, _, _ := strings.Cut(w, " ")
			proved[protocol.IssueCode(code)] = true
		}
		t.Run(name, func(t *testing.T) {
			if b.want == nil {
				t.Fatal("the case wants nothing")
			}
			installed, _ := pack.Load(base(t, "notes"), pack.Limits{})
			got := Run([]Source{b.source}, Options{Installed: func(id string) *pack.Pack {
				if id == "notes" {
					return installed
				}
				return nil
			}})
			if diff := cmp.Diff(b.want, shown(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			for _, i := range got {
				if i.Message == "" || i.Section == "" || !strings.HasSuffix(i.Message, ".") {
					t.Errorf("not a sentence with a section: %+v", i)
				}
			}
		})
	}
	for _, row := range protocol.IssueCodes {
		if reason, skipped := later[row.Code]; proved[row.Code] == skipped {
			t.Errorf("%s: case %v, listed as later %v (%s)", row.Code, proved[row.Code], skipped, reason)
		}
	}
}

func Test_14_2_AllIssuesInOrder(t *testing.T) {
	one, two := base(t, "notes"), base(t, "daily")
	delete(one, "HARNESS.md")
	one["surface.json"].Data = []byte(strings.Replace(string(one["surface.json"].Data), "Keep notes.", "Keep\\nnotes.", 1))
	two["policy.json"].Data = []byte("[]")
	got := shown(Run([]Source{{Dir: "b", FS: one}, {Dir: "a", FS: two}}, Options{}))
	want := []string{"policy.schema policy.json 1:1", "pack.missing-file HARNESS.md 1:1", "manifest.schema surface.json 5:14 /summary"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for i, dir := range []string{"a", "b", "b"} {
		if issues := Run([]Source{{Dir: "b", FS: one}, {Dir: "a", FS: two}}, Options{}); issues[i].Dir != dir {
			t.Errorf("issue %d is of %q", i, issues[i].Dir)
		}
	}
	for _, i := range Run([]Source{{Dir: "b", FS: one}}, Options{}) {
		if i.Dir != "" {
			t.Errorf("one source is named: %+v", i)
		}
	}
}

func Test_11_4_BootstrapIDNeedsItsDigest(t *testing.T) {
	files := base(t, "notes")
	for _, name := range []string{"surface.json", "policy.json", "HARNESS.md"} {
		files[name].Data = bytes.ReplaceAll(files[name].Data, []byte(`"id": "notes"`), []byte(`"id": "hcp-cli"`))
		files[name].Data = bytes.ReplaceAll(files[name].Data, []byte(`_id": "notes"`), []byte(`_id": "hcp-cli"`))
		files[name].Data = bytes.ReplaceAll(files[name].Data, []byte(`exec notes`), []byte(`exec hcp-cli`))
	}
	p, _ := pack.Load(files, pack.Limits{})
	src := []Source{{FS: files, Name: "hcp-cli"}}
	if got := Run(src, Options{BootstrapDigest: pack.Digest(p.Files)}); len(got) > 0 {
		t.Errorf("the embedded pack: %v", shown(got))
	}
	for _, digest := range []string{"", "sha256:00"} {
		if diff := cmp.Diff([]string{"manifest.reserved-id surface.json 3:9 /id"}, shown(Run(src, Options{BootstrapDigest: digest}))); diff != "" {
			t.Errorf("digest %q: %s", digest, diff)
		}
	}
}

func Test_3_5_PacksOfOneCallComeBeforeInstalledOnes(t *testing.T) {
	installed := base(t, "notes")
	renamed := base(t, "notes")
	for name, f := range renamed {
		renamed[name].Data = bytes.ReplaceAll(f.Data, []byte("note.add"), []byte("note.put"))
	}
	old, _ := pack.Load(installed, pack.Limits{})
	o := Options{Installed: func(string) *pack.Pack { return old }}
	daily := Source{Dir: "daily", FS: base(t, "daily"), Name: "daily"}
	if got := Run([]Source{daily}, o); len(got) > 0 {
		t.Errorf("against the installed pack: %v", shown(got))
	}
	got := shown(Run([]Source{daily, {Dir: "notes", FS: renamed, Name: "notes"}}, o))
	if diff := cmp.Diff([]string{"composite.unknown-step surface.json 20:50 /verbs/close/steps/0/verb"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestOpen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "notes")
	if err := os.CopyFS(dir, base(t, "notes")); err != nil {
		t.Fatal(err)
	}
	src, err := Open(dir)
	if err != nil || src.Name != "notes" || src.Dir != dir {
		t.Fatalf("%+v %v", src, err)
	}
	if got := Run([]Source{src}, Options{}); len(got) > 0 {
		t.Error(shown(got))
	}
	if _, err := Open(dir + "/none"); err == nil {
		t.Error("opened what is not there")
	}
}

// FuzzRun: lint never panics, and every place lies in its file (§14.2).
func FuzzRun(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.txtar")
	more, _ := filepath.Glob("testdata/broken/*.txtar")
	for _, file := range append(files, more...) {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		// Split by hand: the library's reader stumbles over some texts.
		var a txtar.Archive
		for _, part := range strings.Split("\n"+string(src), "\n-- ") {
			if name, data, ok := strings.Cut(part, " --\n"); ok && fs.ValidPath(name) {
				a.Files = append(a.Files, txtar.File{Name: name, Data: []byte(data)})
			}
		}
		files := tree(&a)
		for _, i := range Run([]Source{{FS: files, Name: "notes"}}, Options{}) {
			data := []byte{}
			if f := files[i.File]; f != nil {
				data = f.Data
			}
			lines := bytes.Split(data, []byte("\n"))
			if i.Line < 1 || i.Line > len(lines) || i.Column < 1 || i.Column > len(lines[i.Line-1])+1 {
				t.Errorf("%s %s %d:%d lies outside the file", i.Code, i.File, i.Line, i.Column)
			}
		}
	})
}

// What is no directory is refused without being waited for.
func Test_14_2_OnlyADirectoryIsOpened(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(fifo); err == nil {
		t.Error("a fifo was opened as a pack")
	}
}
