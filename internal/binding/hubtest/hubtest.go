// Package hubtest is the suite that every kind of binding.Hub passes (§8): what is not supported is never
// minted, what is minted hides itself, and nothing falls back (§8.4).
package hubtest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"hcpx/internal/binding"
	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// bindings are one of each mode, with the hub that §8.2 gives it.
func bindings() []manifest.Binding {
	inject := []manifest.EnvVar{{Name: "PACK_TOKEN", Value: "Bearer {token}"}}
	return []manifest.Binding{
		{Mode: binding.Public, Hub: binding.HubPublic},
		{Mode: binding.Mock, Hub: binding.HubNone, Inject: inject},
		{Mode: binding.Local, Hub: binding.HubNone},
		sourced(binding.Local, "local-credential", &manifest.Source{Kind: manifest.KindEnv, Name: "PACK_SECRET"}),
		sourced(binding.User, "keyring", &manifest.Source{Kind: manifest.KindToken}),
		{Mode: binding.Local, Hub: "local-credential", Inject: inject},
		{Mode: binding.User, Hub: "keyring", Inject: inject},
		{Mode: binding.Mothership, Hub: "keyring", Inject: inject},
		{Mode: "of-tomorrow", Hub: "keyring", Inject: inject},
	}
}

// sourced is a binding with a source that was read whole.
func sourced(mode, hub string, from *manifest.Source) manifest.Binding {
	return manifest.Binding{Mode: mode, Hub: hub, Source: jsondoc.Obj(jsondoc.Member{Key: "kind", Value: jsondoc.Str(from.Kind)}), From: from,
		Inject: []manifest.EnvVar{{Name: "PACK_TOKEN", Value: "Bearer {token}"}}}
}

// Run proves the contract of the hub that open makes.
func Run(t *testing.T, open func(t *testing.T) binding.Hub) {
	t.Helper()
	scope := binding.Scope{Tenant: "local", Session: "default", Owner: "human:ada", Pack: "ledger"}
	for _, b := range bindings() {
		t.Run(b.Mode+"/"+b.Hub, func(t *testing.T) {
			hub := open(t)
			if hub.Supported(&b) != nil {
				refused(t, hub, &b, scope)
				return
			}
			granted(t, hub, &b, scope)
		})
	}
	t.Run("§8.1 public is always supported", func(t *testing.T) {
		for _, b := range []manifest.Binding{{}, {Mode: binding.Public}} {
			if err := open(t).Supported(&b); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("§8.3 mock mints the fixed value", func(t *testing.T) {
		env, secrets := filled(t, open(t), &bindings()[1], scope)
		if env[0] != "PACK_TOKEN=Bearer "+binding.MockCredential || len(secrets) == 0 || secrets[0] != binding.MockCredential {
			t.Errorf("env %q, secrets %q", env, secrets)
		}
	})
}

// person types a secret of his own.
func person() binding.Person {
	return binding.Person{Secret: func(context.Context, string) ([]byte, *protocol.Error) { return []byte("what-a-person-typed"), nil }}
}

// refused: §8.4, no credential at all where the right one can't be had.
func refused(t *testing.T, hub binding.Hub, b *manifest.Binding, s binding.Scope) {
	t.Helper()
	m, err := hub.Mint(t.Context(), b, s, 0)
	if m != nil || err == nil || err.Code != protocol.NotConnected {
		t.Errorf("Mint: %v, %v", m, err)
	}
	if _, err := hub.Connect(t.Context(), b, s, binding.Person{}); err == nil || err.Code != protocol.NotConnected || err.Hint == "" {
		t.Errorf("Connect: %v", err)
	}
	if _, err := hub.Forget(t.Context(), s.Name()); err != nil {
		t.Errorf("Forget of what was never connected: %v", err)
	}
}

func granted(t *testing.T, hub binding.Hub, b *manifest.Binding, s binding.Scope) {
	t.Helper()
	for range 2 {
		if _, err := hub.Connect(t.Context(), b, s, person()); err != nil {
			t.Fatalf("Connect: %v", err)
		}
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { hides(t, hub, b, s) })
	}
	wg.Wait()
	for range 2 {
		if _, err := hub.Forget(t.Context(), s.Name()); err != nil {
			t.Errorf("Forget: %v", err)
		}
	}
}

// hides: §8.4, the value shows in nothing that prints or encodes, and is gone once released.
func hides(t *testing.T, hub binding.Hub, b *manifest.Binding, s binding.Scope) {
	m, err := hub.Mint(t.Context(), b, s, 0)
	if err != nil {
		t.Errorf("Mint: %v", err)
		return
	}
	env, secrets, err := m.Env(b.Inject)
	if err != nil || len(env) != len(b.Inject) {
		t.Errorf("Env: %q, %v", env, err)
		return
	}
	encoded, fault := json.Marshal(map[string]any{"minted": m, "value": *m})
	if fault != nil {
		t.Error(fault)
	}
	around := struct{ minted binding.Minted }{*m}
	shown := fmt.Sprintf("%v %+v %#v %s %q %x %d %v %+v %#v %v", m, m, m, m, m, m, m, *m, around, *m, around) + string(encoded)
	for _, secret := range secrets {
		if strings.Contains(shown, secret) {
			t.Errorf("the credential shows: %s", shown)
		}
	}
	m.Release()
	m.Release()
	if _, left, _ := m.Env(nil); len(left) > 0 {
		t.Error("a released credential still gives its value")
	}
	if env, _, err := m.Env(b.Inject); len(b.Inject) > 0 && (err == nil || env != nil) {
		t.Errorf("a released credential fills %q", env)
	}
}

func filled(t *testing.T, hub binding.Hub, b *manifest.Binding, s binding.Scope) (env, secrets []string) {
	t.Helper()
	m, err := hub.Mint(t.Context(), b, s, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Release()
	env, secrets, err = m.Env(b.Inject)
	if err != nil {
		t.Fatal(err)
	}
	return env, secrets
}
