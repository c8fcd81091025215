package protect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"hcpx/internal/sandbox/redteamtest"
)

// ground is a workspace with a repository, a store, and a directory of the host that no run may change.
type ground struct {
	t          *testing.T
	home, root string
	host       string
}

func newGround(t *testing.T) *ground {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	g := &ground{t: t, home: dir + "/store", root: dir + "/repo", host: dir + "/host"}
	must(t, os.Mkdir(g.home, 0o700))
	must(t, os.Mkdir(g.host, 0o755))
	g.write(g.host+"/script", "host script", 0o755)
	g.repository(g.root + "/.git")
	g.write(g.root+"/Makefile", "all:\n", 0o644)
	g.write(g.root+"/src/main.c", "int main;", 0o644)
	g.write(g.root+"/.claude/settings.json", "{}", 0o600)
	g.write(g.root+"/.git/hooks/pre-commit", "#!/bin/sh\nold\n", 0o755)
	return g
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (g *ground) repository(dir string) {
	g.write(dir+"/HEAD", "ref: refs/heads/main\n", 0o644)
	g.write(dir+"/config", "[core]\n\tbare = false\n", 0o644)
	g.write(dir+"/hooks/pre-push.sample", "sample", 0o755)
	must(g.t, os.MkdirAll(dir+"/objects", 0o755))
	must(g.t, os.MkdirAll(dir+"/refs", 0o755))
}

func (g *ground) write(path, text string, mode fs.FileMode) {
	g.t.Helper()
	must(g.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(g.t, os.WriteFile(path, []byte(text), mode))
	must(g.t, os.Chmod(path, mode))
}

func (g *ground) begin(run string, may ...string) *Guard {
	g.t.Helper()
	guard, err := Begin(context.Background(), g.watch(run, may...))
	must(g.t, err)
	return guard
}

func (g *ground) watch(run string, may ...string) Watch {
	return Watch{Home: g.home, Run: run, Command: "x/y", Root: g.root, May: may, Patience: time.Millisecond}
}

// picture is everything under a directory but objects and what no list names, with modes, times and link targets.
func picture(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		what := ""
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			what, err = os.Readlink(p)
		case info.Mode().IsRegular():
			var text []byte
			text, err = os.ReadFile(p)
			what = fmt.Sprintf("%s %d", text, info.ModTime().UnixNano())
		}
		fmt.Fprintf(&b, "%s %v %q\n", strings.TrimPrefix(p, dir), info.Mode(), what)
		return err
	}))
	return b.String()
}

