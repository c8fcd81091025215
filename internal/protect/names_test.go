package protect

import (
	"path"
	"slices"
	"strings"
	"testing"
)

func Test_10_2_TheListIsClosed(t *testing.T) {
	var all []string
	for _, g := range List() {
		if g.Why == "" || len(g.Names) == 0 {
			t.Errorf("%+v", g)
		}
		for _, name := range g.Names {
			if path.Clean(name) != name || path.IsAbs(name) || slices.Contains(all, name) || !Known(name) && !strings.Contains(name, "**") {
				t.Errorf("%q", name)
			}
			all = append(all, name)
		}
	}
}

func Test_4_7_Globs(t *testing.T) {
	for glob, known := range map[string]bool{
		"*": true, "Makefile": true, "make*": true, ".git": true, ".git/config": true, ".git/hooks/pre-push": true, ".git/hooks/*": true,
		".git/modules/a/b/config": true, ".git/worktrees/x/gitdir": true, ".claude/skills/a/SKILL.md": true, ".claude/*": true,
		"": false, "src": false, "README.md": false, ".git/objects": false, ".git/HEAD": false, "[": false, "sub/Makefile.am": false, "Makefile/..": true,
		"[Mm]akefile": false, "?akefile": false, `Make\file`: false, "{Makefile}": false, "[.]envrc": false, ".git/hook[s]": false,
	} {
		if Known(glob) != known {
			t.Errorf("%q: %v", glob, !known)
		}
	}
	for _, tt := range []struct {
		glob, name string
		want       bool
	}{
		{"*", ".git", false}, {"*", ".git/config", false}, {"?git", ".git", false}, {".git", ".git/config", true}, {".gi*", ".git/config", false},
		{".git/*", ".git/hooks/x", true}, {".claude/settings.json", ".claude", false}, {"Make*", "Makefile", true}, {"[M]akefile", "Makefile", false}, {"?akefile", "Makefile", false}, {"[x", "[x", false}, {"makefile", "Makefile", false},
	} {
		if got := Covers(tt.glob, tt.name); got != tt.want {
			t.Errorf("%s and %s: %v", tt.glob, tt.name, got)
		}
	}
}

func FuzzGlobs(f *testing.F) {
	f.Add(".git/hooks/*", ".git/hooks/x")
	f.Add("*", ".git")
	f.Add(".git/modules/**/config", ".git/modules/a/b/config")
	f.Fuzz(func(t *testing.T, glob, name string) {
		Known(glob)
		if Covers(glob, name) && strings.Split(name, "/")[0] == ".git" && strings.Split(glob, "/")[0] != ".git" {
			t.Errorf("%q means %q", glob, name)
		}
	})
}
