package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// shippedPacks is where the packs lie that come with the program.
var shippedPacks = filepath.Join("..", "..", "examples", "packs")

// newPackWorld has a shipped pack, added with the operator's consent, in a workspace with these files. It skips where
// a program that the pack needs is missing.
func newPackWorld(t *testing.T, pack string, files map[string]string, needs ...string) *world {
	t.Helper()
	for _, name := range needs {
		if lookIn(name) == "" {
			t.Skipf("%s is not installed", name)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, self, os.Geteuid(), nil)
	w.lay(filepath.Join(w.dir, "work"), map[string]string{".keep": ""})
	w.lay(filepath.Join(w.dir, "work"), files)
	w.must("add", pack, "--yes")
	return w
}

// connect gives a pack its credential, as a line that waits for whoever asks.
func (w *world) connect(pack, line string) {
	w.t.Helper()
	c := w.command(w.self, "connect", pack)
	c.Stdin = strings.NewReader(line + "\n")
	if out, err := c.CombinedOutput(); err != nil {
		w.t.Fatalf("connect: %v %s", err, out)
	}
}

// gives is a call that must succeed with this result; numbers count by value, and members in any order.
func (w *world) gives(pack, verb, args, want string) {
	w.t.Helper()
	r, out := w.call(pack, verb, json.RawMessage(args), true)
	wanted, err := jsondoc.Parse([]byte(want), jsondoc.Limits{})
	if err != nil {
		w.t.Fatalf("%s: %v", want, err)
	}
	if got, _ := jsondoc.Parse(r.Result, jsondoc.Limits{}); !r.OK || !wanted.Equal(got) {
		w.t.Errorf("%s %s %s:\n got %s\nwant %s", pack, verb, args, out, want)
	}
}

// refuses is a call that must end with the code and words; it gives what was printed.
func (w *world) refuses(code protocol.Code, words, pack, verb, args string) string {
	w.t.Helper()
	r, out := w.call(pack, verb, json.RawMessage(args), true)
	if codeOf(r) != code || !strings.Contains(out, words) {
		w.t.Errorf("%s %s %s: %s; want %s with %q", pack, verb, args, out, code, words)
	}
	return out
}

// work is a file of the workspace; "" when it is not there.
func (w *world) work(name string) string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, "work", name))
	if err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	return string(text)
}

// quoted is a text as JSON.
func quoted(text string) string {
	b, _ := json.Marshal(text) // a text always can be
	return string(b)
}

