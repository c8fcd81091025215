package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"hcpx/internal/adapter"
	"hcpx/internal/adapter/composite"
	"hcpx/internal/adapter/wrap"
	"hcpx/internal/audit"
	"hcpx/internal/binding"
	"hcpx/internal/gate"
	"hcpx/internal/jq"
	"hcpx/internal/manifest"
	"hcpx/internal/places"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
	"hcpx/internal/store"
)

// box is a sandbox that records what it was asked and runs nothing.
type recorder struct {
	mu       sync.Mutex
	during   func() // called by each run
	refuse   *protocol.Error
	outcome  sandbox.Outcome
	started  *protocol.Error // why a run could not start
	panics   bool
	prepared []*sandbox.Spec
	runs     int
	closed   int
}

func (r *recorder) Facts() sandbox.Facts { return sandbox.Facts{Backend: "recorder"} }
func (r *recorder) Jail(s *sandbox.Spec, home string) sandbox.Jail {
	return system().Jail(s, home)
}
func (r *recorder) Prove(context.Context) sandbox.Rule  { return sandbox.Rule{} }
func (r *recorder) Check(*sandbox.Spec) *protocol.Error { return r.refuse }
func (r *recorder) Environ(s *sandbox.Spec, home string) []string {
	env := append([]string{"HOME=" + home}, s.Env...)
	for _, f := range s.Files {
		env = append(env, f.Env+"="+home+"/given/"+f.Env)
	}
	return env
}

func (r *recorder) Prepare(s *sandbox.Spec) (sandbox.Box, *protocol.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse != nil {
		return nil, r.refuse
	}
	r.prepared = append(r.prepared, s)
	return r, nil
}

