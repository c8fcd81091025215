//go:build unix

package pipeline

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/grant"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
	"hcpx/internal/stamp"
	"hcpx/internal/store"
)

var plans = flag.Int("plans", 150, "how many random packs are planned and run")

// land is where random packs run: programs that are allowed, a workspace, and files under a home.
type country struct {
	t                 *testing.T
	programs, home    string
	workspace, gitdir string
}

func newCountry(t *testing.T) country {
	t.Helper()
	root := t.TempDir()
	c := country{t, filepath.Join(root, "bin"), filepath.Join(root, "home"), filepath.Join(root, "work"), filepath.Join(root, "git")}
	for _, dir := range []string{c.programs, filepath.Join(c.programs, "more"), filepath.Join(c.home, ".conf"), filepath.Join(c.workspace, "sub"), c.gitdir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{filepath.Join(c.programs, "prog"), filepath.Join(c.programs, "other"), filepath.Join(c.home, ".conf", "a"), filepath.Join(c.home, ".conf", "b")} {
		if err := os.WriteFile(file, []byte(file), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// dice are the choices of one seed.
type dice struct{ *rand.Rand }

func (d dice) of(words ...string) string { return words[d.IntN(len(words))] }
func (d dice) yes() bool                 { return d.IntN(2) == 0 }

func (d dice) some(words ...string) []string {
	d.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
	return words[:d.IntN(len(words)+1)]
}

func written(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// pack is a random wrap pack: surface.json and policy.json. It may ask for what nobody allowed.
func (d dice) pack() (surface, policy string) {
	block := map[string]any{"bin": d.of("./bin/tool", "prog", "prog", "missing"), "uses": d.some("other", "./bin/tool", "prog", "more/"), "reads": d.some("~/.conf/a", "~/.conf/b", "~/.conf/none"),
		"network": []any{"none", "full", map[string]any{"hosts": []string{"api.example.org:443", "10.0.0.1:80"}}, map[string]any{"hosts": []string{"a.example.org:1"}, "operator_hosts": true}, map[string]any{"operator_hosts": true}}[d.IntN(5)]}
	env := map[string]string{}
	for _, name := range d.some("GEN_A", "GEN_B", "LANG") {
		env[name] = d.of("", "1", "a b", "ü=x")
	}
	block["env"] = env
	if d.yes() {
		block["workspace"] = "read"
	}
	if d.IntN(5) == 0 {
		block["isolation"] = "native-local"
	}
	m := map[string]any{"hcp": map[string]string{"version": "1.1"}, "id": "gen", "version": "1.0.0", "summary": "Random.", "adapter": "wrap", "wrap": block}
	if d.yes() {
		m["binding"] = map[string]any{"mode": "mock", "hub": "none", "inject": map[string]any{"env": map[string]string{"GEN_TOKEN": "{token}", "GEN_HEADER": "Bearer {token}"}, "file": map[string]string{"GEN_FILE": "{token}"}}}
	}
	argv := []any{"go"}
	for _, piece := range d.some("--s={s}", "--n={n}", "-x") {
		argv = append(argv, piece)
	}
	if d.yes() {
		argv = append(argv, map[string]any{"if": "b", "then": []string{"--flag"}, "else": []string{"--no-flag"}})
	}
	if d.yes() {
		argv = append(argv, map[string]any{"each": "l", "argv": []string{"--item", "{}"}})
	}
	argv = append(argv, "--", "{s}", "{n}")
	props := map[string]any{"s": map[string]any{"type": "string", "default": d.of("dflt", "")}, "n": map[string]any{"type": "number"}, "b": map[string]any{"type": "boolean"},
		"l": map[string]any{"type": "array", "items": map[string]any{"type": "string"}}}
	m["verbs"] = map[string]any{"go": map[string]any{"summary": "Go", "argv": argv, "timeout": d.of("1s", "5m", "1h"), "args": map[string]any{"type": "object", "properties": props}}}
	entry := map[string]any{"operation": d.of("read", "write"), "privacy": map[string]string{"land": d.of("personal", "brain", "local")}}
	if entry["operation"] == "write" && d.yes() {
		entry["confirm"] = map[string]string{"message": "Go {s} {n}?"}
	}
	return written(m), written(map[string]any{"surface_id": "gen", "verbs": map[string]any{"go": entry}})
}

// args are random arguments, some of them not valid.
func (d dice) args() map[string]any {
	args := map[string]any{}
	if d.yes() {
		args["s"] = d.of("", "a", "-x", "a b\nc", "$(id)", "ü\u202e", strings.Repeat("x", 300))
	}
	if d.yes() {
		args["n"] = json.RawMessage(d.of("1", "1.0", "-7", "1e3", "9007199254740993", "0.1000"))
	}
	if d.yes() {
		args["b"] = d.yes()
	}
	if d.yes() {
		args["l"] = d.some("one", "two words", "--three", "")
	}
	if d.IntN(20) == 0 {
		args["s"] = 5
	}
	return args
}

// allow lets in some of what a random pack may ask for.
func (c country) allow(d dice, st *store.State) {
	c.t.Helper()
	for _, name := range d.some("prog", "other", "prog", "other", "more/") {
		path := filepath.Join(c.programs, name)
		b := protocol.AllowedBin{Name: name, Path: path}
		if !strings.HasSuffix(name, "/") {
			s, err := stamp.Of(path, testNow)
			if err != nil {
				c.t.Fatal(err)
			}
			b.Stamp = s
		}
		st.Bins = append(st.Bins, b)
	}
	for _, path := range d.some("~/.conf/a", "~/.conf/b", "~/.conf/none") {
		st.Reads = append(st.Reads, protocol.AllowedRead{Pack: "gen", Path: path})
	}
	for _, host := range d.some("op.example.org:443", "10.1.1.1:22") {
		st.Hosts = append(st.Hosts, protocol.AllowedHost{Pack: "gen", Host: host})
	}
	if d.yes() {
		st.Native = append(st.Native, "gen")
	}
}

// given is what a child gets, as a Spec says it and as a plan does.
type given struct {
	Argv, Env, Hosts        []string
	Cwd, Mode               string
	Reads, Writes, Executes []string
	Isolation               string
	Wall                    string
}

// ofSpec says it of what the sandbox was handed, by the Spec's own words.
func ofSpec(s *sandbox.Spec, box sandbox.Sandbox) given {
	g := given{Argv: append([]string{s.Program.Name}, s.Args...), Cwd: s.Dir, Mode: s.Network.Mode, Hosts: s.Network.Hosts, Isolation: "sandbox"}
	for _, kv := range box.Environ(s, "/home") {
		name, _, _ := strings.Cut(kv, "=")
		g.Env = append(g.Env, name)
	}
	r, w, x := map[string]bool{}, map[string]bool{}, map[string]bool{}
	put := func(in map[string]bool, paths ...string) {
		for _, p := range paths {
			in[p] = true
		}
	}
	put(w, s.Write...)
	put(x, s.Exec...)
	put(x, s.UseDirs...)
	for _, p := range append([]sandbox.Program{s.Program}, s.Uses...) {
		put(x, p.Path)
	}
	put(r, s.Read...)
	for _, l := range s.Links {
		put(r, l.Target)
	}
	g.Reads, g.Writes, g.Executes = slices.Collect(maps.Keys(r)), slices.Collect(maps.Keys(w)), slices.Collect(maps.Keys(x))
	l := s.Limits
	if s.Native {
		all := []string{"/"}
		g.Isolation, g.Mode, g.Hosts, g.Reads, g.Writes, g.Executes = "native-local", "full", nil, all, all, all
	} else {
		l = l.Held()
	}
	g.Wall = l.Wall.String()
	return g.sorted()
}

// sorted leaves the order to what has one, and says none and nothing alike.
func (g given) sorted() given {
	g.Reads = slices.Concat(g.Reads, g.Writes, g.Executes) // what may be written or executed may be read
	slices.Sort(g.Reads)
	g.Reads = slices.Compact(g.Reads)
	for _, list := range []*[]string{&g.Env, &g.Reads, &g.Writes, &g.Executes, &g.Hosts} {
		slices.Sort(*list)
		if len(*list) == 0 {
			*list = nil
		}
	}
	return g
}

// ofPlan says it of a plan.
func ofPlan(t *testing.T, text []byte) given {
	t.Helper()
	var p struct {
		Argv, Env, Reads, Writes, Executes []string
		Cwd, Isolation                     string
		Network                            struct {
			Mode  string
			Hosts []string
		}
		Limits struct{ Wall string }
	}
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	for _, list := range [][]string{p.Reads, p.Writes, p.Executes} {
		for i, path := range list {
			list[i] = strings.TrimSuffix(path, "/")
			if list[i] == "" {
				list[i] = "/"
			}
		}
		slices.Sort(list)
	}
	return given{Argv: p.Argv, Env: p.Env, Hosts: p.Network.Hosts, Cwd: p.Cwd, Mode: p.Network.Mode, Reads: slices.Compact(p.Reads), Writes: slices.Compact(p.Writes), Executes: slices.Compact(p.Executes),
		Isolation: p.Isolation, Wall: p.Limits.Wall}.sorted()
}

// §15.1: over random packs, allow-lists, callers and arguments, plan refuses where exec refuses, with the same code and step;
// else the planned argv, directory, names of the environment, paths, network and time are what the sandbox was given, and
// the intent has the plan's hash of the very run.
func Test_15_1_WhatIsPlannedIsWhatIsGiven(t *testing.T) {
	c := newCountry(t)
	count := map[string]int{}
	for seed := range uint64(*plans) {
		d := dice{rand.New(rand.NewPCG(seed, 151))}
		r := newRig(t)
		r.p.Gate.Places.Home = c.home
		surface, policy := d.pack()
		r.install("gen", surface, policy)
		r.activate("gen", true)
		r.s = protocol.Session{ID: "default", Principal: protocol.Principal(d.of("human:ada", "agent:a", "service:x")), Tenant: "local", Project: d.of("", "apollo"),
			Workspace: c.workspace, GitDirs: d.some(c.gitdir), Dir: d.of(c.workspace, filepath.Join(c.workspace, "sub"), c.home)}
		if err := r.store.Update(func(st *store.State) error {
			c.allow(d, st)
			st.Grants = append(st.Grants, grant.Grant{Principal: "*", Effect: grant.Allow, Capabilities: protocol.Capabilities, SelfConfirm: d.yes(), Projects: []string{d.of("*", "apollo")}})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		envelope := map[string]any{"pack_id": "gen", "verb_key": "go", "args": d.args(), "confirm": true}
		text := written(envelope)
		planned := r.p.Plan(context.Background(), r.s, []byte(text))
		if len(r.box.prepared) > 0 || r.hub.count > 0 {
			t.Fatalf("seed %d: plan did something", seed)
		}
		done := r.exec(text)
		fail := func(format string, a ...any) {
			t.Fatalf("seed %d: %s\n%s\n%s\n%s", seed, fmt.Sprintf(format, a...), surface, policy, text)
		}
		switch {
		case !planned.OK && !done.OK && planned.Error.Code == done.Error.Code && planned.Error.Step == done.Error.Step:
			count[string(done.Error.Code)]++
			continue
		case !planned.OK && planned.Error.Step == 8 && !done.OK && done.Error.Step == 6: // the confirmation comes first, and says so too
			if inner, ok := done.Error.Details["error"].(*protocol.Error); !ok || inner.Code != planned.Error.Code {
				fail("plan refuses with %+v, exec says %+v", planned.Error, done.Error)
			}
			count["blocked"]++
			continue
		case !planned.OK:
			fail("plan refuses with %+v, exec says %+v", planned.Error, done.Error)
		case !done.OK && done.Error.Step == 6:
			if !strings.Contains(string(planned.Result), `"needed":true,"given":false`) {
				fail("exec wants a confirmation, plan says %s", planned.Result)
			}
			count["confirm_required"]++
			continue
		case len(r.box.prepared) != 1:
			fail("plan is fine, exec says %+v", done.Error)
		}
		count["ran, "+ofPlan(t, planned.Result).Isolation]++
		if diff := cmp.Diff(ofSpec(r.box.prepared[0], r.box), ofPlan(t, planned.Result)); diff != "" {
			fail("given - and planned + differ:\n%s", diff)
		}
	}
	t.Log(count)
	for _, kind := range []string{"ran, sandbox", "ran, native-local", "confirm_required", "blocked", "bin_not_allowed", "invalid_args", "sandbox_unavailable"} {
		if count[kind] == 0 && *plans >= 150 {
			t.Errorf("no seed came to %s: the packs are too tame", kind)
		}
	}
}
