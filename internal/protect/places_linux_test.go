package protect

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Which of several values git takes is said by conditions and extensions: the directory of hooks that it really uses is
// guarded, whatever stands beside it (§10.2).
func Test_10_2_EveryValueOfHooksPath(t *testing.T) {
	const first = "\thooksPath = hk\n"
	for name, lay := range map[string]func(g *ground) error{
		"a condition that does not hold": func(g *ground) error {
			g.write(g.root+"/inc", "[core]\n\thooksPath = other\n", 0o644)
			return add(g.root+"/.git/config", first+"[includeIf \"gitdir:/nowhere/\"]\n\tpath = ../inc\n")
		},
		"a worktree's without the extension": func(g *ground) error {
			g.write(g.root+"/.git/config.worktree", "[core]\n\thooksPath = other\n", 0o644)
			return add(g.root+"/.git/config", first)
		},
		"one after the other": func(g *ground) error {
			return add(g.root+"/.git/config", "\thooksPath = other\n"+first)
		},
		"a file that a submodule includes too": func(g *ground) error {
			g.repository(g.root + "/.git/modules/a")
			g.write(g.root+"/inc", "[core]\n\thooksPath = hk\n", 0o644)
			g.write(g.root+"/.git/modules/a/config", "[core]\n\tworktree = ../../../src\n[include]\n\tpath = ../../../inc\n", 0o644)
			return add(g.root+"/.git/config", "[include]\n\tpath = ../inc\n")
		},
		"a work tree of its own": func(g *ground) error {
			return add(g.root+"/.git/config", "\tworktree = ../src\n"+first)
		},
	} {
		g := newGround(t)
		must(t, lay(g))
		hooks, err := git(t, g.home, g.root, "rev-parse", "--git-path", "hooks")
		must(t, err)
		at := []string{filepath.Join(g.root, hooks)}
		switch name {
		case "a file that a submodule includes too":
			at = append(at, g.root+"/src/hk")
		case "a work tree of its own": // git calls them there
			at = []string{g.root + "/src/hk"}
		}
		for _, dir := range at {
			guard := g.begin("run" + filepath.Base(filepath.Dir(dir)))
			g.write(dir+"/post-commit", "evil", 0o755)
			changes, err := guard.End()
			if err != nil || len(changes) != 1 || filepath.Join(g.root, changes[0].Path) != dir+"/post-commit" || exists(dir+"/post-commit") {
				t.Errorf("%s, %s: %+v %v", name, dir, changes, err)
			}
		}
	}
}

// A submodule stands where the work tree is, which the configuration may have put elsewhere.
func Test_10_2_SubmoduleInAnotherWorkTree(t *testing.T) {
	s := newSnare(t)
	s.git(s.root, "config", "core.worktree", "../src")
	guard := s.begin("run")
	s.trap("src/sub")
	s.write(s.root+"/.git/index", indexOf(2, "", indexItem("sub", 0o160000, s.oid, "\x00")), 0o644)
	if !s.sprung() {
		t.Fatal("git doesn't look there")
	}
	if changes, err := guard.End(); err != nil || len(changes) != 1 || changes[0].Path != "src/sub/.git" || s.sprung() {
		t.Errorf("%+v %v", changes, err)
	}
}

// A .git that leads to nothing is guarded where it leads: the command could make a git directory there.
func Test_10_2_GitThatLeadsToNothing(t *testing.T) {
	for name, lay := range map[string]func(g *ground) error{
		"a file": func(g *ground) error { return os.WriteFile(g.root+"/.git", []byte("gitdir: build/repo\n"), 0o644) },
		"a link": func(g *ground) error { return os.Symlink("build/repo", g.root+"/.git") },
		"two links": func(g *ground) error {
			return errors.Join(os.Symlink("b", g.root+"/.git"), os.Symlink("build/repo", g.root+"/b"))
		},
		"up from one": func(g *ground) error {
			return errors.Join(os.Mkdir(g.root+"/d", 0o755), os.Symlink("../d", g.root+"/src/l"), os.Symlink("src/l/../build/repo", g.root+"/.git"))
		},
		"two lines": func(g *ground) error { return os.WriteFile(g.root+"/.git", []byte("gitdir: build\n/repo\n\n"), 0o644) },
		"a submodule's": func(g *ground) error {
			g.repository(g.root + "/.git")
			g.write(g.root+"/.git/index", gitlinkIndex("sub"), 0o644)
			g.write(g.root+"/sub/.git", "gitdir: ../build/repo\n", 0o644)
			return nil
		},
		"a commondir": func(g *ground) error {
			g.repository(g.root + "/.git")
			return os.WriteFile(g.root+"/.git/commondir", []byte("../build/repo\n"), 0o644)
		},
	} {
		g := newGround(t)
		must(t, os.RemoveAll(g.root+"/.git"))
		must(t, lay(g))
		guard := g.begin("run")
		at := g.root + "/build/repo"
		if name == "two lines" {
			at = g.root + "/build\n/repo"
		}
		g.repository(at)
		g.write(at+"/hooks/post-commit", "evil", 0o755)
		must(t, add(at+"/config", "\tfsmonitor = evil\n"))
		changes, err := guard.End()
		if err != nil || len(changes) == 0 || exists(at+"/config") || exists(at+"/hooks/post-commit") {
			t.Errorf("%s: %+v %v", name, changes, err)
		}
	}
}

// Workspaces that share a git directory take turns, though only an index says so.
func Test_10_2_SubmoduleTakesTurns(t *testing.T) {
	g := newGround(t)
	g.repository(g.root + "/sub/.git")
	g.write(g.root+"/.git/index", gitlinkIndex("sub"), 0o644)
	sub := g.watch("two")
	sub.Root += "/sub"
	for _, pair := range [][2]Watch{{g.watch("one"), sub}, {sub, g.watch("one")}} {
		guard, err := Begin(context.Background(), pair[0])
		must(t, err)
		var busy *BusyError
		if _, err := Begin(context.Background(), pair[1]); !errors.As(err, &busy) {
			t.Error(err)
		}
		if changes, err := guard.End(); err != nil || changes != nil {
			t.Error(changes, err)
		}
	}
}
