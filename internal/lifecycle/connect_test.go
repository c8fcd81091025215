package lifecycle

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hcpx/internal/binding"
	"hcpx/internal/grant"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
	"hcpx/internal/vault"
)

const typed = "what-ada-has-typed"

// keeping is a world whose secrets lie in a real vault, and whose variables are given.
func keeping(t *testing.T) (*world, vault.Store) {
	t.Helper()
	w := newWorld(t)
	v := vault.Open(vault.Options{Dir: filepath.Join(t.TempDir(), "secrets"), Config: filepath.Join(t.TempDir(), "config")})
	w.Gate.Hub = binding.NewHub(binding.Options{Secrets: v, Now: time.Now, Getenv: func(name string) string {
		if name == "NOTES_SECRET" {
			return "value-of-the-variable"
		}
		return ""
	}})
	w.Keeper = v
	return w, v
}

// withSource gives a pack a binding.
func withSource(mode, source, family string) []string {
	hub := map[string]string{"user": "keyring", "local": "local-credential"}[mode]
	return []string{`"adapter": "wrap",`, family + `"adapter": "wrap", "binding": { "mode": "` + mode + `", "hub": "` + hub + `", "source": ` + source + `, "inject": { "env": { "NOTES_TOKEN": "{token}" } } },`}
}

func typing(secret string) ConnectOptions {
	return ConnectOptions{Person: Person{Secret: func(context.Context, string) ([]byte, *protocol.Error) { return []byte(secret), nil }}}
}

func (w *world) connect(s protocol.Session, id string, o ConnectOptions) ConnectView {
	w.t.Helper()
	v, err := w.Connect(w.t.Context(), s, id, o)
	if err != nil || !v.Connected {
		w.t.Fatalf("%+v %v", v, err)
	}
	return v
}

