package lifecycle

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/gate"
	"hcpx/internal/grant"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

func TestHCP_11_1_ActivateCopiesTheSkillAndDeactivateDropsAll(t *testing.T) {
	w := newWorld(t)
	_, err := w.Activate(ada, []string{"notes"})
	refused(t, err, protocol.PackNotInstalled)
	w.install(w.pack("notes"), InstallOptions{})
	w.install(w.pack("memos"), InstallOptions{})
	_, err = w.Activate(ada, []string{"notes", "absent"})
	refused(t, err, protocol.PackNotInstalled)
	if len(w.mustState().Activated) > 0 {
		t.Error("half of a refused call was done")
	}
	for _, want := range []bool{true, false} {
		view, err := w.Activate(ada, []string{"notes"})
		if err != nil || view.Changed != want || view.Packs[0].Changed != want {
			t.Errorf("activate: %+v %v", view, err)
		}
	}
	text, fault := w.Store.Skill("notes")
	if fault != nil || !strings.HasPrefix(string(text), "---\nname: notes\n") || !strings.Contains(string(text), "| `keep` | write | personal | yes |") {
		t.Errorf("skill %v:\n%s", fault, text)
	}
	if _, err := w.Activate(in("other"), []string{"notes"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		view, err := w.Deactivate(t.Context(), ada, []string{"notes", "never-heard-of"})
		if err != nil || view.Changed != want {
			t.Errorf("deactivate: %+v %v", view, err)
		}
	}
	if _, err := w.Store.Skill("notes"); err != nil {
		t.Error("the skill is gone while another session has the pack activated")
	}
	if _, err := w.Deactivate(t.Context(), in("other"), []string{"notes"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Store.Skill("notes"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the skill stays when no session has the pack activated")
	}
}

// mock is a pack that must be connected.
func mock() []string {
	return []string{`"adapter": "wrap",`, `"adapter": "wrap", "binding": { "mode": "mock", "hub": "none", "inject": { "env": { "NOTES_TOKEN": "{token}" } } },`}
}

func TestHCP_11_1_4_DeactivateDropsTheConnection(t *testing.T) {
	w := newWorld(t)
	w.install(w.pack("notes", mock()...), InstallOptions{})
	_, err := w.Connect(t.Context(), ada, "notes", ConnectOptions{})
	refused(t, err, protocol.PackNotActivated)
	if _, err := w.Activate(ada, []string{"notes"}); err != nil {
		t.Fatal(err)
	}
	_, err = w.Connect(t.Context(), as("agent:claude-code"), "notes", ConnectOptions{})
	refused(t, err, protocol.GrantMissing)
	for _, want := range []bool{true, false} {
		view, err := w.Connect(t.Context(), ada, "notes", ConnectOptions{})
		if err != nil || view.Changed != want || !view.Connected || view.Mode != "mock" {
			t.Errorf("%+v %v", view, err)
		}
	}
	if _, err := w.Deactivate(t.Context(), ada, []string{"notes"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Activate(ada, []string{"notes"}); err != nil {
		t.Fatal(err)
	}
	if p := w.available(ada, "notes"); p.Connected || p.Status != StatusActivated {
		t.Errorf("%+v", p)
	}
	if _, err := w.Connect(t.Context(), ada, "notes", ConnectOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		if view, err := w.Disconnect(t.Context(), ada, "notes"); err != nil || view.Changed != want || view.Connected {
			t.Errorf("%+v %v", view, err)
		}
	}
}

func Test_8_5_PublicIsConnectedAndUserIsNotYet(t *testing.T) {
	w := newWorld(t)
	w.ready("notes")
	if view, err := w.Connect(t.Context(), ada, "notes", ConnectOptions{}); err != nil || view.Changed || !view.Connected {
		t.Errorf("%+v %v", view, err)
	}
	w.ready("mail", `"adapter": "wrap",`, `"adapter": "wrap", "binding": { "mode": "user", "hub": "keyring", "source": { "kind": "token" }, "inject": { "env": { "MAIL_TOKEN": "{token}" } } },`)
	_, err := w.Connect(t.Context(), ada, "mail", ConnectOptions{})
	refused(t, err, protocol.NotConnected)
	if p := w.available(ada, "mail"); p.Connected || p.Commands["show"].Reason != protocol.NotConnected {
		t.Errorf("%+v", p)
	}
}

func (w *world) available(s protocol.Session, id string) PackAvailability {
	w.t.Helper()
	view, err := w.Availability(s, []string{id})
	if err != nil {
		w.t.Fatal(err)
	}
	return view.Packs[0]
}

func TestHCP_11_2_0_FourFlagsThroughTheLifecycle(t *testing.T) {
	w := newWorld(t)
	w.Shipped = os.DirFS(filepath.Dir(w.pack("memos")))
	agent := as("agent:claude-code")
	see := func(s protocol.Session, status string, installed, activated, connected, executable bool, reasons string) {
		t.Helper()
		p := w.available(s, "notes")
		got := []string{}
		for _, verb := range []string{"show", "keep", "share"} {
			if c, ok := p.Commands[verb]; ok {
				got = append(got, orWord(string(c.Reason), "ok"))
			}
		}
		if p.Status != status || p.Installed != installed || p.Activated != activated || p.Connected != connected || p.Executable != executable || strings.Join(got, " ") != reasons {
			t.Errorf("%+v", p)
		}
	}
	see(ada, StatusUnavailable, false, false, false, false, "")
	if p := w.available(ada, "memos"); p.Status != StatusAvailable || p.Installed {
		t.Errorf("%+v", p)
	}
	w.install(w.pack("notes"), InstallOptions{})
	see(ada, StatusInstalled, true, false, true, false, "pack_not_activated pack_not_activated pack_not_activated")
	if _, err := w.Activate(ada, []string{"notes"}); err != nil {
		t.Fatal(err)
	}
	see(ada, StatusConnected, true, true, true, false, "bin_not_allowed bin_not_allowed bin_not_allowed")
	see(in("other"), StatusInstalled, true, false, true, false, "pack_not_activated pack_not_activated pack_not_activated")
	if _, err := w.Allow(ada, AllowRequest{Bins: []string{"tool", "helper"}}); err != nil {
		t.Fatal(err)
	}
	see(ada, StatusExecutable, true, true, true, true, "ok ok ok")
	see(agent, StatusExecutable, true, true, true, true, "ok grant_missing grant_missing")
	w.give(grant.Grant{Principal: "agent:*", Effect: grant.Deny, Capabilities: []protocol.Capability{protocol.VerbExecRead}})
	see(agent, StatusConnected, true, true, true, false, "grant_missing grant_missing grant_missing")
	p := w.available(ada, "notes")
	want := CommandAvailability{Executable: true, Operation: "write", Land: "brain", Needs: []string{"project"}, Network: "none"}
	if diff := cmp.Diff(want, p.Commands["share"]); diff != "" {
		t.Error(diff)
	}
	if !p.Commands["keep"].Confirm {
		t.Error("confirm is not shown")
	}
}

func TestHCP_11_2_2a_BrokenPacksAreUnavailable(t *testing.T) {
	w := newWorld(t)
	w.ready("notes")
	if err := os.Remove(filepath.Join(w.bin, "tool")); err != nil {
		t.Fatal(err)
	}
	if p := w.available(ada, "notes"); p.Status != StatusUnavailable || p.Reason != "bin_not_allowed" || !p.Installed {
		t.Errorf("program missing: %+v", p)
	}
	path := filepath.Join(w.Store.Dir("notes"), "policy.json")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	write(t, path, strings.Replace(packText("notes")["policy.json"], "write", "read", 1), 0o644)
	if p := w.available(ada, "notes"); p.Status != StatusUnavailable || p.Reason != "pack_tampered" || !p.Activated || p.Executable {
		t.Errorf("tampered: %+v", p)
	}
}

func TestHCP_11_2_3_SenseOnlyIsValidAndNeverExecutable(t *testing.T) {
	w := newWorld(t)
	dir := filepath.Join(t.TempDir(), "herald")
	write(t, filepath.Join(dir, "surface.json"), `{ "hcp": { "version": "1.1" }, "id": "herald", "version": "1.0.0", "summary": "Says what changed.", "adapter": "sense_only",
  "triggers": { "posted": { "summary": "Something was posted", "source": { "kind": "webhook", "verify": "hmac-sha256", "header": "X-Herald", "secret_ref": "herald" }, "payload": { "type": "object" } } } }`, 0o644)
	write(t, filepath.Join(dir, "policy.json"), `{ "surface_id": "herald", "triggers": { "posted": { "operation": "read", "privacy": { "land": "personal" } } } }`, 0o644)
	write(t, filepath.Join(dir, "HARNESS.md"), "# Herald\n\nSays what changed.\n", 0o644)
	if view, err := w.Install(ada, []string{dir}, InstallOptions{}); err != nil {
		t.Fatalf("%v %+v", err, view)
	}
	if _, err := w.Activate(ada, []string{"herald"}); err != nil {
		t.Fatal(err)
	}
	p := w.available(ada, "herald")
	if p.Executable || p.Status != StatusConnected || len(p.Commands) > 0 || p.Sense["posted"].Enabled {
		t.Errorf("%+v", p)
	}
}

func TestHCP_11_1_5_BootstrapIsThereAndStays(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		if err := w.EnsureBootstrap(ada); err != nil {
			t.Fatal(err)
		}
	}
	p := w.available(as("agent:claude-code"), gate.Bootstrap)
	if !p.Installed || !p.Activated || !p.Connected || p.Status != StatusExecutable || !p.Commands["availability"].Executable {
		t.Errorf("%+v", p)
	}
	if p.Commands["install"].Executable || !p.Commands["install"].Confirm {
		t.Errorf("%+v", p.Commands["install"])
	}
	_, err := w.Uninstall(t.Context(), ada, gate.Bootstrap, UninstallOptions{Force: true})
	refused(t, err, protocol.BootstrapPack)
	if view, err := w.Deactivate(t.Context(), ada, []string{gate.Bootstrap}); err != nil || view.Changed {
		t.Errorf("%+v %v", view, err)
	}
	if view, err := w.Activate(ada, []string{gate.Bootstrap}); err != nil || view.Changed {
		t.Errorf("%+v %v", view, err)
	}
	if len(w.mustState().Activated) > 0 || len(w.acts()) > 0 {
		t.Errorf("state %+v, audit %v", w.mustState(), w.acts())
	}
	if text, err := w.Skill(ada, gate.Bootstrap); err != nil || !strings.Contains(text.Skill, "name: hcp-cli") {
		t.Errorf("%+v %v", text, err)
	}
}

func TestHCP_11_1_UninstallTakesEverythingOfThePack(t *testing.T) {
	w := newWorld(t)
	w.ready("notes", `"bin": "tool"`, `"bin": "tool", "isolation": "native-local", "network": { "hosts": [], "operator_hosts": true }`)
	if _, err := w.Allow(ada, AllowRequest{Native: "notes"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Allow(ada, AllowRequest{HostPack: "notes", Hosts: []string{"api.example.org:443"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Activate(in("other"), []string{"notes"}); err != nil {
		t.Fatal(err)
	}
	key := store.LandKey{Tenant: "local", Land: protocol.Personal, Principal: "human:ada", Pack: "notes"}
	if err := w.Store.MakeLand(key); err != nil {
		t.Fatal(err)
	}
	_, err := w.Uninstall(t.Context(), as("agent:a"), "notes", UninstallOptions{Force: true})
	refused(t, err, protocol.GrantMissing)
	var asked []string
	_, err = w.Uninstall(t.Context(), ada, "notes", UninstallOptions{Ask: func(c Consent) bool { asked = c.Sessions; return false }})
	refused(t, err, protocol.Canceled)
	if !cmp.Equal(asked, []string{"other"}) {
		t.Errorf("asked about %v", asked)
	}
	view, err := w.Uninstall(t.Context(), ada, "notes", UninstallOptions{Force: true})
	if err != nil || !view.Changed || view.Purged || !cmp.Equal(view.Sessions, []string{"default", "other"}) {
		t.Errorf("%+v %v", view, err)
	}
	st := w.mustState()
	if len(st.Activated)+len(st.Sessions)+len(st.Native)+len(st.Hosts)+len(st.Reads) > 0 {
		t.Errorf("left in the state: %+v", st)
	}
	if _, err := os.Stat(w.Store.LandDir(key)); err != nil {
		t.Error("the data are gone without --purge")
	}
	before := len(w.acts())
	if view, err := w.Uninstall(t.Context(), ada, "notes", UninstallOptions{}); err != nil || view.Changed {
		t.Errorf("%+v %v", view, err)
	}
	if len(w.acts()) != before {
		t.Error("an uninstall that changed nothing is in the audit")
	}
	if view, err := w.Uninstall(t.Context(), ada, "notes", UninstallOptions{Purge: true}); err != nil || !view.Changed || !view.Purged {
		t.Errorf("%+v %v", view, err)
	}
	if _, err := os.Stat(w.Store.LandDir(key)); err == nil {
		t.Error("--purge left the data")
	}
}
