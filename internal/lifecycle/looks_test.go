package lifecycle

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/gate"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
)

// contents are all files below dir with their text.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			all[path] = ""
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Who looks writes nothing, even where a crash cut a change off: it is shown as it will be, and named.
func TestHCP_12_1_9_LookingFinishesNothing(t *testing.T) {
	w := newWorld(t)
	disk := onDisk(t, w)
	if err := w.EnsureBootstrap(ada); err != nil {
		t.Fatal(err)
	}
	w.ready("notes", `"bin": "tool"`, `"bin": "tool", "probe": ["--version"]`)
	var scratch []string
	w.Scratch = func(dir string) sandbox.Sandbox { scratch = append(scratch, dir); return w.box }
	journal := filepath.Join(disk.Home(), "packs", ".meta", "memos.journal")
	w.install(w.pack("memos"), InstallOptions{})
	write(t, journal, `{"op":"remove","id":"memos","stage":""}`, 0o600)
	before := contents(t, disk.Home())
	status, doctor := w.Status(ada), w.Doctor(ada)
	list, err := w.List(ada)
	if err != nil {
		t.Fatal(err)
	}
	if p := w.available(ada, "memos"); p.Installed {
		t.Errorf("%+v", p)
	}
	if all, err := w.Availability(ada, nil); err != nil || len(all.Packs) != 2 {
		t.Errorf("%+v %v", all, err)
	}
	if setup, err := w.SetupStatus(ada); err != nil || len(setup.Packs) != 2 {
		t.Errorf("%+v %v", setup, err)
	}
	if diff := cmp.Diff(before, contents(t, disk.Home())); diff != "" {
		t.Errorf("looking changed the store: %s", diff)
	}
	if len(list.Packs) != 2 {
		t.Errorf("listed %+v", list.Packs)
	}
	for _, v := range []HealthView{status, doctor} {
		if !slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.Subject == "memos" && f.Fix == "hcpx repair" }) {
			t.Errorf("the change that was cut off is not named: %v", levels(v))
		}
	}
	if len(scratch) != 2 { // the canary's and the probe's
		t.Fatalf("doctor ran with %v", scratch)
	}
	for _, dir := range scratch {
		if strings.HasPrefix(dir, disk.Home()) {
			t.Errorf("%s lies in the store", dir)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
	if _, err := w.Repair(ada); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(journal); err == nil {
		t.Error("repair left the change unfinished")
	}
}

// Copies of packs that are not installed are found by doctor and swept by repair (§5.4).
func Test_5_4_RepairSweepsCopiesOfPacksThatAreGone(t *testing.T) {
	w := newWorld(t)
	w.ready("notes")
	if err := w.Store.PutSkill("gone", []byte("# Gone\n")); err != nil {
		t.Fatal(err)
	}
	if v := w.Doctor(ada); !slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.Subject == "gone" && f.Level == LevelWarning }) {
		t.Errorf("%v", levels(v))
	}
	if view, err := w.Repair(ada); err != nil || !view.Changed {
		t.Errorf("%+v %v", view, err)
	}
	if ids, err := w.Store.Skills(); err != nil || slices.Contains(ids, "gone") || !slices.Contains(ids, "notes") {
		t.Errorf("%v %v", ids, err)
	}
}

// A damaged hcp-cli names the command that mends it, and a program with another hcp-cli puts its own there.
func TestHCP_11_4_1_RepairPutsTheBootstrapPackBack(t *testing.T) {
	w := newWorld(t)
	disk := onDisk(t, w)
	if err := w.EnsureBootstrap(ada); err != nil {
		t.Fatal(err)
	}
	spoil(t, filepath.Join(disk.Dir(gate.Bootstrap), "policy.json"))
	_, err := w.Gate.Installed(gate.Bootstrap)
	if code(err) != protocol.PackTampered || err.Hint != "hcpx repair" {
		t.Errorf("%v, hint %q", err, err.Hint)
	}
	mended := func() {
		t.Helper()
		if _, err := w.Repair(ada); err != nil {
			t.Fatal(err)
		}
		if err := w.bootstrapIntact(); err != nil {
			t.Error(err)
		}
	}
	mended()
	meta, fault := disk.Meta(gate.Bootstrap)
	if fault != nil {
		t.Fatal(fault)
	}
	record := filepath.Join(disk.Home(), "packs", ".meta", gate.Bootstrap+".json")
	text, fault := os.ReadFile(record)
	if fault != nil {
		t.Fatal(fault)
	}
	// Another release differs in nothing but a file beside the manifest.
	write(t, record, strings.Replace(string(text), meta.Record.Digest, "sha256:"+strings.Repeat("0", 64), 1), 0o600)
	if err := w.EnsureBootstrap(ada); err != nil || !w.Bootstrapped() {
		t.Errorf("the hcp-cli of another release stays: %v", err)
	}
	write(t, record, "{", 0o600)
	if err := w.EnsureBootstrap(ada); err != nil {
		t.Errorf("a damaged record stops every command: %v", err)
	}
	mended()
}