func kept(t *testing.T, v vault.Store, name string) bool {
	t.Helper()
	_, found, err := v.Get(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// §8.5: who may not disconnect deletes nothing by deactivating either: the connection ends, and who made it finds what was
// kept again, or ends it.
func Test_8_5_DeactivateDeletesNothingThatDisconnectMayNot(t *testing.T) {
	w, v := keeping(t)
	w.ready("notes", withSource("user", `{ "kind": "token" }`, "")...)
	const name = "local/human:ada/pack/notes"
	w.connect(ada, "notes", typing(typed))
	agent := as("agent:claude-code")
	for range 2 {
		if _, err := w.Deactivate(t.Context(), agent, []string{"notes"}); err != nil {
			t.Fatal(err)
		}
		if st := w.mustState(); !kept(t, v, name) || st.IsActivated("default", "notes") || st.IsConnected("default", "notes") || len(st.Orphans()) > 0 {
			t.Fatalf("kept %v, %+v", kept(t, v, name), st)
		}
	}
	if _, err := w.Activate(agent, []string{"notes"}); err != nil || w.available(ada, "notes").Connected {
		t.Fatal("an agent connected it by activating it", err)
	}
	if v := w.connect(ada, "notes", typing("never asked for")); !v.Changed || !v.Shared {
		t.Errorf("its owner is asked again: %+v", v)
	}
	if _, err := w.Deactivate(t.Context(), agent, []string{"notes"}); err != nil {
		t.Fatal(err)
	}
	if view, err := w.Disconnect(t.Context(), ada, "notes"); err != nil || !view.Changed || kept(t, v, name) || len(w.mustState().Secrets) > 0 {
		t.Errorf("%+v %v", view, err)
	}
}

// §8.5: a binding belongs to who ran connect; the state knows that for each session, and the audit says so. What is kept
// goes when no session or member needs it, by whichever act the last one ends.
func Test_8_5_ABindingHasAnOwnerAndAnEnd(t *testing.T) {
	const city = `"family": "city", `
	w, v := keeping(t)
	for _, id := range []string{"notes", "memos"} {
		w.ready(id, withSource("user", `{ "kind": "token" }`, city)...)
		if _, err := w.Activate(in("ci"), []string{id}); err != nil {
			t.Fatal(err)
		}
	}
	const name = "local/human:ada/family/city"
	if v := w.connect(ada, "notes", typing(typed)); !v.Changed || v.Shared || v.Source == "" {
		t.Errorf("%+v", v)
	}
	_, err := w.Connect(t.Context(), ada, "memos", typing("another-one"))
	refused(t, err, protocol.BindingFailed)
	if _, bound := w.mustState().Bound("default", "memos"); bound {
		t.Fatal("a pack took the consent of a family by naming it")
	}
	if v := w.connect(ada, "memos", typing(typed)); !v.Changed || !v.Shared {
		t.Errorf("a second member: %+v", v)
	}
	if v := w.connect(in("ci"), "memos", ConnectOptions{}); !v.Shared {
		t.Errorf("another session of ada: %+v", v)
	}
	b, ok := w.mustState().Bound("ci", "memos")
	if !ok || b.Owner != "human:ada" || b.Secret != name {
		t.Errorf("%+v %v", b, ok)
	}
	for _, end := range []func() *protocol.Error{
		func() *protocol.Error { _, err := w.Disconnect(t.Context(), ada, "notes"); return err },
		func() *protocol.Error { _, err := w.Deactivate(t.Context(), ada, []string{"memos"}); return err },
		func() *protocol.Error {
			_, err := w.Uninstall(t.Context(), ada, "memos", UninstallOptions{})
			return err
		},
	} {
		if !kept(t, v, name) {
			t.Fatal("the secret is gone while a member needs it")
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	if kept(t, v, name) || len(w.mustState().Secrets) > 0 {
		t.Error("the secret stays when nothing needs it")
	}
	for _, e := range w.log.Entries() {
		if text, err := json.Marshal(e); err != nil || strings.Contains(string(text), typed) {
			t.Errorf("%s %v", text, err)
		}
		if e.Act == "connect" && e.Kind == "change" && (!strings.Contains(string(e.Detail), `"owner":"human:ada"`) || !strings.Contains(string(e.Detail), name)) {
			t.Errorf("the audit does not name the owner: %s", e.Detail)
		}
	}
}

// A pack cannot join a family to take its consent, and its failed connect takes nothing from the members.
func Test_8_5_NoPackJoinsAFamilyToTakeItsConsent(t *testing.T) {
	w, v := keeping(t)
	const city = `"family": "city", `
	w.ready("notes", withSource("user", `{ "kind": "token" }`, city)...)
	w.ready("thief", withSource("user", `{ "kind": "oauth2", "auth_url": "https://evil.example/d", "token_url": "https://evil.example/t", "client_id": "c" }`, city)...)
	w.Gate.Hub = binding.NewHub(binding.Options{Secrets: v, Now: time.Now, Net: binding.Net{Dial: binding.Dial}})
	w.connect(ada, "notes", typing(typed))
	_, err := w.Connect(t.Context(), ada, "thief", ConnectOptions{})
	refused(t, advisedAnyway(err), protocol.BindingFailed)
	if !kept(t, v, "local/human:ada/family/city") || w.mustState().IsConnected("default", "thief") {
		t.Error("the family lost its consent, or the thief has it")
	}
}

// advisedAnyway: a refusal to join has no next command.
func advisedAnyway(err *protocol.Error) *protocol.Error {
	if err != nil && err.Hint == "" {
		return err.WithHint("none")
	}
	return err
}

// §8.3: the source is shown before it is read for the first time; a no reads nothing; another source in a later version
// is connected again before it is read.
func Test_8_3_ConsentNamesExactlyTheSource(t *testing.T) {
	w, _ := keeping(t)
	w.ready("notes", withSource("local", `{ "kind": "env", "name": "NOTES_SECRET" }`, "")...)
	var shown []string
	answer := false
	o := ConnectOptions{Ask: func(c Consent) bool {
		shown = append(shown, c.Question+": "+c.Packs[0].Credential)
		return answer
	}}
	_, err := w.Connect(t.Context(), ada, "notes", o)
	refused(t, err, protocol.Canceled)
	answer = true
	w.connect(ada, "notes", o)
	w.connect(ada, "notes", o)
	if want := "connect: the variable NOTES_SECRET of this process, read at each run"; !slices.Equal(shown, []string{want, want}) {
		t.Errorf("%q", shown)
	}
	if p := w.available(ada, "notes"); !p.Connected {
		t.Errorf("%+v", p)
	}
	dir := w.pack("notes", append(withSource("local", `{ "kind": "env", "name": "OTHER_SECRET" }`, ""), `"1.0.0"`, `"1.1.0"`)...)
	w.install(dir, InstallOptions{AllowBin: true, AllowRead: true, AcceptPolicyChange: true})
	if p := w.available(ada, "notes"); p.Commands["show"].Reason != protocol.NotConnected {
		t.Errorf("another source is read without consent: %+v", p)
	}
	_, err = w.Connect(t.Context(), ada, "notes", o)
	if code(err) != protocol.BindingFailed || !strings.Contains(err.Message, "OTHER_SECRET") {
		t.Errorf("%v", err)
	}
}

// A connect or disconnect that was cut off leaves nothing that nobody knows of: doctor tells, repair deletes.
func Test_8_5_AnOrphanIsToldAndRepaired(t *testing.T) {
	w, v := keeping(t)
	const name = "local/human:ada/pack/notes"
	if err := w.note(name, true); err != nil {
		t.Fatal(err)
	}
	if err := v.Set(t.Context(), name, []byte("left by a connect that was killed")); err != nil {
		t.Fatal(err)
	}
	told := func() bool {
		return slices.ContainsFunc(w.Doctor(ada).Findings, func(f Finding) bool { return f.Subject == name && f.Fix == "hcpx repair" })
	}
	if !told() {
		t.Error("doctor does not tell")
	}
	if _, err := w.Repair(ada); err != nil {
		t.Fatal(err)
	}
	if told() || kept(t, v, name) || len(w.mustState().Secrets) > 0 {
		t.Error("repair left it")
	}
}

// What stood in the state before a source was consented to is no consent.
func Test_8_5_AConnectionWithoutAConsentIsNone(t *testing.T) {
	w, _ := keeping(t)
	w.ready("notes", withSource("local", `{ "kind": "env", "name": "NOTES_SECRET" }`, "")...)
	if err := w.Store.Update(func(st *store.State) error { st.SetConnected("default", "notes", true); return nil }); err != nil {
		t.Fatal(err)
	}
	if p := w.available(ada, "notes"); p.Commands["show"].Reason != protocol.NotConnected {
		t.Errorf("%+v", p)
	}
}

// §8.3: the token endpoint of a mothership is the operator's. Where the settings name endpoints it is one of them, for connect,
// availability and exec alike; where they name none a person connects what he is shown, and nobody else does.
func Test_8_3_AMothershipsEndpointIsTheOperators(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = rw.Write([]byte(`{"access_token":"a-token-of-the-mothership","token_type":"Bearer","expires_in":300}`))
	}))
	defer server.Close()
	w, v := keeping(t)
	w.Gate.Hub = binding.NewHub(binding.Options{Secrets: v, Now: time.Now, Net: binding.Net{Dial: binding.Dial}})
	at := server.URL + "/token"
	w.ready("notes", `"adapter": "wrap",`, `"adapter": "wrap", "binding": { "mode": "mothership", "hub": "keyring", "source": { "kind": "client_credentials", "token_url": "`+at+`", "client_id": "c" }, "inject": { "env": { "NOTES_TOKEN": "{token}" } } },`)
	if _, err := w.Grant(ada, grant.Grant{Principal: "service:ci", Effect: grant.Allow, Capabilities: []protocol.Capability{protocol.PackConnect, protocol.VerbExecRead}}); err != nil {
		t.Fatal(err)
	}
	ci := ada
	ci.Principal = "service:ci"
	connect := func(s protocol.Session) *protocol.Error {
		_, err := w.Connect(t.Context(), s, "notes", typing(typed))
		return err
	}
	status := func() string {
		view, err := w.Availability(ada, []string{"notes"})
		if err != nil {
			t.Fatal(err)
		}
		return view.Packs[0].Status
	}
	refused(t, connect(ci), protocol.OperatorRequired)
	for _, other := range [][]string{{}, {at + "/"}, {"https://id.example.org/token"}} {
		w.Gate.Rules.Endpoints = other
		for _, s := range []protocol.Session{ada, ci} {
			refused(t, connect(s), protocol.NotConnected)
		}
	}
	w.Gate.Rules.Endpoints = []string{"https://id.example.org/token", at}
	if err := connect(ci); err != nil {
		t.Error(err)
	}
	w.Gate.Rules.Endpoints = nil
	if err := connect(ada); err != nil || status() != "executable" {
		t.Errorf("%v %s", err, status())
	}
	w.Gate.Rules.Endpoints = []string{} // taken away after it was connected
	loaded, err := w.Gate.Installed("notes")
	if err != nil {
		t.Fatal(err)
	}
	refused(t, w.Gate.Connected(w.mustState(), ada.ID, loaded), protocol.NotConnected)
	if status() == "executable" {
		t.Error("availability says what exec does not do")
	}
}

// §8.5: disconnect, deactivate, uninstall and repair tell what the server answered when its tokens were given back.
func Test_8_5_TheEndTellsWhatTheServerSaid(t *testing.T) {
	given := []string{}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/revoke" {
			given = append(given, r.FormValue("token"))
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		_, _ = rw.Write([]byte(`{"access_token":"a-token-of-the-mothership","token_type":"Bearer","expires_in":300}`))
	}))
	defer server.Close()
	w, v := keeping(t)
	w.Gate.Hub = binding.NewHub(binding.Options{Secrets: v, Now: time.Now, Net: binding.Net{Dial: binding.Dial}})
	w.ready("notes", `"adapter": "wrap",`, `"adapter": "wrap", "binding": { "mode": "mothership", "hub": "keyring", "source": { "kind": "client_credentials", "token_url": "`+
		server.URL+`/token", "revoke_url": "`+server.URL+`/revoke", "client_id": "c" }, "inject": { "env": { "NOTES_TOKEN": "{token}" } } },`)
	for name, end := range map[string]func() (string, *protocol.Error){
		"disconnect": func() (string, *protocol.Error) {
			view, err := w.Disconnect(t.Context(), ada, "notes")
			return view.Revocations[0].Message, err
		},
		"deactivate": func() (string, *protocol.Error) {
			view, err := w.Deactivate(t.Context(), ada, []string{"notes"})
			return view.Packs[0].Note, err
		},
	} {
		if _, err := w.Activate(ada, []string{"notes"}); err != nil {
			t.Fatal(err)
		}
		if view := w.connect(ada, "notes", typing(typed)); !strings.Contains(view.Source, "given back at "+server.URL+"/revoke") {
			t.Errorf("consent to %s", view.Source)
		}
		given = nil
		said, err := end()
		if err != nil || !strings.Contains(said, "answered that the tokens are revoked") || !slices.Equal(given, []string{"a-token-of-the-mothership"}) {
			t.Errorf("%s: %q, %v, given %q", name, said, err, given)
		}
	}
	if len(w.mustState().Secrets) > 0 {
		t.Error("something is kept")
	}
}

