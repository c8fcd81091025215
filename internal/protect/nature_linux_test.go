package protect

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// every is each name of the list in a ground with a linked worktree and a submodule, and whether it is a directory by
// nature.
func every() map[string]bool {
	names := map[string]bool{}
	for _, g := range List() {
		for _, name := range g.Names {
			at := strings.NewReplacer("**", "m", "*", "w").Replace(name)
			names[at] = slices.Contains(g.Dirs, name)
		}
	}
	delete(names, ".git") // see Test_10_2_NewGitDirectories, Test_10_2_GitDeleted
	return names
}

// things are what can stand at a name.
var things = map[string]func(at string) error{
	"nothing":         func(string) error { return nil },
	"file":            func(at string) error { return os.WriteFile(at, []byte("text"), 0o755) },
	"link":            func(at string) error { return os.Symlink("/elsewhere", at) },
	"fifo":            func(at string) error { return syscall.Mkfifo(at, 0o644) },
	"empty directory": func(at string) error { return os.Mkdir(at, 0o755) },
	"directory": func(at string) error {
		return errors.Join(os.MkdirAll(at+"/deep/down", 0o755), os.WriteFile(at+"/deep/down/text", []byte("evil"), 0o644), os.WriteFile(at+"/text", []byte("evil"), 0o644))
	},
}

// §10.2: whatever stood at a protected name, and whatever the command puts there instead, it is told and put away as it is, and what
// was there stands there again. Only an empty directory may come where a directory belongs.
func Test_10_2_WhateverStandsAtAName(t *testing.T) {
	for before, first := range things {
		if before == "fifo" {
			continue // gone, it can't be made again: told as not restored
		}
		for after, then := range things {
			both := strings.Contains(before, "directory") && strings.Contains(after, "directory")
			if both || before == after || before == "empty directory" && after == "nothing" {
				continue // what of a directory counts is told by other tests; an empty one that went changes nothing
			}
			t.Run(before+" to "+after, func(t *testing.T) {
				replaced{before: before, after: after, first: first, then: then}.hold(t)
			})
		}
	}
}

// replaced is a run that finds one thing at every name of the list and leaves another.
type replaced struct {
	before, after string
	first, then   func(at string) error
}

func (r replaced) hold(t *testing.T) {
	g := newGround(t)
	g.repository(g.root + "/.git/modules/m")
	names, was, left := every(), map[string]string{}, map[string]string{}
	for name := range names {
		at := g.root + "/" + name
		must(t, os.RemoveAll(at))
		must(t, os.MkdirAll(filepath.Dir(at), 0o755))
		must(t, r.first(at))
		was[name] = listing(t, at)
	}
	guard := g.begin("run")
	for name := range names {
		at := g.root + "/" + name
		must(t, os.RemoveAll(at))
		must(t, r.then(at))
		left[name] = listing(t, at)
	}
	changes, err := guard.End()
	must(t, err)
	told := map[string]string{} // and where it is kept
	for _, c := range changes {
		if told[c.Path] = c.Kept; !c.Restored {
			t.Errorf("not restored: %+v", c)
		}
	}
	for name, dir := range names {
		now := listing(t, g.root+"/"+name)
		kept, known := told[name]
		switch {
		case r.before == "nothing" && dir && strings.HasSuffix(r.after, "directory"):
			if known || strings.Contains(now, "evil") || r.after == "directory" && !slices.ContainsFunc(changes, func(c Change) bool { return strings.HasPrefix(c.Path, name+"/") }) {
				t.Errorf("%s: told %v, is\n%s", name, known, now)
			}
		case r.before == "directory" && r.after == "nothing":
			if _, deep := told[name+"/text"]; !deep || now != was[name] {
				t.Errorf("%s: told %v, is\n%s", name, deep, now)
			}
		case !known || now != was[name]:
			t.Errorf("%s: told %v, was\n%s\nis\n%s", name, known, was[name], now)
		case r.after != "nothing" && listing(t, kept) != left[name]:
			t.Errorf("%s: kept\n%s\nleft\n%s", name, listing(t, kept), left[name])
		}
	}
}

func listing(t *testing.T, at string) string {
	t.Helper()
	if _, err := os.Lstat(at); err != nil {
		return ""
	}
	return picture(t, at)
}

// §10.2: a directory in the place of a file is no harmless thing: the host's next git or make fails at it.
func Test_10_2_DirectoriesBreakTheHost(t *testing.T) {
	for _, program := range []string{"git", "make"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(program + " is not here")
		}
	}
	status, commit := []string{"git", "status"}, []string{"git", "-c", "user.name=ada", "-c", "user.email=ada@example.org", "commit", "--allow-empty", "-m", "x"}
	for name, run := range map[string][]string{
		".git/commondir": status, ".git/config.worktree": nil, ".git/hooks/pre-commit": commit, "inc/file": status, "hooks/pre-commit": commit, "GNUmakefile": {"make"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGround(t)
			must(t, os.RemoveAll(g.root+"/.git"))
			works := func(args ...string) bool {
				cmd := exec.Command(args[0], args[1:]...)
				cmd.Dir, cmd.Env = g.root, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + g.host, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"}
				return cmd.Run() == nil
			}
			if !works("git", "init", "-q") {
				t.Fatal("git init fails")
			}
			must(t, os.RemoveAll(g.root+"/.git/hooks/pre-commit"))
			must(t, os.MkdirAll(g.root+"/inc", 0o755))
			must(t, add(g.root+"/.git/config", "[include]\n\tpath = ../inc/file\n"))
			if name == "hooks/pre-commit" {
				must(t, os.MkdirAll(g.root+"/hooks", 0o755))
				must(t, add(g.root+"/.git/config", "[core]\n\thooksPath = hooks\n"))
			}
			if run != nil && !works(run...) {
				t.Fatal("the program fails anyway")
			}
			guard := g.begin("run")
			must(t, os.MkdirAll(g.root+"/"+name+"/a", 0o755))
			if run != nil && works(run...) {
				t.Error("the control: the program does not mind")
			}
			changes, err := guard.End()
			must(t, err)
			if len(changes) != 1 || changes[0].Path != name || changes[0].Before != nil || changes[0].After.Kind != kindDir || !changes[0].Restored {
				t.Fatalf("%+v", changes)
			}
			if _, err := os.Stat(changes[0].Kept + "/a"); err != nil {
				t.Error(err)
			}
			if run != nil && !works(run...) {
				t.Error("the program fails still")
			}
		})
	}
}

// A configuration's own files may be directories that were there before: they stay, older than the run.
func Test_10_2_DirectoriesFromBefore(t *testing.T) {
	g := newGround(t)
	must(t, os.MkdirAll(g.root+"/CLAUDE.md/notes", 0o755))
	guard := g.begin("run")
	g.write(g.root+"/CLAUDE.md/notes/x", "evil", 0o644)
	changes, err := guard.End()
	must(t, err)
	if len(changes) != 1 || changes[0].Path != "CLAUDE.md/notes/x" {
		t.Errorf("%+v", changes)
	}
	guard = g.begin("design", "CLAUDE.md", ".git/hooks/lib", "GNUmakefile")
	for _, dir := range []string{"/GNUmakefile", "/.git/hooks/lib/a"} {
		must(t, os.MkdirAll(g.root+dir, 0o755))
	}
	if changes, err := guard.End(); err != nil || changes != nil {
		t.Errorf("by design: %+v %v", changes, err)
	}
}
