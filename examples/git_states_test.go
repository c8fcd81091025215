package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Test_14_2_GitTakesAMessageByteForByte: of any length, with whatever stands in it.
func Test_14_2_GitTakesAMessageByteForByte(t *testing.T) {
	x := newGit(t)
	for name, message := range map[string]string{
		"code":       "say $(id) `id` ${HOME} %s \\n \\ \"q\" 'q' !x",
		"whitespace": "  lead\n\n\n\n  two  \t\n# kept\n\n---\nScissors: >8\n",
		"unicode":    "é 日本 🚋 \u200b \u2028\n\r\nx\r",
		"long":       strings.Repeat("0123456789é $(x)\n", 6000),
		"one line":   strings.Repeat("é", 100_000),
	} {
		x.write("a.txt", name)
		x.json("add", "--", ".")
		x.json(x.message("commit", message)...)
		cmd := exec.Command("git", "cat-file", "commit", "HEAD")
		cmd.Dir, cmd.Env = x.dir, x.env
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		_, got, _ := strings.Cut(string(out), "\n\n")
		if want := strings.TrimRight(message, "\n") + "\n"; got != want {
			t.Errorf("%s: %d bytes, want %d: %.200q", name, len(got), len(want), got)
		}
	}
	x.write("a.txt", "again")
	x.fails("A commit needs a message.", x.message("commit", " \n\t\n", "--all")...)
}

// Test_14_2_GitCommitsInUTF8: whatever the configuration says of encodings, for text that is written and read.
func Test_14_2_GitCommitsInUTF8(t *testing.T) {
	x := newGit(t)
	x.git("config", "i18n.commitEncoding", "ISO-8859-1")
	x.git("config", "i18n.logOutputEncoding", "ISO-8859-1")
	x.write("a.txt", "a\n")
	x.commit("grüße é")
	if raw := x.git("cat-file", "commit", "HEAD"); !strings.Contains(raw, "grüße é") || strings.Contains(raw, "encoding") {
		t.Errorf("stored %q", raw)
	}
	if got := at(x.json("log"), "commits", 0, "subject"); got != "grüße é" {
		t.Errorf("read %q", got)
	}
	x.git("-c", "i18n.commitEncoding=ISO-8859-1", "commit", "-q", "--allow-empty", "-m", "gr\xfc\xdfe")
	if got := at(x.json("log"), "commits", 0, "subject"); got != "grüße" {
		t.Errorf("read %q of a commit in another encoding", got)
	}
	if got := x.json("branch-list"); at(got, "branches", 0, "lossy") != "true" { // git converts no subject here
		t.Errorf("branches say %s", dump(t, got))
	}
}

