package lifecycle

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/audit"
	"hcpx/internal/grant"
	"hcpx/internal/protocol"
)

// A version whose manifest lets it do more is held like a looser policy, and what else it changes is told.
func Test_13_3_AMorePowerfulVersionIsAcceptedByAPerson(t *testing.T) {
	for name, edit := range map[string][]string{
		"network":   {`"bin": "tool"`, `"bin": "tool", "network": "full"`},
		"native":    {`"bin": "tool"`, `"bin": "tool", "isolation": "native-local"`},
		"uses":      {`["helper"]`, `["helper", "bash"]`},
		"reads":     {`["~/.config/acme/notes.toml"]`, `["~/.config/acme/notes.toml", "~/.config/acme/more.toml"]`},
		"binding":   {`"adapter": "wrap",`, `"adapter": "wrap", "binding": { "mode": "mock" },`},
		"operation": {`"share": { "operation": "write"`, `"share": { "operation": "read"`},
	} {
		w := newWorld(t)
		w.install(w.pack("notes"), InstallOptions{})
		next := w.pack("notes", append([]string{"1.0.0", "1.1.0"}, edit...)...)
		_, err := w.Install(ada, []string{next}, InstallOptions{AllowBin: true, AllowRead: true, Force: true})
		refused(t, err, protocol.PolicyLoosened)
		if meta, _ := w.Store.Meta("notes"); meta.Version != "1.0.0" {
			t.Errorf("%s: installed unseen", name)
		}
		var shown []Consent
		_, err = w.Install(ada, []string{next}, InstallOptions{Ask: func(c Consent) bool { shown = append(shown, c); return c.Question != "policy" }})
		refused(t, err, protocol.PolicyLoosened)
		if len(shown) != 1 || len(shown[0].Packs[0].Changes) == 0 || len(shown[0].Packs[0].Loosened) == 0 {
			t.Errorf("%s: asked with %+v", name, shown)
		}
		if out := w.install(next, InstallOptions{AcceptPolicyChange: true}); len(out.Changes) == 0 || len(out.Loosened) == 0 {
			t.Errorf("%s: %+v", name, out)
		}
	}
}

func Test_13_3_WhatIsStricterIsToldAndNotHeld(t *testing.T) {
	w := newWorld(t)
	w.install(w.pack("notes", `"bin": "tool"`, `"bin": "tool", "network": "full"`), InstallOptions{})
	out := w.install(w.pack("notes", "1.0.0", "1.1.0"), InstallOptions{})
	if diff := cmp.Diff([]Change{{What: "its network is now none"}}, out.Changes); diff != "" || len(out.Loosened) > 0 {
		t.Error(diff, out.Loosened)
	}
}

// `full` and hosts are shown at the first install too, and to whoever is asked.
func Test_10_2_TheNetworkIsShownAtInstall(t *testing.T) {
	for edit, want := range map[string]string{
		`"network": "full"`: "full",
		`"network": { "hosts": ["api.example.org:443"] }`:    "api.example.org:443",
		`"network": { "hosts": [], "operator_hosts": true }`: "and hosts that you name with hcpx allow --host",
		`"network": "none"`: "none",
	} {
		w := newWorld(t)
		var asked []string
		out := w.install(w.pack("notes", `"bin": "tool"`, `"bin": "tool", `+edit), InstallOptions{Ask: func(c Consent) bool { asked = c.Packs[0].Network; return true }})
		if !slices.Equal(out.Network, []string{want}) || !slices.Equal(asked, out.Network) {
			t.Errorf("%s: shown %v, asked with %v", edit, out.Network, asked)
		}
	}
}

// The same content again mends what was changed, and is no other version.
func Test_2_4_TheSameContentMendsATamperedPack(t *testing.T) {
	w := newWorld(t)
	dir := w.pack("notes")
	w.install(dir, InstallOptions{})
	spoil(t, filepath.Join(w.Store.Dir("notes"), "policy.json"))
	_, err := w.Gate.Installed("notes")
	refused(t, err, protocol.PackTampered)
	if err.Hint != "hcpx install "+protocol.Word(dir) {
		t.Errorf("hint %q", err.Hint)
	}
	if out := w.install(dir, InstallOptions{}); !out.Changed || len(out.Changes) > 0 {
		t.Errorf("%+v", out)
	}
	spoil(t, filepath.Join(w.Store.Dir("notes"), "policy.json"))
	_, err = w.Install(ada, []string{w.pack("notes", "1.0.0", "1.1.0")}, InstallOptions{})
	refused(t, err, protocol.PolicyLoosened)
}

