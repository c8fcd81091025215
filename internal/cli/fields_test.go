package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hcpx/internal/jsondoc"
	"hcpx/internal/lifecycle"
)

// place is a home for commands run in this process.
type place struct {
	t   *testing.T
	dir string
}

func newPlace(t *testing.T) place {
	t.Helper()
	p := place{t, t.TempDir()}
	if err := os.Mkdir(filepath.Join(p.dir, "store"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.write("store/config.toml", "[identity]\nagents = \"trust-flags\"\n")
	t.Cleanup(func() {
		if err := removeTree(filepath.Join(p.dir, "store")); err != nil {
			t.Error(err)
		}
	})
	return p
}

func (p place) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// env is an Env over the place; change may alter it.
func (p place) env(args ...string) (Env, *bytes.Buffer, *bytes.Buffer) {
	env, out, errs := terminalFree(p.t, args...)
	env.Dir, env.UserHome, env.Now, env.Self = p.dir, filepath.Join(p.dir, "home"), time.Now, os.Executable
	env.Getenv = func(name string) string {
		return map[string]string{"HCP_HOME": filepath.Join(p.dir, "store"), "HCP_PRINCIPAL": "human:ada", "PATH": os.Getenv("PATH")}[name]
	}
	return env, out, errs
}

func (p place) run(want int, args ...string) (stdout, stderr string) {
	p.t.Helper()
	env, out, errs := p.env(args...)
	if code := Main(context.Background(), env); code != want {
		p.t.Fatalf("%v: exit %d, want %d\n%s%s", args, code, want, out, errs)
	}
	return out.String(), errs.String()
}

// mirror is a composite pack: it needs no program and no sandbox.
func (p place) mirror() {
	p.write("mirror/surface.json", `{"hcp":{"version":"1.1"},"id":"mirror","version":"1.0.0","summary":"Show what was asked.","adapter":"composite","verbs":{
		"show":{"summary":"Show it.","args":{"type":"object","properties":{"text":{"type":"string"},"n":{"type":"integer"}},"additionalProperties":false},
			"steps":[{"id":"a","value":".args"}],"output":".steps.a","examples":[{"args":{"text":"a b","n":1}}]},
		"set":{"summary":"Set it.","args":{"type":"object","properties":{"to":{"type":"integer","default":1}},"additionalProperties":false},
			"steps":[{"id":"a","value":".args.to"}],"output":".steps.a","examples":[{"args":{"to":1}}]}}}`)
	p.write("mirror/policy.json", `{"surface_id":"mirror","verbs":{"show":{"operation":"read","privacy":{"land":"personal"}},
		"set":{"operation":"write","privacy":{"land":"personal"},"confirm":{"message":"Set it to {to}?"}}}}`)
	p.write("mirror/HARNESS.md", "# Mirror\n\nShows what was asked.\n\n`hcpx exec mirror show` and `hcpx exec mirror set`\n")
}

// The fields of every command's JSON are pinned: scripts read them.
func TestJSONFields(t *testing.T) {
	p := newPlace(t)
	p.mirror()
	pinned := map[string][]string{}
	for _, step := range []struct {
		name string
		exit int
		args string
	}{
		{"lint", 0, "lint @mirror"}, {"lint (issues)", 1, "lint nowhere"},
		{"install", 0, "install @mirror"}, {"activate", 0, "activate mirror"}, {"connect", 0, "connect mirror"},
		{"availability", 0, "availability mirror"}, {"list", 0, "list"}, {"whoami", 0, "whoami"},
		{"exec", 0, "exec mirror set --confirm -- to=2"}, {"exec (refused)", 3, "exec mirror set -- to=2"}, {"exec (invalid)", 64, "exec mirror set -- to=x"},
		{"exec (plan)", 0, "exec mirror set --plan"}, {"exec (help)", 0, "exec mirror set --help"},
		{"grant", 0, "grant agent:claude-code verb.exec.write --pack mirror"},
		{"exec (asked)", 3, "exec mirror set --as agent:claude-code -- to=2"}, {"approvals list", 0, "approvals list"}, {"approvals show", 0, "approvals show #"},
		{"exec (pending)", 3, "exec mirror set --as agent:claude-code --approval # -- to=2"}, {"approvals approve", 0, "approvals approve #"},
		{"exec (approved)", 0, "exec mirror set --as agent:claude-code --approval # -- to=2"}, {"approvals list --all", 0, "approvals list --all"},
		{"exec (spent)", 3, "exec mirror set --as agent:claude-code --approval # -- to=2"}, {"revoke", 0, "revoke agent:claude-code"},
		{"grants", 0, "grants"}, {"grants --explain", 0, "grants --explain agent:claude-code mirror set"},
		{"allow", 0, "allow sh"}, {"config show", 0, "config show"},
		{"audit tail", 0, "audit tail"}, {"audit verify", 0, "audit verify"}, {"audit head", 0, "audit head"}, {"audit export", 0, "audit export --output @export"},
		{"face install", 0, "face install mirror --dir @bin"}, {"face list", 0, "face list"}, {"face remove", 0, "face remove mirror --dir @bin"},
		{"pack (help)", 0, "mirror --help"}, {"pack command (help)", 0, "mirror set --help"},
		{"skill", 0, "skill mirror"}, {"setup status", 0, "setup status"}, {"setup update", 0, "setup update"}, {"setup apply", 0, "setup apply"},
		{"disconnect", 0, "disconnect mirror"}, {"deactivate", 0, "deactivate mirror"}, {"uninstall", 0, "uninstall mirror"},
		{"add", 0, "add echo --yes"}, {"add (no consent)", 3, "add ledger"}, {"repair", 0, "repair"},
		{"version", 0, "version"}, {"completion", 0, "completion fish"}, {"help", 0, "help version"}, {"usage", 64, "exec"},
	} {
		if ids, err := os.ReadDir(filepath.Join(p.dir, "store/approvals")); err == nil {
			step.args = strings.ReplaceAll(step.args, "#", ids[0].Name())
		}
		out, stderr := p.run(step.exit, append([]string{"--json"}, strings.Fields(strings.ReplaceAll(step.args, "@", p.dir+"/"))...)...)
		if stderr != "" || strings.Count(out, "\n") != 1 || !strings.HasSuffix(out, "\n") {
			t.Errorf("%s: stdout is not one line of JSON, or stderr is not empty:\n%s%s", step.name, out, stderr)
		}
		pinned[step.name] = fieldsOf(t, out)
	}
	whole, err := json.Marshal(lifecycle.HealthView{
		Active: []string{""}, Findings: []lifecycle.Finding{{Fix: "-"}}, Rules: []lifecycle.SandboxRule{{Detail: "-"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	pinned["status, doctor"] = fieldsOf(t, string(whole))
	for _, name := range []string{"status", "doctor"} { // which of these fields come, and the exit code, is the machine's
		env, out, _ := p.env(name, "--json")
		Main(context.Background(), env)
		for _, field := range fieldsOf(t, out.String()) {
			if !slices.Contains(pinned["status, doctor"], field) {
				t.Errorf("%s has the field %s", name, field)
			}
		}
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(pinned)) {
		fmt.Fprintf(&b, "%s\n  %s\n", name, strings.Join(pinned[name], "\n  "))
	}
	golden(t, filepath.Join("testdata", "fields.txt"), []byte(b.String()))
}

func fieldsOf(t *testing.T, text string) []string {
	t.Helper()
	n, faults := jsondoc.Parse([]byte(text), jsondoc.Limits{})
	if len(faults) > 0 {
		t.Fatalf("%v in %s", faults, text)
	}
	seen := map[string]bool{}
	var walk func(path string, n *jsondoc.Node)
	walk = func(path string, n *jsondoc.Node) {
		switch {
		case n.Kind == jsondoc.Object && len(n.Members) > 0:
			for _, m := range n.Members {
				walk(path+"."+m.Key, m.Value)
			}
		case n.Kind == jsondoc.Array && len(n.Items) > 0:
			for _, item := range n.Items {
				walk(path+"[]", item)
			}
		default:
			seen[strings.TrimPrefix(path, ".")] = true
		}
	}
	walk("", n)
	return slices.Sorted(maps.Keys(seen))
}

func Test_6_7_APersonOnATerminalIsAskedOnce(t *testing.T) {
	p := newPlace(t)
	p.mirror()
	p.run(0, "install", filepath.Join(p.dir, "mirror"))
	p.run(0, "activate", "mirror")
	for _, tt := range []struct {
		answer string
		exit   int
		stdout string
	}{{"y\n", 0, "2\n"}, {"n\n", 3, ""}, {"", 3, ""}} {
		env, out, errs := p.env("exec", "mirror", "set", "--", "to=2")
		env.In, env.InTTY, env.ErrTTY = strings.NewReader(tt.answer), true, true
		if code := Main(context.Background(), env); code != tt.exit || out.String() != tt.stdout {
			t.Errorf("%q: exit %d, stdout %q", tt.answer, code, out)
		}
		if strings.Count(errs.String(), "[y/N]") != 1 || !strings.Contains(errs.String(), "Set it to 2?") {
			t.Errorf("%q: asked\n%s", tt.answer, errs)
		}
	}
	for name, args := range map[string][]string{
		"an agent": {"exec", "mirror", "set", "--as", "agent:claude-code"}, "--json": {"exec", "mirror", "set", "--json"},
		"a read": {"exec", "mirror", "show"}, "a confirmed one": {"exec", "mirror", "set", "--confirm"},
	} {
		env, _, errs := p.env(args...)
		env.In, env.InTTY, env.ErrTTY = strings.NewReader("y\n"), true, true
		Main(context.Background(), env)
		if strings.Contains(errs.String(), "[y/N]") {
			t.Errorf("%s is asked", name)
		}
	}
}

func TestHelpOfAPacksCommand(t *testing.T) {
	p := newPlace(t)
	p.mirror()
	p.run(0, "install", filepath.Join(p.dir, "mirror"))
	out, _ := p.run(0, "exec", "mirror", "show", "--help")
	golden(t, filepath.Join("testdata", "help", "verb.txt"), []byte(out))
	p.run(3, "exec", "mirror", "nothing", "--help")
}

// What is said as words reads back as the same arguments, whatever they are.
func Test_6_7_WordsAndArgumentsAgree(t *testing.T) {
	schema := schemaNode(t, wordsSchema)
	for _, src := range []string{
		`{}`, `{"text":"a","count":1,"flag":true}`, `{"tags":["a"],"sizes":[1,2]}`, `{"opts":{"depth":1}}`, `{"a.b":1}`, `{"a":{"b":"x"}}`,
		`{"none":null,"gone":null,"id":"5","label":5}`, `{"level":"low"}`, `{"level":2}`, `{"x.y":1,"k=v":2}`, `{"count":"1","text":1}`, `{"any":{"deep":[1.0,"\n"]}}`,
	} {
		want := schemaNode(t, src)
		words := wordsOf(want, schema)
		got, bad := buildArgs(words, schema)
		if len(bad) > 0 || !got.Equal(want) {
			if strings.Contains(src, "x.y") {
				continue // a name with a dot that is not declared, or with =, cannot be said as a word
			}
			t.Errorf("%s became %q, which is %s %v", src, words, got.Append(nil), bad)
		}
	}
}

// Every next command that the program names is one that it has.
func TestHintsNameCommands(t *testing.T) {
	known := map[string]bool{"help": true}
	for _, e := range table() {
		known[e.name] = true
	}
	hint := regexp.MustCompile(`(?:WithHint\(|Hint: |next\(|fix: )"hcpx ([a-z]+)`)
	err := filepath.WalkDir("..", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range hint.FindAllSubmatch(src, -1) {
			if !known[string(m[1])] {
				t.Errorf("%s names the command %q", path, m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
