package lifecycle

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/audit"
	"hcpx/internal/grant"
	"hcpx/internal/pack"
	"hcpx/internal/protocol"
)

func TestHCP_11_1_2a_LintIsNeverSkippedAndHCP_11_1_2b_NoPackWithErrors(t *testing.T) {
	w := newWorld(t)
	good := w.pack("notes")
	bad := w.pack("broken", `"show": { "operation": "read"`, `"show": { "operation": "read", "confirm": true`)
	for _, o := range []InstallOptions{{}, {Force: true, AllowBin: true, AllowPassThrough: true, AcceptPolicyChange: true}} {
		view, err := w.Install(ada, []string{good, bad}, o)
		refused(t, err, protocol.LintFailed)
		issues, _ := err.Details["issues"].([]protocol.Issue)
		if len(issues) == 0 || issues[0].Code != "policy.confirm-on-read" {
			t.Errorf("details.issues: %v", issues)
		}
		if view.Changed || len(view.Packs) > 0 {
			t.Errorf("something was installed: %+v", view)
		}
	}
	if ids, _ := w.Store.Packs(); len(ids) > 0 {
		t.Errorf("the good pack of a refused call is installed: %v", ids)
	}
	if _, err := w.Install(ada, []string{filepath.Join(good, "none")}, InstallOptions{}); code(err) != protocol.LintFailed {
		t.Errorf("an unreadable source: %v", err)
	}
}

func Test_11_InstallIsIdempotentAndListsNeeds(t *testing.T) {
	w := newWorld(t)
	dir := w.pack("notes")
	first := w.install(dir, InstallOptions{})
	if !first.Changed || len(first.Allowed) > 0 {
		t.Fatalf("%+v", first)
	}
	want := []Need{
		{Kind: "bin", Name: "tool", Hint: "hcpx allow tool"}, {Kind: "uses", Name: "helper", Hint: "hcpx allow helper"},
		{Kind: "read", Name: "~/.config/acme/notes.toml", Hint: "hcpx allow --read notes '~/.config/acme/notes.toml'"},
	}
	if diff := cmp.Diff(want, first.Needs); diff != "" {
		t.Error(diff)
	}
	if again := w.install(dir, InstallOptions{}); again.Changed {
		t.Error("a second install changed something")
	}
	allowed := w.install(dir, InstallOptions{AllowBin: true, AllowRead: true})
	if diff := cmp.Diff([]string{"tool", "helper", "~/.config/acme/notes.toml"}, allowed.Allowed); diff != "" || len(allowed.Needs) > 0 {
		t.Error(diff, allowed.Needs)
	}
	if again := w.install(dir, InstallOptions{AllowBin: true, AllowRead: true}); again.Changed {
		t.Error("allowing again changed something")
	}
	if diff := cmp.Diff([]string{"change install", "change allow"}, w.acts()); diff != "" {
		t.Error(diff)
	}
	bin := w.mustState().Bins[0]
	if bin.Path != filepath.Join(w.bin, "tool") || bin.Stamp.SHA256 == "" {
		t.Errorf("recorded %+v", bin)
	}
}

func Test_10_2_AnAskedPersonAllows(t *testing.T) {
	for _, yes := range []bool{true, false} {
		w := newWorld(t)
		var shown []Consent
		out := w.install(w.pack("notes"), InstallOptions{Ask: func(c Consent) bool { shown = append(shown, c); return yes }})
		if len(shown) != 1 || shown[0].Question != "allow" || !out.Changed {
			t.Fatalf("asked %v", shown)
		}
		p := shown[0].Packs[0]
		if len(p.Programs) != 2 || p.Programs[0].Path != filepath.Join(w.bin, "tool") || !cmp.Equal(p.Network, []string{"none"}) {
			t.Errorf("consent %+v", p)
		}
		if (len(out.Needs) == 0) != yes {
			t.Errorf("yes %v, needs %v", yes, out.Needs)
		}
	}
}