// §8.5: whoever deactivates a pack is told that its credential goes with it, and only where it does; add says how a pack gets one.
func Test_8_5_ACredentialNeitherComesNorGoesUnsaid(t *testing.T) {
	w, v := keeping(t)
	dir := w.pack("notes", withSource("user", `{ "kind": "token" }`, "")...)
	added, err := w.Add(ada, dir, AddOptions{Yes: true})
	if err != nil || added.Connect != "hcpx connect notes" {
		t.Fatalf("add: %q %v", added.Connect, err)
	}
	if free, err := w.Add(ada, w.pack("open"), AddOptions{Yes: true}); err != nil || free.Connect != "" {
		t.Errorf("add without a credential: %q %v", free.Connect, err)
	}
	w.connect(ada, "notes", typing(typed))
	if again, err := w.Add(ada, dir, AddOptions{Yes: true}); err != nil || again.Connect != "" {
		t.Errorf("add again: %q %v", again.Connect, err)
	}
	for _, want := range []string{"its credential was deleted here; hcpx connect notes asks for it again", ""} {
		view, err := w.Deactivate(t.Context(), ada, []string{"notes"})
		if err != nil || view.Packs[0].Note != want || kept(t, v, "local/human:ada/pack/notes") {
			t.Errorf("%+v %v", view, err)
		}
	}
}
