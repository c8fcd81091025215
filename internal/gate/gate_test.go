package gate

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"hcpx/internal/adapter"
	"hcpx/internal/adapter/wrap"
	"hcpx/internal/binding"
	"hcpx/internal/manifest"
	"hcpx/internal/places"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
	"hcpx/internal/stamp"
	"hcpx/internal/store"
)

// willing is a sandbox that could hold anything and remembers what it was asked.
type willing struct{ asked *sandbox.Spec }

func (w *willing) Facts() sandbox.Facts                    { return sandbox.Facts{} }
func (w *willing) Jail(*sandbox.Spec, string) sandbox.Jail { return sandbox.Jail{} }
func (w *willing) Prove(context.Context) sandbox.Rule      { return sandbox.Rule{} }
func (w *willing) Environ(*sandbox.Spec, string) []string  { return nil }
func (w *willing) Check(s *sandbox.Spec) *protocol.Error   { w.asked = s; return nil }
func (w *willing) Prepare(*sandbox.Spec) (sandbox.Box, *protocol.Error) {
	return nil, protocol.Fail(protocol.InternalError, "asked to run")
}

const manifestText = `{"hcp":{"version":"1.1"},"id":"tool","version":"1.0.0","summary":"A tool.","adapter":"wrap",
"wrap":{"bin":"BIN","uses":USES,"reads":["~/.config/acme","~/.ssh-link"],"network":{"hosts":["a.example:443"],"operator_hosts":true},"isolation":"ISO"},
"verbs":{"see":{"summary":"See","argv":["x"],"timeout":"30s"},"put":{"summary":"Put","argv":[]},"team":{"summary":"Team","argv":[]},"here":{"summary":"Here","argv":[]}}}`

const policyText = `{"surface_id":"tool","verbs":{"see":{"operation":"read","privacy":{"land":"personal"}},
"put":{"operation":"write","privacy":{"land":"personal"}},"team":{"operation":"write","privacy":{"land":"brain"}},
"here":{"operation":"write","privacy":{"land":"local"}}}}`

type fixture struct {
	t    *testing.T
	g    *Gate
	box  *willing
	s    protocol.Session
	home string
}

// newFixture installs the pack with the given bin, uses and isolation.
func newFixture(t *testing.T, bin, uses, isolation string) *fixture {
	t.Helper()
	f := &fixture{t: t, box: &willing{}, home: t.TempDir()}
	st := store.NewMemory(t.TempDir())
	m := strings.NewReplacer("BIN", bin, "USES", uses, "ISO", isolation).Replace(manifestText)
	src := fstest.MapFS{"surface.json": {Data: []byte(m)}, "policy.json": {Data: []byte(policyText)}, "HARNESS.md": {Data: []byte("# T\n\nT.\n")},
		"bin/tool": {Data: []byte("x"), Mode: fs.FileMode(0o755)}, "bin/plain": {Data: []byte("x"), Mode: fs.FileMode(0o644)}}
	if err := st.Install("tool", src, store.Meta{PackID: "tool", Version: "1.0.0"}); err != nil {
		t.Fatal(err)
	}
	f.g = &Gate{Store: st, Sandbox: f.box, Hub: binding.NewHub(binding.Options{}), Now: time.Now, Places: places.Places{Home: f.home, Store: st.Home()},
		Adapters: map[string]adapter.Adapter{manifest.Wrap: wrap.New()}}
	f.s = protocol.Session{ID: "default", Principal: "human:ada", Tenant: "local", Dir: t.TempDir()}
	f.update(func(st *store.State) { st.SetActivated("default", "tool", true) })
	return f
}

func (f *fixture) update(fn func(*store.State)) {
	f.t.Helper()
	if err := f.g.Store.Update(func(st *store.State) error { fn(st); return nil }); err != nil {
		f.t.Fatal(err)
	}
}