func spoil(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	write(t, path, string(text)+"\n", 0o644)
}

// Going back is judged before anything moves, over manifest and policy alike.
func Test_13_3_RollbackIsJudgedBeforeTheSwap(t *testing.T) {
	w := newWorld(t)
	disk := onDisk(t, w)
	w.install(w.pack("notes", `"bin": "tool"`, `"bin": "tool", "network": "full"`), InstallOptions{})
	w.install(w.pack("notes", "1.0.0", "1.1.0"), InstallOptions{})
	w.give(grant.Grant{Principal: "agent:*", Effect: grant.Allow, Capabilities: []protocol.Capability{protocol.PackInstall}})
	before, err := os.Stat(disk.Dir("notes"))
	if err != nil {
		t.Fatal(err)
	}
	_, refusal := w.Rollback(as("agent:a"), "notes")
	refused(t, refusal, protocol.PolicyLoosened)
	if after, err := os.Stat(disk.Dir("notes")); err != nil || !os.SameFile(before, after) {
		t.Errorf("the packs were swapped to be judged: %v", err)
	}
	if acts := w.acts(); acts[len(acts)-1] == "change rollback" {
		t.Error("a refused rollback is recorded as a change")
	}
	view, refusal := w.Rollback(ada, "notes")
	if refusal != nil || len(view.Changes) == 0 || view.Version != "1.0.0" {
		t.Errorf("%+v %v", view, refusal)
	}
	spoil(t, filepath.Join(disk.PreviousDir("notes"), "surface.json"))
	_, refusal = w.Rollback(ada, "notes")
	refused(t, refusal, protocol.PackTampered)
}

// after lets n entries through and then fails.
type after struct {
	audit.Log
	n int
}

func (a *after) Append(e audit.Entry, durable bool) error {
	if a.n--; a.n < 0 {
		return os.ErrPermission
	}
	return a.Log.Append(e, durable)
}

// What cannot be recorded is not done, and where it was done the sentence does not deny it (§15.4).
func Test_15_4_TheSentenceSaysWhatWasDone(t *testing.T) {
	const nothing = "Nothing was done"
	w := newWorld(t)
	w.ready("notes")
	if err := w.Store.DropSkill("notes"); err != nil {
		t.Fatal(err)
	}
	log := w.Audit
	w.Audit = fullLog{}
	_, err := w.SetupApply(ada)
	if code(err) != protocol.InternalError || !strings.HasPrefix(err.Message, nothing) {
		t.Errorf("%v", err)
	}
	if w.skillState("notes") != skillMissing {
		t.Error("setup.apply acted before it was recorded")
	}
	_, err = w.Repair(ada)
	if code(err) != protocol.InternalError || strings.HasPrefix(err.Message, nothing) || err.Details["done"] == nil || w.skillState("notes") != skillCurrent {
		t.Errorf("%v", err)
	}
	if _, err := w.Activate(in("other"), []string{"notes"}); code(err) != protocol.InternalError || !strings.HasPrefix(err.Message, nothing) {
		t.Errorf("%v", err)
	}
	w.Audit = log
	if _, err := w.Deactivate(t.Context(), ada, []string{"notes"}); err != nil {
		t.Fatal(err)
	}
	w.Audit = fullLog{}
	if _, err := w.Activate(ada, []string{"notes"}); err == nil || !strings.HasPrefix(err.Message, nothing) || w.skillState("notes") != skillMissing {
		t.Errorf("a copy is left of an activation that was not done: %v", err)
	}
	w.Audit = &after{log, 1}
	w.box.exit = 3
	_, err = w.Install(ada, []string{w.pack("notes", "1.0.0", "1.1.0", `"bin": "tool"`, `"bin": "tool", "probe": ["--version"]`)}, InstallOptions{})
	if code(err) != protocol.InternalError || !strings.Contains(err.Message, "is installed") {
		t.Errorf("%v", err)
	}
	if meta, _ := w.Store.Meta("notes"); meta.Version != "1.1.0" {
		t.Errorf("installed is %s", meta.Version)
	}
}