func Test_14_2_GitTellsOfHooksOfALinkedWorktree(t *testing.T) {
	x := newGit(t)
	x.write("a.txt", "a\n")
	x.commit("first")
	linked := filepath.Join(x.dir, "..", "linked")
	x.git("worktree", "add", "-q", "-b", "linked", linked)
	x.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n")
	x.write(".git/hooks/commit-msg", "#!/bin/sh\nexit 1\n")
	if err := os.Chmod(filepath.Join(x.dir, ".git/hooks/pre-commit"), 0o755); err != nil {
		t.Fatal(err)
	}
	main := x.dir
	x.dir = linked
	x.write("a.txt", "b\n")
	if got := dump(t, x.json(x.message("commit", "second", "--all")...)["hooks"]); got != `{"run":[],"skipped":["pre-commit"]}` {
		t.Errorf("hooks %s", got)
	}
	x.git("config", "extensions.worktreeConfig", "true")
	x.git("config", "--worktree", "core.hooksPath", "own")
	x.write("own/post-checkout", "#!/bin/sh\nexit 1\n")
	if err := os.Chmod(filepath.Join(linked, "own/post-checkout"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := dump(t, x.json("checkout", "--ref=linked")["hooks"]); got != `{"run":[],"skipped":["post-checkout"]}` {
		t.Errorf("hooks of the worktree's own configuration: %s", got)
	}
	x.fails("main", "checkout", "--ref=main") // which the other working tree has
	x.dir = main
	if got := dump(t, x.json("checkout", "--ref=main")["hooks"]); got != `{"run":[],"skipped":[]}` {
		t.Errorf("hooks of the main working tree: %s", got)
	}
}

// Test_14_2_GitKeepsTheReflog: what changes a ref is recorded where git would, though the common directory is a view.
func Test_14_2_GitKeepsTheReflog(t *testing.T) {
	x := newGit(t)
	x.write("a.txt", "a\n")
	x.commit("first")
	x.json("branch-create", "--name=topic")
	x.json("checkout", "--ref=topic")
	for ref, want := range map[string]string{"HEAD": "checkout: moving from main to topic", "main": "commit (initial): first", "topic": "branch: Created from"} {
		if got := x.git("reflog", "show", "--format=%gs", ref); !strings.Contains(got, want) {
			t.Errorf("%s: %q", ref, got)
		}
	}
	if got := x.git("fsck", "--strict"); got != "" {
		t.Errorf("fsck: %s", got)
	}
}

func Test_14_2_GitRefusesTheRepositoryOfAnother(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give a directory away")
	}
	x := newGit(t)
	if err := os.Lchown(x.dir, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if err := os.Lchown(filepath.Join(x.dir, ".git"), 65534, 65534); err != nil {
		t.Fatal(err)
	}
	x.fails("This repository belongs to another user.", "status")
	config := "[safe]\n\tdirectory = /elsewhere\n\tdirectory = " + x.dir + "\n"
	if err := os.WriteFile(filepath.Join(strings.TrimPrefix(x.env[1], "HOME="), ".gitconfig"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	x.json("status")
}

// Test_14_2_GitStagesLinksAndOddNames: a link is a link, and names that git quotes come plain in entries.
func Test_14_2_GitStagesLinksAndOddNames(t *testing.T) {
	x := newGit(t)
	x.write("-f", "dash\n")
	x.write("back\\slash \"q\"\n\t", "odd\n")
	if err := os.Symlink("/nowhere", filepath.Join(x.dir, "link")); err != nil {
		t.Fatal(err)
	}
	x.json("add", "--", "-f", "back\\slash \"q\"\n\t", "link")
	x.json(x.message("commit", "odd")...)
	if got := dump(t, x.json("show", "--no-patch")["files"]); got != `[{"additions":1,"deletions":0,"path":"-f","status":"added"},`+
		`{"additions":1,"deletions":0,"path":"back\\slash \"q\"\n\t","status":"added"},{"additions":1,"deletions":0,"path":"link","status":"added"}]` {
		t.Errorf("files %s", got)
	}
	if err := os.Remove(filepath.Join(x.dir, "link")); err != nil {
		t.Fatal(err)
	}
	x.write("link", "now a file")
	if got := at(x.json("diff", "--no-patch"), "files", 0, "status"); got != "type_changed" {
		t.Errorf("status %s", got)
	}
}

// Test_14_2_GitReadsLeaveEveryStamp: index, refs and directories keep their times, in every state of the index.
func Test_14_2_GitReadsLeaveEveryStamp(t *testing.T) {
	x := fixed(t)
	x.git("config", "core.untrackedCache", "true")
	x.git("update-index", "--untracked-cache")
	if err := os.Chtimes(filepath.Join(x.dir, "a.txt"), time.Time{}, unixTime(5)); err != nil {
		t.Fatal(err)
	}
	before := everyStamp(t, x.dir)
	for _, args := range [][]string{{"status", "--untracked=all"}, {"log"}, {"diff"}, {"diff", "--staged"}, {"show"}, {"branch-list", "--remotes"}} {
		x.json(args...)
	}
	if after := everyStamp(t, x.dir); after != before {
		t.Errorf("changed:\n%s\n%s", before, after)
	}
}

// everyStamp is every file and directory below dir with size and time.
func everyStamp(t *testing.T, dir string) string {
	t.Helper()
	all := stamps(t, dir)
	err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		info, err := d.Info()
		all += name + info.ModTime().String() + "\n"
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
