package binding_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/binding"
	"hcpx/internal/binding/hubtest"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

func TestHub(t *testing.T) {
	t.Run("with no doors", func(t *testing.T) {
		hubtest.Run(t, func(*testing.T) binding.Hub { return binding.NewHub(binding.Options{}) })
	})
	t.Run("with what keeps secrets", func(t *testing.T) {
		hubtest.Run(t, func(*testing.T) binding.Hub {
			return binding.NewHub(binding.Options{Secrets: newBox(), Now: time.Now, Getenv: func(name string) string { return "value-of-" + name }})
		})
	})
}

func mint(t *testing.T, mode string) *binding.Minted {
	t.Helper()
	m, err := binding.NewHub(binding.Options{}).Mint(t.Context(), &manifest.Binding{Mode: mode}, binding.Scope{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func Test_8_2_InjectFillsTemplates(t *testing.T) {
	m := mint(t, binding.Mock)
	env, secrets, err := m.Env([]manifest.EnvVar{
		{Name: "A", Value: "{token}"}, {Name: "B", Value: "{{x}} {username}:{password}"}, {Name: "C", Value: "plain"},
	})
	if err != nil {
		t.Fatal(err)
	}
	v := binding.MockCredential
	if diff := cmp.Diff([]string{"A=" + v, "B={x} " + v + ":" + v, "C=plain"}, env); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{v}, secrets); diff != "" {
		t.Error(diff)
	}
}

func Test_8_4_WhatCannotBeFilledFails(t *testing.T) {
	for _, template := range []string{"{secret}", "{", "}", "a{token", "{}", "{token}}"} {
		env, secrets, err := mint(t, binding.Mock).Env([]manifest.EnvVar{{Name: "A", Value: template}})
		if err == nil || err.Code != protocol.BindingFailed || env != nil || secrets != nil {
			t.Errorf("%q: %q %q %v", template, env, secrets, err)
		}
		if err != nil && strings.Contains(err.Message, binding.MockCredential) {
			t.Errorf("%q: the error shows the value", template)
		}
	}
	if _, _, err := mint(t, binding.Public).Env([]manifest.EnvVar{{Name: "A", Value: "{token}"}}); err == nil {
		t.Error("public filled a token")
	}
	var none *binding.Minted
	none.Release()
	if _, _, err := none.Env([]manifest.EnvVar{{Name: "A", Value: "{token}"}}); err == nil {
		t.Error("nothing minted filled a token")
	}
}

func Test_8_5_PublicIsAlwaysConnected(t *testing.T) {
	for mode, want := range map[string]bool{"": true, binding.Public: true, binding.Mock: false, binding.User: false} {
		b := &manifest.Binding{Mode: mode}
		if got := binding.Connected(b, false); got != want {
			t.Errorf("%q: %v", mode, got)
		}
		if !binding.Connected(b, true) {
			t.Errorf("%q: the state's word is lost", mode)
		}
	}
}

func FuzzEnv(f *testing.F) {
	for _, s := range []string{"{token}", "{{", "}}", "{username}:{password}", "{{{token}}}", "é{token}\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, template string) {
		m, err := binding.NewHub(binding.Options{}).Mint(t.Context(), &manifest.Binding{Mode: binding.Mock}, binding.Scope{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		env, _, err := m.Env([]manifest.EnvVar{{Name: "A", Value: template}})
		if (err == nil) != (len(env) == 1) {
			t.Errorf("%q: %q, %v", template, env, err)
		}
	})
}