// §14.2, §10.2: the sqlite pack keeps its evals, and no SQL that it is given runs a dot command, reads or writes
// another file, or writes at all in a read.
func Test_14_2_ThePackSqlite(t *testing.T) {
	w := newPackWorld(t, "sqlite", map[string]string{"secret.txt": "canary-7b1e", "other.db": ""}, "sqlite3", "awk")
	w.evalsOf(shippedPacks, "sqlite")
	before := w.work("evals.db")
	outside := filepath.Join(w.dir, "outside")
	for _, sql := range []string{
		".shell touch ran", "\n.shell touch ran", "SELECT 1;\n.shell touch ran\n", "SELECT 1\r\n.shell touch ran", "-- a\n.system touch ran",
		"SELECT 1;\n.open " + outside, "SELECT 1;\n.output " + outside + "\nSELECT 2;", "ATTACH 'other.db' AS o", "SELECT readfile('secret.txt')", "SELECT writefile('ran', 'x')",
		"SELECT load_extension('x')", "SELECT edit('x', 'touch ran')", "SELECT data FROM fsdir('secret.txt')", `SELECT data FROM main."FsDir"('secret.txt')`,
		"SELECT * FROM zipfile('secret.txt')", "VACUUM INTO 'ran'", "SELECT fts3_tokenizer('simple')", "PRAGMA journal_mode = wal; INSERT INTO t VALUES (1, 'x')",
		"COMMIT; BEGIN IMMEDIATE; DELETE FROM t; COMMIT", "SELECT 1; SELECT 2", "SELECT 'a", "PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = ''",
	} {
		for _, verb := range []string{"query", "exec"} {
			if verb != "query" && (strings.Contains(sql, "DELETE") || strings.Contains(sql, "INSERT") || strings.Contains(sql, "SELECT 2") || strings.Contains(sql, "UPDATE")) {
				continue // what a change may do
			}
			w.refuses(protocol.CommandFailed, "", "sqlite", verb, `{"database":"evals.db","sql":`+quoted(sql)+`}`)
			if testing.Short() {
				break
			}
		}
		if w.work("evals.db") != before || w.work("ran") != "" {
			t.Fatalf("%q changed the workspace", sql)
		}
	}
	if _, err := os.Stat(outside); !os.IsNotExist(err) {
		t.Errorf("a file outside: %v", err)
	}
	if err := os.Symlink("evals.db", filepath.Join(w.dir, "work", "link.db")); err != nil {
		t.Fatal(err)
	}
	w.refuses(protocol.CommandFailed, "unable to open", "sqlite", "query", `{"database":"link.db","sql":"SELECT 1"}`)
	for _, name := range []string{"/etc/passwd", "a/../../b", "file:evals.db", ":memory:", "-cmd", "a?mode=rwc", "a%2fb", "..", ""} {
		w.refuses(protocol.InvalidArgs, "/database", "sqlite", "exec", `{"database":`+quoted(name)+`,"sql":"SELECT 1","create":true}`)
	}
	w.refuses(protocol.CommandFailed, "There is no database", "sqlite", "exec", `{"database":"new.db","sql":"CREATE TABLE t(a)"}`)
	w.refuses(protocol.InvalidArgs, "/params/n", "sqlite", "query", `{"database":"evals.db","sql":"SELECT :n","params":{"n":9223372036854775808}}`)
}

// §14.2, §15.3: the sqlite pack tells rows and changes as they are, keeps a failed change whole, reads a database in WAL
// mode, and shows an approver what a change would do.
func Test_14_2_ThePackSqliteTellsTheTruth(t *testing.T) {
	w := newPackWorld(t, "sqlite", nil, "sqlite3", "awk")
	w.gives("sqlite", "exec", `{"database":"a b.db","create":true,"sql":"CREATE TABLE \"o'x\"(id INTEGER PRIMARY KEY, n); INSERT INTO \"o'x\" VALUES (1, 'é'), (2, NULL), (3, 0.5) RETURNING id; SELECT 7 AS x"}`,
		`{"results":[[{"id":1},{"id":2},{"id":3}],[{"x":7}]],"changes":3}`)
	w.gives("sqlite", "query", `{"database":"a b.db","sql":" -- a comment\n SELECT * FROM \"o'x\" ORDER BY id"}`, `{"rows":[{"id":1,"n":"é"},{"id":2,"n":null},{"id":3,"n":0.5}]}`)
	w.gives("sqlite", "query", `{"database":"a b.db","sql":"SELECT :a AS a, :b AS b, :c AS c, typeof(:d) AS d","params":{"a":"o'x;\n.shell id","b":-9223372036854775808,"c":null,"d":true}}`,
		`{"rows":[{"a":"o'x;\n.shell id","b":-9223372036854775808,"c":null,"d":"integer"}]}`)
	w.gives("sqlite", "query", `{"database":"a b.db","sql":"--cmd=.shell touch ran"}`, `{"rows":[]}`)
	w.gives("sqlite", "tables", `{"database":"a b.db"}`, `{"rows":[{"name":"o'x","type":"table","columns":2}]}`)
	w.gives("sqlite", "schema", `{"database":"a b.db","table":"O'X"}`, `{"rows":[{"type":"table","name":"o'x","table":"o'x","sql":"CREATE TABLE \"o'x\"(id INTEGER PRIMARY KEY, n)"}]}`)
	w.gives("sqlite", "schema", `{"database":"a b.db","table":"' OR 1=1 --"}`, `{"rows":[]}`)
	w.refuses(protocol.CommandFailed, "UNIQUE", "sqlite", "exec", `{"database":"a b.db","sql":"INSERT INTO \"o'x\" VALUES (8, 8); INSERT INTO \"o'x\" VALUES (1, 1)"}`)
	w.gives("sqlite", "query", `{"database":"a b.db","sql":"SELECT count(*) AS n FROM \"o'x\""}`, `{"rows":[{"n":3}]}`)
	w.refuses(protocol.InvalidResult, "", "sqlite", "query", `{"database":"a b.db","sql":"SELECT 1 AS a, 2 AS a"}`)
	w.refuses(protocol.ProtectedPathChanged, "Makefile", "sqlite", "exec", `{"database":"Makefile","create":true,"sql":"CREATE TABLE t(a)"}`)
	if w.work("Makefile") != "" || w.work("ran") != "" {
		t.Error("a protected name is a database, or a comment ran")
	}
	wal := filepath.Join(w.dir, "work", "wal.db")
	if out, err := exec.Command("sqlite3", wal, "PRAGMA journal_mode = wal; CREATE TABLE t AS SELECT 5 AS n").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	w.refuses(protocol.CommandFailed, "readonly database", "sqlite", "query", `{"database":"wal.db","sql":"SELECT n FROM t"}`)
	w.gives("sqlite", "query", `{"database":"wal.db","immutable":true,"sql":"SELECT n FROM t"}`, `{"rows":[{"n":5}]}`)
	w.must("grant", "agent:claude-code", "verb.exec.write", "--pack", "sqlite")
	out, _ := w.run("exec", "sqlite", "exec", "--json", "--as", "agent:claude-code", "--workspace", filepath.Join(w.dir, "work"), "--confirm", "--", "database=a b.db", "sql=DELETE FROM \"o'x\"")
	_, id, found := strings.Cut(out, `"approval_id":"`)
	if !found || !strings.Contains(out, `"confirm_required"`) {
		t.Fatalf("an agent's change: %s", out)
	}
	id, _, _ = strings.Cut(id, `"`)
	if out := w.must("approvals", "show", id); !strings.Contains(out, `"changes": 3`) && !strings.Contains(out, `"changes":3`) {
		t.Errorf("the changes are not shown: %s", out)
	}
}