// world asks step 8 for a command, without arguments as availability does.
func (f *fixture) world(verb string) (*World, *protocol.Error) {
	f.t.Helper()
	st, err := f.g.Store.State()
	if err != nil {
		f.t.Fatal(err)
	}
	l, refusal := f.g.Pack(st, f.s.ID, "tool")
	if refusal != nil {
		f.t.Fatal(refusal)
	}
	v, refusal := f.g.Verb(st, f.s.ID, l, verb)
	if refusal != nil {
		f.t.Fatal(refusal)
	}
	return f.g.World(st, f.s, v, nil)
}

func (f *fixture) refused(verb string, code protocol.Code, says string) {
	f.t.Helper()
	_, err := f.world(verb)
	if err == nil || err.Code != code || !strings.Contains(err.Message+err.Hint, says) {
		f.t.Errorf("want %s that says %q, have %+v", code, says, err)
	}
}

// program makes an executable in a directory that only its owner can write.
func (f *fixture) program(name string) string {
	f.t.Helper()
	path := filepath.Join(f.t.TempDir(), name)
	if err := os.WriteFile(path, []byte("#!\n"), 0o755); err != nil {
		f.t.Fatal(err)
	}
	return path
}

func (f *fixture) allow(name, path string, dangerous bool) {
	f.t.Helper()
	s, err := stamp.Of(path, time.Now())
	if err != nil {
		f.t.Fatal(err)
	}
	f.update(func(st *store.State) {
		st.Bins = append(st.Bins, protocol.AllowedBin{Name: name, Path: path, Dangerous: dangerous, Stamp: s})
	})
}

