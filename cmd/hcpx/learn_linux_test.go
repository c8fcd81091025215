package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hcpx/internal/protocol"
)

// learned are programs that are watched first and then run inside by what was proposed.
var learned = []struct {
	name  string
	argv  []string
	files map[string]string // of the workspace
	home  map[string]string // of the home directory
	want  string            // of the run inside
	check func(*world)
}{
	{name: "git log", argv: []string{"git", "log", "-1", "--format=%an: %s"}, want: "Ada: first"},
	{name: "git commit", argv: []string{"git", "commit", "-q", "--allow-empty", "-m", "third"}, home: map[string]string{
		".gitconfig": "[user]\n\tname = Grace\n\temail = g@example.org\n"}, check: func(w *world) {
		if got := w.git("log", "-1", "--format=%an: %s"); got != "Grace: third" {
			w.t.Errorf("the commit is %q", got)
		}
	}},
	{name: "git config", argv: []string{"git", "config", "acme.word", "x"}, check: func(w *world) {
		if got := w.git("config", "acme.word"); got != "x" {
			w.t.Errorf("the word is %q", got)
		}
	}},
	{name: "git clone", argv: []string{"git", "clone", "-q", "${http}/git/smart.git", "clone"}, check: func(w *world) {
		if _, err := os.Stat(filepath.Join(w.dir, "work", "clone", "second")); err != nil {
			w.t.Error(err)
		}
	}},
	{name: "a script", argv: []string{"./report.py", "${outside}"}, files: map[string]string{"report.py": reportScript, "words.txt": "of the workspace"},
		home: map[string]string{".config/acme/acme.conf": "of the home"}, want: "of the workspace, of the home, 12 outside, 3 from a child"},
	{name: "curl", argv: []string{"curl", "-fsS", "${http}/hello"}, want: "hello"},
	{name: "curl by name", argv: []string{"curl", "-fsS", "http://localhost:${httpport}/hello"}, want: "hello"},
	{name: "psql", argv: []string{"${postgres}/psql", "-X", "-At", "-h", "127.0.0.1", "-p", "${pgport}", "-U", "ada", "-c", "select 6*7", "postgres"}, want: "42"},
	{name: "node", argv: []string{"./sum.js"}, files: map[string]string{"words.txt": "abc", "sum.js": "#!/usr/bin/env node\n" +
		"console.log(require('node:crypto').createHash('md5').update(require('node:fs').readFileSync('words.txt')).digest('hex'));\n"}, want: "900150983cd24fb0d6963f7d28e17f72"},
	{name: "sh", argv: []string{"./count.sh"}, files: map[string]string{"count.sh": "#!/bin/sh\nsort words.txt | uniq -c | awk '{ print $2 \"=\" $1 }' | tee \"$TMPDIR/x\"\n", "words.txt": "b\na\nb\n"},
		want: "a=1\nb=2"},
}

const reportScript = `#!/usr/bin/python3
import json, os, subprocess, sys, tempfile
words = [open(p).read() for p in ("words.txt", os.path.expanduser("~/.config/acme/acme.conf"))]
outside = [open(os.path.join(sys.argv[1], str(n))).read() for n in range(12)]
with tempfile.NamedTemporaryFile("w") as f:
    f.write("one two three")
    f.flush()
    count = subprocess.run(["wc", "-w", f.name], capture_output=True, text=True, check=True).stdout.split()[0]
print(f"{words[0]}, {words[1]}, {len(outside)} outside, {count} from a child")
`