// §14.2, §10.2: the ripgrep pack keeps its evals, and no pattern, path, glob, kind or configuration makes it start a
// program or leave the workspace.
func Test_14_2_ThePackRipgrep(t *testing.T) {
	hook := "#!/bin/sh\ntouch \"$0.ran\"\ncat\n"
	w := newPackWorld(t, "ripgrep", map[string]string{"a.go": "one needle\ntwo\n", "b/--pre=x.txt": "needle needle\n", ".hid": "needle\n", "skip.log": "needle\n", ".ignore": "*.log\n",
		"evil\nb/--pre=x.txt:9": "needle\n", "pre.sh": hook, ".ripgreprc": "--pre=./pre.sh\n--hidden\n", ".git/x": "needle\n"}, "rg")
	w.lay(filepath.Join(w.dir, "home"), map[string]string{".ripgreprc": "--hidden\n"})
	w.env = []string{"RIPGREP_CONFIG_PATH=" + filepath.Join(w.dir, "work", ".ripgreprc")}
	w.evalsOf(shippedPacks, "ripgrep")
	if err := os.Symlink("/etc", filepath.Join(w.dir, "work", "etc")); err != nil {
		t.Fatal(err)
	}
	w.gives("ripgrep", "files", `{}`, `"./a.go\n./b/--pre=x.txt\n./pre.sh"`)
	w.gives("ripgrep", "count", `{"pattern":"needle","hidden":true,"ignored":true}`, `"./.hid:1\n./a.go:1\n./b/--pre=x.txt:2\n./skip.log:1"`)
	w.gives("ripgrep", "count", `{"pattern":"NEEDLE","case":"smart-case","paths":["b","a.go"]}`, `""`)
	w.gives("ripgrep", "count", `{"pattern":"NEEDLE","case":"ignore-case","paths":["b"],"globs":["!*.go","*.txt"]}`, `"b/--pre=x.txt:2"`)
	r, out := w.call("ripgrep", "search", map[string]any{"pattern": "needle", "context": 1, "types": []string{"go"}}, false)
	if !r.OK || !matches(t, `map(.type) == ["begin","match","context","end","summary"] and .[1].data.path.text == "./a.go" and .[1].data.submatches[0].start == 4`, r.Result) {
		t.Errorf("search: %s", out)
	}
	for _, args := range []string{`{"pattern":"--pre=./pre.sh"}`, `{"pattern":"x","globs":["--pre=./pre.sh"]}`, `{"pattern":"--hostname-bin=./pre.sh","fixed":true}`, `{"pattern":"-z","paths":["--pre=.","--search-zip"]}`} {
		w.call("ripgrep", "search", json.RawMessage(args), false) // whether it finds something is all one
	}
	for _, args := range []string{`{"pattern":"x","paths":["/etc"]}`, `{"pattern":"x","paths":["a/../.."]}`, `{"pattern":"x","types":["all --pre=x"]}`, `{"pattern":"x","case":"pre=./pre.sh"}`} {
		w.refuses(protocol.InvalidArgs, "", "ripgrep", "search", args)
	}
	if r, out := w.call("ripgrep", "search", map[string]any{"pattern": "root", "paths": []string{"etc/passwd", "etc"}}, false); r.OK && strings.Contains(out, `"match"`) {
		t.Errorf("a link leads out: %s", out)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "work", "pre.sh.ran")); !os.IsNotExist(err) {
		t.Errorf("a preprocessor ran: %v", err)
	}
}

