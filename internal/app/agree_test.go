package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
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
	"hcpx/internal/grant"
	"hcpx/internal/lifecycle"
	"hcpx/internal/manifest"
	"hcpx/internal/pipeline"
	"hcpx/internal/places"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
	"hcpx/internal/stamp"
	"hcpx/internal/store"
)

// willing is a sandbox that holds everything, or nothing, and runs nothing.
type willing struct{ refuse *protocol.Error }

func (w willing) Facts() sandbox.Facts                                 { return sandbox.Facts{} }
func (w willing) Jail(*sandbox.Spec, string) sandbox.Jail              { return sandbox.Jail{} }
func (w willing) Prove(context.Context) sandbox.Rule                   { return sandbox.Rule{} }
func (w willing) Environ(*sandbox.Spec, string) []string               { return nil }
func (w willing) Check(*sandbox.Spec) *protocol.Error                  { return w.refuse }
func (w willing) Close() error                                         { return nil }
func (w willing) Prepare(*sandbox.Spec) (sandbox.Box, *protocol.Error) { return w, w.refuse }
func (w willing) Run(context.Context) (*sandbox.Outcome, *protocol.Error) {
	return &sandbox.Outcome{Stdout: []byte("{}")}, nil
}

// variants are the packs of the property: own and allowed programs, reads and writes of each land, a credential
// that can be minted and one that can't, native-local, a member that is not understood, composites over others.
func variants() map[string][2]string {
	verbs := `"read":{"summary":"R","argv":["x"]},"write":{"summary":"W","argv":["x"]},"team":{"summary":"T","argv":["x"]},"here":{"summary":"H","argv":["x"]}`
	entries := `"read":{"operation":"read","privacy":{"land":"personal"}},"write":{"operation":"write","privacy":{"land":"personal"},"confirm":true},
"team":{"operation":"read","privacy":{"land":"brain"}},"here":{"operation":"write","privacy":{"land":"local"}}`
	wrapped := func(id, block, more string) [2]string {
		return [2]string{
			fmt.Sprintf(`{"hcp":{"version":"1.1"},"id":%q,"version":"1.0.0","summary":"A.","adapter":"wrap","wrap":{%s}%s,"verbs":{%s}}`, id, block, more, verbs),
			fmt.Sprintf(`{"surface_id":%q,"verbs":{%s}}`, id, entries),
		}
	}
	return map[string][2]string{
		"own":     wrapped("own", `"bin":"./bin/x"`, ``),
		"allowed": wrapped("allowed", `"bin":"prog","uses":["other"]`, ``),
		"mocked":  wrapped("mocked", `"bin":"./bin/x"`, `,"binding":{"mode":"mock","hub":"none"}`),
		"secret":  wrapped("secret", `"bin":"./bin/x"`, `,"binding":{"mode":"user","hub":"keyring","source":{"kind":"token"}}`),
		"native":  wrapped("native", `"bin":"./bin/x","isolation":"native-local"`, ``),
		"newer":   wrapped("newer", `"bin":"./bin/x"`, `,"must_understand":["quorum"],"quorum":1`),
		"control": wrapped("control", `"bin":"./bin/x"`, `,"plane":"control"`),
		"both": {`{"hcp":{"version":"1.1"},"id":"both","version":"1.0.0","summary":"A.","adapter":"composite","verbs":{
"fine":{"summary":"F","steps":[{"id":"a","pack":"own","verb":"read"}]},"sly":{"summary":"S","steps":[{"id":"a","pack":"own","verb":"here"}]},
"meek":{"summary":"M","steps":[{"id":"a","pack":"own","verb":"write"}]}}}`,
			`{"surface_id":"both","verbs":{"fine":{"operation":"read","privacy":{"land":"personal"}},"sly":{"operation":"read","privacy":{"land":"personal"}},
"meek":{"operation":"write","privacy":{"land":"personal"}}}}`},
	}
}

// world is one random store with everything that asks it.
type world struct {
	t    *testing.T
	r    *rand.Rand
	st   *store.Memory
	life *lifecycle.Lifecycle
	exec protocol.Executor
	s    protocol.Session
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{t: t, r: rand.New(rand.NewPCG(seed, 1)), st: store.NewMemory(t.TempDir())}
	box := willing{}
	if w.r.IntN(8) == 0 {
		box.refuse = protocol.Fail(protocol.SandboxUnavailable, "This kernel holds nothing.")
	}
	now := func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }
	g := &gate.Gate{Store: w.st, Sandbox: box, Hub: binding.NewHub(), Now: now, Places: places.Places{Home: t.TempDir(), Store: w.st.Home()},
		Adapters: map[string]adapter.Adapter{manifest.Wrap: wrap.New(), manifest.Composite: composite.New()}}
	log := &audit.Memory{}
	w.life = &lifecycle.Lifecycle{Store: w.st, Audit: log, Gate: g, Now: now, NewID: func() string { return "id" }}
	w.exec = pipeline.New(pipeline.Deps{Gate: g, Audit: log, Now: now, NewID: func() string { return "id" }, OutputCap: 1 << 20})
	w.s = protocol.Session{ID: "default", Principal: []protocol.Principal{"human:ada", "agent:a", "service:x", "eve"}[w.r.IntN(4)],
		Tenant: []string{"local", "local", "local", ""}[w.r.IntN(4)], Project: "p", Workspace: t.TempDir()}
	for id, text := range variants() {
		if w.r.IntN(6) > 0 {
			w.install(id, text)
		}
	}
	w.state()
	return w
}