// §10.2: what hcpx allow --learn proposes is enough: pasted into a pack and allowed, the program works inside.
func Test_10_2_WhatWasLearnedIsEnough(t *testing.T) {
	self := copyOf(t, "/proc/self/exe")
	servers := startServers(t)
	outside := openDir(t)
	servers["${outside}"], servers["${postgres}"] = filepath.Join(outside, "data"), postgresDir()
	for _, uid := range uids() {
		for _, l := range first(2, learned) {
			t.Run(fmt.Sprintf("%s as %d", l.name, uid), func(t *testing.T) {
				w := newWorld(t, self, uid, servers)
				w.lay(filepath.Join(w.dir, "home"), l.home)
				w.repository()
				w.lay(filepath.Join(w.dir, "work"), l.files)
				layData(t, servers["${outside}"])
				var argv []string
				for _, word := range l.argv {
					argv = append(argv, w.vars.Replace(word))
				}
				got := w.learn(argv)
				w.wrap(got, argv)
				if err := os.RemoveAll(filepath.Join(w.dir, "work", "clone")); err != nil {
					t.Fatal(err)
				}
				if l.name == "git config" {
					w.git("config", "acme.word", "another")
				}
				if result := w.exec("learned", "run"); l.want != "" && result != l.want {
					t.Errorf("it answered %q, want %q", result, l.want)
				}
				if l.check != nil {
					l.check(w)
				}
			})
		}
	}
}

// layData writes many files outside of everything that a command gets.
func layData(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for n := range 12 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(n)), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// repository makes the workspace a repository with one commit.
func (w *world) repository() {
	w.t.Helper()
	work := filepath.Join(w.dir, "work")
	w.lay(work, map[string]string{"README": "x"})
	w.git("init", "-q", "-b", "main")
	w.git("add", ".")
	w.git("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-q", "-m", "first")
}

