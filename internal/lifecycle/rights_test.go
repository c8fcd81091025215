package lifecycle

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/gate"
	"hcpx/internal/grant"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

func Test_9_6_OperatorActsAreAPersons(t *testing.T) {
	w := newWorld(t)
	everything := grant.Grant{Principal: "*", Effect: grant.Allow, Capabilities: protocol.Capabilities}
	w.give(everything)
	for _, principal := range []protocol.Principal{"agent:claude-code", "service:ci", "mothership:hq"} {
		s := as(principal)
		_, err := w.Grant(s, everything)
		refused(t, err, protocol.OperatorRequired)
		_, err = w.Revoke(s, grant.Selector{})
		refused(t, err, protocol.OperatorRequired)
		_, err = w.Allow(s, AllowRequest{Bins: []string{"tool"}})
		refused(t, err, protocol.OperatorRequired)
		_, err = w.Repair(s)
		refused(t, err, protocol.OperatorRequired)
		_, err = w.Add(s, w.pack("notes"), AddOptions{Yes: true})
		refused(t, err, protocol.OperatorRequired)
	}
	if got := w.acts(); len(got) != 1+15 || got[1] != "denial Changing grants" {
		t.Errorf("denials in the audit: %v", got)
	}
}

func Test_9_6_GrantAndRevoke(t *testing.T) {
	w := newWorld(t)
	g := grant.Grant{Principal: "agent:a", Effect: grant.Allow, Capabilities: []protocol.Capability{protocol.VerbExecWrite}, Packs: []string{"notes"}}
	for _, want := range []bool{true, false} {
		if view, err := w.Grant(ada, g); err != nil || view.Changed != want || (len(view.Added) == 1) != want {
			t.Errorf("%+v %v", view, err)
		}
	}
	_, err := w.Grant(ada, grant.Grant{Principal: "root", Effect: grant.Allow, Capabilities: g.Capabilities})
	refused(t, err, protocol.UsageError)
	sel := grant.Selector{Principal: "agent:a", Capabilities: g.Capabilities}
	for _, want := range []bool{true, false} {
		if view, err := w.Revoke(ada, sel); err != nil || view.Changed != want || (len(view.Removed) == 1) != want {
			t.Errorf("%+v %v", view, err)
		}
	}
	view, err := w.Revoke(ada, grant.Selector{Principal: "agent:a", Capabilities: []protocol.Capability{protocol.VerbExecRead}})
	if err != nil || view.Changed || !strings.Contains(view.Note, "agent:*") {
		t.Errorf("%+v %v", view, err)
	}
	list, err := w.Grants(ada)
	if err != nil || !cmp.Equal(list.Grants, grant.Defaults()) {
		t.Errorf("%+v %v", list, err)
	}
}

func Test_9_6_ExplainSaysWhatStep4Says(t *testing.T) {
	w := newWorld(t)
	w.ready("notes")
	w.give(grant.Grant{Principal: "agent:a", Effect: grant.Allow, Capabilities: []protocol.Capability{protocol.VerbExecWrite}, Projects: []string{"city"},
		Args: map[string][]json.RawMessage{"branch": {json.RawMessage(`"agent/*"`)}}})
	for _, c := range []struct {
		q    Question
		want protocol.Code
	}{
		{Question{"agent:a", "notes", "show", ""}, ""},
		{Question{"agent:a", "notes", "share", ""}, protocol.ProjectRequired},
		{Question{"agent:a", "notes", "share", "bank"}, protocol.ProjectDenied},
		{Question{"agent:a", "notes", "share", "city"}, ""},
		{Question{"agent:b", "notes", "keep", ""}, protocol.GrantMissing},
		{Question{"nobody", "notes", "keep", ""}, protocol.Unauthenticated},
		{Question{"agent:a", "notes", "burn", ""}, protocol.UnknownCommand},
		{Question{"agent:a", "absent", "burn", ""}, protocol.PackNotInstalled},
	} {
		view, err := w.Explain(ada, c.q)
		if err != nil || code(view.Error) != c.want || view.Allowed != (c.want == "") || len(view.Path) == 0 {
			t.Errorf("%+v: %+v %v", c.q, view, err)
		}
		if c.q.Project == "city" && !cmp.Equal(view.Rules, []string{"branch"}) {
			t.Errorf("rules %v", view.Rules)
		}
	}
}

