package manifest

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func Test_2_2_PackIDs(t *testing.T) {
	for id, want := range map[string]bool{
		"a": true, "transit": true, "a1-b2-c3": true, strings.Repeat("a", 64): true, "a-1": true,
		"": false, "A": false, "1a": false, "-a": false, "a-": false, "a--b": false, "a_b": false, "a.b": false, "ä": false, strings.Repeat("a", 65): false, "a\n": false,
	} {
		if ValidID(id) != want {
			t.Errorf("ValidID(%q) = %v", id, !want)
		}
	}
}

func Test_2_2_ReservedIDs(t *testing.T) {
	for _, id := range []string{"hcp", "hcpx", "lint", "man", "tenant", Bootstrap} {
		if !Reserved(id) {
			t.Errorf("%s is free", id)
		}
	}
	if Reserved("transit") || Reserved("") {
		t.Error("a free id is reserved")
	}
}

func Test_3_1_VerbKeys(t *testing.T) {
	for key, want := range map[string]bool{
		"a": true, "trip.plan": true, "a.b.c.d.e": true, "a_b-c.d1": true, strings.Repeat("a", 64): true,
		"": false, "a.b.c.d.e.f": false, "a..b": false, ".a": false, "a.": false, "A": false, "a.1": false, "a_-b": false, "a_": false, strings.Repeat("a", 65): false,
	} {
		if ValidKey(key) != want {
			t.Errorf("ValidKey(%q) = %v", key, !want)
		}
	}
}

func Test_12_2_2_ToolNames(t *testing.T) {
	if got := ToolName("mail", "mail.list"); got != "mail__mail_list" {
		t.Error(got)
	}
}

func Test_12_1_FlagNames(t *testing.T) {
	for prop, want := range map[string]string{
		"from": "from", "fromStop": "from-stop", "from_stop": "from-stop", "HTTPServer": "http-server", "X-Header": "x-header", "a.b": "a-b", "v2Beta": "v2-beta",
		"json": "arg-json", "as": "arg-as", "idempotencyKey": "arg-idempotency-key", "__a__": "a", "größe": "größe", "": "arg", "__": "arg",
	} {
		if got := FlagName(prop); got != want {
			t.Errorf("FlagName(%q) = %q, want %q", prop, got, want)
		}
	}
}

func Test_10_2_EnvironmentNames(t *testing.T) {
	type answer struct{ static, inject bool }
	for name, want := range map[string]answer{
		"TRANSIT_REGION": {}, "AWS_REGION": {}, "LANG": {}, "GIT_CONFIG_NOSYSTEM": {}, "GIT_CONFIG_GLOBAL": {}, "GIT_AUTHOR_NAME": {}, "ENVIRONMENT": {},
		"LD_PRELOAD": {true, true}, "DYLD_X": {true, true}, "GIT_CONFIG_COUNT": {true, true}, "GIT_SSH_COMMAND": {true, true}, "PYTHONPATH": {true, true},
		"https_proxy": {true, true}, "ALL_PROXY": {true, true}, "PATH": {true, true}, "": {true, true}, "A=B": {true, true}, "1A": {true, true}, "A B": {true, true}, "Ä": {true, true},
		"GH_TOKEN": {true, false}, "AWS_SECRET_ACCESS_KEY": {true, false}, "ACTIONS_RUNTIME_TOKEN": {true, false},
	} {
		if got := (answer{UnsafeEnvName(name), UnsafeInjectName(name)}); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
	}
}

func Test_6_3_NearestCommands(t *testing.T) {
	m := &Manifest{}
	for _, key := range []string{"trip.plan", "trip.plans", "departures", "notes.list"} {
		m.Commands = append(m.Commands, &Command{Key: key})
	}
	for key, want := range map[string][]string{
		"trip.pln": {"trip.plan", "trip.plans"}, "plan": {"trip.plan"}, "notes": {"notes.list"}, "zzz": nil, "trip-plan": {"trip.plan", "trip.plans"},
	} {
		if d := cmp.Diff(want, m.Nearest(key)); d != "" {
			t.Errorf("%s: %s", key, d)
		}
	}
	if len(m.Nearest(strings.Repeat("x", 1<<16))) != 0 {
		t.Error("a long key is near to something")
	}
}

func TestReservedNamesEachIDOnce(t *testing.T) {
	if slices.Contains(reserved, "") || len(reserved) != len(slices.Compact(slices.Sorted(slices.Values(reserved)))) {
		t.Error("an id stands twice in the list")
	}
}
