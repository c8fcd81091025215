package gate

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"hcpx/internal/grant"
	"hcpx/internal/protocol"
	"hcpx/internal/stamp"
	"hcpx/internal/store"
)

// world8 is step 8 of a command under the state in force.
func (f *fixture) world8(verb string) *protocol.Error {
	f.t.Helper()
	st, err := f.g.Store.State()
	if err != nil {
		f.t.Fatal(err)
	}
	now := f.g.InForce(st)
	l, refusal := f.g.Pack(now, "default", "tool")
	if refusal != nil {
		f.t.Fatal(refusal)
	}
	v, refusal := f.g.Verb(now, "default", l, verb)
	if refusal != nil {
		f.t.Fatal(refusal)
	}
	_, refusal = f.g.World(now, f.s, v, nil)
	return refusal
}

// §9.3, §10.3: what was allowed before the settings forbade it does not run either.
func Test_9_3_RulesTakeAwayWhatTheStoreGives(t *testing.T) {
	f := newFixture(t, "./bin/tool", "[]", "native-local")
	f.update(func(st *store.State) { st.Native = []string{"tool"} })
	if err := f.world8("see"); err != nil {
		t.Fatal(err)
	}
	f.g.Rules.NoNative = true
	if err := f.world8("see"); err == nil || err.Code != protocol.SandboxUnavailable || err.Details["setting"] != "sandbox.native_local" {
		t.Errorf("native-local: %v", err)
	}

	f = newFixture(t, "sh", "[]", "sandbox")
	path := filepath.Join(t.TempDir(), "sh")
	if err := os.WriteFile(path, []byte("x"), 0o755); err != nil {
		t.Fatal(err)
	}
	sum, err := stamp.Of(path, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	f.update(func(st *store.State) {
		st.Bins = []protocol.AllowedBin{{Name: "sh", Path: path, Dangerous: true, Stamp: sum}}
	})
	if err := f.world8("see"); err != nil {
		t.Fatal(err)
	}
	f.g.Rules.NoDangerous = true
	if err := f.world8("see"); err == nil || err.Code != protocol.BinNotAllowed {
		t.Errorf("an interpreter: %v", err)
	}
	st, err := f.g.Store.State()
	if err != nil || !st.Bins[0].Dangerous {
		t.Errorf("the store was changed: %+v %v", st, err)
	}
}

// §9.3: denies come after the store's grants, so that these keep their numbers, and the store's list stays as it is.
func Test_9_3_DeniesAreAddedToNoStore(t *testing.T) {
	deny := grant.Grant{Principal: "*", Effect: grant.Deny, Capabilities: []protocol.Capability{protocol.VerbExecRead}, From: "hcp.toml:1"}
	st := &store.State{Grants: grant.Defaults()}
	g := &Gate{}
	if g.InForce(st) != st {
		t.Error("without rules the state is not itself")
	}
	g = &Gate{Rules: Rules{Denies: []grant.Grant{deny}}}
	if now := g.InForce(st); len(now.Grants) != 3 || now.Grants[2].From != "hcp.toml:1" || len(st.Grants) != 2 {
		t.Errorf("%+v %+v", now.Grants, st.Grants)
	}
	if over := g.Over(store.NewMemory(t.TempDir())); len(over.Rules.Denies) != 1 {
		t.Error("another view of the store has no rules")
	}
}

func Test_9_3_WhatIsForbiddenCannotBeAllowed(t *testing.T) {
	r := Rules{NoNative: true}
	if r.Forbidden(false, true) != nil || r.Forbidden(true, false) == nil || (Rules{NoDangerous: true}).Forbidden(false, true) == nil || (Rules{}).Forbidden(true, true) != nil {
		t.Error("forbidden is not what the rules say")
	}
}

// §9.5: the first decision over a state and the hundredth are the same, and a changed state is another one.
func Test_9_5_DecideIsEvaluate(t *testing.T) {
	g := &Gate{Rules: Rules{Denies: []grant.Grant{{Principal: "agent:*", Effect: grant.Deny, Capabilities: []protocol.Capability{protocol.VerbExecRead}, Packs: []string{"ledger"}, From: "hcp.toml:1"}}}}
	for range 3 {
		st := &store.State{Grants: grant.Defaults()}
		now := g.InForce(st)
		for i := range 3 * setAfter {
			for _, pack := range []string{"git", "ledger"} {
				r := grant.Request{Principal: "agent:a.b", Tenant: "local", Capability: protocol.VerbExecRead, Pack: pack, Verb: "x", Land: protocol.Personal, Now: time.Now(), Scope: true}
				got, want := g.Decide(now, r), grant.Evaluate(now.Grants, r)
				if !slices.Equal(got.Path, want.Path) || (got.Err == nil) != (pack == "git") {
					t.Errorf("%d %s: %v, want %v", i, pack, got.Path, want.Path)
				}
			}
		}
		if other := (&store.State{}); g.Decide(other, grant.Request{Principal: "human:ada", Tenant: "local", Capability: protocol.VerbExecRead}).Err == nil {
			t.Error("another state was decided by the last one's grants")
		}
	}
}