func Test_10_2_AllowRecordsWhatPathGivesNow(t *testing.T) {
	w := newWorld(t)
	if err := os.Symlink("tool", filepath.Join(w.bin, "alias")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		view, err := w.Allow(ada, AllowRequest{Bins: []string{"alias", filepath.Join(w.bin, "helper"), w.bin + "/"}})
		if err != nil || view.Changed != want {
			t.Fatalf("%+v %v", view, err)
		}
		if view.Bins[0].Path != filepath.Join(w.bin, "tool") || view.Bins[len(view.Bins)-1].Name != w.bin+"/" {
			t.Errorf("%+v", view.Bins)
		}
	}
	write(t, filepath.Join(w.bin, "tool"), "#!/bin/other\n", 0o755)
	if view, err := w.Allow(ada, AllowRequest{Bins: []string{"alias"}}); err != nil || !view.Changed {
		t.Errorf("a replaced program is allowed again: %+v %v", view, err)
	}
	view, err := w.Allow(ada, AllowRequest{Bins: []string{"bash"}})
	if err != nil || len(view.Notes) != 1 || view.Bins[0].Dangerous {
		t.Errorf("%+v %v", view, err)
	}
	if view, err := w.Allow(ada, AllowRequest{Bins: []string{"bash"}, Dangerous: true}); err != nil || !view.Changed {
		t.Errorf("%+v %v", view, err)
	}
	if view, err := w.Allow(ada, AllowRequest{Bins: []string{"bash"}}); err != nil || view.Changed {
		t.Errorf("allowing for uses took --dangerous away: %+v %v", view, err)
	}
	for _, name := range []string{"absent", "", "a/b", "relative/", "/no/such/dir/"} {
		if _, err := w.Allow(ada, AllowRequest{Bins: []string{name}}); code(err) != protocol.BinNotAllowed {
			t.Errorf("%q: %v", name, err)
		}
	}
	if _, err := w.Allow(ada, AllowRequest{}); code(err) != protocol.UsageError {
		t.Error(err)
	}
}

func Test_10_3_NativeAndHostsNeedTheManifestToo(t *testing.T) {
	w := newWorld(t)
	w.ready("notes")
	for _, r := range []AllowRequest{{Native: "notes"}, {HostPack: "notes", Hosts: []string{"a.example.org:443"}}, {ReadPack: "notes", Reads: []string{"~/.ssh"}}} {
		_, err := w.Allow(ada, r)
		refused(t, err, protocol.UsageError)
	}
	_, err := w.Allow(ada, AllowRequest{Native: "absent"})
	refused(t, err, protocol.PackNotInstalled)
	if view, err := w.Allow(ada, AllowRequest{ReadPack: "notes", Reads: []string{"~/.config/acme/notes.toml"}}); err != nil || view.Changed {
		t.Errorf("%+v %v", view, err)
	}
	w.ready("mirror", `"bin": "tool"`, `"bin": "tool", "isolation": "native-local", "network": { "hosts": ["a.example.org:443"], "operator_hosts": true }`)
	if p := w.available(ada, "mirror"); p.Commands["show"].Reason != protocol.SandboxUnavailable || !p.Commands["show"].Native {
		t.Errorf("%+v", p)
	}
	for _, want := range []bool{true, false} {
		if view, err := w.Allow(ada, AllowRequest{Native: "mirror"}); err != nil || view.Changed != want {
			t.Errorf("%+v %v", view, err)
		}
		if view, err := w.Allow(ada, AllowRequest{HostPack: "mirror", Hosts: []string{"B.example.org:443"}}); err != nil || view.Changed != want {
			t.Errorf("%+v %v", view, err)
		}
	}
	for _, h := range []string{"127.0.0.1:53", "localhost:61080", "[fe80::1]:80", "münchen.de:443", "http://x:443", "b.example.org", "b:0", "b:x", "*.example.org:443", ":443", "a/b:1"} {
		if _, err := w.Allow(ada, AllowRequest{HostPack: "mirror", Hosts: []string{h}}); code(err) != protocol.UsageError {
			t.Errorf("%q: %v", h, err)
		}
	}
}