func Test_10_2_ProgramsThatAreNotLetIn(t *testing.T) {
	w := newWorld(t)
	write(t, filepath.Join(w.bin, "loose", "tool2"), "x", 0o755)
	if err := os.Chmod(filepath.Join(w.bin, "loose"), 0o777); err != nil {
		t.Fatal(err)
	}
	w.Path += ":" + filepath.Join(w.bin, "loose") + ":relative"
	out := w.install(w.pack("notes", `"bin": "tool", "uses": ["helper"]`, `"bin": "bash", "uses": ["tool2", "absent", "bash"]`), InstallOptions{AllowBin: true})
	got := map[string]string{}
	for _, n := range out.Needs {
		got[n.Kind+" "+n.Name] = n.Hint
		if n.Kind != "read" && n.Reason == "" {
			t.Errorf("%s has no reason", n.Name)
		}
	}
	for _, name := range []string{"bin bash", "uses tool2", "uses absent"} {
		if got[name] == "" {
			t.Errorf("%s is not needed: %v", name, got)
		}
	}
	if got["bin bash"] != "hcpx allow --dangerous bash" {
		t.Errorf("hint %q", got["bin bash"])
	}
	if !cmp.Equal(out.Allowed, []string{"bash"}) || w.mustState().Bins[0].Dangerous {
		t.Errorf("an interpreter in uses may stand, as such: %v %v", out.Allowed, w.mustState().Bins)
	}
}

func Test_9_6_InstallChecksItsCapabilityFirst(t *testing.T) {
	w := newWorld(t)
	agent := as("agent:claude-code")
	bad := w.pack("broken", `"adapter": "wrap",`, ``)
	_, err := w.Install(agent, []string{bad}, InstallOptions{})
	refused(t, err, protocol.GrantMissing)
	if diff := cmp.Diff([]string{"denial install"}, w.acts()); diff != "" {
		t.Error(diff)
	}
	w.give(grant.Grant{Principal: "agent:*", Effect: grant.Allow, Capabilities: []protocol.Capability{protocol.PackInstall}, Packs: []string{"notes"}})
	if _, err := w.Install(agent, []string{w.pack("other")}, InstallOptions{}); code(err) != protocol.GrantMissing {
		t.Errorf("another pack: %v", err)
	}
	_, err = w.Install(agent, []string{w.pack("notes")}, InstallOptions{AllowBin: true})
	refused(t, err, protocol.OperatorRequired)
	asked := func(Consent) bool { t.Error("an agent was asked"); return true }
	view, err := w.Install(agent, []string{w.pack("notes")}, InstallOptions{Ask: asked})
	if err != nil || !view.Changed || len(view.Packs[0].Needs) == 0 {
		t.Errorf("%v %+v", err, view)
	}
	if got := w.log.Entries(); got[len(got)-1].Principal != "agent:claude-code" || got[len(got)-1].Kind != audit.Change {
		t.Errorf("last entry %+v", got[len(got)-1])
	}
}

func Test_11_VersionsReplaceConflictAndGoBack(t *testing.T) {
	w := newWorld(t)
	w.install(w.pack("notes"), InstallOptions{})
	other := w.pack("notes", "Keeps notes.", "Keeps all notes.")
	_, err := w.Install(ada, []string{other}, InstallOptions{})
	refused(t, err, protocol.DigestConflict)
	if out := w.install(other, InstallOptions{Force: true}); !out.Changed {
		t.Error("--force did not replace")
	}
	newer := w.install(w.pack("notes", "1.0.0", "1.1.0"), InstallOptions{})
	if newer.Previous != "1.0.0" || newer.Version != "1.1.0" {
		t.Errorf("%+v", newer)
	}
	back, err := w.Rollback(ada, "notes")
	if err != nil || back.Version != "1.0.0" || back.Replaced != "1.1.0" || !back.Changed {
		t.Errorf("%+v %v", back, err)
	}
	older := w.install(w.pack("notes", "1.0.0", "0.9.0"), InstallOptions{})
	if !older.Changed || !strings.Contains(older.Note, "older") {
		t.Errorf("%+v", older)
	}
	_, err = w.Rollback(ada, "nowhere")
	if code(err) != protocol.PackNotInstalled {
		t.Error(err)
	}
}