// attacks are what a pack does to the workspace so that the host runs something of it later. Each says which paths
// must be reported.
var attacks = map[string]struct {
	do   func(g *ground) error
	want string
}{
	"RT15 a hook": {func(g *ground) error { return os.WriteFile(g.root+"/.git/hooks/post-checkout", []byte("evil"), 0o755) }, ".git/hooks/post-checkout"},
	"RT15 a hook below a new directory of hooks": {func(g *ground) error {
		return errors.Join(os.RemoveAll(g.root+"/.git/hooks"), os.Mkdir(g.root+"/.git/hooks", 0o755), os.WriteFile(g.root+"/.git/hooks/pre-push", []byte("evil"), 0o755))
	}, ".git/hooks/pre-commit .git/hooks/pre-push"},
	"RT15 a sample becomes a hook": {func(g *ground) error {
		return os.Rename(g.root+"/.git/hooks/pre-push.sample", g.root+"/.git/hooks/pre-push")
	}, ".git/hooks/pre-push"},
	"RT15 core.fsmonitor":  {func(g *ground) error { return add(g.root+"/.git/config", "\tfsmonitor = evil\n") }, ".git/config"},
	"RT15 core.hooksPath":  {func(g *ground) error { return add(g.root+"/.git/config", "\thooksPath = /elsewhere\n") }, ".git/config"},
	"RT15 an alias":        {func(g *ground) error { return add(g.root+"/.git/config", "[alias]\n\tst = !evil\n") }, ".git/config"},
	"RT15 config.worktree": {func(g *ground) error { return os.WriteFile(g.root+"/.git/config.worktree", []byte("[core]"), 0o644) }, ".git/config.worktree"},
	"RT15 commondir":       {func(g *ground) error { return os.WriteFile(g.root+"/.git/commondir", []byte("../evil"), 0o644) }, ".git/commondir"},
	"RT15 hooks removed":   {func(g *ground) error { return os.Remove(g.root + "/.git/hooks/pre-commit") }, ".git/hooks/pre-commit"},
	"RT15 a hook in place": {func(g *ground) error { return os.WriteFile(g.root+"/.git/hooks/pre-commit", []byte("evil"), 0o755) }, ".git/hooks/pre-commit"},
	"RT15 hooks is a link elsewhere": {func(g *ground) error {
		return errors.Join(os.Rename(g.root+"/.git/hooks", g.root+"/old"), os.Symlink("/elsewhere", g.root+"/.git/hooks"))
	}, ".git/hooks"},
	"RT15 a hook is a link": {func(g *ground) error { return os.Symlink(g.host+"/script", g.root+"/.git/hooks/update") }, ".git/hooks/update"},
	"RT15 a hook replaced by a hard link": {func(g *ground) error {
		return errors.Join(os.Remove(g.root+"/.git/hooks/pre-commit"), os.Link(g.host+"/script", g.root+"/.git/hooks/pre-commit"))
	}, ".git/hooks/pre-commit"},
	"RT15 only permission bits":       {func(g *ground) error { return os.Chmod(g.root+"/.git/config", 0o666) }, ".git/config"},
	"RT15 only the bits of the hooks": {func(g *ground) error { return os.Chmod(g.root+"/.git/hooks", 0o777) }, ".git/hooks"},
	"RT15 nobody may look": {func(g *ground) error {
		return errors.Join(add(g.root+"/.git/config", "x"), os.Chmod(g.root+"/.git/config", 0), os.Chmod(g.root+"/.git", 0))
	}, ".git .git/config"},
	"RT15 a dark directory of hooks": {func(g *ground) error {
		return errors.Join(os.Mkdir(g.root+"/.git/hooks/x", 0), os.WriteFile(g.root+"/.envrc", []byte("evil"), 0o644))
	}, ".envrc .git/hooks/x"},
	"RT14 rename over a hook": {func(g *ground) error {
		return errors.Join(os.WriteFile(g.root+"/new", []byte("evil"), 0o755), os.Rename(g.root+"/new", g.root+"/.git/hooks/pre-commit"))
	}, ".git/hooks/pre-commit"},
	"RT14 rename over the config": {func(g *ground) error {
		return errors.Join(os.WriteFile(g.root+"/new", []byte("evil"), 0o644), os.Rename(g.root+"/new", g.root+"/.git/config"))
	}, ".git/config"},
	"RT14 .git is another directory": {func(g *ground) error { g.repository(g.root + "/evil"); return swap(g, "evil") }, ".git .git/hooks/pre-commit"},
	"RT14 .git is another one, hooked": {func(g *ground) error {
		g.repository(g.root + "/evil")
		g.write(g.root+"/evil/hooks/pre-push", "evil", 0o755)
		return swap(g, "evil")
	}, ".git .git/hooks/pre-commit .git/hooks/pre-push"},
	"RT14 .git is a link": {func(g *ground) error {
		return errors.Join(os.Rename(g.root+"/.git", g.root+"/moved"), os.Symlink("moved", g.root+"/.git"))
	}, ".git"},
	"RT14 .git is a link to the host": {func(g *ground) error {
		return errors.Join(os.Rename(g.root+"/.git", g.root+"/moved"), os.Symlink(g.host, g.root+"/.git"))
	}, ".git"},
	"RT14 .git is a file": {func(g *ground) error {
		return errors.Join(os.Rename(g.root+"/.git", g.root+"/moved"), os.WriteFile(g.root+"/.git", []byte("gitdir: moved"), 0o644))
	}, ".git"},
	"RT14 a directory becomes a link": {func(g *ground) error {
		return errors.Join(os.Rename(g.root+"/.claude", g.root+"/moved"), os.Symlink("moved", g.root+"/.claude"))
	}, ".claude"},
	"RT14 a new directory is a link": {func(g *ground) error { return os.Symlink("src", g.root+"/.vscode") }, ".vscode"},
	"an .envrc":                      {func(g *ground) error { return os.WriteFile(g.root+"/.envrc", []byte("evil"), 0o644) }, ".envrc"},
	"a Makefile":                     {func(g *ground) error { return add(g.root+"/Makefile", "evil:\n") }, "Makefile"},
	"a GNUmakefile before it":        {func(g *ground) error { return os.WriteFile(g.root+"/GNUmakefile", []byte("evil"), 0o644) }, "GNUmakefile"},
	"shell profiles": {func(g *ground) error {
		return errors.Join(os.WriteFile(g.root+"/.bashrc", []byte("evil"), 0o644), os.WriteFile(g.root+"/.profile", []byte("evil"), 0o644))
	}, ".bashrc .profile"},
	"an editor's task":        {func(g *ground) error { g.write(g.root+"/.vscode/tasks.json", "evil", 0o644); return nil }, ".vscode/tasks.json"},
	"an agent's settings":     {func(g *ground) error { return os.WriteFile(g.root+"/.claude/settings.json", []byte("evil"), 0o600) }, ".claude/settings.json"},
	"an agent's instructions": {func(g *ground) error { return os.WriteFile(g.root+"/AGENTS.md", []byte("evil"), 0o600) }, "AGENTS.md"},
	"a skill":                 {func(g *ground) error { g.write(g.root+"/.claude/skills/a/b/SKILL.md", "evil", 0o644); return nil }, ".claude/skills/a/b/SKILL.md"},
	"a fifo":                  {func(g *ground) error { return syscall.Mkfifo(g.root+"/.envrc", 0o644) }, ".envrc"},
	"a root that is a repository": {func(g *ground) error {
		return errors.Join(os.WriteFile(g.root+"/HEAD", []byte("ref: refs/heads/x"), 0o644))
	}, "HEAD"},
	"more hooks than anyone reads": {func(g *ground) error {
		for i := range maxNodes + 10 {
			if err := os.WriteFile(fmt.Sprintf("%s/.git/hooks/%d", g.root, i), nil, 0o755); err != nil {
				return err
			}
		}
		return nil
	}, ".git/hooks"},
}

