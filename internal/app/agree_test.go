package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
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
	"hcpx/internal/jq"
	"hcpx/internal/lifecycle"
	"hcpx/internal/manifest"
	"hcpx/internal/pipeline"
	"hcpx/internal/places"
	"hcpx/internal/projection"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
	"hcpx/internal/settings"
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
	verbs := `"read":{"summary":"R","argv":["x"],ARGS},"write":{"summary":"W","argv":["x"],ARGS},"team":{"summary":"T","argv":["x"],ARGS},"here":{"summary":"H","argv":["x"],ARGS}`
	verbs = strings.ReplaceAll(verbs, "ARGS", `"args":{"type":"object","properties":{"branch":{"type":"string","default":"main"},"force":{"type":"boolean"}},"additionalProperties":false}`)
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
	set  *settings.Settings
	// projects: grants and denies speak of projects too, of which availability says nothing (§11.2).
	projects bool
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{t: t, r: rand.New(rand.NewPCG(seed, 1)), st: store.NewMemory(t.TempDir())}
	w.projects = w.r.IntN(3) == 0
	w.set = w.settings()
	app := &App{settings: w.set}
	box := willing{}
	if w.r.IntN(8) == 0 {
		box.refuse = protocol.Fail(protocol.SandboxUnavailable, "This kernel holds nothing.")
	}
	now := func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) }
	g := &gate.Gate{Store: w.st, Sandbox: box, Hub: binding.NewHub(binding.Options{}), Now: now, Places: places.Places{Home: t.TempDir(), Store: w.st.Home()}, Rules: app.rules(),
		Adapters: map[string]adapter.Adapter{manifest.Wrap: wrap.New(), manifest.Composite: composite.New(jq.New())}}
	log := &audit.Memory{}
	w.life = &lifecycle.Lifecycle{Store: w.st, Audit: log, Gate: g, Now: now, NewID: func() string { return "id" },
		AgentEnvelope: w.set.ConfirmAgent == "envelope", NoSelfConfirm: w.set.ConfirmAgent == "approval"}
	w.exec = pipeline.New(pipeline.Deps{Gate: g, Audit: log, Now: now, NewID: func() string { return "id" }, OutputCap: 1 << 20,
		AgentEnvelope: w.life.AgentEnvelope, NoSelfConfirm: w.life.NoSelfConfirm})
	w.s = protocol.Session{ID: "default", Principal: []protocol.Principal{"human:ada", "agent:a", "agent:a.label", "service:x", "eve"}[w.r.IntN(5)],
		Tenant: []string{"local", "local", "local", ""}[w.r.IntN(4)], Project: "p", Workspace: t.TempDir()}
	all := variants()
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if w.r.IntN(6) > 0 {
			w.install(id, all[id])
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
		for _, id := range slices.Sorted(maps.Keys(variants())) {
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
		if w.projects {
			st.Grants = nil // those of a fresh store fit every project
		}
		for range w.r.IntN(5) {
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
	} else {
		g.SelfConfirm = w.r.IntN(2) == 0
	}
	if w.projects {
		g.Projects = pick("*", "other", "other")
	}
	if w.r.IntN(3) == 0 {
		g.Args = map[string][]json.RawMessage{"branch": {json.RawMessage(pick(`"main"`, `"agent/*"`, `"*"`)[0])}}
	}
	if w.r.IntN(6) == 0 {
		g.Args = map[string][]json.RawMessage{"force": {json.RawMessage("false")}}
	}
	return g
}

// settings are those of a random operator, machine and project, read from files as at any start.
func (w *world) settings() *settings.Settings {
	w.t.Helper()
	home, root := w.t.TempDir(), w.t.TempDir()
	some := func(of ...string) string { return of[w.r.IntN(len(of))] }
	put := func(path, text string) string {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			w.t.Fatal(err)
		}
		return path
	}
	put(filepath.Join(home, "config.toml"), some("", "confirm.agent = \"envelope\"\n"))
	managed := put(filepath.Join(home, "managed.toml"),
		some("", "", "confirm.agent = \"approval\"\n")+some("", "", "[sandbox]\nnative_local = \"forbid\"\n", "[sandbox]\ndangerous = \"forbid\"\n"))
	text := some("", "", "packs.allow = [\"own\", \"b*\"]\n", "confirm.agent = \"approval\"\n") + some("", "[sandbox]\nnative_local = \"forbid\"\n")
	for range w.r.IntN(3) {
		text += "[[deny]]\n" + some("", "principal = \"agent:a\"\n", "principal = \"human:*\"\n") + some("", "capabilities = [\"verb.exec.write\"]\n") +
			some("packs = [\"own\"]\n", "packs = [\"a*\", \"mocked\"]\n") + some("", "verbs = [\"read\"]\n") + some("", "args = { branch = [\"main\"] }\n", "args.force = true\n")
		if w.projects {
			text += some("", "projects = [\"p\"]\n", "projects = [\"other\"]\n")
		}
	}
	put(filepath.Join(root, "hcp.toml"), text)
	set, err := settings.Load(home, settings.ReadManaged(managed))
	if err == nil {
		set, err = set.Narrow(root)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return set
}

// HCP-14.3-8, §11.2: what availability shows is what exec does, over random stores: a command is executable
// exactly when exec gets past steps 2, 3, 4, the connected check of 7 and the checks of 8, and else the reason is
// exec's own code. Project and workspace are given, and every gate is confirmed.
func TestHCP_14_3_8_AvailabilityIsWhatExecDoes(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(100) {
		w := newWorld(t, seed)
		for _, id := range slices.Sorted(maps.Keys(variants())) {
			view, refusal := w.life.Availability(w.s, []string{id})
			if refusal != nil {
				t.Fatal(refusal)
			}
			if seed%5 == 0 {
				w.offers(id, view.Packs[0])
			}
			for _, verb := range slices.Sorted(maps.Keys(view.Packs[0].Commands)) {
				shown := view.Packs[0].Commands[verb]
				given := json.RawMessage([]string{`{}`, `{"branch":"agent/x"}`, `{"branch":"main","force":true}`, `{"force":false}`}[w.r.IntN(4)])
				args, err := json.Marshal(protocol.Envelope{PackID: id, VerbKey: verb, Args: given, Confirm: true})
				if err != nil {
					t.Fatal(err)
				}
				res := w.exec.Exec(context.Background(), w.s, args)
				w.explained(id, verb, res, seen)
				if w.projects {
					continue
				}
				got := "executable"
				if !res.OK && res.Error.Step != 5 && res.Error.Step != 6 && res.Error.Step < 9 {
					got = string(res.Error.Code)
				}
				want := string(shown.Reason)
				if shown.Executable {
					want = "executable"
				}
				if !res.OK && (res.Error.Step == 5 || res.Error.Step == 6) { // the later steps were not asked
					got = want
					if !slices.Contains([]string{"executable", "not_connected", "bin_not_allowed", "sandbox_unavailable"}, want) {
						got = string(res.Error.Code)
					}
				}
				if got != want {
					t.Errorf("seed %d: %s/%s as %s: availability says %s, exec does %s: %+v", seed, id, verb, w.s.Principal, want, got, res.Error)
				}
				seen[want]++
			}
		}
	}
	for _, code := range []string{"executable", "pack_not_activated", "not_executable", "composite_escalation", "unauthenticated", "tenant_unresolved",
		"grant_missing", "not_connected", "bin_not_allowed", "sandbox_unavailable",
		"explained", "explained: refused", "explained: project_denied", "explained: by hcp.toml", "explained: arguments", "explained: own confirmation", "explained: no own confirmation"} {
		if seen[code] == 0 {
			t.Errorf("no store led to %s: %v", code, seen)
		}
	}
}

// offers holds what hosts are shown to the same (§12.2.6): a tool for each command that availability calls executable,
// and for no other; a pack without one is left out.
func (w *world) offers(id string, p lifecycle.PackAvailability) {
	w.t.Helper()
	packs, refusal := w.life.Offered(w.s, []string{id})
	if refusal != nil {
		w.t.Fatal(refusal)
	}
	var want, got []string
	for verb, c := range p.Commands {
		if c.Executable {
			want = append(want, manifest.ToolName(id, verb))
		}
	}
	for _, tool := range projection.Tools(packs, projection.Commands)[1:] {
		got = append(got, tool.Name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) || (len(packs) > 0) != (len(want) > 0) {
		w.t.Errorf("%s as %s: availability says %v, the tools are %v", id, w.s.Principal, want, got)
	}
}

// explained holds --explain to what exec did, as far as exec came (§9.6): allowed exactly when step 4 let it past and
// with the same refusal, argument rules named when step 5 found one, and whether a confirmation of one's own counts.
func (w *world) explained(id, verb string, res protocol.Result, seen map[string]int) {
	w.t.Helper()
	step := 10
	if !res.OK {
		step = res.Error.Step
	}
	if step < 4 {
		return
	}
	e, refusal := w.life.Explain(w.s, lifecycle.Question{Principal: w.s.Principal, Pack: id, Verb: verb})
	if refusal != nil {
		w.t.Fatal(refusal)
	}
	wrong := func(what string) {
		w.t.Helper()
		w.t.Errorf("%s/%s as %s: %s: explain says %+v, exec did %+v", id, verb, w.s.Principal, what, e, res.Error)
	}
	seen["explained"]++
	if e.Allowed == (step == 4) {
		wrong("allowed")
		return
	}
	if step == 4 {
		seen["explained: refused"]++
		seen["explained: "+string(res.Error.Code)]++
		if e.Error.Code != res.Error.Code || e.Error.Message != res.Error.Message || fmt.Sprint(e.Error.Details) != fmt.Sprint(res.Error.Details) {
			wrong("refused otherwise")
		}
		if strings.Contains(strings.Join(e.Path, " "), "hcp.toml") {
			seen["explained: by hcp.toml"]++
		}
		return
	}
	if step == 5 && res.Error.Code == protocol.GrantMissing {
		seen["explained: arguments"]++
		if len(e.Rules) == 0 {
			wrong("no argument rule is named")
		}
	}
	if step > 5 && e.Confirm && len(e.Rules) == 0 {
		if e.OwnConfirm == (step == 6) {
			wrong("own confirmation")
		}
		if e.OwnConfirm {
			seen["explained: own confirmation"]++
		} else {
			seen["explained: no own confirmation"]++
		}
	}
}