// §10.2: what was allowed can be taken back alone, whatever it was, also when it could not be allowed today; doctor names a
// host that keeps a pack from running, with what takes it back.
func Test_10_2_AllowedThingsAreTakenBack(t *testing.T) {
	w := newWorld(t)
	w.ready("mirror", `"bin": "tool"`, `"bin": "tool", "isolation": "native-local", "network": { "hosts": ["a.example.org:443"], "operator_hosts": true }`)
	for _, r := range []AllowRequest{{Bins: []string{"helper"}}, {Native: "mirror"}, {HostPack: "mirror", Hosts: []string{"b.example.org:443", "c.example.org:443"}}} {
		if _, err := w.Allow(ada, r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Store.Update(func(st *store.State) error {
		st.Hosts = append(st.Hosts, protocol.AllowedHost{Pack: "mirror", Host: "127.0.0.1:53"})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	named := func() bool {
		return slices.ContainsFunc(w.Doctor(ada).Findings, func(f Finding) bool {
			return f.Fix == "hcpx allow --remove --host mirror 127.0.0.1:53" && strings.Contains(f.Message, "127.0.0.1:53")
		})
	}
	if !named() {
		t.Errorf("doctor: %+v", w.Doctor(ada).Findings)
	}
	for _, r := range []AllowRequest{
		{Bins: []string{"helper"}}, {Native: "mirror"}, {HostPack: "mirror", Hosts: []string{"B.example.org.:443"}}, {HostPack: "mirror", Hosts: []string{"127.0.0.1:53"}},
		{ReadPack: "mirror", Reads: []string{"/nowhere"}}, {HostPack: "other", Hosts: []string{"c.example.org:443"}},
	} {
		r.Remove = true
		for _, again := range []bool{false, true} {
			want := !again && r.ReadPack == "" && r.HostPack != "other"
			if view, err := w.Allow(ada, r); err != nil || view.Changed != want || !view.Removed {
				t.Errorf("%+v: %+v, %v", r, view, err)
			}
		}
		_, err := w.Allow(as("agent:claude-code"), r)
		refused(t, err, protocol.OperatorRequired)
	}
	if named() {
		t.Error("doctor still names the host")
	}
	_, err := w.Allow(ada, AllowRequest{Remove: true})
	refused(t, err, protocol.UsageError)
	st, failure := w.state()
	if failure != nil || len(st.Native) > 0 || !slices.Equal(st.Hosts, []protocol.AllowedHost{{Pack: "mirror", Host: "c.example.org:443"}}) ||
		slices.ContainsFunc(st.Bins, func(b protocol.AllowedBin) bool { return b.Name == "helper" }) {
		t.Errorf("%+v %v", st, failure)
	}
}

func Test_11_AddIsOneConsent(t *testing.T) {
	w := newWorld(t)
	w.Shipped = os.DirFS(filepath.Dir(w.pack("notes")))
	_, err := w.Add(ada, "absent", AddOptions{Yes: true})
	refused(t, err, protocol.NotFound)
	_, err = w.Add(ada, "notes", AddOptions{})
	refused(t, err, protocol.ConfirmRequired)
	var shown []Consent
	ask := func(yes bool) AddOptions {
		return AddOptions{InstallOptions: InstallOptions{Ask: func(c Consent) bool { shown = append(shown, c); return yes }}}
	}
	_, err = w.Add(ada, "notes", ask(false))
	refused(t, err, protocol.Canceled)
	if ids, _ := w.Store.Packs(); len(ids) > 0 {
		t.Error("installed without consent")
	}
	view, err := w.Add(ada, "notes", ask(true))
	if err != nil || !view.Changed || !view.Activated || len(view.Pack.Needs) > 0 {
		t.Fatalf("%+v %v", view, err)
	}
	c := shown[1].Packs[0]
	if diff := cmp.Diff([]AgentRights{{Principal: "agent:*", Read: []string{"show"}, Write: []string{}}}, c.Agents); diff != "" {
		t.Error(diff)
	}
	if len(c.Programs) != 2 || len(c.Reads) != 1 || c.Credential != "none" || len(c.Commands) != 3 || c.Source != "notes" {
		t.Errorf("%+v", c)
	}
	if view, err := w.Add(ada, "notes", ask(true)); err != nil || view.Changed || len(shown) != 2 {
		t.Errorf("again: %+v %v, asked %d", view, err, len(shown))
	}
	if !cmp.Equal(w.mustState().Grants, grant.Defaults()) {
		t.Error("add changed grants")
	}
	if p := w.available(ada, "notes"); p.Status != StatusExecutable {
		t.Errorf("%+v", p)
	}
	if view, err := w.Add(ada, w.pack("memos"), AddOptions{Yes: true}); err != nil || !view.Activated {
		t.Errorf("%+v %v", view, err)
	}
}

// levels are the findings that are not well, as "level subject".
func levels(v HealthView) []string {
	out := []string{}
	for _, f := range v.Findings {
		if f.Level != LevelOK {
			out = append(out, f.Level+" "+f.Subject)
			if f.Fix == "" {
				out = append(out, "no fix")
			}
		}
	}
	return out
}

func TestHCP_12_1_7_StatusAndDoctorExit(t *testing.T) {
	w := newWorld(t)
	see := func(exit int, want ...string) {
		t.Helper()
		v := w.Doctor(ada)
		if v.Exit != exit || !cmp.Equal(levels(v), append([]string{}, want...)) {
			t.Errorf("exit %d, %v", v.Exit, levels(v))
		}
	}
	see(0)
	if err := w.EnsureBootstrap(ada); err != nil {
		t.Fatal(err)
	}
	w.ready("notes")
	see(0)
	if len(w.Doctor(ada).Rules) == 0 {
		t.Error("no table of rules")
	}
	write(t, filepath.Join(w.bin, "tool"), "#!/bin/other\n", 0o755)
	see(2, "warning tool", "warning notes")
	if err := w.Store.DropSkill("notes"); err != nil {
		t.Fatal(err)
	}
	see(2, "warning tool", "warning notes", "warning notes")
	write(t, filepath.Join(w.Store.Dir("notes"), "extra"), "x", 0o644)
	see(1, "warning tool", "failure notes")
	if v := w.Status(ada); v.Exit != 1 || v.Packs != 2 || !cmp.Equal(v.Active, []string{"notes"}) {
		t.Errorf("%+v", v)
	}
	w.AuditHealth = func() error { return os.ErrPermission }
	if v := w.Status(ada); v.Exit != 1 || !cmp.Equal(levels(v), []string{"failure audit", "failure notes"}) {
		t.Errorf("%v", levels(v))
	}
}

func TestHCP_12_1_9_HealthCommandsWriteNothing(t *testing.T) {
	w := newWorld(t)
	w.ready("notes")
	entries := len(w.acts())
	before := tree(t, w.Store.Home())
	w.Status(ada)
	w.Doctor(ada)
	w.Whoami(ada)
	if _, err := w.SetupStatus(ada); err != nil {
		t.Error(err)
	}
	if _, err := w.List(ada); err != nil {
		t.Error(err)
	}
	if _, err := w.Availability(ada, nil); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(before, tree(t, w.Store.Home())); diff != "" || len(w.acts()) != entries {
		t.Error(diff)
	}
}

func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		files[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestHCP_12_1_8_SetupStatusApplyUpdate(t *testing.T) {
	w := newWorld(t)
	w.ready("notes")
	if err := w.Store.DropSkill("notes"); err != nil {
		t.Fatal(err)
	}
	skills := func(v SetupView, err *protocol.Error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		words := []string{}
		for _, p := range v.Packs {
			words = append(words, p.PackID+" "+p.Skill)
		}
		return strings.Join(words, ", ")
	}
	if got := skills(w.SetupStatus(ada)); got != "notes missing" {
		t.Error(got)
	}
	view, err := w.SetupApply(as("agent:claude-code"))
	if got := skills(view, err); got != "hcp-cli current, notes current" || !view.Changed {
		t.Error(got, view.Changed)
	}
	if view, err := w.SetupApply(ada); err != nil || view.Changed {
		t.Errorf("%+v %v", view, err)
	}
	if err := w.Store.PutSkill("notes", []byte("old")); err != nil {
		t.Fatal(err)
	}
	if got := skills(w.SetupApply(ada)); got != "hcp-cli current, notes stale" {
		t.Error(got)
	}
	if view, err := w.SetupUpdate(ada); skills(view, err) != "hcp-cli current, notes current" || !view.Changed {
		t.Errorf("%+v", view)
	}
}

func Test_11_3_RepairPutsBackWhatNothingDecides(t *testing.T) {
	w := newWorld(t)
	if err := w.EnsureBootstrap(ada); err != nil {
		t.Fatal(err)
	}
	w.ready("notes")
	path := filepath.Join(w.Store.Dir(gate.Bootstrap), "HARNESS.md")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	write(t, path, "# Other\n\nSomething else.\n", 0o644)
	if v := w.Status(ada); v.Exit != 2 {
		t.Errorf("%+v", v)
	}
	view, err := w.Repair(ada)
	if err != nil || !view.Changed || len(view.Left) > 0 {
		t.Fatalf("%+v %v", view, err)
	}
	if v := w.Status(ada); v.Exit != 0 {
		t.Errorf("%v", levels(v))
	}
	if view, err := w.Repair(ada); err != nil || view.Changed {
		t.Errorf("%+v %v", view, err)
	}
}

func Test_9_3_Whoami(t *testing.T) {
	w := newWorld(t)
	got := w.Whoami(ada)
	if got.Principal != "human:ada" || got.Kind != "human" || got.Tenant != "local" || got.Session != "default" || got.How != "flag" {
		t.Errorf("%+v", got)
	}
}

func Test_14_2_LintNeedsNoGrantAndNoStore(t *testing.T) {
	w := newWorld(t)
	if view, err := w.Lint([]string{w.pack("notes")}); err != nil || len(view.Issues) > 0 {
		t.Errorf("%+v", view)
	}
	view, _ := w.Lint([]string{w.pack("notes"), "/no/such/pack"})
	if len(view.Issues) != 1 || view.Issues[0].Code != "pack.unreadable" || view.Issues[0].Dir != "/no/such/pack" {
		t.Errorf("%+v", view)
	}
	if len(w.acts()) > 0 {
		t.Error("lint is in the audit")
	}
}

// Views never show null where a list belongs: scripts count on it.
func Test_11_5_ViewsHaveNoNullLists(t *testing.T) {
	w := newWorld(t)
	var views []any
	keep := func(v any, _ *protocol.Error) { views = append(views, v) }
	keep(w.Install(ada, []string{w.pack("notes")}, InstallOptions{}))
	keep(w.Activate(ada, []string{"notes"}))
	keep(w.Availability(ada, nil))
	keep(w.List(ada))
	keep(w.Allow(ada, AllowRequest{Bins: []string{"tool"}}))
	keep(w.Grants(ada))
	keep(w.Revoke(ada, grant.Selector{Principal: "x"}))
	keep(w.Explain(ada, Question{"human:ada", "notes", "show", ""}))
	keep(w.SetupStatus(ada))
	keep(w.Repair(ada))
	keep(w.Deactivate(t.Context(), ada, []string{"notes"}))
	keep(w.Uninstall(t.Context(), ada, "notes", UninstallOptions{}))
	keep(w.Lint([]string{w.pack("memos")}))
	views = append(views, w.Status(ada), w.Doctor(ada), w.Whoami(ada))
	for _, v := range views {
		text, err := json.Marshal(v)
		if err != nil || bytes.Contains(text, []byte("null")) {
			t.Errorf("%v %s", err, text)
		}
	}
}

func Test_9_6_ExplainSaysWhatStep6Asks(t *testing.T) {
	w := newWorld(t)
	w.ready("notes")
	write := []protocol.Capability{protocol.VerbExecWrite}
	w.give(grant.Grant{Principal: "agent:a", Effect: grant.Allow, Capabilities: write})
	w.give(grant.Grant{Principal: "agent:b", Effect: grant.Allow, Capabilities: write, SelfConfirm: true})
	for _, c := range []struct {
		principal    protocol.Principal
		verb         string
		confirm, own bool
	}{
		{"human:ada", "show", false, false}, {"human:ada", "keep", true, true}, {"agent:a", "keep", true, false},
		{"agent:b", "keep", true, true}, {"agent:c", "keep", true, false}, {"agent:b", "show", false, false},
	} {
		view, err := w.Explain(ada, Question{Principal: c.principal, Pack: "notes", Verb: c.verb})
		if err != nil || view.Confirm != c.confirm || view.OwnConfirm != c.own {
			t.Errorf("%+v: %+v %v", c, view, err)
		}
	}
	w.AgentEnvelope = true
	if view, err := w.Explain(ada, Question{Principal: "agent:a", Pack: "notes", Verb: "keep"}); err != nil || !view.OwnConfirm {
		t.Errorf("%+v %v", view, err)
	}
}

func Test_9_6_AGrantThatHasEndedIsNoted(t *testing.T) {
	w := newWorld(t)
	for hours, noted := range map[int]bool{-1: true, 0: true, 1: false} {
		ends := w.clock.Add(time.Duration(hours) * time.Hour).Format(time.RFC3339)
		view, err := w.Grant(ada, grant.Grant{Principal: "agent:a", Effect: grant.Allow, Capabilities: []protocol.Capability{protocol.VerbExecWrite}, Expires: ends})
		if err != nil || !view.Changed || (view.Note != "") != noted {
			t.Errorf("%s: %+v %v", ends, view, err)
		}
	}
}
