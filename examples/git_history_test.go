package examples_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hcpx/internal/jsondoc"
)

// forged puts content under the name of another object, which git does not look at when it walks.
func forged(x *tool, id, content string) {
	x.t.Helper()
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	if _, err := fmt.Fprintf(z, "commit %d\x00%s", len(content), content); err != nil {
		x.t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		x.t.Fatal(err)
	}
	x.lay(".git/objects/"+id[:2]+"/"+id[2:], b.String())
}

// lay writes a file in the place of one that may be read only.
func (x *tool) lay(name, text string) {
	x.t.Helper()
	if err := os.Remove(filepath.Join(x.dir, name)); err != nil && !os.IsNotExist(err) {
		x.t.Fatal(err)
	}
	x.write(name, text)
}

// Test_15_3_NoRepositoryShowsAnotherHistory: whatever a repository says beside its commits, who is asked sees each commit
// that a push would add, or none and why.
func Test_15_3_NoRepositoryShowsAnotherHistory(t *testing.T) {
	f := newForge(t)
	x := newRemote(t, f)
	x.json("push", "--branch=main")
	base := x.git("rev-parse", "main")
	x.git("commit", "-q", "--allow-empty", "-m", "Hide this")
	hidden := x.git("rev-parse", "HEAD")
	x.git("commit", "-q", "--allow-empty", "-m", "Fix a typo")
	tip := x.git("rev-parse", "HEAD")
	first := x.git("rev-parse", "HEAD~2")
	content := x.git("cat-file", "commit", tip) + "\n"
	lie := strings.Replace(content, hidden, first, 1)
	other := strings.Replace(strings.Replace(x.git("cat-file", "commit", hidden)+"\n", first, base, 1), "Hide this", "All is well", 1)
	whole := func(files ...string) func() {
		kept := map[string][]byte{}
		for _, name := range files {
			data, err := os.ReadFile(filepath.Join(x.dir, name))
			if err != nil {
				t.Fatal(err)
			}
			kept[name] = data
		}
		return func() {
			for name, data := range kept {
				x.lay(name, string(data))
			}
		}
	}
	object := func(id string) string { return ".git/objects/" + id[:2] + "/" + id[2:] }
	for name, trick := range map[string]func() func(){
		"a replaced commit": func() func() {
			x.git("replace", tip, x.git("commit-tree", "-p", base, "-m", "Fix a typo", base+"^{tree}"))
			x.git("config", "core.useReplaceRefs", "true")
			return func() { x.git("replace", "-d", tip) }
		},
		"a graft": func() func() {
			x.lay(".git/info/grafts", tip+" "+base+"\n")
			return func() { x.must(os.Remove(filepath.Join(x.dir, ".git", "info", "grafts"))) }
		},
		"a ref that says that the remote has it": func() func() {
			x.git("update-ref", "refs/remotes/origin/zz", hidden)
			return func() { x.git("update-ref", "-d", "refs/remotes/origin/zz") }
		},
		"an end of a shallow history": func() func() {
			x.lay(".git/shallow", tip+"\n")
			return func() { x.must(os.Remove(filepath.Join(x.dir, ".git", "shallow"))) }
		},
		"a graph of commits": func() func() {
			back := whole(object(tip))
			forged(x, tip, lie)
			x.git("commit-graph", "write", "--reachable")
			back()
			x.git("config", "core.commitGraph", "true")
			return func() { x.must(os.Remove(filepath.Join(x.dir, ".git", "objects", "info", "commit-graph"))) }
		},
		"another tip under its name": func() func() { back := whole(object(tip)); forged(x, tip, lie); return back },
		"another commit between":     func() func() { back := whole(object(hidden)); forged(x, hidden, other); return back },
		"a commit of the remote that has it": func() func() {
			back := whole(object(base))
			forged(x, base, strings.Replace(x.git("cat-file", "commit", base)+"\n", "author", "parent "+hidden+"\nauthor", 1))
			return back
		},
		"another name for who made it": func() func() {
			x.lay(".mailmap", "Eve <eve@example.org> <ada@example.org>\n")
			x.git("config", "log.mailmap", "true")
			return func() { x.must(os.Remove(filepath.Join(x.dir, ".mailmap"))) }
		},
	} {
		undo := trick()
		out, said, code := x.run("outgoing", "--branch=agent/fix")
		undo()
		if code != 0 {
			if !strings.Contains(said, "agent/fix") && !strings.Contains(said, "not what its name says") {
				t.Errorf("%s: refused without a reason: %s", name, said)
			}
			continue
		}
		if s := string(out); !strings.Contains(s, tip) || !strings.Contains(s, `"Hide this"`) || !strings.Contains(s, `"count":3`) || strings.Contains(s, "Eve") {
			t.Errorf("%s: another history is shown: %s", name, s)
		}
	}
	if out := x.json("outgoing", "--branch=agent/fix"); at(out, "count") != "3" {
		t.Errorf("the tricks were not undone: %s", dump(t, out))
	}
	x.git("replace", tip, x.git("commit-tree", "-p", base, "-m", "All is well", base+"^{tree}"))
	y := newTool(t, "git", "hcp-git", "git", "awk", "od", "ln", "mkdir")
	y.dir = x.dir
	if out := dump(t, y.json("log", "--ref=agent/fix")); strings.Contains(out, "All is well") || !strings.Contains(out, "Hide this") {
		t.Errorf("the git pack's log: %s", out)
	}
}

func (x *tool) must(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

// digest is what an approval binds of an answer (§15.3).
func digest(t *testing.T, answer []byte) string {
	t.Helper()
	n, faults := jsondoc.Parse(answer, jsondoc.Limits{})
	if n == nil || len(faults) > 0 {
		t.Fatalf("%v in %s", faults, answer)
	}
	sum := sha256.Sum256(n.Canonical(nil))
	return hex.EncodeToString(sum[:])
}

// Test_15_3_APushIsOfWhatWasShown: with the digest of what a person was shown, the push sends exactly that, or nothing:
// it looks again in the same process that sends.
func Test_15_3_APushIsOfWhatWasShown(t *testing.T) {
	f := newForge(t)
	x := newRemote(t, f)
	x.lay("m", "Odd \x01\b\f\t\x7f\u2028 \"quotes\" \\ \xff bytes\n\nand <more>\n")
	x.git("commit", "-q", "--allow-empty", "--cleanup=verbatim", "-F", "m")
	out, said, code := x.run("outgoing", "--branch=agent/fix")
	if code != 0 {
		t.Fatal(said)
	}
	shown := digest(t, out)
	plain, tip := x.env, x.git("rev-parse", "HEAD")
	x.env = append(plain, "HCP_PREVIEW="+shown)
	x.git("commit", "-q", "--allow-empty", "-m", "Slip this in")
	x.fails("has moved since the push was approved", "push", "--branch=agent/fix")
	x.git("reset", "-q", "--hard", tip)
	url := x.git("remote", "get-url", "origin")
	x.git("remote", "set-url", "origin", strings.Replace(url, "/git/", "/git/./", 1))
	x.fails("has moved since the push was approved", "push", "--branch=agent/fix")
	x.git("remote", "set-url", "origin", url)
	if f.pushes != 0 {
		t.Fatalf("%d pushes of what nobody saw", f.pushes)
	}
	if pushed := x.json("push", "--branch=agent/fix"); f.branch("agent/fix") != tip || f.pushes != 1 {
		t.Errorf("what was shown is not pushed: %s", dump(t, pushed))
	}
	x.fails("has moved since the push was approved", "push", "--branch=agent/fix")
}