// git runs git in the workspace, as the user.
func (w *world) git(args ...string) string {
	w.t.Helper()
	c := w.command("git", append([]string{"-C", filepath.Join(w.dir, "work")}, args...)...)
	out, err := c.CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %q: %v %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// lesson is what hcpx allow --learn --json answers.
type lesson struct {
	Exit     int             `json:"exit_code"`
	Wrap     json.RawMessage `json:"wrap"`
	Policy   json.RawMessage `json:"policy"`
	Commands []string        `json:"commands"`
	Closed   []struct{ Path string }
	Notes    []string
}

// learn watches a program that must succeed.
func (w *world) learn(argv []string) lesson {
	w.t.Helper()
	got := w.lesson(argv)
	if got.Exit != 0 {
		w.t.Fatalf("%q ended with %d: %q", argv, got.Exit, got.Notes)
	}
	return got
}

func (w *world) lesson(argv []string) lesson {
	w.t.Helper()
	c := w.command(w.self, append([]string{"allow", "--learn", "--yes", "--json", "--"}, argv...)...)
	c.Dir = filepath.Join(w.dir, "work")
	var errs strings.Builder
	c.Stderr = &errs
	out, err := c.Output()
	var got lesson
	if err != nil || json.Unmarshal(out, &got) != nil {
		w.t.Fatalf("learn %q: %v\n%s%s", argv, err, out, &errs)
	}
	return got
}

// wrap writes a pack of what was learned, installs it without any consent, and then says the operator's commands.
func (w *world) wrap(l lesson, argv []string) {
	w.t.Helper()
	var args []string
	for _, word := range argv[1:] {
		args = append(args, strings.NewReplacer("{", "{{", "}", "}}").Replace(word))
	}
	template, err := json.Marshal(append([]string{}, args...))
	if err != nil {
		w.t.Fatal(err)
	}
	files := map[string]string{
		"surface.json": fmt.Sprintf(`{"hcp":{"version":"1.1"},"id":"learned","version":"1.0.0","summary":"Run what was learned.","adapter":"wrap","wrap":%s,`+
			`"verbs":{"run":{"summary":"Run it.","args":{"type":"object"},"argv":%s,"output":"text","examples":[{"args":{}}]}}}`, l.Wrap, template),
		"policy.json": fmt.Sprintf(`{"surface_id":"learned","verbs":{"run":%s}}`, l.Policy),
		"HARNESS.md":  "# Learned\n\nRuns what was learned.\n\n`hcpx exec learned run`\n",
	}
	if name, own := strings.CutPrefix(argv[0], "./"); own {
		text, err := os.ReadFile(filepath.Join(w.dir, "work", name))
		if err != nil {
			w.t.Fatal(err)
		}
		files["bin/"+name] = string(text)
	}
	dir := filepath.Join(w.dir, "learned")
	w.lay(dir, files)
	if out := w.must("lint", dir); !strings.Contains(out, "no issues") {
		w.t.Fatalf("lint: %s\n%s", out, files["surface.json"])
	}
	w.must("install", dir)
	w.must("activate", "learned")
	plain := strings.NewReplacer(" PACK ", " learned ", "'", "") // no word of these has a space
	for _, command := range l.Commands {
		w.must(slices.DeleteFunc(strings.Fields(plain.Replace(command)), func(word string) bool { return word == "hcpx" })...)
	}
}

// exec runs a command without arguments in the workspace and answers its text.
func (w *world) exec(pack, verb string) string {
	w.t.Helper()
	out, err := w.run("exec", pack, verb, "--json", "--workspace", filepath.Join(w.dir, "work"))
	var r protocol.Result
	var text string
	if err != nil || json.Unmarshal([]byte(out), &r) != nil || !r.OK || json.Unmarshal(r.Result, &text) != nil {
		w.t.Fatalf("%v: %s", err, out)
	}
	return text
}

// §10.2: learning is a person's act, is said and agreed to, and leaves no program, pack or path allowed.
func Test_10_2_LearningIsAPersonsActAndAllowsNothing(t *testing.T) {
	w := newWorld(t, copyOf(t, "/proc/self/exe"), os.Geteuid(), nil)
	w.must("grant", "agent:claude-code", "pack.install")
	mark := filepath.Join(w.dir, "ran")
	learn := func(words ...string) (string, error) {
		return w.run(append(append([]string{"allow", "--learn"}, words...), "--", "touch", mark)...)
	}
	for _, test := range []struct {
		words []string
		want  string
	}{
		{[]string{"--yes", "--as", "agent:claude-code"}, "operator_required"},
		{[]string{}, "--yes says so"},
		{[]string{"--yes", "--dangerous"}, "an act of its own"},
	} {
		out, err := learn(append(test.words, "--json")...)
		if _, ran := os.Stat(mark); err == nil || ran == nil || !strings.Contains(out, test.want) {
			t.Errorf("%q: %v %s", test.words, err, out)
		}
	}
	if out, err := w.run("allow", "--learn", "--yes", "touch", mark); err == nil || !strings.Contains(out, "behind --") {
		t.Errorf("without --: %s", out)
	}
	before, err := os.ReadFile(filepath.Join(w.dir, "store", "state.json"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := learn("--yes")
	if _, absent := os.Stat(mark); err != nil || absent != nil || !strings.Contains(out, "OUTSIDE the sandbox") || !strings.Contains(out, `"bin": "touch"`) {
		t.Errorf("%v %s", err, out)
	}
	if after, err := os.ReadFile(filepath.Join(w.dir, "store", "state.json")); err != nil || string(after) != string(before) {
		t.Errorf("the state is another one: %v %s", err, after)
	}
}

// §10.2: what no pack may read is flagged and not proposed, and where a program wrote is told.
func Test_10_2_LearningFlagsWhatStaysClosed(t *testing.T) {
	w := newWorld(t, copyOf(t, "/proc/self/exe"), os.Geteuid(), nil)
	w.lay(filepath.Join(w.dir, "home"), map[string]string{".netrc": "machine x", ".acme": "a"})
	w.lay(filepath.Join(w.dir, "work"), map[string]string{"x": "x"})
	home := filepath.Join(w.dir, "home")
	got := w.learn([]string{"sh", "-c", "cat " + home + "/.netrc " + home + "/.acme >copy; echo >" + home + "/made; echo >" + w.dir + "/made"})
	if len(got.Closed) != 1 || got.Closed[0].Path != "~/.netrc" || strings.Contains(string(got.Wrap), "netrc") || !strings.Contains(string(got.Wrap), `"~/.acme"`) {
		t.Errorf("closed %+v, %s", got.Closed, got.Wrap)
	}
	if notes := strings.Join(got.Notes, "\n"); !strings.Contains(notes, "below the home directory") || !strings.Contains(notes, w.dir+"/made") {
		t.Errorf("notes %s", notes)
	}
	if string(got.Policy) != `{"operation":"write","privacy":{"land":"local"}}` {
		t.Errorf("policy %s", got.Policy)
	}
}
