package binding_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"hcpx/internal/binding"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// §8.3: a source of this machine is read at each mint, exactly the one that is named, and no other.
func Test_8_3_LocalSourcesAreReadAtEachMint(t *testing.T) {
	var read []string
	files := map[string]string{"/a/key.json": `{"x":{"y/z":["value-of-the-file"],"n":12345678}}`, "/a/key": "value-of-a-line\r\nnext", "/a/bad": `{`}
	env := map[string]string{"ACME_TOKEN": "value-of-variable", "SHORT": "1234567", "LINES": "value\nof-two-lines"}
	printed, refused := "value-of-program\nnext", (*protocol.Error)(nil)
	hub := binding.NewHub(binding.Options{
		Getenv: func(name string) string { read = append(read, "env "+name); return env[name] },
		ReadFile: func(path string) ([]byte, error) {
			read = append(read, "file "+path)
			if text, ok := files[path]; ok {
				return []byte(text), nil
			}
			return nil, errors.New("no such file or directory")
		},
		Command: func(_ context.Context, argv []string) ([]byte, *protocol.Error) {
			read = append(read, "run "+strings.Join(argv, " "))
			return []byte(printed), refused
		},
	})
	for _, c := range []struct {
		src    manifest.Source
		want   string // the value, or "" with a reason
		reason binding.Reason
		read   string
	}{
		{manifest.Source{Kind: manifest.KindEnv, Name: "ACME_TOKEN"}, "value-of-variable", "", "env ACME_TOKEN"},
		{manifest.Source{Kind: manifest.KindEnv, Name: "GONE"}, "", binding.Missing, "env GONE"},
		{manifest.Source{Kind: manifest.KindEnv, Name: "SHORT"}, "", binding.Malformed, "env SHORT"},
		{manifest.Source{Kind: manifest.KindEnv, Name: "LINES"}, "", binding.Malformed, "env LINES"},
		{manifest.Source{Kind: manifest.KindFile, Path: "/a/key.json", Pointer: "/x/y~1z/0"}, "value-of-the-file", "", "file /a/key.json"},
		{manifest.Source{Kind: manifest.KindFile, Path: "/a/key.json", Pointer: "/x/n"}, "", binding.Missing, "file /a/key.json"},
		{manifest.Source{Kind: manifest.KindFile, Path: "/a/key.json", Pointer: "/gone"}, "", binding.Missing, "file /a/key.json"},
		{manifest.Source{Kind: manifest.KindFile, Path: "/a/bad", Pointer: "/x"}, "", binding.Malformed, "file /a/bad"},
		{manifest.Source{Kind: manifest.KindFile, Path: "/a/key"}, "value-of-a-line", "", "file /a/key"},
		{manifest.Source{Kind: manifest.KindFile, Path: "/a/gone"}, "", binding.Missing, "file /a/gone"},
		{manifest.Source{Kind: manifest.KindCommand, Argv: []string{"gh", "auth", "token"}}, "value-of-program", "", "run gh auth token"},
	} {
		read = nil
		b := bound(binding.Local, &c.src)
		for range 2 {
			m, err := hub.Mint(t.Context(), b, binding.Scope{Session: "default", Pack: "acme"}, time.Minute)
			switch {
			case c.want != "" && (err != nil || valueOf(t, m) != c.want || m.Reused()):
				t.Errorf("%+v: %v", c.src, err)
			case c.want == "" && (m != nil || err == nil || err.Code != protocol.BindingFailed || err.Details["reason"] != string(c.reason)):
				t.Errorf("%+v: %v, %v", c.src, m, err)
			}
			if err != nil && (strings.Contains(err.Error(), "value") || strings.Contains(err.Error(), "1234567")) {
				t.Errorf("%+v: the error shows the value: %v", c.src, err)
			}
		}
		if got := strings.Join(read, ", "); got != c.read+", "+c.read {
			t.Errorf("%+v: read %s", c.src, got)
		}
	}
	refused = protocol.Fail(protocol.BindingFailed, "gh said no.").With("reason", "denied").WithHint("hcpx allow gh")
	m, err := hub.Mint(t.Context(), bound(binding.Local, &manifest.Source{Kind: manifest.KindCommand, Argv: []string{"gh"}}), binding.Scope{Pack: "acme"}, 0)
	if m != nil || err != refused || err.Hint != "hcpx allow gh" {
		t.Errorf("%v, %v", m, err)
	}
}

// §8.3: what a person types is kept, in one place; under 8 bytes it is refused, and an empty answer keeps what stands.
func Test_8_3_WhatIsTypedIsKept(t *testing.T) {
	r := &rig{box: newBox(), clock: &clock{}, provider: &provider{t: t}}
	r.Hub = binding.NewHub(binding.Options{Secrets: r.box, Now: r.clock.now})
	b, s := bound(binding.User, &manifest.Source{Kind: manifest.KindToken}), scope("transit", "")
	for _, typed := range []string{"", "1234567", "a\x00bcdefgh", "a\x1bcdefghij"} {
		if _, err := r.Connect(t.Context(), b, s, r.person(typed)); err == nil || len(r.box.held) > 0 || typed != "" && strings.Contains(err.Error(), typed) {
			t.Errorf("%q: %v", typed, err)
		}
	}
	r.connect(b, s, "the-first-token")
	s.Here = true
	if made := r.connect(b, s, ""); !made.Asked {
		t.Error("nobody was asked")
	}
	if got, _ := r.token(b, s, 0); got != "the-first-token" {
		t.Errorf("%q", got)
	}
	r.connect(b, s, "the-second-token")
	if got, _ := r.token(b, s, 0); got != "the-second-token" {
		t.Errorf("%q", got)
	}
	basic := bound(binding.User, &manifest.Source{Kind: manifest.KindBasic})
	basic.Inject = []manifest.EnvVar{{Name: "LOGIN", Value: "{username}:{password}"}}
	r.connect(basic, scope("ledger", ""), "pass word!")
	m, err := r.Mint(t.Context(), basic, scope("ledger", ""), 0)
	if err != nil {
		t.Fatal(err)
	}
	env, secrets, err := m.Env(basic.Inject)
	if err != nil || env[0] != "LOGIN=ada:pass word!" || len(secrets) != 2 {
		t.Errorf("%q %q %v", env, secrets, err)
	}
	if _, err := r.Forget(t.Context(), scope("ledger", "").Name()); err != nil {
		t.Error(err)
	}
	if err := r.refusedMint(basic, scope("ledger", "")); err.Details["reason"] != string(binding.Missing) {
		t.Error(err)
	}
	if _, err := r.Connect(t.Context(), b, scope("other", ""), binding.Person{}); err == nil || !strings.Contains(err.Message, "nobody can be asked") {
		t.Errorf("%v", err)
	}
}
