package lifecycle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/adapter/composite"
	"hcpx/internal/jq"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// composites installs a pack of composites over notes: one calls the brain, one calls that one, one computes only.
func (w *world) composites() {
	w.t.Helper()
	w.Gate.Adapters[manifest.Composite] = composite.New(jq.New())
	w.Machine = jq.New()
	dir := filepath.Join(w.t.TempDir(), "digest")
	write(w.t, filepath.Join(dir, "surface.json"), `{
  "hcp": { "version": "1.1" }, "id": "digest", "version": "1.0.0", "summary": "Sums notes up.", "adapter": "composite",
  "verbs": {
    "team": { "summary": "For the team", "steps": [{ "id": "a", "pack": "notes", "verb": "share" }], "examples": [{ "args": {} }] },
    "deep": { "summary": "Deeper", "steps": [{ "id": "a", "verb": "team" }], "examples": [{ "args": {} }] },
    "here": { "summary": "Here", "steps": [{ "id": "a", "verb": "deep" }], "examples": [{ "args": {} }] },
    "sum": { "summary": "A sum", "steps": [{ "id": "a", "value": "1" }], "examples": [{ "args": {} }] }
  }
}`, 0o644)
	write(w.t, filepath.Join(dir, "policy.json"), `{ "surface_id": "digest", "verbs": {
    "team": { "operation": "write", "privacy": { "land": "personal" } },
    "deep": { "operation": "write", "privacy": { "land": "personal" } },
    "here": { "operation": "write", "privacy": { "land": "local" } },
    "sum": { "operation": "read", "privacy": { "land": "personal" } }
  } }`, 0o644)
	write(w.t, filepath.Join(dir, "HARNESS.md"), "# Digest\n\nSum notes up.\n\nUse `hcpx exec digest team`, `hcpx exec digest deep`, `hcpx exec digest here` and `hcpx exec digest sum`.\n", 0o644)
	w.install(dir, InstallOptions{})
	if _, err := w.Activate(ada, []string{"digest"}); err != nil {
		w.t.Fatal(err)
	}
}