func (w *world) install(id string, text [2]string) {
	src := fstest.MapFS{"surface.json": {Data: []byte(text[0])}, "policy.json": {Data: []byte(text[1])}, "HARNESS.md": {Data: []byte("# A\n\nA.\n")},
		"bin/x": {Data: []byte("x"), Mode: fs.FileMode(0o755)}}
	if err := w.st.Install(id, src, store.Meta{PackID: id, Version: "1.0.0"}); err != nil {
		w.t.Fatal(err)
	}
	if w.r.IntN(10) == 0 { // tampered
		file := filepath.Join(w.st.Dir(id), "policy.json")
		if err := os.Chmod(file, 0o600); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(strings.Replace(text[1], `"write"`, `"read"`, 1)), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) state() {
	err := w.st.Update(func(st *store.State) error {
		for id := range variants() {
			st.SetActivated("default", id, w.r.IntN(5) > 0)
			st.SetConnected("default", id, w.r.IntN(2) > 0)
		}
		if w.r.IntN(2) > 0 {
			st.Native = []string{"native"}
		}
		for _, name := range []string{"prog", "other"} {
			if w.r.IntN(4) > 0 {
				st.Bins = append(st.Bins, w.program(name))
			}
		}
		for range w.r.IntN(4) {
			st.Grants = append(st.Grants, w.grant())
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) program(name string) protocol.AllowedBin {
	path := filepath.Join(w.t.TempDir(), name)
	if err := os.WriteFile(path, []byte("1"), 0o755); err != nil {
		w.t.Fatal(err)
	}
	s, err := stamp.Of(path, time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	if w.r.IntN(6) == 0 { // replaced
		if err := os.WriteFile(path, []byte("2"), 0o755); err != nil {
			w.t.Fatal(err)
		}
	}
	return protocol.AllowedBin{Name: name, Path: path, Stamp: s}
}

func (w *world) grant() grant.Grant {
	pick := func(of ...string) []string { return []string{of[w.r.IntN(len(of))]} }
	g := grant.Grant{
		Principal: pick("*", "human:*", "agent:*", "agent:a", "service:x")[0], Effect: pick(grant.Allow, grant.Allow, grant.Deny)[0],
		Capabilities: []protocol.Capability{[]protocol.Capability{protocol.VerbExecRead, protocol.VerbExecWrite}[w.r.IntN(2)]},
		Packs:        pick("*", "own", "a*", "both"), Verbs: pick("*", "read", "w*"), Planes: pick("runtime", "control"), Projects: pick("*", "p"), // the session has p: which project is no part of availability
		Expires: pick("", "", "2020-01-01T00:00:00Z", "2030-01-01T00:00:00Z")[0],
	}
	if g.Effect == grant.Deny {
		g.Projects = nil // which project is no part of availability (§11.2)
	}
	return g
}

// HCP-14.3-8, §11.2: what availability shows is what exec does, over random stores: a command is executable
// exactly when exec gets past steps 2, 3, 4, the connected check of 7 and the checks of 8, and else the reason is
// exec's own code. Project and workspace are given, and every gate is confirmed.
func TestHCP_14_3_8_AvailabilityIsWhatExecDoes(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(80) {
		w := newWorld(t, seed)
		for id := range variants() {
			view, refusal := w.life.Availability(w.s, []string{id})
			if refusal != nil {
				t.Fatal(refusal)
			}
			for verb, shown := range view.Packs[0].Commands {
				args, err := json.Marshal(protocol.Envelope{PackID: id, VerbKey: verb, Confirm: true})
				if err != nil {
					t.Fatal(err)
				}
				res := w.exec.Exec(context.Background(), w.s, args)
				got := "executable"
				if !res.OK && res.Error.Step != 5 && res.Error.Step != 6 && res.Error.Step < 9 {
					got = string(res.Error.Code)
				}
				want := string(shown.Reason)
				if shown.Executable {
					want = "executable"
				}
				if got != want {
					t.Errorf("seed %d: %s/%s as %s: availability says %s, exec does %s: %+v", seed, id, verb, w.s.Principal, want, got, res.Error)
				}
				seen[want]++
			}
		}
	}
	for _, code := range []string{"executable", "pack_not_activated", "not_executable", "composite_escalation", "unauthenticated", "tenant_unresolved",
		"grant_missing", "not_connected", "bin_not_allowed", "sandbox_unavailable"} {
		if seen[code] == 0 {
			t.Errorf("no store led to %s: %v", code, seen)
		}
	}
}