func Test_13_3_ALoosenedPolicyIsAcceptedByAPerson(t *testing.T) {
	looser := []string{"1.0.0", "1.1.0", `, "confirm": true`, ``}
	w := newWorld(t)
	w.install(w.pack("notes"), InstallOptions{})
	next := w.pack("notes", looser...)
	_, err := w.Install(ada, []string{next}, InstallOptions{Force: true})
	refused(t, err, protocol.PolicyLoosened)
	asked := 0
	ask := func(yes bool) Ask {
		return func(c Consent) bool {
			if c.Question != "policy" {
				return false
			}
			asked++
			return yes && len(c.Packs[0].Loosened) > 0
		}
	}
	_, err = w.Install(ada, []string{next}, InstallOptions{Ask: ask(false)})
	refused(t, err, protocol.PolicyLoosened)
	w.give(grant.Grant{Principal: "agent:*", Effect: grant.Allow, Capabilities: []protocol.Capability{protocol.PackInstall}})
	_, err = w.Install(as("agent:a"), []string{next}, InstallOptions{AcceptPolicyChange: true, Ask: ask(true)})
	refused(t, err, protocol.PolicyLoosened)
	if out := w.install(next, InstallOptions{Ask: ask(true)}); len(out.Loosened) == 0 || asked != 2 {
		t.Errorf("%+v, asked %d", out, asked)
	}
	if _, err := w.Rollback(ada, "notes"); err != nil {
		t.Fatal(err)
	}
	_, err = w.Rollback(as("agent:a"), "notes")
	refused(t, err, protocol.PolicyLoosened)
	if meta, _ := w.Store.Meta("notes"); meta.Version != "1.0.0" {
		t.Errorf("the refused rollback left %s", meta.Version)
	}
}

func Test_11_AFailingProbeTakesTheUpgradeBack(t *testing.T) {
	w := newWorld(t)
	w.install(w.pack("notes"), InstallOptions{AllowBin: true})
	w.box.exit = 3
	_, err := w.Install(ada, []string{w.pack("notes", "1.0.0", "1.1.0", `"bin": "tool"`, `"bin": "tool", "probe": ["--version"]`)}, InstallOptions{})
	refused(t, err, protocol.CommandFailed)
	if meta, _ := w.Store.Meta("notes"); meta.Version != "1.0.0" {
		t.Errorf("installed is %s", meta.Version)
	}
}

func Test_3_3_PassThroughIsRefusedUnlessTold(t *testing.T) {
	w := newWorld(t)
	dir := w.pack("notes", `"bin": "tool"`, `"bin": "tool", "allowedSubcommands": ["a"], "maxArgv": 3`)
	_, err := w.Install(ada, []string{dir}, InstallOptions{})
	refused(t, err, protocol.LintFailed)
	if !strings.Contains(err.Hint, "--allow-pass-through") {
		t.Errorf("hint %q", err.Hint)
	}
	w.install(dir, InstallOptions{AllowPassThrough: true})
}

// member is one entry of an archive made by hand.
type member struct {
	name, body, link string
	mode             int64
}

func tgz(t testing.TB, members []member) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	a := tar.NewWriter(z)
	for _, m := range members {
		h := &tar.Header{Name: m.name, Mode: m.mode, Size: int64(len(m.body)), Typeflag: tar.TypeReg}
		switch {
		case m.link != "" && m.mode == 0:
			h.Typeflag, h.Linkname = tar.TypeLink, m.link
		case m.link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, m.link
		}
		if err := a.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Write([]byte(m.body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "notes.tgz")
	write(t, path, b.String(), 0o644)
	return path
}

func zipped(t testing.TB, members []member) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, m := range members {
		h := &zip.FileHeader{Name: m.name, Method: zip.Deflate}
		h.SetMode(os.FileMode(m.mode))
		body := m.body
		if m.link != "" {
			h.SetMode(os.ModeSymlink | 0o777)
			body = m.link
		}
		f, err := z.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "notes.zip")
	write(t, path, b.String(), 0o644)
	return path
}

func notesMembers(prefix string, more ...member) []member {
	var list []member
	for name, text := range packText("notes") {
		list = append(list, member{name: prefix + name, body: text, mode: 0o644})
	}
	return append(list, more...)
}

