package protect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"hcpx/internal/sandbox/redteamtest"
)

// linked makes a linked worktree of the ground's repository: another workspace that shares its git directory.
func (g *ground) linked() Watch {
	root := filepath.Dir(g.root) + "/linked"
	at := g.root + "/.git/worktrees/linked"
	g.write(at+"/HEAD", "x", 0o644)
	g.write(at+"/commondir", "../..\n", 0o644)
	g.write(at+"/gitdir", root+"/.git\n", 0o644)
	g.write(root+"/.git", "gitdir: "+at+"\n", 0o644)
	return Watch{Home: g.home, Run: "linked", Command: "x/y", Root: root, GitDirs: []string{at, g.root + "/.git"}, Patience: time.Millisecond}
}

// Two workspaces that share a git directory take turns too, and neither waits for the other for ever.
func Test_10_2_SharedGitDirectoryTakesTurns(t *testing.T) {
	g := newGround(t)
	other := g.linked()
	var busy *BusyError
	for _, pair := range [][2]Watch{{g.watch("main"), other}, {other, g.watch("main")}} {
		first, err := Begin(context.Background(), pair[0])
		must(t, err)
		if _, err := Begin(context.Background(), pair[1]); !errors.As(err, &busy) {
			t.Error(err)
		}
		if changes, err := first.End(); err != nil || changes != nil {
			t.Error(changes, err)
		}
	}
	var all sync.WaitGroup
	for i := range 8 {
		w := other
		if i%2 == 0 {
			w = g.watch("")
		}
		w.Run, w.Patience = fmt.Sprint("run", i), time.Minute
		all.Go(func() {
			guard, err := Begin(context.Background(), w)
			if err != nil {
				t.Error(err)
			} else if _, err := guard.End(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	g.closed()

	// What was cut off in one holds up the other, and is not put back beside a command at work.
	guard := g.begin("cut")
	g.write(g.root+"/.git/hooks/pre-push", "evil", 0o755)
	killed(t, guard)
	var left *LeftError
	if _, err := Begin(context.Background(), other); !errors.As(err, &left) {
		t.Error(err)
	}
	if err := Pending(other); !errors.As(err, &left) {
		t.Error(err)
	}
	ts, err := openTrees([]string{g.root + "/.git"})
	must(t, err)
	held, err := opened(ts, nil)
	must(t, err)
	must(t, held[0].take(context.Background(), g.home, nil))
	if _, _, err := left.Left.Mend(); !errors.As(err, &busy) {
		t.Error(err)
	}
	must(t, errors.Join(held.close(), ts.close()))
	if changes, _, err := left.Left.Mend(); err != nil || len(changes) != 1 || !changes[0].Restored {
		t.Error(changes, err)
	}
	if err := Pending(other); err != nil {
		t.Error(err)
	}
}

// gitlinkIndex is an index of version 2 with one submodule.
func gitlinkIndex(path string) string {
	item := make([]byte, 62)
	item[26], item[61] = 0xe0, byte(len(path)) // mode 160000
	item = append(item, path...)
	item = append(item, make([]byte, 8-len(item)%8)...)
	return "DIRC\x00\x00\x00\x02\x00\x00\x00\x01" + string(item) + strings.Repeat("\x00", 20)
}

// Directories that git would look into must not appear: in .git, in a bare root, in a git directory elsewhere, and where
// a submodule is checked out.
func Test_10_2_NewGitDirectories(t *testing.T) {
	cases := map[string]struct {
		layout func(g *ground) []string
		do     func(g *ground)
		want   string
	}{
		"a submodule's": {nil, func(g *ground) { g.repository(g.root + "/.git/modules/evil") }, ".git/modules/evil"},
		"below another": {func(g *ground) []string { g.repository(g.root + "/.git/modules/a/b"); return nil },
			func(g *ground) { g.repository(g.root + "/.git/modules/a/c") }, ".git/modules/a/c"},
		"where there was only a directory": {func(g *ground) []string { must(g.t, os.MkdirAll(g.root+"/.git/modules/a/objects", 0o755)); return nil },
			func(g *ground) { g.write(g.root+"/.git/modules/a/HEAD", "x", 0o644) }, ".git/modules/a/HEAD"},
		"a worktree's":     {nil, func(g *ground) { g.write(g.root+"/.git/worktrees/w/config.worktree", "x", 0o644) }, ".git/worktrees/w"},
		"a link":           {nil, func(g *ground) { must(g.t, os.Symlink("../src", g.root+"/.git/modules")) }, ".git/modules"},
		"a link below":     {func(g *ground) []string { must(g.t, os.Mkdir(g.root+"/.git/modules", 0o755)); return nil }, func(g *ground) { must(g.t, os.Symlink("../../src", g.root+"/.git/modules/x")) }, ".git/modules/x"},
		"in a bare root":   {func(g *ground) []string { must(g.t, os.RemoveAll(g.root+"/.git")); g.repository(g.root); return nil }, func(g *ground) { g.repository(g.root + "/modules/x") }, "modules/x"},
		"in one elsewhere": {func(g *ground) []string { return g.linked().GitDirs }, func(g *ground) { g.repository(g.root + "/.git/modules/x") }, "*/.git/modules/x"},
		"of a new submodule": {nil, func(g *ground) {
			g.repository(g.root + "/sub/.git")
			g.write(g.root+"/.git/index", gitlinkIndex("sub"), 0o644)
		}, "sub/.git"},
		"a pointer of a submodule": {func(g *ground) []string {
			g.repository(g.root + "/.git/modules/m")
			g.write(g.root+"/.git/modules/m/config", "[core]\n\tworktree = ../../../m\n", 0o644)
			g.write(g.root+"/m/.git", "gitdir: ../.git/modules/m\n", 0o644)
			return nil
		}, func(g *ground) { g.write(g.root+"/m/.git", "gitdir: ../evil\n", 0o644) }, "m/.git"},
		"configuration of a submodule with its own": {func(g *ground) []string {
			g.repository(g.root + "/sub/.git")
			g.write(g.root+"/.git/index", gitlinkIndex("sub"), 0o644)
			return nil
		}, func(g *ground) { must(g.t, add(g.root+"/sub/.git/config", "evil")) }, "sub/.git/config"},
		"more than anyone reads": {nil, func(g *ground) {
			for i := range maxNodes + 2 {
				must(g.t, os.MkdirAll(fmt.Sprintf("%s/.git/worktrees/%d", g.root, i), 0o755))
			}
		}, ".git/worktrees"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, may := range [][]string{nil, {".git"}} {
				g := newGround(t)
				w := g.watch("run", may...)
				if c.layout != nil {
					w.GitDirs = c.layout(g)
				}
				if w.GitDirs != nil {
					w.Root = filepath.Dir(g.root) + "/linked"
				}
				guard, err := Begin(context.Background(), w)
				must(t, err)
				was := picture(t, g.root)
				c.do(g)
				now := picture(t, g.root)
				changes, err := guard.End()
				must(t, err)
				if may != nil {
					if len(changes) > 0 || picture(t, g.root) != now {
						t.Errorf("by design: %+v", changes)
					}
					continue
				}
				if len(changes) != 1 || !changes[0].Restored || strings.TrimPrefix(c.want, "*") != strings.TrimPrefix(changes[0].Path, strings.TrimSuffix(g.root, "*")) && changes[0].Path != c.want {
					t.Fatalf("%+v", changes)
				}
				if was == now || strings.Count(picture(t, g.root), "evil") > 0 {
					t.Error(picture(t, g.root))
				}
				if changes, err := g.begin("next").End(); err != nil || changes != nil {
					t.Error(changes, err)
				}
			}
		})
	}
}

// A repository that stood there before stays, and is no submodule: nobody knows what made it.
func Test_10_2_NewSubmoduleFromBefore(t *testing.T) {
	g := newGround(t)
	g.repository(g.root + "/sub/.git")
	time.Sleep(10 * time.Millisecond)
	guard := g.begin("run")
	must(t, add(g.root+"/sub/.git/config", "[user]\n"))
	g.write(g.root+"/.git/index", gitlinkIndex("sub"), 0o644)
	changes, err := guard.End()
	if err != nil || len(changes) != 1 || changes[0].Path != ".git/index" || !changes[0].Restored || !exists(g.root+"/sub/.git/config") || exists(g.root+"/.git/index") {
		t.Errorf("%+v %v", changes, err)
	}
}

// A command that closes the roots, or finds them closed to writing, keeps nothing by that.
func Test_10_2_ClosedRoots(t *testing.T) {
	redteamtest.Users(t, func(t *testing.T, _ string) {
		for _, mode := range []os.FileMode{0, 0o111, 0o555, 0o700, 0o1777} {
			g := newGround(t)
			was := watched(t, g.root)
			guard := g.begin("run")
			g.write(g.root+"/Makefile", "evil", 0o644)
			g.write(g.root+"/CLAUDE.md", "evil", 0o644)
			g.write(g.root+"/.git/hooks/pre-push", "evil", 0o755)
			for _, dir := range []string{"/.git/hooks", "/.git", ""} {
				must(t, os.Chmod(g.root+dir, mode|0o4))
				must(t, os.Chmod(g.root+dir, mode))
			}
			changes, err := guard.End()
			must(t, err)
			if len(changes) != 6 || changes[0].Path != "." || changes[0].Before.Mode != "0755" || !changes[0].Restored {
				t.Errorf("%v: %+v", mode, changes)
			}
			if info, err := os.Stat(g.root); err != nil || info.Mode().Perm() != 0o755 || watched(t, g.root) != was {
				t.Error(mode, info.Mode(), err, watched(t, g.root))
			}

			guard = g.begin("cut") // and what a killed run closed is opened by repair
			g.write(g.root+"/Makefile", "evil", 0o644)
			must(t, os.Chmod(g.root, mode))
			killed(t, guard)
			var left *LeftError
			if err := Pending(g.watch("next")); !errors.As(err, &left) {
				t.Fatal(mode, err)
			}
			if _, err := Begin(context.Background(), g.watch("next")); !errors.As(err, &left) {
				t.Fatal(mode, err)
			}
			if _, _, err := left.Left.Mend(); err != nil || watched(t, g.root) != was {
				t.Error(mode, err, watched(t, g.root))
			}
		}
		g := newGround(t) // read-only before and after: written all the same meanwhile
		must(t, os.Chmod(g.root+"/.git/hooks", 0o555))
		must(t, os.Chmod(g.root, 0o555))
		guard := g.begin("run")
		must(t, errors.Join(os.Chmod(g.root, 0o755), os.Chmod(g.root+"/.git/hooks", 0o755)))
		g.write(g.root+"/.git/hooks/pre-push", "evil", 0o755)
		g.write(g.root+"/.envrc", "evil", 0o755)
		must(t, os.Remove(g.root+"/Makefile"))
		must(t, errors.Join(os.Chmod(g.root+"/.git/hooks", 0o555), os.Chmod(g.root, 0o555)))
		changes, err := guard.End()
		must(t, err)
		if len(changes) != 3 || !changes[0].Restored || !changes[1].Restored || !changes[2].Restored {
			t.Errorf("%+v", changes)
		}
		for _, dir := range []string{"", "/.git/hooks"} {
			if info, err := os.Stat(g.root + dir); err != nil || info.Mode().Perm() != 0o555 {
				t.Error(dir, info.Mode(), err)
			}
			must(t, os.Chmod(g.root+dir, 0o755))
		}
	})
}

// A quarantine that takes nothing keeps nobody from restoring: what the run left stays aside in the workspace.
func Test_10_2_QuarantineTakesNothing(t *testing.T) {
	g := newGround(t)
	was := watched(t, g.root)
	guard := g.begin("run")
	g.write(g.root+"/Makefile", "evil", 0o644)
	g.write(g.root+"/.git/hooks/pre-push", "evil", 0o755)
	g.write(g.root+"/hcpx-quarantine-run-1", "the command's own", 0o755)
	g.write(g.home+"/quarantine/run", "in the way", 0o600)
	changes, err := guard.End()
	must(t, err)
	if len(changes) != 2 || !changes[0].Restored || !changes[1].Restored {
		t.Fatalf("%+v", changes)
	}
	for _, c := range changes {
		if text, err := os.ReadFile(c.Kept); string(text) != "evil" {
			t.Error(c.Kept, string(text), err)
		}
		must(t, os.Remove(c.Kept))
	}
	must(t, os.Remove(g.root+"/hcpx-quarantine-run-1"))
	if now := watched(t, g.root); now != was {
		t.Error(now)
	}
}

// What an earlier restoration kept stays; a workspace that is gone since goes to the same shelf.
func Test_10_2_QuarantineLosesNothing(t *testing.T) {
	g := newGround(t)
	guard := g.begin("run")
	g.write(g.root+"/Makefile", "evil", 0o644)
	g.write(g.root+"/.envrc", "evil", 0o644)
	shelf := g.home + "/quarantine/run/"
	g.write(shelf+"1/evidence", "old", 0o600)
	g.write(shelf+"2", "old", 0o600)
	g.write(shelf+"changes.json", "old", 0o600)
	killed(t, guard)
	left, err := Left(g.home)
	must(t, err)
	if changes, _, err := left[0].Mend(); err != nil || len(changes) != 2 || !changes[0].Restored || !changes[1].Restored {
		t.Fatalf("%+v %v", changes, err)
	}
	for _, name := range []string{"1/evidence", "2", "changes.json"} {
		if text, err := os.ReadFile(shelf + name); string(text) != "old" {
			t.Error(name, string(text), err)
		}
	}
	for _, name := range []string{"3", "4", "changes-2.json"} {
		if _, err := os.Stat(shelf + name); err != nil {
			t.Error(err)
		}
	}
	guard = g.begin("gone")
	g.write(g.home+"/quarantine/gone/1", "evidence", 0o600)
	killed(t, guard)
	must(t, os.RemoveAll(g.root))
	left, err = Left(g.home)
	must(t, err)
	if _, kept, err := left[0].Mend(); !errors.Is(err, ErrGone) || kept != g.home+"/quarantine/gone/journal" {
		t.Error(kept, err)
	}
	g.closed()
}

// .git is known by more than its number, which a new directory can have again.
func Test_10_2_GitDeleted(t *testing.T) {
	remake := func(g *ground) {
		must(t, os.RemoveAll(g.root+"/.git"))
		g.repository(g.root + "/.git")
		g.write(g.root+"/.git/hooks/pre-commit", "#!/bin/sh\nold\n", 0o755)
	}
	g := newGround(t)
	guard := g.begin("run")
	remake(g)
	changes, err := guard.End()
	if err != nil || len(changes) != 1 || changes[0].Path != ".git" || changes[0].Restored {
		t.Errorf("%+v %v", changes, err)
	}
	guard = g.begin("cut")
	killed(t, guard)
	remake(g)
	var left *LeftError
	if err := Pending(g.watch("next")); !errors.As(err, &left) {
		t.Error(err)
	}
	g = newGround(t)
	guard = g.begin("gone")
	killed(t, guard)
	must(t, os.RemoveAll(g.root))
	g.repository(g.root + "/.git") // another root, maybe of the same number
	l, err := Left(g.home)
	must(t, err)
	if _, _, err := l[0].Mend(); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
	g = newGround(t)
	guard = g.begin("removed")
	must(t, os.RemoveAll(g.root+"/.git"))
	changes, err = guard.End()
	if err != nil || len(changes) != 1 || changes[0].Restored {
		t.Errorf("%+v %v", changes, err)
	}
	if text, err := os.ReadFile(g.root + "/.git/hooks/pre-commit"); string(text) != "#!/bin/sh\nold\n" {
		t.Error(string(text), err)
	}
}

// A journal that says what no run wrote, or lost what it kept, overwrites nothing.
func Test_10_2_DamagedJournal(t *testing.T) {
	cut := func() (*ground, string, Leftover) {
		g := newGround(t)
		guard := g.begin("run")
		g.write(g.root+"/Makefile", "evil", 0o644)
		g.write(g.root+"/.envrc", "evil", 0o644)
		killed(t, guard)
		left, err := Left(g.home)
		must(t, err)
		return g, guard.dir, left[0]
	}
	for name, damage := range map[string]func(dir string) error{
		"cut":  func(dir string) error { return os.Truncate(dir+"/content", 3) },
		"gone": func(dir string) error { return os.Remove(dir + "/content") },
		"other": func(dir string) error {
			text, err := os.ReadFile(dir + "/content")
			return errors.Join(err, os.WriteFile(dir+"/content", []byte(strings.ReplaceAll(string(text), "all:", "bad:")), 0o600))
		},
	} {
		g, dir, left := cut()
		must(t, damage(dir))
		changes, kept, err := left.Mend()
		g.closed() // put aside: it would hold up the workspace for ever
		if err == nil || !strings.HasSuffix(kept, "/run/journal") || len(changes) != 2 || !changes[0].Restored || changes[1].Restored {
			t.Errorf("%s: %+v %v", name, changes, err)
		}
		if text, err := os.ReadFile(g.root + "/Makefile"); string(text) != "evil" {
			t.Error(name, string(text), err)
		}
	}
	for name, damage := range map[string]func(r map[string]any){
		"a key outside":   func(r map[string]any) { entry(r, 1)["key"] = []byte("0/../host") },
		"a tree too many": func(r map[string]any) { entry(r, 1)["key"] = []byte("9/Makefile") },
		"no number":       func(r map[string]any) { entry(r, 1)["key"] = []byte("x/Makefile") },
		"no node":         func(r map[string]any) { entry(r, 1)["node"] = nil },
		"a bad offset":    func(r map[string]any) { entry(r, 1)["node"].(map[string]any)["offset"] = -1 },
		"no trees":        func(r map[string]any) { r["trees"] = nil },
		"more trees":      func(r map[string]any) { r["trees"] = append(r["trees"].([]any), map[string]any{"path": "/"}) },
		"git outside":     func(r map[string]any) { r["git"] = []any{map[string]any{"tree": 0, "rel": "../x"}} },
		"git in no tree":  func(r map[string]any) { r["git"] = []any{map[string]any{"tree": -1, "rel": "x"}} },
		"hooks outside":   func(r map[string]any) { r["also"] = []any{map[string]any{"tree": 0, "rel": "/etc"}} },
		"another run":     func(r map[string]any) { r["run"] = "../../x" },
		"nothing at all":  func(r map[string]any) { clear(r) },
		"a wrong kind":    func(r map[string]any) { r["nodes"] = "x" },
	} {
		g, dir, left := cut()
		text, err := os.ReadFile(dir + "/before.json")
		must(t, err)
		var r map[string]any
		must(t, json.Unmarshal(text, &r))
		damage(r)
		text, err = json.Marshal(r)
		must(t, err)
		must(t, os.WriteFile(dir+"/before.json", text, 0o600))
		if _, kept, err := left.Mend(); !errors.Is(err, ErrDamaged) || kept == "" {
			t.Error(name, err)
		}
		if text, err := os.ReadFile(g.root + "/Makefile"); string(text) != "evil" {
			t.Error(name, string(text), err)
		}
		g.closed()
	}
}

func entry(r map[string]any, i int) map[string]any { return r["nodes"].([]any)[i].(map[string]any) }

// A journal that was cut off before it was whole is swept away by the next run.
func Test_10_2_JournalNotWhole(t *testing.T) {
	g := newGround(t)
	g.write(openDir(g.home)+"/old/content", "x", 0o600)
	g.write(openDir(g.home)+"/half/before.json-", "{", 0o600)
	if left, err := Left(g.home); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
	if _, err := g.begin("run").End(); err != nil {
		t.Error(err)
	}
	g.closed()
	g.write(openDir(g.home)+"/old/content", "x", 0o600)
	must(t, Sweep(g.home))
	g.closed()
}
