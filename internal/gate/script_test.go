package gate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
	"hcpx/internal/store"
)

// script makes an executable with a first line.
func (f *fixture) script(name, line string) string {
	f.t.Helper()
	at := f.program(name)
	if err := os.WriteFile(at, []byte(line+"\n"), 0o755); err != nil {
		f.t.Fatal(err)
	}
	return at
}

// §10.2: a program that is a script runs where what its first line says is allowed, and named by the pack.
func Test_10_2_Scripts(t *testing.T) {
	for _, tt := range []struct {
		name, uses, isolation, says string
		head                        func(sh, env, other string) string
	}{
		{"no script", `[]`, "sandbox", "", func(sh, _, _ string) string { return "\x7fELF" }},
		{"not named", `[]`, "sandbox", "hcpx doctor", func(sh, _, _ string) string { return "#!" + sh + " -e" }},
		{"named", `["sh"]`, "sandbox", "", func(sh, _, _ string) string { return "#!" + sh + " -e" }},
		{"named by its path", `["SH"]`, "sandbox", "", func(sh, _, _ string) string { return "#!" + sh }},
		{"by a link", `["sh"]`, "sandbox", "", func(sh, _, other string) string { return "#! " + other }},
		{"another file of that name", `["sh"]`, "sandbox", "hcpx allow ", func(_, _, other string) string { return "#!" + filepath.Dir(other) + "/real/sh" }},
		{"env without what it looks for", `["env"]`, "sandbox", "that sh runs", func(_, env, _ string) string { return "#!" + env + " sh" }},
		{"env and what it looks for", `["env", "sh"]`, "sandbox", "", func(_, env, _ string) string { return "#!" + env + " sh" }},
		{"an interpreter that is a script", `["shim"]`, "sandbox", "env", func(_, _, other string) string { return "#!" + filepath.Dir(other) + "/shim" }},
		{"no path", `["sh"]`, "sandbox", "sh runs", func(_, _, _ string) string { return "#!sh" }},
		{"outside the sandbox", `[]`, "native-local", "", func(sh, _, _ string) string { return "#!" + sh }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// What the tests allow has to be there before the pack, which may name it by its path.
			first := &fixture{t: t}
			sh, env := first.script("sh", "\x7fELF"), first.script("env", "\x7fELF")
			dir := t.TempDir()
			check(t, os.Symlink(sh, dir+"/sh"))
			check(t, os.Mkdir(dir+"/real", 0o755))
			check(t, os.WriteFile(dir+"/real/sh", []byte("\x7fELF"), 0o755))
			check(t, os.WriteFile(dir+"/shim", []byte("#!"+env+" sh\n"), 0o755))
			f := newFixture(t, "acme", strings.ReplaceAll(tt.uses, "SH", sh), tt.isolation)
			f.update(func(st *store.State) { st.Native = []string{"tool"} })
			f.allow("sh", sh, false)
			f.allow("env", env, false)
			f.allow("shim", dir+"/shim", false)
			f.allow("acme", f.script("acme", tt.head(sh, env, dir+"/sh")), false)
			st, err := f.g.Store.State()
			check(t, err)
			l, refusal := f.g.Installed("tool")
			if refusal != nil {
				t.Fatal(refusal)
			}
			scripts := f.g.Scripts(st, l)
			if tt.says == "" {
				if _, err := f.world("see"); err != nil || len(scripts) > 0 {
					t.Error(err, scripts)
				}
				return
			}
			f.refused("see", protocol.BinNotAllowed, tt.says)
			if len(scripts) == 0 || scripts[0].Program.Name != "acme" {
				t.Errorf("%+v", scripts)
			}
		})
	}
}

// §10.2: PATH has one program of a name. The hint makes both the same where an operator can.
func Test_10_2_TwoProgramsOfOneName(t *testing.T) {
	for _, isolation := range []string{"sandbox", "native-local"} {
		first := &fixture{t: t}
		here, there := first.script("cat", "\x7fELF"), first.script("cat", "\x7fELF")
		f := newFixture(t, "cat", `["`+there+`"]`, isolation)
		f.update(func(st *store.State) { st.Native = []string{"tool"} })
		f.allow("cat", here, false)
		f.allow(there, there, false)
		f.refused("see", protocol.BinNotAllowed, "hcpx allow "+there)
		f.update(func(st *store.State) { st.Bins = nil })
		f.allow("cat", there, false) // as hcpx allow does with a path
		f.allow(there, there, false)
		if _, err := f.world("see"); err != nil {
			t.Error(err)
		}
		f = newFixture(t, here, `["`+there+`"]`, isolation)
		f.update(func(st *store.State) { st.Native = []string{"tool"} })
		f.allow(here, here, false)
		f.allow(there, there, false)
		f.refused("see", protocol.BinNotAllowed, "hcpx install")
	}
}

// closed is a sandbox to which a place can't be given.
type closed struct{ willing }

func (closed) Check(*sandbox.Spec) *protocol.Error {
	return protocol.Fail(protocol.JailEscape, "It is a link.").With("path", "/a b").WithHint("look at the plan")
}

// §6.3: a place that cannot be in the jail comes with a command that shows it, for plan and exec alike.
func Test_6_3_AClosedPlaceIsShown(t *testing.T) {
	f := newFixture(t, "./bin/tool", `[]`, "sandbox")
	f.g.Sandbox = &closed{}
	if _, err := f.world("see"); err == nil || err.Hint != "ls -ld '/a b'" {
		t.Errorf("%+v", err)
	}
}
