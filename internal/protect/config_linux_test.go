package protect

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// git runs the real one in a directory; what it says, without the end of the line.
func git(t *testing.T, home, dir string, args ...string) (string, error) {
	t.Helper()
	c := exec.Command("git", args...)
	c.Dir = dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1"}
	out, err := c.Output()
	return strings.TrimSuffix(string(out), "\n"), err
}

// A configuration is read as the real git reads it.
func Test_10_2_ConfigurationAsGitReadsIt(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{
		"[core]\n\thooksPath = hk\n", "[CORE]\nHOOKSPATH=hk\n", "[core]\nhooksPath = h\\\nk\n", "[core]\n\thooksPath = \"h\"k\n",
		"[core] # c\nhooksPath=hk\n", "[core]bare=false\nhooksPath=hk\n", "[core]\nhooksPath = h\\\"k\n", "[core]hooksPath=hk", "[core]\nhooksPath = hk # c\n",
		"[core]\nhooksPath = hk ; c\n", "[core]\nhooksPath = \"hk # c\"\n", "[core]\nhooksPath = 'hk'\n", "[core]\nhooksPath =   a  b\t \n", "[core]\r\nhooksPath = hk\r\n",
		"[core]\nhooksPath = \" hk \"\n", "[core]\nhooksPath = a\\tb\\\\c\n", "[core]\nhooksPath = one\n[x]\ny=z\n[core]\nhooksPath = two\n", "\ufeff[core]\nhooksPath=hk\n",
		"[core \"sub\"]\nhooksPath=no\n[core]\nhooksPath=hk\n", "; c\n# d\n\n  [core]\n  hooksPath\t=\thk", "[core]\nhooksPath = \"a\\\nb\"\n", "[core]\nhooksPath = a \"b\" c\n",
		"[a \"x]y\"]\nb=c\n[core]\nhooksPath=hk\n", "[a \"x\\\"y\"]\nb=c\n[core]\nhooksPath=hk\n", "[core]\nbare\nhooksPath = hk\n", "[core]\nhooksPath = hk\n\n\n", "[a.b]\nc=d\n[core]\nhooks-x=1\nhooksPath=hk",
	} {
		at := dir + "/config"
		must(t, os.WriteFile(at, []byte(text), 0o600))
		want, err := git(t, dir, dir, "config", "-f", at, "--get", "core.hooksPath")
		if err != nil {
			t.Errorf("%q: git refuses it: %v", text, err)
			continue
		}
		got := ""
		for _, s := range parseConfig(text) {
			if s.key == "core.hookspath" {
				got = s.value
			}
		}
		if got != want {
			t.Errorf("%q: %q, git has %q", text, got, want)
		}
	}
}