func add(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func swap(g *ground, other string) error {
	return errors.Join(os.Rename(g.root+"/.git", g.root+"/moved"), os.Rename(g.root+"/"+other, g.root+"/.git"))
}

// watched is the part of a picture that the list guards: what is elsewhere in the workspace is the command's.
func watched(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	for _, l := range strings.SplitAfter(picture(t, root), "\n") {
		name, _, _ := strings.Cut(strings.TrimPrefix(l, "/"), " ")
		dirs := strings.Contains(l, " d")
		for _, free := range []string{"src", "moved", "old", "new", "evil"} {
			if name == free || strings.HasPrefix(name, free+"/") {
				l = ""
			}
		}
		if dirs && slices.Contains([]string{"", ".vscode", ".claude/skills", ".claude/skills/a", ".claude/skills/a/b"}, name) || strings.HasSuffix(name, ".sample") {
			l = "" // a directory that came changes nothing by itself, and git never runs a sample
		}
		b.WriteString(l)
	}
	return b.String()
}

// Each attack changes what the host runs when nobody looks; with a guard all is as it was, told by path, and what the
// run left lies in the quarantine.
func Test_10_2_ProtectedNames(t *testing.T) {
	redteamtest.Users(t, func(t *testing.T, _ string) {
		for name, a := range attacks {
			t.Run(name, func(t *testing.T) {
				control := newGround(t)
				was := watched(t, control.root)
				must(t, a.do(control))
				if os.Geteuid() != 0 {
					_ = os.Chmod(control.root+"/.git", 0o755)
					_ = os.Chmod(control.root+"/.git/config", 0o600)
					_ = os.Chmod(control.root+"/.git/hooks/x", 0o700)
				}
				if watched(t, control.root) == was {
					t.Fatal("the control changed nothing, so this case shows nothing")
				}
				g := newGround(t)
				was, host := watched(t, g.root), picture(t, g.host)
				guard := g.begin("run")
				must(t, a.do(g))
				changes, err := guard.End()
				must(t, err)
				var told []string
				for _, c := range changes {
					told = append(told, c.Path)
					if !c.Restored {
						t.Errorf("%s is not restored", c.Path)
					}
				}
				if got := strings.Join(told, " "); got != a.want {
					t.Errorf("told %q, want %q", got, a.want)
				}
				if now := watched(t, g.root); now != was {
					t.Errorf("was\n%s\nis\n%s", was, now)
				}
				if now := picture(t, g.host); now != host {
					t.Errorf("the host's file changed:\n%s\n%s", host, now)
				}
				if _, err := os.Stat(g.home + "/quarantine/run/changes.json"); err != nil {
					t.Error(err)
				}
				g.closed()
			})
		}
	})
}

// closed: no journal is left.
func (g *ground) closed() {
	g.t.Helper()
	if entries, err := os.ReadDir(openDir(g.home)); err != nil || len(entries) > 0 {
		g.t.Error("a journal is left:", entries, err)
	}
}

// What a run left is kept as it was, whatever it is.
func Test_10_2_QuarantineKeeps(t *testing.T) {
	g := newGround(t)
	guard := g.begin("run")
	g.write(g.root+"/.git/hooks/pre-commit", "evil in place", 0o755)
	must(t, os.Symlink("/elsewhere", g.root+"/.envrc"))
	g.write(g.root+"/AGENTS.md", "evil and new", 0o644)
	changes, err := guard.End()
	must(t, err)
	if len(changes) != 3 {
		t.Fatal(changes)
	}
	kept := map[string]string{}
	for _, c := range changes {
		if text, err := os.Readlink(c.Kept); err == nil {
			kept[c.Path] = text
			continue
		}
		text, err := os.ReadFile(c.Kept)
		must(t, err)
		kept[c.Path] = string(text)
		if c.After.SHA256 != sumOf(text) || c.Before != nil && c.Before.SHA256 != sumOf([]byte("#!/bin/sh\nold\n")) {
			t.Errorf("%+v %+v", c.Before, c.After)
		}
	}
	if want := "map[.envrc:/elsewhere .git/hooks/pre-commit:evil in place AGENTS.md:evil and new]"; fmt.Sprint(kept) != want {
		t.Error(kept)
	}
	if info, err := os.Stat(g.home + "/quarantine"); err != nil || info.Mode().Perm() != 0o700 {
		t.Error(info, err)
	}
}

// A file that is written in its place has its old content under every name that it has.
func Test_10_2_OtherNamesOfAFile(t *testing.T) {
	g := newGround(t)
	must(t, os.Link(g.root+"/.git/hooks/pre-commit", g.host+"/same"))
	guard := g.begin("run")
	g.write(g.root+"/.git/hooks/pre-commit", "evil", 0o755)
	if _, err := guard.End(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(g.host + "/same"); string(text) != "#!/bin/sh\nold\n" {
		t.Errorf("%s %v", text, err)
	}
}

// What is not on the list is the command's to change, and what the policy names too.
func Test_10_2_WhatACommandMayChange(t *testing.T) {
	work := func(g *ground) {
		g.write(g.root+"/src/main.c", "changed", 0o644)
		g.write(g.root+"/.git/HEAD", "ref: refs/heads/topic\n", 0o644)
		g.write(g.root+"/.git/hooks/x.sample", "git runs no sample", 0o755)
		g.write(g.root+"/sub/Makefile", "not in the root", 0o644)
		must(t, os.MkdirAll(g.root+"/.vscode", 0o755))
	}
	g := newGround(t)
	guard := g.begin("run")
	work(g)
	if changes, err := guard.End(); err != nil || changes != nil {
		t.Errorf("%+v %v", changes, err)
	}
	if _, err := os.Stat(g.home + "/quarantine/run"); err == nil {
		t.Error("a quarantine of nothing")
	}
	g.closed()
	for _, tt := range []struct {
		may  []string
		path string
		ok   bool
	}{
		{[]string{"*"}, "Makefile", true}, {[]string{"*"}, ".vscode/tasks.json", true}, {[]string{"*"}, ".git/config", false},
		{[]string{"*"}, ".git/hooks/pre-push", false}, {[]string{".git/config"}, ".git/config", true}, {[]string{".git/config"}, ".git/hooks/x", false},
		{[]string{".git/hooks"}, ".git/hooks/x", true}, {[]string{".git/hooks/post-*"}, ".git/hooks/pre-push", false},
		{[]string{"Makefile"}, ".envrc", false}, {nil, "Makefile", false},
	} {
		g := newGround(t)
		guard := g.begin("run", tt.may...)
		g.write(g.root+"/"+tt.path, "by design", 0o644)
		changes, err := guard.End()
		must(t, err)
		if (len(changes) == 0) != tt.ok {
			t.Errorf("%v and %s: %+v", tt.may, tt.path, changes)
		}
	}
}

// The git directory is guarded wherever it lies: a linked worktree's, a submodule's, one behind a file or a link, and
// a bare repository that is the workspace.
func Test_10_2_EveryGitDirectory(t *testing.T) {
	layouts := map[string]func(g *ground) (dirs []string, change string, told string){
		"a linked worktree": func(g *ground) ([]string, string, string) {
			common := g.host + "/repo/.git"
			g.repository(common)
			g.write(common+"/worktrees/w/HEAD", "x", 0o644)
			g.write(common+"/worktrees/w/commondir", "../..\n", 0o644)
			g.write(common+"/worktrees/w/gitdir", g.root+"/.git\n", 0o644)
			must(t, os.RemoveAll(g.root+"/.git"))
			g.write(g.root+"/.git", "gitdir: "+common+"/worktrees/w\n", 0o644)
			return []string{common + "/worktrees/w", common}, common + "/hooks/pre-push", common + "/hooks/pre-push"
		},
		"its pointer": func(g *ground) ([]string, string, string) {
			common := g.host + "/repo/.git"
			g.repository(common)
			g.write(common+"/worktrees/w/HEAD", "x", 0o644)
			g.write(common+"/worktrees/w/commondir", "../..\n", 0o644)
			return []string{common + "/worktrees/w", common}, common + "/worktrees/w/commondir", common + "/worktrees/w/commondir"
		},
		"a .git file": func(g *ground) ([]string, string, string) {
			must(t, os.Rename(g.root+"/.git", g.root+"/.bare"))
			g.write(g.root+"/.git", "gitdir: .bare\n", 0o644)
			return nil, g.root + "/.bare/config", ".bare/config"
		},
		"the file itself": func(g *ground) ([]string, string, string) {
			must(t, os.Rename(g.root+"/.git", g.root+"/.bare"))
			g.write(g.root+"/.git", "gitdir: .bare\n", 0o644)
			return nil, g.root + "/.git", ".git"
		},
		"a .git link": func(g *ground) ([]string, string, string) {
			must(t, os.Rename(g.root+"/.git", g.root+"/.bare"))
			must(t, os.Symlink(".bare", g.root+"/.git"))
			return nil, g.root + "/.bare/hooks/pre-push", ".bare/hooks/pre-push"
		},
		"a submodule": func(g *ground) ([]string, string, string) {
			g.repository(g.root + "/.git/modules/vendor/lib")
			return nil, g.root + "/.git/modules/vendor/lib/config", ".git/modules/vendor/lib/config"
		},
		"a bare repository": func(g *ground) ([]string, string, string) {
			must(t, os.RemoveAll(g.root+"/.git"))
			g.repository(g.root)
			return nil, g.root + "/config", "config"
		},
		"hooks that core.hooksPath names": func(g *ground) ([]string, string, string) {
			must(t, add(g.root+"/.git/config", "\thooksPath = tools/hooks\n"))
			return nil, g.root + "/tools/hooks/pre-commit", "tools/hooks/pre-commit"
		},
		"none before": func(g *ground) ([]string, string, string) {
			must(t, os.RemoveAll(g.root+"/.git"))
			return nil, g.root + "/.git/config", ".git/config"
		},
	}
	for name, layout := range layouts {
		t.Run(name, func(t *testing.T) {
			for _, may := range [][]string{nil, {".git", "tools"}} {
				g := newGround(t)
				dirs, change, told := layout(g)
				w := g.watch("run", may...)
				w.GitDirs = dirs
				guard, err := Begin(context.Background(), w)
				must(t, err)
				old, _ := os.ReadFile(change) // "" where there was none
				g.write(change, "evil", 0o644)
				changes, err := guard.End()
				must(t, err)
				now, _ := os.ReadFile(change)
				switch {
				case may != nil && (len(changes) > 0 || string(now) != "evil"):
					t.Errorf("by design: %+v", changes)
				case may == nil && (len(changes) != 1 || changes[0].Path != told || string(now) != string(old)):
					t.Errorf("%+v %s", changes, now)
				}
			}
		})
	}
}
