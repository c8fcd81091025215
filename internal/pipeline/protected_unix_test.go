//go:build unix

package pipeline

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hcpx/internal/binding"
	"hcpx/internal/protect"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
)

// meddler is a sandbox whose command does what a test says.
type meddler struct {
	*recorder
	do func()
}

func (m *meddler) Prepare(s *sandbox.Spec) (sandbox.Box, *protocol.Error) {
	if _, err := m.recorder.Prepare(s); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *meddler) Run(ctx context.Context) (*sandbox.Outcome, *protocol.Error) {
	m.do()
	return m.recorder.Run(ctx)
}

// workspace is a rig with a pack that writes the workspace, one that reads it, and a command that does something.
func workspace(t *testing.T, do func(root string)) (*rig, string) {
	t.Helper()
	r := newRig(t)
	root := t.TempDir()
	r.s.Workspace, r.s.Dir = root, root
	r.p.Gate.Sandbox = &meddler{r.box, func() { do(root) }}
	r.install("edit", `{"hcp":{"version":"1.1"},"id":"edit","version":"1.0.0","summary":"An editor.","adapter":"wrap","wrap":{"bin":"./bin/tool"},
"verbs":{"save":{"summary":"S","argv":["x"]},"make":{"summary":"M","argv":["x"]},"look":{"summary":"L","argv":["x"]}}}`,
		`{"surface_id":"edit","must_understand":["protected"],"verbs":{"save":{"operation":"write","privacy":{"land":"local"}},"look":{"operation":"read","privacy":{"land":"local"}},
"make":{"operation":"write","privacy":{"land":"local"},"protected":["Makefile"]}}}`)
	r.activate("edit", false)
	return r, root
}

func evil(path string) func(string) {
	return func(root string) { _ = os.WriteFile(root+"/"+path, []byte("evil"), 0o644) } // a miss shows in the test
}