// §14.2, §10.2: the jq pack keeps its evals; a filter imports nothing, sees nothing of the caller, and has an end.
func Test_14_2_ThePackJq(t *testing.T) {
	w := newPackWorld(t, "jq", map[string]string{"a.json": `{"n":[1,2.5,"é"]} 7`, "-n": `1`, "evil.jq": `def evil: 1;`, ".jq": `def evil: 1;`, "lines.txt": "a\nb\n"}, "jq")
	w.env = []string{"CANARY=canary-41c9"}
	w.evalsOf(shippedPacks, "jq")
	w.gives("jq", "file", `{"filter":".n? // .","file":"a.json"}`, `[[1,2.5,"é"],7]`)
	w.gives("jq", "file", `{"filter":"length","file":"a.json","slurp":true}`, `[2]`)
	w.gives("jq", "file", `{"filter":".","file":"lines.txt","raw":true}`, `["a","b"]`)
	w.gives("jq", "file", `{"filter":".","file":"-n"}`, `[1]`)
	w.gives("jq", "value", `{"filter":".","value":null}`, `[null]`)
	w.gives("jq", "value", `{"filter":"empty","value":{}}`, `[]`)
	w.gives("jq", "value", `{"filter":".), (2","value":1}`, `[1,2]`)
	w.gives("jq", "value", `{"filter":"env.CANARY, $ENV.HCP_HOME","value":1}`, `[null,null]`)
	for _, filter := range []string{`include "evil"; evil`, `import "./evil" as e; e::evil`, `evil`, `.)\nimport "evil" as e; (.`, `import "a" as $a {search:"./"}; $a`, `--from-file`, `halt_error`} {
		w.refuses(protocol.CommandFailed, "", "jq", "value", `{"filter":`+quoted(filter)+`,"value":1}`)
	}
	for _, name := range []string{"/etc/passwd", "..", "../a.json", "a/../../b", "./../x"} {
		w.refuses(protocol.InvalidArgs, "/file", "jq", "file", `{"filter":".","file":`+quoted(name)+`}`)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(w.dir, "work", "link")); err != nil {
		t.Fatal(err)
	}
	w.refuses(protocol.CommandFailed, "Permission denied", "jq", "file", `{"filter":".","file":"link","raw":true}`)
}

func rawArgs(text string) json.RawMessage { return json.RawMessage(text) }