func Test_11_ArchivesAreUnpackedInsideTheirRoot(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	for _, make := range []func(testing.TB, []member) string{tgz, zipped} {
		for _, prefix := range []string{"", "notes/", "./notes-1.0.0/"} {
			w := newWorld(t)
			if out := w.install(make(t, notesMembers(prefix)), InstallOptions{}); !out.Changed {
				t.Errorf("prefix %q: %+v", prefix, out)
			}
		}
		for name, more := range map[string]member{
			"parent":        {name: "../escape", body: "x", mode: 0o644},
			"inner parent":  {name: "a/../../escape", body: "x", mode: 0o644},
			"absolute":      {name: "/etc/escape", body: "x", mode: 0o644},
			"backslash":     {name: `..\escape`, body: "x", mode: 0o644},
			"link out":      {name: "out", link: "../../../etc", mode: 0o777},
			"absolute link": {name: "out", link: outside, mode: 0o777},
			"twice":         {name: "HARNESS.md", body: "# Other", mode: 0o644},
		} {
			w := newWorld(t)
			if _, err := w.Install(ada, []string{make(t, notesMembers("", more))}, InstallOptions{}); code(err) != protocol.LintFailed {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	w := newWorld(t)
	through := []member{{name: "out", link: filepath.Dir(outside), mode: 0o777}, {name: "out/outside", body: "x", mode: 0o644}}
	if _, err := w.Install(ada, []string{tgz(t, notesMembers("", through...))}, InstallOptions{}); code(err) != protocol.LintFailed {
		t.Errorf("through a link: %v", err)
	}
	if _, err := w.Install(ada, []string{tgz(t, notesMembers("", member{name: "hard", link: "HARNESS.md"}))}, InstallOptions{}); code(err) != protocol.LintFailed {
		t.Errorf("hard link: %v", err)
	}
	if _, err := os.Lstat(outside); err == nil {
		t.Error("a file was written outside")
	}
}

func Test_2_1_AnArchiveCannotGrowPastTheLimits(t *testing.T) {
	w := newWorld(t)
	w.Limits = pack.Limits{Files: 5, Bytes: 64 << 10}
	big := tgz(t, notesMembers("", member{name: "zeros", body: strings.Repeat("\x00", 1<<20), mode: 0o644}))
	_, err := w.Install(ada, []string{big}, InstallOptions{})
	refused(t, err, protocol.LintFailed)
	var many []member
	for _, n := range strings.Split("a b c d e f", " ") {
		many = append(many, member{name: n, mode: 0o644})
	}
	_, err = w.Install(ada, []string{zipped(t, notesMembers("", many...))}, InstallOptions{})
	refused(t, err, protocol.LintFailed)
	_, err = w.Install(ada, []string{"oci://registry.example.org/notes"}, InstallOptions{})
	refused(t, err, protocol.ComponentMissing)
	_, same := w.Add(ada, "oci://registry.example.org/notes", AddOptions{Yes: true})
	refused(t, same, protocol.ComponentMissing)
	for _, e := range []*protocol.Error{err, same} {
		if strings.Contains(e.Message, "hcpxd") || !strings.Contains(e.Message, "not built yet") {
			t.Errorf("%s", e.Message) // a program beside this one would not mend it
		}
	}
}

func Test_15_4_WhatCannotBeRecordedIsNotDone(t *testing.T) {
	w := newWorld(t)
	dir := w.pack("notes")
	w.Audit = fullLog{}
	_, err := w.Install(ada, []string{dir}, InstallOptions{})
	refused(t, err, protocol.InternalError)
	if ids, _ := w.Store.Packs(); len(ids) > 0 {
		t.Error("an unrecorded install happened")
	}
	_, err = w.Grant(ada, grant.Grant{Principal: "agent:a", Effect: grant.Allow, Capabilities: protocol.Capabilities})
	refused(t, err, protocol.InternalError)
	if len(w.mustState().Grants) != len(grant.Defaults()) {
		t.Error("an unrecorded grant stands")
	}
}

type fullLog struct{}

func (fullLog) Append(audit.Entry, bool) error { return os.ErrPermission }
