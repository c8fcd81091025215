package store_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/store"
)

// §8.5: the state keeps who connected, for each session, and what is kept for whom; a state without bindings is as the
// reference layout has it.
func Test_8_5_TheStateKnowsWhoseBindingASessionUses(t *testing.T) {
	st := store.Fresh()
	if text, err := store.EncodeState(st); err != nil || strings.Contains(string(text), "bindings") || strings.Contains(string(text), "secrets") {
		t.Fatalf("%s, %v", text, err)
	}
	ada := store.Bound{Owner: "human:ada", Source: "sha256:1", Secret: "local/human:ada/family/city"}
	for _, s := range []string{"default", "ci"} {
		st.SetActivated(s, "transit", true)
		st.SetActivated(s, "tram", true)
	}
	st.KeepSecret(ada.Secret)
	if diff := cmp.Diff([]string{ada.Secret}, st.Orphans()); diff != "" {
		t.Error(diff)
	}
	if !st.Bind("default", "transit", ada) || !st.Bind("ci", "tram", ada) || st.Bind("ci", "tram", ada) {
		t.Error("Bind does not say what changed")
	}
	text, err := store.EncodeState(st)
	if err != nil {
		t.Fatal(err)
	}
	if st, err = store.DecodeState("state.json", text); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ci/tram", "default/transit"}, st.UsersOf(ada.Secret)); diff != "" {
		t.Error(diff)
	}
	if b, ok := st.Bound("ci", "tram"); !ok || b != ada {
		t.Errorf("%v, %v", b, ok)
	}
	st.SetConnected("default", "transit", false)
	if len(st.Orphans()) > 0 {
		t.Error("a member still uses it")
	}
	st.SetActivated("ci", "tram", false)
	if _, ok := st.Bound("ci", "tram"); ok || len(st.Bindings) > 0 || len(st.Sessions["ci"].Bindings) > 0 {
		t.Error("a deactivated pack keeps its binding")
	}
	if diff := cmp.Diff([]string{ada.Secret}, st.Orphans()); diff != "" {
		t.Error(diff)
	}
	st.DropSecret(ada.Secret)
	if len(st.Orphans()) > 0 || len(st.Secrets) > 0 {
		t.Error("the name is still known")
	}
}
