package examples_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// newGit is the git pack in an empty repository with an author in the repository's own configuration.
func newGit(t *testing.T) *tool {
	t.Helper()
	x := newTool(t, "git", "hcp-git", "git", "awk", "od", "ln", "mkdir")
	x.dir = filepath.Join(x.dir, "repo")
	x.git("init", "-q", "-b", "main", x.dir)
	x.git("config", "user.name", `Ada "L" é`)
	x.git("config", "user.email", "ada@example.org")
	return x
}

// git runs the real git as the person at the keyboard would.
func (x *tool) git(args ...string) string {
	x.t.Helper()
	cmd := exec.Command("git", args...)
	if _, err := os.Stat(x.dir); err == nil {
		cmd.Dir = x.dir
	}
	cmd.Env = append(slices.Clone(x.env), "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		x.t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (x *tool) write(name, text string) {
	x.t.Helper()
	path := filepath.Join(x.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		x.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		x.t.Fatal(err)
	}
}

func (x *tool) commit(message string) {
	x.t.Helper()
	x.json("add", "--", ".")
	x.json(x.message("commit", message)...)
}

// message gives a commit its message, which comes on stdin.
func (x *tool) message(command, message string, options ...string) []string {
	x.in = message
	return append([]string{command}, options...)
}

// at is a value inside nested objects and lists, as text.
func at(v any, path ...any) string {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return "absent"
			}
			v = l[p]
		}
	}
	return fmt.Sprint(v)
}

func TestGitFromNothingToACommit(t *testing.T) {
	x := newGit(t)
	if got := dump(t, x.json("status")); got != `{"ahead":null,"behind":null,"branch":"main","clean":true,"commit":null,"entries":[],"notes":[],"upstream":null}` {
		t.Errorf("an empty repository: %s", got)
	}
	if got := dump(t, x.json("log")); got != `{"commits":[],"notes":[]}` {
		t.Errorf("no commits: %s", got)
	}
	x.fails(`No commit is called "HEAD".`, "show")
	x.write("sub/a.txt", "a\n")
	message := "say \"hi\" $(id)\n\n# kept\nbody \\n é\n"
	if got := dump(t, x.json("add", "--", "sub")["staged"]); got != `[{"additions":1,"deletions":0,"path":"sub/a.txt","status":"added"}]` {
		t.Errorf("staged %s", got)
	}
	v := x.json(x.message("commit", message)...)
	if at(v, "commit", "subject") != `say "hi" $(id)` || at(v, "commit", "body") != "# kept\nbody \\n é" {
		t.Errorf("committed %s", dump(t, v))
	}
	if at(v, "commit", "author", "name") != `Ada "L" é` || at(v, "commit", "id") != x.git("rev-parse", "HEAD") {
		t.Errorf("committed %s", dump(t, v))
	}
	x.fails("There is nothing to commit", x.message("commit", "again")...)
	x.fails("did not match any files", "add", "--", "--force")
}

func TestGitWorksFromASubdirectoryAndALinkedWorktree(t *testing.T) {
	x := newGit(t)
	x.write("sub/a.txt", "a\n")
	x.commit("first")
	top := x.dir
	for _, dir := range []string{filepath.Join(top, "sub"), filepath.Join(top, "..", "linked")} {
		if filepath.Base(dir) == "linked" {
			x.git("worktree", "add", "-q", "-b", "linked", dir)
		}
		x.dir = dir
		if got := at(x.json("log"), "commits", 0, "subject"); got != "first" {
			t.Errorf("%s: log of %s", filepath.Base(dir), got)
		}
		x.write("new.txt", "new\n")
		path := at(x.json("status"), "entries", 0, "path")
		if got := at(x.json("add", "--", path), "staged", 0, "path"); got != path {
			t.Errorf("%s: status says %s, add stages %s", filepath.Base(dir), path, got)
		}
		x.git("reset", "-q", "--hard")
		x.dir = top
	}
}