// §10.2: a bare bin runs only if the operator allowed it, by the recorded path.
func Test_10_2_AllowList(t *testing.T) {
	f := newFixture(t, "acme", `[]`, "sandbox")
	f.refused("see", protocol.BinNotAllowed, "hcpx allow acme")
	path := f.program("acme")
	f.allow("acme", path, false)
	w, err := f.world("see")
	if err != nil || w.Spec.Program.Path != path {
		t.Fatalf("%+v %v", w, err)
	}
	if err := os.WriteFile(path, []byte("#!other\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	f.refused("see", protocol.BinNotAllowed, "replaced")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	f.refused("see", protocol.BinNotAllowed, "replaced")
}

// §10.2: a program in a directory that others can write is not the operator's any more.
func Test_10_2_DirectoryThatOthersCanWrite(t *testing.T) {
	f := newFixture(t, "acme", `[]`, "sandbox")
	path := f.program("acme")
	f.allow("acme", path, false)
	if err := os.Chmod(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	f.refused("see", protocol.BinNotAllowed, "others can write")
}

// §10.2: an interpreter as bin needs --dangerous; in uses it may stand. A name does not hide one.
func Test_10_2_Interpreters(t *testing.T) {
	f := newFixture(t, "python3.11", `[]`, "sandbox")
	path := f.program("python3.11")
	f.allow("python3.11", path, false)
	f.refused("see", protocol.BinNotAllowed, "--dangerous")
	f = newFixture(t, "snake", `[]`, "sandbox")
	f.allow("snake", f.program("python3"), false)
	f.refused("see", protocol.BinNotAllowed, "--dangerous")
	f = newFixture(t, "sh", `[]`, "sandbox")
	f.allow("sh", f.program("sh"), true)
	if _, err := f.world("see"); err != nil {
		t.Error(err)
	}
	f = newFixture(t, "./bin/tool", `["sh"]`, "sandbox")
	f.refused("see", protocol.BinNotAllowed, "sh")
	f.allow("sh", f.program("sh"), false)
	if _, err := f.world("see"); err != nil {
		t.Error(err)
	}
}

// §3.3, §10.2: a pack's own executable is covered by its digest; what is not executable is refused.
func Test_10_2_OwnPrograms(t *testing.T) {
	f := newFixture(t, "./bin/tool", `[]`, "sandbox")
	if w, err := f.world("see"); err != nil || w.Spec.Program.Path != filepath.Join(f.g.Store.Dir("tool"), "bin", "tool") {
		t.Errorf("%+v %v", w, err)
	}
	for _, bin := range []string{"./bin/plain", "./bin/none", "./../x", "./bin/../../x"} {
		f := newFixture(t, bin, `[]`, "sandbox")
		f.refused("see", protocol.BinNotAllowed, "")
	}
}

// §10.2: the land is readable, and writable for a write alone; asking makes nothing.
func Test_10_2_LandOfReadAndWrite(t *testing.T) {
	f := newFixture(t, "./bin/tool", `[]`, "sandbox")
	w, err := f.world("see")
	if err != nil || len(w.Spec.Write) != 0 || !slices.Contains(w.Spec.Read, w.Spec.Dir) {
		t.Errorf("read: %+v %v", w.Spec, err)
	}
	if _, err := os.Stat(w.Spec.Dir); err == nil {
		t.Error("asking made the land directory")
	}
	if slices.Contains(f.box.asked.Read, w.Spec.Dir) {
		t.Error("the sandbox was asked about a directory that does not exist")
	}
	if w, err := f.world("put"); err != nil || !slices.Equal(w.Spec.Write, []string{w.Spec.Dir}) {
		t.Errorf("write: %+v %v", w.Spec, err)
	}
}

// §9.2: personal is kept apart by Principal, brain by project.
func Test_9_2_LandsAreApart(t *testing.T) {
	f := newFixture(t, "./bin/tool", `[]`, "sandbox")
	seen := map[string]bool{}
	for _, s := range []protocol.Session{{Principal: "human:ada", Project: "p"}, {Principal: "human:bob", Project: "q"}} {
		f.s.Principal, f.s.Project = s.Principal, s.Project
		for _, verb := range []string{"put", "team"} {
			w, err := f.world(verb)
			if err != nil {
				t.Fatal(err)
			}
			seen[w.Spec.Dir] = true
		}
	}
	if len(seen) != 4 {
		t.Errorf("directories: %v", seen)
	}
}

// §10.2, §9.2: land local is the workspace with its git directories; the command starts where the caller is.
func Test_10_2_Workspace(t *testing.T) {
	f := newFixture(t, "./bin/tool", `[]`, "sandbox")
	f.s.Workspace, f.s.GitDirs = t.TempDir(), []string{t.TempDir()}
	w, err := f.world("here")
	if err != nil || w.Spec.Dir != f.s.Workspace || len(w.Spec.Write) != 2 {
		t.Errorf("outside: %+v %v", w.Spec, err)
	}
	f.s.Dir = filepath.Join(f.s.Workspace, "sub")
	if w, err := f.world("here"); err != nil || w.Spec.Dir != f.s.Dir {
		t.Errorf("inside: %+v %v", w.Spec, err)
	}
	f.s.Dir = f.s.Workspace + "-other"
	if w, err := f.world("here"); err != nil || w.Spec.Dir != f.s.Workspace {
		t.Errorf("beside: %+v %v", w.Spec, err)
	}
}

// §10.2: a declared read is given only when the operator allowed it, it exists, and what it resolves to is no
// credential store; else it is withheld and named.
func Test_10_2_ReadsAreWithheldUnlessAllowed(t *testing.T) {
	f := newFixture(t, "./bin/tool", `[]`, "sandbox")
	for _, dir := range []string{".config/acme", ".ssh"} {
		if err := os.MkdirAll(filepath.Join(f.home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(".ssh", filepath.Join(f.home, ".ssh-link")); err != nil {
		t.Fatal(err)
	}
	w, err := f.world("see")
	if err != nil || len(w.Spec.Links) != 0 || len(w.Withheld) != 2 {
		t.Errorf("none allowed: %+v %v %v", w.Spec.Links, w.Withheld, err)
	}
	f.update(func(st *store.State) {
		st.Reads = []protocol.AllowedRead{{Pack: "tool", Path: "~/.config/acme"}, {Pack: "tool", Path: "~/.ssh-link"}, {Pack: "other", Path: "~/.ssh"}}
	})
	w, err = f.world("see")
	want := sandbox.Link{Target: filepath.Join(f.home, ".config/acme"), HomeRel: ".config/acme"}
	if err != nil || !slices.Equal(w.Spec.Links, []sandbox.Link{want}) || !slices.Equal(w.Withheld, []string{"~/.ssh-link"}) {
		t.Errorf("allowed: %+v %v %v", w.Spec.Links, w.Withheld, err)
	}
}

// §10.2: a read that the operator allowed and that leads to the audit's key, where $XDG_CONFIG_HOME puts it, is
// withheld.
func Test_10_2_NoReadOfTheAuditKey(t *testing.T) {
	f := newFixture(t, "./bin/tool", `[]`, "sandbox")
	f.g.Places.Config = filepath.Join(f.home, ".config/acme")
	if err := os.MkdirAll(filepath.Join(f.g.Places.Own(), "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	f.update(func(st *store.State) { st.Reads = []protocol.AllowedRead{{Pack: "tool", Path: "~/.config/acme"}} })
	if w, err := f.world("see"); err != nil || len(w.Spec.Links) != 0 || !slices.Contains(w.Withheld, "~/.config/acme") {
		t.Errorf("%+v %v", w, err)
	}
}

// §10.2: the operator's hosts join those of the manifest, for that pack alone.
func Test_10_2_OperatorHosts(t *testing.T) {
	f := newFixture(t, "./bin/tool", `[]`, "sandbox")
	f.update(func(st *store.State) {
		st.Hosts = []protocol.AllowedHost{{Pack: "tool", Host: "b.example:22"}, {Pack: "other", Host: "c.example:1"}}
	})
	w, err := f.world("see")
	if err != nil || !slices.Equal(w.Spec.Network.Hosts, []string{"a.example:443", "b.example:22"}) {
		t.Errorf("%+v %v", w.Spec.Network, err)
	}
}

// §10.3: native-local needs the manifest and the operator; with one of them it runs in neither way.
func Test_10_3_NativeLocalNeedsBoth(t *testing.T) {
	f := newFixture(t, "./bin/tool", `[]`, "native-local")
	f.refused("see", protocol.SandboxUnavailable, "hcpx allow --native tool")
	f.update(func(st *store.State) { st.Native = []string{"tool"} })
	if w, err := f.world("see"); err != nil || !w.Spec.Native {
		t.Errorf("%+v %v", w, err)
	}
	f = newFixture(t, "./bin/tool", `[]`, "sandbox")
	f.update(func(st *store.State) { st.Native = []string{"tool"} })
	if w, err := f.world("see"); err != nil || w.Spec.Native {
		t.Errorf("the operator alone: %+v %v", w, err)
	}
}

// §10.4: the command's timeout within the runtime's cap.
func Test_10_4_WallLimit(t *testing.T) {
	f := newFixture(t, "./bin/tool", `[]`, "sandbox")
	if w, err := f.world("see"); err != nil || w.Spec.Limits.Wall != 30*time.Second {
		t.Errorf("%+v %v", w.Spec.Limits, err)
	}
	f.g.Limits.Wall = time.Second
	if w, err := f.world("see"); err != nil || w.Spec.Limits.Wall != time.Second {
		t.Errorf("%+v %v", w.Spec.Limits, err)
	}
}

// §6.7: what a pack calls its program is one word of the hint, and no option.
func Test_6_7_HintsOfProgramsCanBeTyped(t *testing.T) {
	for name, want := range map[string]string{"a b": "hcpx allow 'a b'", "--native=x": "hcpx allow -- --native=x"} {
		if _, err := Allowed(&store.State{}, name, true); err == nil || err.Hint != want {
			t.Errorf("%s: %+v, want %s", name, err, want)
		}
	}
}
