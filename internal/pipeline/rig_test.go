package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"hcpx/internal/adapter"
	"hcpx/internal/adapter/composite"
	"hcpx/internal/adapter/wrap"
	"hcpx/internal/audit"
	"hcpx/internal/binding"
	"hcpx/internal/gate"
	"hcpx/internal/manifest"
	"hcpx/internal/places"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
	"hcpx/internal/store"
)

// box is a sandbox that records what it was asked and runs nothing.
type recorder struct {
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
	return sandbox.New(sandbox.Options{}).Jail(s, home)
}
func (r *recorder) Prove(context.Context) sandbox.Rule  { return sandbox.Rule{} }
func (r *recorder) Check(*sandbox.Spec) *protocol.Error { return r.refuse }
func (r *recorder) Environ(s *sandbox.Spec, home string) []string {
	return append([]string{"HOME=" + home}, s.Env...)
}

func (r *recorder) Prepare(s *sandbox.Spec) (sandbox.Box, *protocol.Error) {
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
	r.runs++
	out := r.outcome
	return &out, nil
}

func (r *recorder) Close() error { r.closed++; return nil }

// mints counts what a hub minted.
type mints struct {
	binding.Hub
	count int
}

func (m *mints) Mint(ctx context.Context, b *manifest.Binding, s binding.Scope, lasts time.Duration) (*binding.Minted, *protocol.Error) {
	m.count++
	return m.Hub.Mint(ctx, b, s, lasts)
}

// logbook keeps entries and fails from the n-th entry on.
type logbook struct {
	entries []audit.Entry
	durable []bool
	failAt  int // 1-based; 0 = never
	panicAt int
}

func (l *logbook) Append(e audit.Entry, durable bool) error {
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
	r := &rig{t: t, store: st, box: &recorder{outcome: sandbox.Outcome{Stdout: []byte(`{"ok":true}`)}},
		hub: &mints{Hub: binding.NewHub(binding.Options{})}, log: &logbook{}}
	ids := 0
	g := &gate.Gate{Store: r.store, Sandbox: r.box, Hub: r.hub, Now: func() time.Time { return testNow }, Places: places.Places{Home: t.TempDir()},
		Adapters: map[string]adapter.Adapter{manifest.Wrap: wrap.New(), manifest.Composite: composite.New()}}
	r.p = New(Deps{Gate: g, Audit: r.log, Now: func() time.Time { return testNow }, OutputCap: 8 << 20,
		NewID: func() string { ids++; return fmt.Sprintf("run-%d", ids) }})
	r.s = protocol.Session{ID: "default", Principal: "human:ada", Tenant: "local", Dir: t.TempDir()}
	r.install("tool", toolManifest, toolPolicy)
	r.activate("tool", true)
	return r
}

func (r *rig) install(id, manifest, policy string) {
	r.t.Helper()
	src := fstest.MapFS{
		"surface.json": {Data: []byte(manifest)}, "policy.json": {Data: []byte(policy)},
		"HARNESS.md": {Data: []byte("# " + id + "\n\nA tool.\n")}, "bin/tool": {Data: []byte("#!/bin/sh\n"), Mode: fs.FileMode(0o755)},
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