func TestGitTellsWhichHooksWereSkipped(t *testing.T) {
	x := newGit(t)
	hook := "#!/bin/sh\ntouch \"" + filepath.Join(filepath.Dir(x.dir), "ran") + "\"\nexit 1\n"
	install := func(name string, mode os.FileMode) {
		x.write(name, hook)
		if err := os.Chmod(filepath.Join(x.dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	install(".git/hooks/pre-commit", 0o755)
	install(".git/hooks/post-checkout", 0o755)
	install(".git/hooks/commit-msg", 0o644) // not executable: git would not run it
	x.write("a.txt", "a\n")
	if got := dump(t, x.json("add", "--", ".")["hooks"]); got != `{"run":[],"skipped":[]}` {
		t.Errorf("add: %s", got)
	}
	if got := dump(t, x.json(x.message("commit", "first")...)["hooks"]); got != `{"run":[],"skipped":["pre-commit"]}` {
		t.Errorf("commit: %s", got)
	}
	if got := dump(t, x.json("checkout", "--ref=main")["hooks"]); got != `{"run":[],"skipped":["post-checkout"]}` {
		t.Errorf("checkout: %s", got)
	}
	install("tools/reference-transaction", 0o755)
	x.git("config", "core.hooksPath", "tools")
	if got := dump(t, x.json("branch-create", "--name=topic")["hooks"]); got != `{"run":[],"skipped":["reference-transaction"]}` {
		t.Errorf("branch-create: %s", got)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(x.dir), "ran")); !os.IsNotExist(err) {
		t.Errorf("a hook ran: %v", err)
	}
}

func TestGitFindsTheAuthor(t *testing.T) {
	x := newGit(t)
	home := strings.TrimPrefix(x.env[1], "HOME=")
	x.git("config", "--unset", "user.name")
	x.git("config", "--unset", "user.email")
	x.write("a.txt", "a\n")
	x.json("add", "--", ".")
	x.fails("No author is known", x.message("commit", "nobody")...)
	if out := x.json("log"); len(out["commits"].([]any)) != 0 {
		t.Error("a commit without an author is there")
	}
	for file, author := range map[string]string{".gitconfig": "Home", ".config/git/config": "Config"} {
		path := filepath.Join(home, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("[user]\n\tname = "+author+"\n\temail = a@example.org\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		x.write("a.txt", author)
		x.json("add", "--", ".")
		if got := at(x.json(x.message("commit", "x")...), "commit", "author", "name"); got != author {
			t.Errorf("author %s; want that of %s", got, file)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	x.git("config", "user.name", "Own")
	x.git("config", "user.email", "own@example.org")
	x.write("a.txt", "own")
	if got := at(x.json(x.message("commit", "x", "--all")...), "commit", "author", "name"); got != "Own" {
		t.Errorf("author %s; want that of the repository", got)
	}
}

func TestGitTakesNoArgumentAsAnOption(t *testing.T) {
	x := newGit(t)
	x.write("a.txt", "a\n")
	x.commit("first")
	stolen := filepath.Join(filepath.Dir(x.dir), "stolen")
	for _, args := range [][]string{
		{"log", "--ref=--output=" + stolen}, {"show", "--ref=--output=" + stolen}, {"diff", "--from=--output=" + stolen},
		{"checkout", "--ref=--orphan"}, {"branch-create", "--name=-D"}, {"branch-create", "--name=topic", "--start=--force"},
		{"branch-create", "--name=HEAD"}, {"branch-create", "--name=a b"}, {"branch-create", "--name=a..b"}, {"log", "--output=" + stolen},
	} {
		if out, errs, code := x.run(args...); code == 0 || errs == "" {
			t.Errorf("%q: exit %d, %s", args, code, out)
		}
	}
	if got := x.json("log", "--", "--output="+stolen); len(got["commits"].([]any)) != 0 {
		t.Errorf("a path is an option: %s", dump(t, got))
	}
	if got := x.json("log", "--", "*.txt"); len(got["commits"].([]any)) != 0 {
		t.Errorf("a path is a pattern: %s", dump(t, got))
	}
	if _, err := os.Stat(stolen); !os.IsNotExist(err) {
		t.Errorf("a file was written: %v", err)
	}
	if got := x.git("branch", "--format=%(refname:short)"); got != "main" {
		t.Errorf("branches: %s", got)
	}
}

// TestGitStartsNothingThatTheConfigurationNames sets every value of git's configuration that names a program, and
// runs every command.
func TestGitStartsNothingThatTheConfigurationNames(t *testing.T) {
	x := newGit(t)
	x.write("a.txt", "a\n")
	x.write(".gitattributes", "*.txt diff=evil\n*.ev filter=evil\n")
	x.commit("first")
	ran := filepath.Join(filepath.Dir(x.dir), "ran")
	for _, key := range []string{
		"core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass", "sequence.editor", "pager.log", "diff.external",
		"diff.evil.textconv", "diff.evil.command", "filter.evil.clean", "filter.evil.smudge", "filter.we=ird \"q.process", "gpg.program",
		"credential.helper", "alias.status", "merge.evil.driver",
	} {
		x.git("config", key, "!touch '"+ran+"'; touch '"+ran+"'")
	}
	for key, value := range map[string]string{
		"commit.gpgSign": "true", "log.showSignature": "true", "gc.auto": "1", "color.ui": "always", "diff.noprefix": "true",
		"diff.orderFile": "/nowhere", "commit.template": "/nowhere", "core.quotePath": "true", "status.relativePaths": "true",
	} {
		x.git("config", key, value)
	}
	x.write("a.txt", "a\nb\n")
	x.json("status")
	x.json("log")
	x.json("show")
	x.json("branch-list", "--remotes")
	if patch := at(x.json("diff"), "patch"); !strings.HasPrefix(patch, "diff --git a/a.txt b/a.txt\n") || !strings.HasSuffix(patch, "\n+b\n") {
		t.Errorf("patch %q", patch)
	}
	x.write("b.ev", "b\n")
	x.fails("clean filter 'evil' failed", "add", "--", "b.ev")
	v := x.json(x.message("commit", "second", "--all")...)
	if notes := dump(t, v["notes"]); !strings.Contains(notes, "not signed") || !strings.Contains(notes, "filters") {
		t.Errorf("notes %s", notes)
	}
	x.json("branch-create", "--name=topic", "--start=HEAD~1")
	x.json("checkout", "--ref=topic")
	if _, err := os.Stat(ran); !os.IsNotExist(err) {
		t.Errorf("a program of the configuration ran: %v", err)
	}
}

func TestGitNamesAnyBytes(t *testing.T) {
	x := newGit(t)
	names := []string{"plain", "sp ace", "q\"uo\\te", "new\nline", "tab\t", "日本 🚋", "-dash", ":(top)x", "*"}
	for _, n := range names {
		x.write(n, n)
	}
	x.write("latin\xe9 \xed\xa0\x80 é", "x")
	got := map[string]string{}
	for _, e := range x.json("status", "--untracked=all")["entries"].([]any) {
		got[at(e, "path")] = at(e, "path_hex")
	}
	for _, n := range names {
		if hex, ok := got[n]; !ok || hex != "<nil>" {
			t.Errorf("%q is not there", n)
		}
	}
	if got["latin\ufffd \ufffd\ufffd\ufffd é"] != "6c6174696ee920eda08020c3a9" {
		t.Errorf("a name that is no UTF-8: %v", got)
	}
	for _, n := range names {
		if staged := at(x.json("add", "--", n), "hooks", "run"); staged != "[]" {
			t.Errorf("%q can't be staged", n)
		}
	}
	if n := len(strings.Split(x.git("ls-files", "-z"), "\x00")) - 1; n != len(names) {
		t.Errorf("%d of %d names are staged", n, len(names))
	}
}

func TestGitPatchIsGitsOwn(t *testing.T) {
	x := newGit(t)
	x.write("old\tname.txt", strings.Repeat("line\n", 50))
	x.write("bin.dat", "a\x00b")
	x.write("late.txt", strings.Repeat("x", 9000)+"\nnul\x00here\n\xe9\n")
	x.commit("first")
	x.git("mv", "old\tname.txt", "new\n\xe9.txt")
	x.write("bin.dat", "c\x00d")
	x.write("late.txt", strings.Repeat("x", 9000)+"\nnul\x00here\n\xe9\n\"\\ \x01 \xf0\x9f\x98\x80 \xed\xa0\x80\n")
	x.json("add", "--", ".")
	want := x.git("-c", "core.quotePath=false", "diff", "--cached", "-M", "--no-color")
	v := x.json("diff", "--staged")
	if got := strings.TrimSpace(at(v, "patch")); got != runes(want) {
		t.Errorf("got %q; want %q", got, runes(want))
	}
	if got := dump(t, v["files"]); got != `[{"binary":true,"path":"bin.dat","status":"modified"},`+
		`{"additions":1,"deletions":0,"path":"late.txt","status":"modified"},`+
		`{"additions":0,"deletions":0,"from":"old\tname.txt","path":"new\n`+"\ufffd"+`.txt","path_hex":"6e65770ae92e747874","status":"renamed"}]` {
		t.Errorf("files %s", got)
	}
	if at(v, "lossy") != "true" || at(x.json("diff", "--staged", "--no-patch"), "patch") != "" {
		t.Error("lossy is not told, or the patch can't be left out")
	}
}

// runes replaces each byte that is no UTF-8, as JSON decoders do.
func runes(s string) string { return string([]rune(s)) }

func TestGitShowsConflictsAndMerges(t *testing.T) {
	x := newGit(t)
	x.write("t", "one\n")
	x.commit("one")
	x.git("checkout", "-q", "-b", "side")
	x.write("t", "two\n")
	x.commit("two")
	x.git("checkout", "-q", "main")
	x.write("t", "three\n")
	x.commit("three")
	cmd := exec.Command("git", "merge", "-q", "side")
	cmd.Dir, cmd.Env = x.dir, x.env
	if err := cmd.Run(); err == nil {
		t.Fatal("the merge has no conflict")
	}
	if got := dump(t, x.json("status")["entries"]); got != `[{"conflict":"UU","index":"unmerged","path":"t","worktree":"unmerged"}]` {
		t.Errorf("status %s", got)
	}
	v := x.json("diff")
	if got := dump(t, v["files"]); !strings.Contains(got, `"status":"unmerged"`) || !strings.Contains(at(v, "patch"), "+<<<<<<< HEAD") {
		t.Errorf("diff %s", dump(t, v))
	}
	x.fails("unmerged files", x.message("commit", "no")...)
	x.write("t", "both\n")
	x.commit("merged")
	show := x.json("show")
	if len(show["commit"].(map[string]any)["parents"].([]any)) != 2 || !strings.Contains(at(show, "patch"), "-three\n+both\n") {
		t.Errorf("show %s", dump(t, show))
	}
}

// TestGitReadsWriteNothing: a read command leaves the repository as it is, index and all.
func TestGitReadsWriteNothing(t *testing.T) {
	x := newGit(t)
	x.write("a.txt", "a\n")
	x.commit("first")
	if err := os.Chtimes(filepath.Join(x.dir, "a.txt"), unixTime(1), unixTime(1)); err != nil {
		t.Fatal(err)
	}
	before := stamps(t, x.dir)
	for _, c := range []string{"status", "log", "diff", "show", "branch-list"} {
		x.json(c)
	}
	if after := stamps(t, x.dir); after != before {
		t.Errorf("changed:\n%s\n%s", before, after)
	}
}

func TestGitOutsideARepositoryFails(t *testing.T) {
	x := newGit(t)
	x.dir = t.TempDir()
	for _, c := range []string{"status", "log", "diff", "show", "branch-list", "commit"} {
		x.fails("not a git repository", c)
	}
}
