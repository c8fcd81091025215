package lifecycle

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hcpx/internal/protocol"
)

// §9.6: who can never do a person's act is not told of a grant that would not help.
func Test_9_6_APersonsActIsRefusedBeforeItsGrant(t *testing.T) {
	w := newWorld(t)
	w.ready("notes")
	agent := as("agent:claude-code")
	for name, act := range map[string]func() *protocol.Error{
		"allow a program": func() *protocol.Error { _, err := w.Allow(agent, AllowRequest{Bins: []string{"tool"}}); return err },
		"allow hosts": func() *protocol.Error {
			_, err := w.Allow(agent, AllowRequest{HostPack: "notes", Hosts: []string{"a.example.org:1"}})
			return err
		},
		"learn": func() *protocol.Error {
			_, err := w.Learn(t.Context(), agent, LearnRequest{Argv: []string{"tool"}})
			return err
		},
		"add": func() *protocol.Error { _, err := w.Add(agent, w.pack("more"), AddOptions{Yes: true}); return err },
	} {
		err := act()
		refused(t, err, protocol.OperatorRequired)
		if strings.Contains(err.Hint, "grant") {
			t.Errorf("%s: %s", name, err.Hint)
		}
	}
	if _, err := w.Allow(ada, AllowRequest{Bins: []string{"tool"}}); err != nil {
		t.Error(err)
	}
}

// §11: a name that is nearly a shipped pack's, and a shipped pack's where a directory is wanted, lead to that pack.
func Test_11_HintsLeadToTheShippedPack(t *testing.T) {
	w := newWorld(t)
	w.Shipped = os.DirFS(filepath.Dir(w.pack("notes")))
	t.Chdir(t.TempDir())
	hint := func(err *protocol.Error) string {
		refused(t, err, protocol.NotFound)
		return err.Hint
	}
	_, err := w.Add(ada, "ntoes", AddOptions{Yes: true})
	if hint(err) != "hcpx add notes" || err.Details["nearest"] == nil {
		t.Errorf("%+v", err)
	}
	if _, err = w.Add(ada, "transit", AddOptions{Yes: true}); hint(err) != "hcpx add --help" {
		t.Errorf("%+v", err)
	}
	if err := os.Mkdir("ntoes", 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err = w.Add(ada, "ntoes", AddOptions{Yes: true}); hint(err) != "hcpx add ./ntoes" {
		t.Errorf("%+v", err)
	}
	if _, err = w.Install(ada, []string{"notes"}, InstallOptions{}); hint(err) != "hcpx add notes" {
		t.Errorf("%+v", err)
	}
	_, err = w.Install(ada, []string{"none"}, InstallOptions{})
	refused(t, err, protocol.LintFailed)
}

// §6.7: a directory that is named like an option is none in what a person is told to type.
func Test_6_7_NamesOfDirectoriesAreNoOptions(t *testing.T) {
	w := newWorld(t)
	good, bad := w.pack("notes"), w.pack("memos", `"argv": ["show"]`, `"argv": ["{gone}"]`)
	place := t.TempDir()
	t.Chdir(place)
	for dir, name := range map[string]string{good: "--allow-bin", bad: "-x"} {
		if err := os.CopyFS(filepath.Join(place, name), os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := w.Add(ada, "--allow-bin", AddOptions{})
	if refused(t, err, protocol.ConfirmRequired); err.Hint != "hcpx add ./--allow-bin --yes" {
		t.Errorf("add: %q", err.Hint)
	}
	_, err = w.Install(ada, []string{"-x"}, InstallOptions{})
	if refused(t, err, protocol.LintFailed); err.Hint != "hcpx lint ./-x" {
		t.Errorf("lint: %q", err.Hint)
	}
	_, err = w.Install(ada, []string{"-gone"}, InstallOptions{})
	if refused(t, err, protocol.LintFailed); err.Hint != "hcpx lint -- -gone" {
		t.Errorf("unreadable: %q", err.Hint)
	}
	w.install("--allow-bin", InstallOptions{})
	if err := os.WriteFile("--allow-bin/more.txt", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = w.Install(ada, []string{"--allow-bin"}, InstallOptions{})
	if refused(t, err, protocol.DigestConflict); err.Hint != "hcpx install ./--allow-bin --force" {
		t.Errorf("force: %q", err.Hint)
	}
}

// §4.7: the protected name is that of what changed; a bare directory above one is no change of it.
func Test_4_7_LearnNamesWhatChanged(t *testing.T) {
	for rel, want := range map[string][2]string{ // bare, and not
		".git/worktrees/new":         {".git/worktrees", ""},
		".git/worktrees/new/logs":    {"", ""},
		".git/modules/new":           {".git/modules", ""},
		".claude":                    {"", ".claude"},
		".claude/skills":             {".claude/skills", ".claude/skills"},
		".claude/skills/a":           {".claude/skills", ".claude/skills"},
		".vscode":                    {"", ".vscode"},
		".git":                       {".git", ".git"},
		".git/hooks/pre-push":        {".git/hooks", ".git/hooks"},
		".git/modules/x/hooks":       {".git/modules/x/hooks", ".git/modules/x/hooks"},
		".git/modules/x/hooks/a":     {".git/modules/x/hooks", ".git/modules/x/hooks"},
		".git/worktrees/x/gitdir":    {".git/worktrees/*/gitdir", ".git/worktrees/*/gitdir"},
		".git/objects":               {"", ""},
		"src":                        {"", ""},
		"Makefile":                   {"Makefile", "Makefile"},
		".devcontainer/a/b/features": {".devcontainer", ".devcontainer"},
	} {
		if got := [2]string{protectedName(rel, true), protectedName(rel, false)}; got != want {
			t.Errorf("%s: %q, want %q", rel, got, want)
		}
	}
}