func Test_11_2_ACompositeNeedsWhatItsStepsNeed(t *testing.T) {
	w := newWorld(t)
	w.ready("notes")
	w.composites()
	got := map[string][]string{}
	for verb, c := range w.available(ada, "digest").Commands {
		got[verb] = c.Needs
	}
	want := map[string][]string{"team": {"project"}, "deep": {"project"}, "here": {"project", "workspace"}, "sum": {}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func Test_11_1_UninstallNamesTheCompositesThatCallThePack(t *testing.T) {
	w := newWorld(t)
	w.ready("notes")
	w.ready("memos")
	w.composites()
	for id, want := range map[string][]string{"memos": {}, "notes": {"digest"}} {
		view, err := w.Uninstall(t.Context(), ada, id, UninstallOptions{})
		if err != nil || !cmp.Equal(view.Callers, want) {
			t.Errorf("%s: %+v %v", id, view, err)
		}
	}
}

// What other sessions keep in a pack is not removed unasked: where nobody can be asked, --purge takes --force.
func Test_11_1_PurgeUnaskedLeavesTheDataOfOtherSessions(t *testing.T) {
	w := newWorld(t)
	w.ready("notes")
	if _, err := w.Activate(in("other"), []string{"notes"}); err != nil {
		t.Fatal(err)
	}
	key := store.LandKey{Tenant: "local", Land: protocol.Personal, Principal: "human:ada", Pack: "notes"}
	if err := w.Store.MakeLand(key); err != nil {
		t.Fatal(err)
	}
	_, err := w.Uninstall(t.Context(), ada, "notes", UninstallOptions{Purge: true})
	refused(t, err, protocol.UsageError)
	if !strings.Contains(err.Message, "other") || !strings.Contains(err.Hint, "--force") || !w.mustState().IsActivated("other", "notes") {
		t.Errorf("%v, hint %s", err, err.Hint)
	}
	if _, err := os.Stat(w.Store.LandDir(key)); err != nil {
		t.Error("the data are gone")
	}
	if view, err := w.Uninstall(t.Context(), ada, "notes", UninstallOptions{Purge: true, Force: true}); err != nil || !view.Purged {
		t.Errorf("%+v %v", view, err)
	}
	w.ready("memos")
	if _, err := w.Activate(in("other"), []string{"memos"}); err != nil {
		t.Fatal(err)
	}
	if view, err := w.Uninstall(t.Context(), ada, "memos", UninstallOptions{}); err != nil || !cmp.Equal(view.Sessions, []string{"default", "other"}) {
		t.Errorf("%+v %v", view, err)
	}
}

// reading is a pack with one read that has the step, written to a directory.
func reading(t *testing.T, step string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "peek")
	write(t, filepath.Join(dir, "surface.json"), `{ "hcp": { "version": "1.1" }, "id": "peek", "version": "1.0.0", "summary": "Peek.", "adapter": "composite",
  "verbs": { "go": { "summary": "Go", "steps": [`+step+`], "examples": [{ "args": {} }] } } }`, 0o644)
	write(t, filepath.Join(dir, "policy.json"), `{ "surface_id": "peek", "verbs": { "go": { "operation": "read", "privacy": { "land": "personal" } } } }`, 0o644)
	write(t, filepath.Join(dir, "HARNESS.md"), "# Peek\n\nPeek.\n\nUse `hcpx exec peek go`.\n", 0o644)
	return dir
}

// §3.5: a read composite over a write is refused by install, against the packs that are installed.
func Test_3_5_InstallRefusesAnEscalationOverInstalledPacks(t *testing.T) {
	w := newWorld(t)
	w.Machine = jq.New()
	dir := reading(t, `{ "id": "a", "pack": "notes", "verb": "share" }`)
	if v, err := w.Lint([]string{dir}); err != nil || len(v.Issues) > 0 {
		t.Errorf("alone nobody knows what notes is: %+v %v", v, err)
	}
	w.ready("notes")
	_, err := w.Install(ada, []string{dir}, InstallOptions{})
	refused(t, err, protocol.LintFailed)
	issues, _ := err.Details["issues"].([]protocol.Issue)
	if len(issues) != 1 || issues[0].Code != "composite.escalation" || issues[0].Pointer != "/verbs/go/steps/0/verb" {
		t.Errorf("%+v", issues)
	}
	if _, err := w.Store.Meta("peek"); err == nil {
		t.Error("it is installed")
	}
}

// §3.5, §11: where nothing judges expressions, lint and install of a pack that has some are refused as a whole, and
// doctor says so; everything else goes on.
func Test_3_5_WithoutAMachineNothingIsJudged(t *testing.T) {
	w := newWorld(t)
	w.ready("notes")
	w.composites()
	w.Machine = nil
	dir, plain := reading(t, `{ "id": "a", "value": "1" }`), w.pack("memos")
	v, err := w.Lint([]string{plain, dir})
	refused(t, err, protocol.ComponentMissing)
	if len(v.Issues) > 0 {
		t.Errorf("%+v", v)
	}
	for _, dirs := range [][]string{{plain, dir}, {dir, "/no/such/pack"}} {
		_, err = w.Install(ada, dirs, InstallOptions{})
		refused(t, err, protocol.ComponentMissing)
	}
	for _, id := range []string{"peek", "memos"} {
		if _, err := w.Store.Meta(id); err == nil {
			t.Errorf("%s is installed", id)
		}
	}
	said := ""
	for _, f := range w.Doctor(ada).Findings {
		if f.Subject == "digest" {
			said += f.Message
		}
	}
	if !strings.Contains(said, "cannot be linted") {
		t.Errorf("doctor says %q of digest", said)
	}
	if _, err := w.Install(ada, []string{plain}, InstallOptions{}); err != nil {
		t.Error(err)
	}
}

// §3.5: what does not compile, or reaches for what is closed, is found by lint with its place.
func Test_3_5_LintJudgesExpressions(t *testing.T) {
	w := newWorld(t)
	w.Machine = jq.New()
	for _, closed := range []string{"now", "localtime", "$ENV.PATH", "input", "{t: ([1] | map(mktime))}", "debug", "import \\\"a\\\" as a; 1", "{"} {
		v, err := w.Lint([]string{reading(t, `{ "id": "a", "value": "`+closed+`" }`)})
		if err != nil || len(v.Issues) != 1 || v.Issues[0].Code != "composite.expression" || v.Issues[0].Pointer != "/verbs/go/steps/0/value" || v.Issues[0].Line != 2 {
			t.Errorf("%s: %+v %v", closed, v, err)
		}
	}
}
