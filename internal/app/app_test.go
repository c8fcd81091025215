package app

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"hcpx/internal/audit"
	"hcpx/internal/protocol"
	"hcpx/internal/settings"
)

func options(t *testing.T, env map[string]string) Options {
	t.Helper()
	return Options{
		UserHome: filepath.Join(t.TempDir(), "user"), Dir: t.TempDir(), Managed: filepath.Join(t.TempDir(), "none"),
		Getenv: func(name string) string { return env[name] }, Now: time.Now,
	}
}

func Test_11_3_HomeIsFlagThenEnvironmentThenUserHome(t *testing.T) {
	o := options(t, nil)
	for _, tt := range []struct{ flag, env, want string }{
		{"", "", filepath.Join(o.UserHome, ".hcp")}, {"", "/srv/hcp", "/srv/hcp"}, {"/flag", "/srv/hcp", "/flag"}, {"here/../there", "", filepath.Join(o.Dir, "there")},
	} {
		o.Home, o.Getenv = tt.flag, func(string) string { return tt.env }
		a, err := Open(o)
		if err != nil || a.Home() != tt.want {
			t.Errorf("%+v: %v", tt, err)
		}
	}
	for name, o := range map[string]Options{
		"no home":          {Getenv: func(string) string { return "" }},
		"relative, no dir": {Home: "x", Getenv: func(string) string { return "" }},
	} {
		if _, err := Open(o); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
}

// Settings that are not understood stop who would run or change something, and nobody who looks (§12.1.7); the
// refusal is in the audit (§9.7).
func TestHCP_12_1_7_BadSettingsAreAFinding(t *testing.T) {
	o := options(t, nil)
	o.Home = badSettings(t)
	a, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	s := protocol.Session{ID: "default", Principal: "human:ada", Tenant: "local"}
	if _, err := a.Executor(s); err == nil || err.Code != protocol.InternalError || err.Hint != "hcpx config show" {
		t.Errorf("exec: %v", err)
	}
	_, fault := a.Lifecycle(s)
	if fault == nil || len(fault.Details["problems"].([]settings.Problem)) != 1 {
		t.Fatalf("lifecycle: %v", fault)
	}
	if v := a.Health().Status(s); v.Exit != 1 {
		t.Errorf("status: %+v", v)
	}
	if v, err := a.Health().Lint([]string{t.TempDir()}); err != nil || len(v.Issues) == 0 {
		t.Error("lint looks at nothing")
	}
	fault.Step = 2
	if r := a.Refuse(t.Context(), s, []byte(`{"pack_id":"a","verb_key":"b"}`), fault); r.OK || r.Error != fault {
		t.Errorf("refused: %+v", r)
	}
	if report, err := audit.Verify(a.AuditConfig()); err != nil || report.Entries != 1 {
		t.Errorf("audit: %+v %v", report, err)
	}
}

// The audit's key lies where no read and no workspace comes (§10.2, §15.4).
func Test_10_2_TheAuditKeyLiesInAClosedPlace(t *testing.T) {
	xdg := filepath.Join(t.TempDir(), "xdg")
	for _, env := range []map[string]string{nil, {"XDG_CONFIG_HOME": xdg}, {"XDG_CONFIG_HOME": "relative"}} {
		a, err := Open(options(t, env))
		if err != nil {
			t.Fatal(err)
		}
		key := a.AuditConfig().KeyPath
		if a.gate().Places.ClosedRead(key) == "" || a.gate().Places.Closed(filepath.Dir(key)) == "" {
			t.Errorf("%v: %s is open", env, key)
		}
	}
}

func badSettings(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte("[identity]\nagents = \"whoever\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Opening makes nothing; the first use makes the store and the bootstrap pack (§11.3, §11.4).
func Test_11_3_OpenMakesNothing(t *testing.T) {
	o := options(t, nil)
	a, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	if a.PackIDs() != nil || a.VerbKeys("git") != nil || a.ArgsSchema("git", "log") != nil || a.Health().Whoami(protocol.Session{}).Principal != "" {
		t.Error("an empty store has something")
	}
	if err := a.auditHealth(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(o.UserHome); !os.IsNotExist(err) {
		t.Errorf("something was made: %v", err)
	}
	s := protocol.Session{ID: "default", Principal: "human:ada", Tenant: "local"}
	if _, err := a.Executor(s); err != nil {
		t.Fatal(err)
	}
	if ids := a.PackIDs(); !slices.Equal(ids, []string{"hcp-cli"}) || len(a.VerbKeys("hcp-cli")) == 0 {
		t.Errorf("the store has %v", ids)
	}
}

func Test_15_4_IDsAreUniqueAndSorted(t *testing.T) {
	clock := time.UnixMilli(1_800_000_000_000)
	id := ids(func() time.Time { return clock })
	var all []string
	for i := range 1000 {
		if i == 500 {
			clock = clock.Add(-time.Hour) // a clock that goes back
		}
		if i == 700 {
			clock = clock.Add(3 * time.Hour)
		}
		all = append(all, id())
	}
	if !slices.IsSorted(all) || len(slices.Compact(slices.Clone(all))) != len(all) || len(all[0]) != 26 {
		t.Error("ids are not unique and sorted", all[:3])
	}
	if got := text([16]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}); got != "7ZZZZZZZZZZZZZZZZZZZZZZZZZ" {
		t.Error(got)
	}
}

func TestShippedIsATree(t *testing.T) {
	entries, err := fs.ReadDir(shipped{}, ".")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
		sub, err := fs.Sub(shipped{}, e.Name())
		if err != nil {
			t.Fatal(err)
		}
		if err := fstest.TestFS(sub, "surface.json", "policy.json", "HARNESS.md"); err != nil {
			t.Error(err)
		}
		if _, err := fs.Stat(shipped{}, e.Name()+"/surface.json"); err != nil || !e.IsDir() {
			t.Error(e.Name(), err)
		}
	}
	if !slices.Equal(names, Shipped()) {
		t.Error(names)
	}
	if _, err := fs.Stat(shipped{}, "nothing/surface.json"); !os.IsNotExist(err) {
		t.Error(err)
	}
}
