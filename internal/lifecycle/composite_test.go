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