// A connection is ended by whoever may make it; deactivate stays free.
func Test_11_1_DisconnectNeedsTheCapabilityOfConnect(t *testing.T) {
	w := newWorld(t)
	w.ready("notes", mock()...)
	if _, err := w.Connect(t.Context(), ada, "notes", ConnectOptions{}); err != nil {
		t.Fatal(err)
	}
	agent := as("agent:claude-code")
	_, err := w.Disconnect(t.Context(), agent, "notes")
	refused(t, err, protocol.GrantMissing)
	if !w.available(ada, "notes").Connected {
		t.Error("a refused disconnect ended the connection")
	}
	if _, err := w.Deactivate(t.Context(), agent, []string{"notes"}); err != nil {
		t.Error(err)
	}
}

// A pack whose adapter this build lacks is installed and shown as what it is (§3.6).
func Test_11_2_AnAdapterThatIsNotThereIsNotExecutable(t *testing.T) {
	w := newWorld(t)
	dir := filepath.Join(t.TempDir(), "city")
	write(t, filepath.Join(dir, "surface.json"), `{ "hcp": { "version": "1.1" }, "id": "city", "version": "1.0.0", "summary": "Plans trips.", "adapter": "openapi",
  "openapi": { "document": "openapi.json", "server": "https://api.example.org" },
  "verbs": { "plan": { "summary": "Plan a trip", "operation_id": "planTrip", "examples": [{}] } } }`, 0o644)
	write(t, filepath.Join(dir, "policy.json"), `{ "surface_id": "city", "verbs": { "plan": { "operation": "read", "privacy": { "land": "personal" } } } }`, 0o644)
	write(t, filepath.Join(dir, "HARNESS.md"), "# City\n\nPlan trips with `hcpx exec city plan`.\n", 0o644)
	_, err := w.Install(ada, []string{dir}, InstallOptions{})
	refused(t, err, protocol.LintFailed)
	write(t, filepath.Join(dir, "openapi.json"), `{ "openapi": "3.1.0", "paths": { "/trips": { "post": { "operationId": "planTrip" } } } }`, 0o644)
	out := w.install(dir, InstallOptions{})
	if !slices.Equal(out.Network, []string{"https://api.example.org"}) {
		t.Errorf("network %v", out.Network)
	}
	if _, err := w.Activate(ada, []string{"city"}); err != nil {
		t.Fatal(err)
	}
	if p := w.available(ada, "city"); p.Executable || p.Commands["plan"].Reason != protocol.NotExecutable {
		t.Errorf("%+v", p)
	}
}

// No sentence of a refusal ends twice, and each hint is a command that can be typed.
func Test_6_7_SentencesAndHints(t *testing.T) {
	w := newWorld(t)
	seen := []*protocol.Error{}
	note := func(err *protocol.Error) { seen = append(seen, err) }
	_, err := w.Install(ada, []string{filepath.Join(t.TempDir(), "none")}, InstallOptions{})
	note(err)
	_, err = w.Install(ada, []string{w.pack("broken", `"adapter": "wrap",`, ``)}, InstallOptions{})
	note(err)
	_, err = w.Allow(ada, AllowRequest{Bins: []string{"absent"}})
	note(err)
	dir := w.pack("notes")
	_, err = w.Install(ada, []string{dir, dir}, InstallOptions{})
	note(err)
	w.install(dir, InstallOptions{})
	spoil(t, filepath.Join(w.Store.Dir("notes"), "policy.json"))
	_, err = w.Activate(ada, []string{"notes"})
	note(err)
	for _, err := range seen {
		if err == nil || strings.HasSuffix(err.Message, "..") || strings.ContainsAny(err.Hint, "<>") || !strings.HasPrefix(err.Hint, "hcpx ") {
			t.Errorf("%v, hint %q", err, err.Hint)
		}
	}
}