// §10.2: the result of a run that changed a protected name is withheld, however the run ended, and both hashes are told.
func Test_10_2_ProtectedPathChanged(t *testing.T) {
	for name, outcome := range map[string]sandbox.Outcome{
		"done": {Stdout: []byte(`{"ok":true}`)}, "failed": {Exit: 1}, "late": {Exit: -1, TimedOut: true}, "canceled": {Exit: -1, Canceled: true},
	} {
		r, root := workspace(t, evil("Makefile"))
		if err := os.WriteFile(root+"/Makefile", []byte("all:\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		r.box.outcome = outcome
		res := r.exec(`{"pack_id":"edit","verb_key":"save"}`)
		r.refused(res, protocol.ProtectedPathChanged, 10)
		b, err := json.Marshal(res)
		if err != nil || res.Result != nil || strings.Count(string(b), `"sha256"`) != 2 || !strings.Contains(string(b), `"path":"Makefile"`) || (res.Error.Details["error"] != nil) == (name == "done") {
			t.Errorf("%s: %s %v", name, b, err)
		}
		if text, err := os.ReadFile(root + "/Makefile"); string(text) != "all:\n" {
			t.Error(name, string(text), err)
		}
		last := r.log.entries[len(r.log.entries)-1]
		if last.Code != string(protocol.ProtectedPathChanged) || !strings.Contains(string(last.Detail), "Makefile") {
			t.Errorf("%+v", last)
		}
	}
}

// §4.7, §13.2: a policy that demands it is understood, and what it names may change.
func Test_4_7_ChangedByDesign(t *testing.T) {
	r, root := workspace(t, evil("Makefile"))
	if res := r.exec(`{"pack_id":"edit","verb_key":"make"}`); !res.OK {
		t.Error(res.Error)
	}
	if _, err := os.Stat(root + "/Makefile"); err != nil {
		t.Error(err)
	}
	r, _ = workspace(t, evil(".envrc"))
	r.refused(r.exec(`{"pack_id":"edit","verb_key":"make"}`), protocol.ProtectedPathChanged, 10)
}

// A command that panics inside the runtime is looked after all the same.
func Test_10_2_AfterAPanic(t *testing.T) {
	r, root := workspace(t, func(root string) { evil(".envrc")(root); panic("the sandbox broke") })
	r.refused(r.exec(`{"pack_id":"edit","verb_key":"save"}`), protocol.ProtectedPathChanged, 10)
	if _, err := os.Lstat(root + "/.envrc"); err == nil {
		t.Error("it stands")
	}
}

// A read, and a write of another land, pay nothing: no journal, no lock, no word in the plan.
func Test_10_2_OthersPayNothing(t *testing.T) {
	r, root := workspace(t, func(string) {})
	plan := func(pack, verb string) string {
		return string(r.p.Plan(context.Background(), r.s, []byte(`{"pack_id":"`+pack+`","verb_key":"`+verb+`","args":{}}`)).Result)
	}
	if res := r.exec(`{"pack_id":"edit","verb_key":"look"}`); !res.OK || strings.Contains(plan("edit", "look"), "protected") {
		t.Error(res.Error, plan("edit", "look"))
	}
	if _, err := os.Stat(r.store.Home() + "/quarantine"); err == nil {
		t.Error("a read made a journal")
	}
	if got := plan("edit", "save"); !strings.Contains(got, `"may_change":[]`) {
		t.Error(got)
	}
	if got := plan("edit", "make"); !strings.Contains(got, `"may_change":["Makefile"]`) || !strings.Contains(got, "hooks") {
		t.Error(got)
	}
	_ = root
}

// §10.2: what a killed runtime left holds up the next write in the workspace, at step 8, and no read.
func Test_10_2_CutOffRunHoldsUpTheNext(t *testing.T) {
	r, root := workspace(t, func(string) {})
	home := r.store.Home() + "/quarantine"
	r.p.Gate.Sandbox = &meddler{r.box, func() {
		evil(".envrc")(root)
		if err := os.CopyFS(home+"/copy", os.DirFS(home+"/.open/run-1")); err != nil { // the journal, as a kill would leave it
			t.Error(err)
		}
	}}
	r.refused(r.exec(`{"pack_id":"edit","verb_key":"save"}`), protocol.ProtectedPathChanged, 10)
	if err := os.Rename(home+"/copy", home+"/.open/run-1"); err != nil {
		t.Fatal(err)
	}
	evil(".envrc")(root)
	r.log.entries, r.box.runs, r.box.prepared = nil, 0, nil
	res := r.exec(`{"pack_id":"edit","verb_key":"save"}`)
	r.refused(res, protocol.ProtectedPathChanged, 8)
	r.log.entries = nil
	planned := r.p.Plan(context.Background(), r.s, []byte(`{"pack_id":"edit","verb_key":"save","args":{}}`))
	r.refused(planned, protocol.ProtectedPathChanged, 8)
	if planned.Error.Message != res.Error.Message || planned.Error.Hint != res.Error.Hint {
		t.Error("plan says otherwise:", planned.Error)
	}
	if looked := r.p.Plan(context.Background(), r.s, []byte(`{"pack_id":"edit","verb_key":"look","args":{}}`)); !looked.OK {
		t.Error(looked.Error)
	}
	if res.Error.Hint != "hcpx repair" || !slices.Contains(protocol.ProtectedPathChanged.Info().Steps, 8) {
		t.Error(res.Error)
	}
	r.p.Gate.Sandbox = r.box
	if res := r.exec(`{"pack_id":"edit","verb_key":"look"}`); !res.OK {
		t.Error(res.Error)
	}
}

// A step that is refused after the look leaves no journal.
func Test_10_2_RefusedAfterTheLook(t *testing.T) {
	r, _ := workspace(t, func(string) {})
	r.log.failAt = 1
	if res := r.exec(`{"pack_id":"edit","verb_key":"save"}`); res.OK || res.Error.Code != protocol.InternalError {
		t.Error(res)
	}
	if entries, err := os.ReadDir(r.store.Home() + "/quarantine/.open"); err != nil || len(entries) > 0 {
		t.Error(entries, err)
	}
}

// §10.2: a write command waits for another in the workspace no longer than its own time limit, and then says why it did
// not run; a note that cannot be written changes nothing of the answer.
func Test_10_2_WaitsForItsTurn(t *testing.T) {
	r, root := workspace(t, evil(".envrc"))
	other, err := protect.Begin(context.Background(), protect.Watch{Home: r.store.Home(), Run: "other", Root: root})
	if err != nil {
		t.Fatal(err)
	}
	r.p.Gate.Limits.Wall = 20 * time.Millisecond
	res := r.exec(`{"pack_id":"edit","verb_key":"save"}`)
	r.refused(res, protocol.SandboxUnavailable, 8)
	if !strings.Contains(res.Error.Message, "Another write command is running in "+root) || res.Error.Hint != "hcpx audit tail" {
		t.Error(res.Error)
	}
	if _, err := other.End(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(r.store.Home()+"/quarantine/run-2", nil, 0o600); err != nil { // nothing can be kept or noted there
		t.Fatal(err)
	}
	res = r.exec(`{"pack_id":"edit","verb_key":"save"}`)
	r.refused(res, protocol.ProtectedPathChanged, 10)
	if _, err := os.Lstat(root + "/.envrc"); err == nil || res.Error.Details["fault"] != nil {
		t.Error(err, res.Error)
	}
}

// §10.2, §15.1: what can't be remembered refuses exec and plan alike, by the same words and with a command that shows it; a
// look makes nothing.
func Test_10_2_PlanFindsWhatCannotBeGuarded(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(root string) error
		hint string // after the workspace
	}{
		"too many files": {func(root string) error {
			err := os.Mkdir(root+"/.husky", 0o755)
			for i := range 4100 {
				err = errors.Join(err, os.WriteFile(root+"/.husky/"+strconv.Itoa(i), nil, 0o644))
			}
			return err
		}, "/.husky"},
		"too large": {func(root string) error {
			return errors.Join(os.WriteFile(root+"/Makefile", nil, 0o644), os.Truncate(root+"/Makefile", 65<<20))
		}, "/Makefile"},
	} {
		r, root := workspace(t, func(string) { t.Error("it ran") })
		if err := c.do(root); err != nil {
			t.Fatal(err)
		}
		const call = `{"pack_id":"edit","verb_key":"save","args":{}}`
		planned := r.p.Plan(context.Background(), r.s, []byte(call))
		r.refused(planned, protocol.SandboxUnavailable, 8)
		if _, err := os.Lstat(r.store.Home() + "/quarantine"); err == nil {
			t.Error(name, "plan made a journal")
		}
		r.log.entries = nil
		done := r.exec(call)
		r.refused(done, protocol.SandboxUnavailable, 8)
		if e := planned.Error; e.Message != done.Error.Message || e.Hint != done.Error.Hint || e.Hint != "du -a "+root+c.hint || e.Details["rule"] != "protected-names" {
			t.Errorf("%s: plan %+v, exec %+v", name, e, done.Error)
		}
	}
}

// §8.4: a command that names a file after its credential gets it into no record, error, hint or entry.
func Test_8_4_NoCredentialInANameThatTheCommandChose(t *testing.T) {
	for _, name := range []string{binding.MockCredential, strings.Repeat("x", 40) + binding.MockCredential, base64.RawURLEncoding.EncodeToString([]byte(binding.MockCredential))} {
		r, root := workspace(t, func(root string) {
			_ = os.MkdirAll(root+"/.git/hooks", 0o755) // a miss shows below
			evil(".git/hooks/" + name)(root)
		})
		if err := os.MkdirAll(root+"/.git/hooks", 0o755); err != nil {
			t.Fatal(err)
		}
		r.install("edit", `{"hcp":{"version":"1.1"},"id":"edit","version":"1.0.0","summary":"An editor.","adapter":"wrap","wrap":{"bin":"./bin/tool"},
"binding":{"mode":"mock","hub":"none","inject":{"env":{"TOKEN":"{token}"}}},"verbs":{"save":{"summary":"S","argv":["x"]}}}`,
			`{"surface_id":"edit","verbs":{"save":{"operation":"write","privacy":{"land":"local"}}}}`)
		r.activate("edit", true)
		res := r.exec(`{"pack_id":"edit","verb_key":"save"}`)
		r.refused(res, protocol.ProtectedPathChanged, 10)
		said, err := json.Marshal([]any{res, r.log.entries})
		if err != nil || strings.Contains(string(said), name) || strings.Contains(string(said), binding.MockCredential) || !strings.Contains(string(said), protocol.Redacted) {
			t.Errorf("%s %v", said, err)
		}
		kept, err := os.ReadFile(r.store.Home() + "/quarantine/" + r.log.entries[0].ID + "/changes.json")
		if err != nil || strings.Contains(string(kept), name) || !strings.Contains(string(kept), `.git/hooks/`) {
			t.Errorf("%s %v", kept, err)
		}
	}
}
