package examples_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// keptKeys are those whose meaning reaches the answers. Every other key that git knows changes nothing.
var keptKeys = regexp.MustCompile(`(?i)^(core\.(repositoryFormatVersion|fileMode|symlinks|ignoreCase|precomposeUnicode|` +
	`autocrlf|eol|safecrlf|checkRoundtripEncoding|trustctime|checkStat|sharedRepository|logAllRefUpdates|sparseCheckout|` +
	`sparseCheckoutCone|useReplaceRefs|bare|worktree|excludesFile|attributesFile|hooksPath)|index\.sparse|extensions\..*|` +
	`(user|author|committer)\.(name|email)|branch\..*\.(remote|merge)|remote\..*\.fetch|include.*|filter\..*|commit\.gpgSign)$`)

// gitKeys are the keys that the installed git knows, with names of this test's repository in their middle parts.
func gitKeys(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("git", "help", "--config").Output()
	if err != nil {
		t.Skipf("git does not list its keys: %v", err)
	}
	middle := regexp.MustCompile(`<[^>]*>|\*`)
	var keys []string
	for _, key := range strings.Fields(string(out)) {
		if strings.HasPrefix(key, "diff.<driver>") {
			key = strings.Replace(key, "<driver>", "evil", 1)
		}
		key = middle.ReplaceAllString(key, "main")
		if strings.Count(key, ".") > 0 && regexp.MustCompile(`^[a-zA-Z]+\.(.*\.)?[a-zA-Z]+$`).MatchString(key) && !keptKeys.MatchString(key) {
			keys = append(keys, key)
		}
	}
	if len(keys) < 300 {
		t.Fatalf("only %d keys", len(keys))
	}
	return append(keys, "trace2.eventTarget", "submodule.sub.ignore", "alias.status", "i18n.commitEncoding", "i18n.logOutputEncoding",
		"diff.evil.textconv", "diff.evil.command", "merge.evil.driver", "pager.log", "color.diff", "log.follow", "status.branch", "user.signingKey")
}

// fixed is a repository with the same commits each time, and changes to look at.
func fixed(t *testing.T) *tool {
	t.Helper()
	x := newGit(t)
	x.env = append(x.env, "GIT_AUTHOR_DATE=1700000000 +0100", "GIT_COMMITTER_DATE=1700000000 +0100")
	x.write("a.txt", "one\ntwo\nthree é\n")
	x.write("sub/b.txt", "b\n")
	x.write(".gitattributes", "*.txt diff=evil\n")
	x.commit("first é\n\nbody")
	x.git("branch", "aside")
	x.git("mv", "sub/b.txt", "sub/é.txt")
	x.write("a.txt", "one\n2\nthree é\n")
	x.write("new.txt", "new\n")
	return x
}

// answers are those of every command, one after the other.
func answers(t *testing.T, x *tool) string {
	t.Helper()
	var all strings.Builder
	for _, args := range [][]string{
		{"status"}, {"log"}, {"log", "--", "sub/é.txt"}, {"diff"}, {"diff", "--staged"}, {"show"}, {"branch-list", "--remotes"},
		{"add", "--", "."}, {"commit", "--all"}, {"branch-create", "--name=topic"}, {"checkout", "--ref=aside"}, {"checkout", "--ref=topic"}, {"show"},
	} {
		x.in = "second é\n"
		out, errs, code := x.run(args...)
		fmt.Fprintf(&all, "%q %d %s%s\n", args, code, out, errs)
	}
	return all.String()
}

func configFile(keys []string, value string) string {
	var text strings.Builder
	for _, key := range keys {
		first, last := strings.Index(key, "."), strings.LastIndex(key, ".")
		section := "[" + key[:first]
		if first < last {
			section += ` "` + key[first+1:last] + `"`
		}
		fmt.Fprintf(&text, "%s]\n\t%s = %s\n", section, key[last+1:], value)
	}
	return text.String()
}