func (r *recorder) Run(context.Context) (*sandbox.Outcome, *protocol.Error) {
	if r.panics {
		panic("the sandbox broke")
	}
	if r.started != nil {
		return nil, r.started
	}
	if r.during != nil {
		r.during()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs++
	out := r.outcome
	return &out, nil
}

func (r *recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed++
	return nil
}

// system is one for all tests: each holds what it shares with every command open for good.
var system = sync.OnceValue(func() *sandbox.System { return sandbox.New(sandbox.Options{}) })

// mints counts what a hub minted.
type mints struct {
	binding.Hub
	mu    sync.Mutex
	count int
}

func (m *mints) Mint(ctx context.Context, b *manifest.Binding, s binding.Scope, lasts time.Duration) (*binding.Minted, *protocol.Error) {
	m.mu.Lock()
	m.count++
	m.mu.Unlock()
	return m.Hub.Mint(ctx, b, s, lasts)
}

// logbook keeps entries and fails from the n-th entry on.
type logbook struct {
	mu      sync.Mutex
	entries []audit.Entry
	durable []bool
	failAt  int // 1-based; 0 = never
	panicAt int
}

func (l *logbook) Append(e audit.Entry, durable bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.panicAt == len(l.entries)+1 {
		panic("the audit broke")
	}
	if l.failAt > 0 && len(l.entries)+1 >= l.failAt {
		return errors.New("no space left on device")
	}
	l.entries, l.durable = append(l.entries, e), append(l.durable, durable)
	return nil
}

func (l *logbook) kinds() string {
	var k []string
	for _, e := range l.entries {
		k = append(k, e.Kind)
	}
	return strings.Join(k, " ")
}

// rig is a pipeline on a memory store with recording doors.
type rig struct {
	t     testing.TB
	store store.Store
	box   *recorder
	hub   *mints
	log   *logbook
	p     *Pipeline
	now   time.Time
	s     protocol.Session
}

var testNow = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// tool is the pack that most tests use: a read, a gated write, a write in a project, and a mock credential.
const toolManifest = `{"hcp":{"version":"1.1"},"id":"tool","version":"1.0.0","summary":"A tool.","adapter":"wrap",
"wrap":{"bin":"./bin/tool"},"binding":{"mode":"mock","hub":"none","inject":{"env":{"TOOL_TOKEN":"{token}"}}},
"verbs":{
 "show":{"summary":"Show","argv":["show","{name}"],"args":{"type":"object","properties":{"name":{"type":"string"},"limit":{"type":"integer","default":3},"pin":{"type":"string","writeOnly":true}},"required":["name"]}},
 "move":{"summary":"Move","argv":["move","--","{to}"],"args":{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}},
 "note":{"summary":"Note","argv":["note"]}}}`

const toolPolicy = `{"surface_id":"tool","verbs":{
 "show":{"operation":"read","privacy":{"land":"personal"},"redact":["/secret"]},
 "move":{"operation":"write","privacy":{"land":"personal"},"confirm":{"message":"Move to {to}?"}},
 "note":{"operation":"write","privacy":{"land":"brain"}}}}`

func newRig(t testing.TB) *rig {
	t.Helper()
	return newRigOn(t, store.NewMemory(t.TempDir()))
}

func newRigOn(t testing.TB, st store.Store) *rig {
	t.Helper()
	r := rigOver(t, st)
	r.install("tool", toolManifest, toolPolicy)
	r.activate("tool", true)
	return r
}

// rigOver is a rig over a store as it is. t is nil in a process that is no test.
func rigOver(t testing.TB, st store.Store) *rig {
	scratch := os.TempDir
	if t != nil {
		t.Helper()
		scratch = t.TempDir
	}
	r := &rig{t: t, now: testNow, store: st, box: &recorder{outcome: sandbox.Outcome{Stdout: []byte(`{"ok":true}`)}},
		hub: &mints{Hub: binding.NewHub(binding.Options{})}, log: &logbook{}}
	var ids atomic.Int64
	g := &gate.Gate{Store: r.store, Sandbox: r.box, Hub: r.hub, Now: r.clock, Places: places.Places{Home: scratch()},
		Adapters: map[string]adapter.Adapter{manifest.Wrap: wrap.New(), manifest.Composite: composite.New(jq.New())}}
	r.p = New(Deps{Gate: g, Audit: r.log, Now: r.clock, OutputCap: 8 << 20,
		NewID: func() string { return fmt.Sprintf("run-%d", ids.Add(1)) }})
	r.s = protocol.Session{ID: "default", Principal: "human:ada", Tenant: "local", Dir: scratch()}
	return r
}

// clock is the rig's moment, and the real one where that is zero.
func (r *rig) clock() time.Time {
	if r.now.IsZero() {
		return time.Now()
	}
	return r.now
}

func (r *rig) install(id, manifest, policy string) {
	r.t.Helper()
	src := fstest.MapFS{
		"surface.json": {Data: []byte(manifest)}, "policy.json": {Data: []byte(policy)},
		"HARNESS.md": {Data: []byte("# " + id + "\n\nA tool.\n")}, "bin/tool": {Data: []byte("a program\n"), Mode: fs.FileMode(0o755)},
	}
	if err := r.store.Install(id, src, store.Meta{PackID: id, Version: "1.0.0", InstalledAt: testNow}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) activate(id string, connect bool) {
	r.t.Helper()
	if err := r.store.Update(func(st *store.State) error {
		st.SetActivated("default", id, true)
		st.SetConnected("default", id, connect)
		return nil
	}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) exec(envelope string) protocol.Result {
	r.t.Helper()
	return r.p.Exec(context.Background(), r.s, []byte(envelope))
}

// refused holds a denial against its code and step, and proves that nothing of a later step ran.
func (r *rig) refused(res protocol.Result, code protocol.Code, step int) {
	r.t.Helper()
	if res.OK || res.Error == nil || res.Error.Code != code || res.Error.Step != step {
		b, err := json.Marshal(res)
		r.t.Fatalf("want %s at step %d, have %s %v", code, step, b, err)
	}
	if step < 7 && r.hub.count != 0 {
		r.t.Errorf("a denial at step %d minted", step)
	}
	if step < 8 && len(r.box.prepared) != 0 {
		r.t.Errorf("a denial at step %d prepared a sandbox", step)
	}
	if step < 9 && r.box.runs != 0 {
		r.t.Errorf("a denial at step %d ran the command", step)
	}
	if step <= 8 && r.log.kinds() != audit.Denial {
		r.t.Errorf("the audit has %q, want one denial", r.log.kinds())
	}
	if strings.Contains(res.Error.Message, "goroutine") {
		r.t.Errorf("a stack trace: %s", res.Error.Message)
	}
}
