package lint

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/pack"
)

// version loads the good pack "notes", or a small pack of another adapter, after the changes.
func version(t *testing.T, name string, changes ...change) *pack.Pack {
	t.Helper()
	files := base(t, name)
	for _, c := range changes {
		text := string(files[c.file].Data)
		if !strings.Contains(text, c.old) {
			t.Fatalf("%s has no %q", c.file, c.old)
		}
		files[c.file].Data = []byte(strings.Replace(text, c.old, c.new, 1))
	}
	p, err := pack.Open(files)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func told(old, next *pack.Pack) (all []string) {
	for _, c := range Against(old, next) {
		mark := "  "
		if c.Widens {
			mark = "! "
		}
		all = append(all, mark+c.What)
	}
	return all
}

// §13.3: each thing that lets a pack do more is held, and every other difference is told.
func Test_13_3_AgainstTellsWhatAVersionChanges(t *testing.T) {
	wrap := func(old, new string) change { return change{"surface.json", old, new} }
	policy := func(old, new string) change { return change{"policy.json", old, new} }
	for _, c := range []struct {
		name          string
		before, after []change
		want          []string
	}{
		{name: "nothing"},
		{"a summary", nil, []change{wrap("Keep notes.", "Keep short notes.")}, nil},
		{"program", nil, []change{wrap(`"./bin/notes"`, `"./bin/other"`)}, []string{"! its program changes from ./bin/notes to ./bin/other"}},
		{"uses", nil, []change{wrap(`["sh"]`, `["sh", "curl"]`)}, []string{"! it now starts curl"}},
		{"reads", nil, []change{wrap(`"wrap": {`, `"wrap": { "reads": ["~/.x"],`)}, []string{"! it now reads ~/.x"}},
		{"network full", nil, []change{wrap(`"wrap": {`, `"wrap": { "network": "full",`)}, []string{"! its network is now full"}},
		{"a host", nil, []change{wrap(`"wrap": {`, `"wrap": { "network": { "hosts": ["a.example:443"], "operator_hosts": true },`)},
			[]string{"! it may now reach a.example:443", "! it may now reach hosts that the operator names"}},
		{"hosts after full", []change{wrap(`"wrap": {`, `"wrap": { "network": "full",`)}, []change{wrap(`"wrap": {`, `"wrap": { "network": { "hosts": ["a.example:443"] },`)},
			[]string{"  its network is now hosts"}},
		{"no network any more", []change{wrap(`"wrap": {`, `"wrap": { "network": "full",`)}, nil, []string{"  its network is now none"}},
		{"native-local", nil, []change{wrap(`"wrap": {`, `"wrap": { "isolation": "native-local",`)}, []string{"! it now asks to run outside the sandbox"}},
		{"workspace", []change{wrap(`"wrap": {`, `"wrap": { "workspace": "read",`)}, nil, []string{"! its writes may now change the workspace"}},
		{"pass-through", nil, []change{wrap(`"wrap": {`, `"wrap": { "allowedSubcommands": ["a"], "maxArgv": 2,`)}, []string{"! it passes more arguments through to its program"}},
		{"environment", nil, []change{wrap(`"eu"`, `"us"`)}, []string{"  its environment changes"}},
		{"plane", nil, []change{wrap(`"adapter": "wrap",`, `"adapter": "wrap", "plane": "control",`)}, []string{"! its plane changes from runtime to control"}},
		{"family", nil, []change{wrap(`"adapter": "wrap",`, `"adapter": "wrap", "family": "acme",`)}, []string{`! it now shares its consent with the family "acme"`}},
		{"binding", nil, []change{wrap(`"adapter": "wrap",`, `"adapter": "wrap", "binding": { "mode": "mock" },`)}, []string{"! its binding changes from public to mock"}},
		{"binding's source", []change{wrap(`"adapter": "wrap",`, `"adapter": "wrap", "binding": { "mode": "local", "hub": "local-credential", "source": { "kind": "env", "name": "A" } },`)},
			[]change{wrap(`"adapter": "wrap",`, `"adapter": "wrap", "binding": { "mode": "local", "hub": "local-credential", "source": { "kind": "env", "name": "B" } },`)},
			[]string{"! its local binding changes its hub, its source or where the credential goes"}},
		{"no credential any more", []change{wrap(`"adapter": "wrap",`, `"adapter": "wrap", "binding": { "mode": "mock" },`)}, nil, []string{"  it no longer needs a credential"}},
		{"must_understand", []change{wrap(`"adapter": "wrap",`, `"adapter": "wrap", "must_understand": ["fence"],`)}, nil, []string{`! its manifest no longer demands that the runtime understands "fence"`}},
		{"must_understand of the policy", []change{policy(`"verbs": {`, `"must_understand": ["fence"], "verbs": {`)}, nil, []string{`! its policy no longer demands that the runtime understands "fence"`}},
		{"must_understand of a command", []change{wrap(`"summary": "Add a note",`, `"summary": "Add a note", "must_understand": ["fence"],`)}, nil,
			[]string{`! note.add no longer demands that the runtime understands "fence"`}},
		{"policy", nil, []change{policy(`"note.list": { "operation": "read"`, `"note.list": { "operation": "write"`)}, []string{"! note.list: a read is now a write"}},
		{"argv", nil, []change{wrap(`"argv": ["add", "--", "{text}"]`, `"argv": ["put", "--", "{text}"]`)}, []string{"  note.add: what it runs changes (argv)"}},
	} {
		got := told(version(t, "notes", c.before...), version(t, "notes", c.after...))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func Test_13_3_CommandsThatComeAndGo(t *testing.T) {
	old := version(t, "notes")
	next := version(t, "notes", change{"surface.json", `"note.list": {`, `"note.all": {`}, change{"policy.json", `"note.list": {`, `"note.all": {`})
	if diff := cmp.Diff([]string{"  the command note.list is gone", "  the command note.all is new: read, land personal"}, told(old, next)); diff != "" {
		t.Error(diff)
	}
}

// A version that can't be read is never taken for a harmless one.
func Test_13_3_WhatCannotBeReadWidens(t *testing.T) {
	for _, c := range Against(&pack.Pack{}, version(t, "notes")) {
		if !c.Widens {
			t.Error(c.What)
		}
	}
	if len(Against(&pack.Pack{}, version(t, "notes"))) == 0 {
		t.Error("nothing is said")
	}
}