// The directories of hooks are guarded however git's configuration names them.
func Test_10_2_HooksPathInEveryForm(t *testing.T) {
	for i, form := range []string{"hk", "hk # c", "hk ; c", `"hk"`, `h\` + "\nk", "hk/", "./hk", "hk/../hk", "ROOT/hk", "LINK/hk", "~/repo/hk", "tohk", "included"} {
		g := newGround(t)
		dir := filepath.Dir(g.root)
		must(t, os.Symlink(g.root, dir+"/link"))
		must(t, os.Symlink("hk", g.root+"/tohk"))
		must(t, os.Mkdir(g.root+"/hk", 0o755))
		form = strings.NewReplacer("ROOT", g.root, "LINK", dir+"/link").Replace(form)
		if form == "included" {
			g.write(g.root+"/inc", "[core]\n\thooksPath = hk\n", 0o644)
			must(t, add(g.root+"/.git/config", "[include]\n\tpath = ../inc\n"))
		} else {
			must(t, add(g.root+"/.git/config", "\thooksPath = "+form+"\n"))
		}
		at, err := git(t, dir, g.root, "rev-parse", "--git-path", "hooks/pre-commit")
		if err != nil {
			t.Fatal(form, err)
		}
		if !filepath.IsAbs(at) {
			at = filepath.Join(g.root, at)
		}
		w := g.watch(fmt.Sprint("run", i))
		w.User = dir
		guard, err := Begin(context.Background(), w)
		must(t, err)
		g.write(at, "evil", 0o755)
		changes, err := guard.End()
		must(t, err)
		if len(changes) != 1 || changes[0].Path != "hk/pre-commit" || !changes[0].Restored {
			t.Errorf("%q, for git %s: %+v", form, at, changes)
		}
		if _, err := os.Stat(at); err == nil {
			t.Errorf("%q: the hook stands", form)
		}
	}
}

// A file of the workspace that git's configuration includes is part of it, under a condition too, and what it includes.
func Test_10_2_IncludedConfiguration(t *testing.T) {
	for name, text := range map[string]string{
		"":             "[include]\n\tpath = ../gc\n",
		"conditional":  "[includeIf \"gitdir:/somewhere/\"]\n\tpath = ../gc\n",
		"by another":   "[include]\n\tpath = ../first\n",
		"for git's ~/": "[include]\n\tpath = ~/repo/gc\n",
		"not there":    "[include]\n\tpath = ../new\n",
	} {
		g := newGround(t)
		g.write(g.root+"/gc", "[alias]\n\tx = log\n", 0o644)
		g.write(g.root+"/first", "[include]\n\tpath = gc\n", 0o644)
		must(t, add(g.root+"/.git/config", text))
		w := g.watch("run")
		w.User = filepath.Dir(g.root)
		guard, err := Begin(context.Background(), w)
		must(t, err)
		file := "gc"
		if name == "not there" {
			file = "new"
		}
		g.write(g.root+"/"+file, "[core]\n\tfsmonitor = evil\n", 0o644)
		changes, err := guard.End()
		must(t, err)
		if len(changes) != 1 || changes[0].Path != file || !changes[0].Restored {
			t.Errorf("%s: %+v", name, changes)
		}
	}
	g := newGround(t) // a file that includes itself ends
	g.write(g.root+"/gc", "[include]\n\tpath = gc\n", 0o644)
	must(t, add(g.root+"/.git/config", "[include]\n\tpath = ../gc\n"))
	if _, err := g.begin("run").End(); err != nil {
		t.Error(err)
	}
}

// Submodules are found in the index that the real git writes, in each of its versions.
func Test_10_2_SubmodulesInTheIndex(t *testing.T) {
	dir := t.TempDir()
	for _, how := range []string{"2", "3", "4", "split", "replaced", "sha256"} {
		root := dir + "/" + how
		args := []string{"init", "-q", root}
		if how == "sha256" {
			args = []string{"init", "-q", "--object-format=sha256", root}
		}
		if _, err := git(t, dir, dir, args...); err != nil {
			t.Fatal(how, err)
		}
		run := func(args ...string) {
			t.Helper()
			if _, err := git(t, dir, root, args...); err != nil {
				t.Fatal(how, args, err)
			}
		}
		want := "dir1/sub z"
		sum, link := 20, strings.Repeat("1", 40)
		if how == "sha256" {
			sum, link = 32, strings.Repeat("1", 64)
		}
		var files []string
		for i := range 40 {
			name := fmt.Sprintf("dir%d/file%s", i%3, strings.Repeat("x", i))
			must(t, os.MkdirAll(filepath.Dir(root+"/"+name), 0o755))
			must(t, os.WriteFile(root+"/"+name, []byte("x"), 0o600))
			files = append(files, name)
		}
		run(append([]string{"add", "--"}, files...)...)
		run("update-index", "--add", "--cacheinfo", "160000,"+link+",dir1/sub")
		run("update-index", "--add", "--cacheinfo", "160000,"+link+",z")
		switch how {
		case "3":
			must(t, os.WriteFile(root+"/later", []byte("x"), 0o600))
			run("add", "-N", "later") // extended flags make it version 3
		case "split", "replaced":
			run("update-index", "--split-index")
			if how == "replaced" { // an entry of the shared index becomes a submodule: git writes it without a name
				must(t, os.Remove(root+"/dir2/filexx"))
				must(t, os.Mkdir(root+"/dir2/filexx", 0o755))
				run("update-index", "--cacheinfo", "160000,"+link+",dir2/filexx")
				want = "dir1/sub dir2/filexx z"
			}
		case "4":
			run("update-index", "--index-version", "4")
		}
		links := gitlinks{work: root, sum: sum}
		must(t, links.read(root+"/.git"))
		slices.Sort(links.dirs)
		if got := strings.Join(links.dirs, " "); got != want {
			t.Errorf("%s: %q", how, got)
		}
	}
}

func FuzzConfig(f *testing.F) {
	f.Add("[core]\n\thooksPath = \"h\\\n k\" # x\n[a \"b\"]c=d")
	f.Fuzz(func(_ *testing.T, text string) { parseConfig(text) })
}
