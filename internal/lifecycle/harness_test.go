package lifecycle

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"hcpx/internal/adapter"
	"hcpx/internal/adapter/wrap"
	"hcpx/internal/audit"
	"hcpx/internal/binding"
	"hcpx/internal/gate"
	"hcpx/internal/grant"
	"hcpx/internal/places"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
	"hcpx/internal/store"
)

// noBox is a sandbox that enforces everything and runs nothing; a probe ends as the test says.
type noBox struct{ exit int }

func (b *noBox) Prove(context.Context) sandbox.Rule { return sandbox.Rule{} }

func (b *noBox) Jail(*sandbox.Spec, string) sandbox.Jail { return sandbox.Jail{} }

func (b *noBox) Facts() sandbox.Facts {
	return sandbox.Facts{Backend: "landlock", ABI: 7, Rules: []sandbox.Rule{{Name: "exec", Mechanism: "landlock", State: "enforced"}}}
}
func (b *noBox) Check(*sandbox.Spec) *protocol.Error                  { return nil }
func (b *noBox) Environ(*sandbox.Spec, string) []string               { return nil }
func (b *noBox) Prepare(*sandbox.Spec) (sandbox.Box, *protocol.Error) { return b, nil }
func (b *noBox) Close() error                                         { return nil }
func (b *noBox) Run(context.Context) (*sandbox.Outcome, *protocol.Error) {
	return &sandbox.Outcome{Exit: b.exit}, nil
}

// world is a runtime around a memory store.
type world struct {
	*Lifecycle
	t     testing.TB
	log   *audit.Memory
	box   *noBox
	bin   string // the one directory of the operator's PATH
	clock time.Time
}

var ada = protocol.Session{ID: "default", Principal: "human:ada", Tenant: "local", How: "flag"}

func as(principal protocol.Principal) protocol.Session {
	s := ada
	s.Principal = principal
	return s
}

func in(session string) protocol.Session {
	s := ada
	s.ID = session
	return s
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, log: &audit.Memory{}, box: &noBox{}, bin: t.TempDir(), clock: time.Now()}
	if err := os.Chmod(w.bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tool", "helper", "bash"} {
		write(t, filepath.Join(w.bin, name), "a program\n", 0o755)
	}
	st := store.NewMemory(t.TempDir())
	now := func() time.Time { return w.clock }
	count := 0
	w.Lifecycle = &Lifecycle{
		Store: st, Audit: w.log, Now: now, Path: w.bin,
		NewID: func() string { count++; return strconv.Itoa(count) },
		Gate: &gate.Gate{Store: st, Sandbox: w.box, Hub: binding.NewHub(binding.Options{}), Now: now, Places: places.Places{Home: t.TempDir(), Store: st.Home()},
			Adapters: map[string]adapter.Adapter{"wrap": wrap.New()}},
	}
	return w
}

func write(t testing.TB, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// packText is a small wrap pack; edits replace text in its files.
func packText(id string) map[string]string {
	return map[string]string{
		"surface.json": `{
  "hcp": { "version": "1.1" }, "id": "` + id + `", "version": "1.0.0", "summary": "Keeps notes.", "adapter": "wrap",
  "wrap": { "bin": "tool", "uses": ["helper"], "reads": ["~/.config/acme/notes.toml"] },
  "verbs": {
    "show": { "summary": "Show notes", "argv": ["show"], "examples": [{ "args": {} }] },
    "keep": { "summary": "Keep a note", "argv": ["keep"], "examples": [{ "args": {} }] },
    "share": { "summary": "Share a note", "argv": ["share"], "examples": [{ "args": {} }] }
  }
}`,
		"policy.json": `{ "surface_id": "` + id + `", "verbs": {
    "show": { "operation": "read", "privacy": { "land": "personal" } },
    "keep": { "operation": "write", "privacy": { "land": "personal" }, "confirm": true },
    "share": { "operation": "write", "privacy": { "land": "brain" } }
  } }`,
		"HARNESS.md": "# Notes\n\nKeep and share short notes.\n\nUse `hcpx exec " + id + " show`, `hcpx exec " + id + " keep` and `hcpx exec " + id + " share`.\n",
	}
}

// pack writes a pack directory; edits are old, new pairs over all files.
func (w *world) pack(id string, edits ...string) string {
	w.t.Helper()
	dir := filepath.Join(w.t.TempDir(), id)
	for name, text := range packText(id) {
		write(w.t, filepath.Join(dir, name), strings.NewReplacer(edits...).Replace(text), 0o644)
	}
	return dir
}

func (w *world) install(dir string, o InstallOptions) InstalledPack {
	w.t.Helper()
	view, err := w.Install(ada, []string{dir}, o)
	if err != nil {
		w.t.Fatalf("install: %v %v", err, err.Details)
	}
	return view.Packs[0]
}

// ready installs, allows and activates.
func (w *world) ready(id string, edits ...string) {
	w.t.Helper()
	w.install(w.pack(id, edits...), InstallOptions{AllowBin: true, AllowRead: true})
	if _, err := w.Activate(ada, []string{id}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) mustState() *store.State {
	w.t.Helper()
	st, err := w.Store.State()
	if err != nil {
		w.t.Fatal(err)
	}
	return st
}

// acts are the audit's entries as "kind act".
func (w *world) acts() []string {
	acts := []string{}
	for _, e := range w.log.Entries() {
		acts = append(acts, e.Kind+" "+e.Act)
	}
	return acts
}

func (w *world) give(g grant.Grant) {
	w.t.Helper()
	if _, err := w.Grant(ada, g); err != nil {
		w.t.Fatal(err)
	}
}

// code is the refusal's code, "" for none.
func code(err *protocol.Error) protocol.Code {
	if err == nil {
		return ""
	}
	return err.Code
}

func refused(t *testing.T, err *protocol.Error, want protocol.Code) {
	t.Helper()
	if code(err) != want {
		t.Fatalf("got %v, want %s", err, want)
	}
	if want != "" && err.Hint == "" {
		t.Errorf("%s has no hint", want)
	}
}