// Test_14_2_GitNoKeyOfTheConfigurationChangesAnAnswer sets every key that git knows, but for those that are meant to
// count, in the repository's and in the user's configuration.
func Test_14_2_GitNoKeyOfTheConfigurationChangesAnAnswer(t *testing.T) {
	want := answers(t, fixed(t))
	if strings.Count(want, `] 0 {`) != 13 {
		t.Fatalf("a command failed:\n%s", want)
	}
	keys := gitKeys(t)
	for _, value := range []string{"true", "false", "always", "ISO-8859-1", `"!touch RAN; touch RAN"`, "/nowhere/at/all"} {
		x := fixed(t)
		ran := filepath.Join(filepath.Dir(x.dir), "ran")
		text := configFile(keys, strings.ReplaceAll(value, "RAN", ran))
		for _, file := range []string{filepath.Join(x.dir, ".git", "config"), filepath.Join(strings.TrimPrefix(x.env[1], "HOME="), ".gitconfig")} {
			old, _ := os.ReadFile(file)
			if err := os.WriteFile(file, append(old, text...), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := answers(t, x); got != want {
			t.Errorf("every key is %s: got\n%s\nwant\n%s", value, got, want)
		}
		if _, err := os.Stat(ran); !os.IsNotExist(err) {
			t.Errorf("a program of the configuration ran: %v", err)
		}
	}
}

// Test_14_2_GitKeepsWhatTheConfigurationMeans: keys that say how content is stored and which files count still do.
func Test_14_2_GitKeepsWhatTheConfigurationMeans(t *testing.T) {
	t.Run("core.autocrlf", func(t *testing.T) {
		x := newGit(t)
		x.git("config", "core.autocrlf", "input")
		x.write("a.txt", "a\r\n")
		x.commit("first")
		if got := x.git("cat-file", "-s", "HEAD:a.txt"); got != "2" {
			t.Errorf("%s bytes are stored", got)
		}
	})
	t.Run("core.safecrlf", func(t *testing.T) {
		x := newGit(t)
		x.git("config", "core.autocrlf", "input")
		x.git("config", "core.safecrlf", "true")
		x.write("a.txt", "a\r\n")
		x.fails("CRLF would be replaced by LF", "add", "--", "a.txt")
	})
	t.Run("core.fileMode", func(t *testing.T) {
		x := fixed(t)
		x.git("reset", "-q", "--hard")
		if err := os.Chmod(filepath.Join(x.dir, "a.txt"), 0o755); err != nil {
			t.Fatal(err)
		}
		if at(x.json("status", "--untracked=no"), "clean") != "false" {
			t.Error("a new mode is not seen")
		}
		x.git("config", "core.fileMode", "false")
		if at(x.json("status", "--untracked=no"), "clean") != "true" {
			t.Error("core.fileMode=false is not kept")
		}
	})
	t.Run("core.excludesFile and core.attributesFile", func(t *testing.T) {
		x := newGit(t)
		x.git("config", "core.excludesFile", filepath.Join(x.dir, "lists", "ignore"))
		x.git("config", "core.attributesFile", filepath.Join(x.dir, "lists", "attributes"))
		x.write("lists/ignore", "lists\n*.log\n")
		x.write("lists/attributes", "*.dat binary\n")
		x.write("a.log", "a")
		x.write("a.dat", "a")
		x.json("add", "--", ".")
		if got := dump(t, x.json("diff", "--staged", "--no-patch")); got != `{"files":[{"binary":true,"path":"a.dat","status":"added"}],"notes":[],"patch":""}` {
			t.Error(got)
		}
	})
	t.Run("branch.*.merge", func(t *testing.T) {
		x := fixed(t)
		x.git("branch", "--set-upstream-to=aside")
		if got := at(x.json("status"), "upstream"); got != "aside" {
			t.Errorf("upstream %s", got)
		}
	})
	t.Run("quoting", func(t *testing.T) {
		x := fixed(t)
		name := "a \"q\" \\ \t#;é\nb"
		x.git("config", "user.name", name)
		x.git("config", `branch.q"uo\te.remote`, "x")
		if got := at(x.json("commit", "--all"), "commit", "author", "name"); got != strings.ReplaceAll(name, "\n", " ") && got != strings.ReplaceAll(name, "\n", "") {
			t.Errorf("author %q", got)
		}
	})
}
