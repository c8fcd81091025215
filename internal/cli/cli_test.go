package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"hcpx/internal/jq"
	"hcpx/internal/protocol"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares with a file of testdata, or rewrites it.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs; go test ./internal/cli -update rewrites it:\n%s", path, diff)
	}
}

// terminalFree is an Env with buffers, a home of its own and no environment.
func terminalFree(t *testing.T, args ...string) (Env, *bytes.Buffer, *bytes.Buffer) {
	t.Helper()
	var out, errs bytes.Buffer
	home := t.TempDir()
	return Env{
		Name: "hcpx", Args: args, In: strings.NewReader(""), Out: &out, Err: &errs,
		Getenv: func(name string) string {
			return map[string]string{"HCP_HOME": filepath.Join(home, "store"), "HCP_PRINCIPAL": "human:ada"}[name]
		},
		Dir: home, UserHome: home, User: func() string { return "ada" },
		Now:     func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) },
		Machine: jq.New(),
	}, &out, &errs
}

// leaves are all commands that do something.
func leaves(c *cobra.Command) []*cobra.Command {
	if !c.HasSubCommands() {
		return []*cobra.Command{c}
	}
	var all []*cobra.Command
	for _, sub := range c.Commands() {
		all = append(all, leaves(sub)...)
	}
	return all
}

func wholeTree(t *testing.T) *cobra.Command {
	t.Helper()
	env, _, _ := terminalFree(t)
	root := newDeps(env).tree([]string{"help"})
	root.InitDefaultHelpCmd()
	return root
}

func Test_11_5_EveryCommandTakesJSONAndHasAnExample(t *testing.T) {
	for _, c := range leaves(wholeTree(t)) {
		name := commandPath(c)
		if c.InheritedFlags().Lookup("json") == nil {
			t.Errorf("%s takes no --json", name)
		}
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: the summary %q is empty or ends in a full stop", name, c.Short)
		}
		if !strings.Contains(c.Example, "hcpx "+name) {
			t.Errorf("%s has no example of itself", name)
		}
		if c.ValidArgsFunction == nil && len(c.ValidArgs) == 0 && c.Name() != "allow" && c.Name() != "openapi" { // those take files
			t.Errorf("%s completes nothing", name)
		}
	}
}

// Every example is a command line that its command takes.
func TestExamplesParse(t *testing.T) {
	for _, c := range leaves(wholeTree(t)) {
		for _, line := range strings.Split(c.Example, "\n") {
			words := shellWords(t, line)
			i := slices.Index(words, "hcpx")
			if i < 0 {
				t.Errorf("%s: the example %q runs no hcpx", commandPath(c), line)
				continue
			}
			if reached, err := dryRun(t, words[i+1:]); err != nil || !reached {
				t.Errorf("%s: %q: reached %v, %v", commandPath(c), line, reached, err)
			}
		}
	}
}

// dryRun parses a line down to its command, whose work is taken out.
func dryRun(t *testing.T, args []string) (reached bool, err error) {
	t.Helper()
	env, _, _ := terminalFree(t)
	root := newDeps(env).tree(args)
	if root == nil {
		return false, errors.New("it is no command")
	}
	root.InitDefaultHelpCmd()
	var disarm func(c *cobra.Command)
	disarm = func(c *cobra.Command) {
		c.RunE = func(*cobra.Command, []string) error { reached = true; return nil }
		for _, sub := range c.Commands() {
			disarm(sub)
		}
	}
	disarm(root)
	root.SetHelpFunc(func(*cobra.Command, []string) { reached = true })
	root.SetArgs(args)
	err = root.Execute()
	return reached, err
}

// shellWords splits like a shell for the simple quoting that examples use; a redirection or pipe ends the line.
func shellWords(t *testing.T, line string) []string {
	t.Helper()
	var words []string
	for line = strings.Trim(line, " "); line != ""; line = strings.TrimLeft(line, " ") {
		if line[0] == '\'' {
			text, rest, ok := strings.Cut(line[1:], "'")
			if !ok {
				t.Fatalf("open quote in %q", line)
			}
			words, line = append(words, text), rest
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		if word == ">" || word == "|" {
			break
		}
		words, line = append(words, strings.Trim(strings.TrimPrefix(word, "<("), ")")), rest
	}
	return words
}

func TestHelpIsGolden(t *testing.T) {
	root := wholeTree(t)
	pages := map[string][]string{"root": {"help"}}
	for _, c := range append(root.Commands(), leaves(root)...) {
		path := strings.Fields(commandPath(c))
		pages[strings.Join(path, "-")] = append([]string{"help"}, path...)
	}
	for name, args := range pages {
		t.Run(name, func(t *testing.T) {
			env, out, errs := terminalFree(t, args...)
			if code := Main(context.Background(), env); code != 0 {
				t.Fatalf("exit %d: %s", code, errs)
			}
			for i, line := range strings.Split(out.String(), "\n") {
				if len([]rune(line)) > 130 {
					t.Errorf("line %d is %d wide: %s", i+1, len([]rune(line)), line)
				}
			}
			golden(t, filepath.Join("testdata", "help", name+".txt"), out.Bytes())
		})
	}
}

func TestHelpInEveryForm(t *testing.T) {
	for _, args := range [][]string{{"exec", "--help"}, {"exec", "-h"}, {"help", "exec"}, {"--help", "exec"}, {"--color", "never", "exec", "--help"}} {
		env, out, errs := terminalFree(t, args...)
		if code := Main(context.Background(), env); code != 0 || !strings.HasPrefix(out.String(), "Run one command") {
			t.Errorf("%v: exit %d, %s%s", args, code, out, errs)
		}
	}
	env, out, _ := terminalFree(t, "audit", "tail", "--help", "--json")
	code := Main(context.Background(), env)
	var h commandHelp
	if err := json.Unmarshal(out.Bytes(), &h); err != nil || code != 0 || h.Name != "audit tail" || len(h.Flags) != 1 {
		t.Errorf("exit %d, %v: %s", code, err, out)
	}
}

// A wrong command line is code usage, exit 64, one sentence and a hint; with --json one JSON value on
// stdout and nothing on stderr.
func Test_6_10_UsageErrors(t *testing.T) {
	for _, tt := range []struct{ line, hint string }{
		{"exce", "hcpx exec --help"},
		{"frobnicate", "hcpx help"},
		{"exec", "hcpx exec --help"},
		{"exec ledger", "hcpx exec --help"},
		{"exec ledger transfer from=cash", "hcpx exec --help"},
		{"exec ledger transfer more words", "hcpx exec --help"},
		{"exec ledger transfer --bogus", "hcpx exec --help"},
		{"exec --jobs 2 ledger transfer", "hcpx exec --help"},
		{"import", "hcpx import --help"},
		{"exec ledger transfer --confirm=perhaps", "hcpx exec --help"},
		{"exec ledger transfer --confirm --approval x", "hcpx exec --help"},
		{"exec ledger --envelope -", "hcpx exec --help"},
		{"exec --envelope - --confirm", "hcpx exec --help"},
		{"exec --envelope /nowhere/at/all", "hcpx exec --help"},
		{"lint", "hcpx lint --help"},
		{"uninstall a b", "hcpx uninstall --help"},
		{"status now", "hcpx status --help"},
		{"audit", "hcpx audit --help"},
		{"audit forge", "hcpx audit --help"},
		{"audit tail --lines 0", "hcpx audit tail --help"},
		{"audit show", "hcpx audit show --help"},
		{"allow", "hcpx allow --help"},
		{"allow --native a --host b", "hcpx allow --help"},
		{"allow --native a git", "hcpx allow --help"},
		{"allow --host a", "hcpx allow --help"},
		{"grant agent:x", "hcpx grant --help"},
		{"grant agent:x verb.exec.read --arg oops", "hcpx grant --help"},
		{"grants --explain a b", "hcpx grants --help"},
		{"grants everything", "hcpx grants --help"},
		{"completion powershell", "hcpx completion --help"},
		{"version --color sometimes", "hcpx help"},
		{"help nothing", "hcpx help"},
	} {
		t.Run(tt.line, func(t *testing.T) {
			args := strings.Fields(tt.line)
			env, out, errs := terminalFree(t, args...)
			if code := Main(context.Background(), env); code != 64 || out.Len() > 0 {
				t.Errorf("exit %d, stdout %q", code, out)
			}
			lines := strings.Split(strings.TrimSpace(errs.String()), "\n")
			if len(lines) != 2 || !strings.HasPrefix(lines[0], "error: ") || !strings.HasSuffix(lines[0], ".") || lines[1] != "hint: "+tt.hint {
				t.Errorf("stderr:\n%s", errs)
			}
			env, out, errs = terminalFree(t, append([]string{"--json"}, args...)...)
			code := Main(context.Background(), env)
			var answer struct{ Error protocol.Error }
			if err := json.Unmarshal(out.Bytes(), &answer); err != nil || code != 64 || errs.Len() > 0 ||
				answer.Error.Code != protocol.UsageError || answer.Error.Hint != tt.hint {
				t.Errorf("exit %d, %v\nstdout: %s\nstderr: %s", code, err, out, errs)
			}
		})
	}
}

// Only what is named is built: a start pays for no other command.
func TestOnlyTheNamedCommandIsBuilt(t *testing.T) {
	env, _, _ := terminalFree(t)
	for _, args := range [][]string{{"exec", "a", "b"}, {"--json", "exec"}, {"--home", "version", "exec"}, {"--home=x", "exec"}} {
		root := newDeps(env).tree(args)
		if got := root.Commands(); len(got) != 1 || got[0].Name() != "exec" {
			t.Errorf("%v builds %d commands", args, len(got))
		}
	}
}

// parsed runs a constructor with a runner that keeps the options.
func parsed[O any](t *testing.T, build func(*deps, runner[O]) *cobra.Command, args ...string) (got O) {
	t.Helper()
	env, _, _ := terminalFree(t)
	d := newDeps(env)
	root := newRoot(d)
	root.AddCommand(build(d, func(_ context.Context, _ *deps, o O) error { got = o; return nil }))
	root.SetArgs(args)
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestFlagsBecomeOptions(t *testing.T) {
	check := func(name string, got, want any) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	check("exec", parsed(t, newExecCmd, "exec", "ledger", "transfer", "--apply", "--idempotency-key", "k", "--", "a=--b", "--", "c:=1"),
		execOptions{Pack: "ledger", Verb: "transfer", Words: []string{"a=--b", "--", "c:=1"}, Confirm: true, Key: "k", Jobs: 1})
	check("exec plan", parsed(t, newExecCmd, "exec", "--plan", "a", "b", "--approval", "x"),
		execOptions{Pack: "a", Verb: "b", Plan: true, Approval: "x", Jobs: 1})
	check("exec envelope", parsed(t, newExecCmd, "exec", "--envelope", "-"), execOptions{Envelope: "-", Jobs: 1})
	check("exec stream", parsed(t, newExecCmd, "exec", "--stream", "--jobs", "4"), execOptions{Stream: true, Jobs: 4})
	check("install", parsed(t, newInstallCmd, "install", "a", "b", "--allow-bin", "--force"),
		installOptions{Sources: []string{"a", "b"}, AllowBin: true, Force: true})
	check("allow host", parsed(t, newAllowCmd, "allow", "--host", "mirror", "h:1", "g:2"), allowOptions{HostPack: "mirror", Hosts: []string{"h:1", "g:2"}})
	check("allow bins that look like options", parsed(t, newAllowCmd, "allow", "--dangerous", "--", "-x", "--native=evil"), allowOptions{Bins: []string{"-x", "--native=evil"}, Dangerous: true})
	check("allow bins", parsed(t, newAllowCmd, "allow", "sh", "--dangerous"), allowOptions{Bins: []string{"sh"}, Dangerous: true})
	check("grant", parsed(t, newGrantCmd, "grant", "agent:x", "verb.exec.write", "--pack", "git", "--arg", "force=false", "--arg", "n=12", "--arg", "branch=agent/*", "--project", "p", "--self-confirm"),
		grantOptions{Principal: "agent:x", Capabilities: []string{"verb.exec.write"}, Packs: []string{"git"}, Projects: []string{"p"}, SelfConfirm: true,
			Args: []argRule{{"force", "false"}, {"n", "12"}, {"branch", `"agent/*"`}}})
	check("grants", parsed(t, newGrantsCmd, "grants", "--explain", "agent:x", "git", "log", "--project", "p"),
		grantsOptions{Explain: true, Principal: "agent:x", Pack: "git", Verb: "log", Project: "p"})
}

func TestHCP_12_1_6_OnlyAPersonOnATerminalIsAsked(t *testing.T) {
	ask := func(change func(*deps, *protocol.Session)) bool {
		env, _, _ := terminalFree(t)
		env.InTTY, env.OutTTY, env.ErrTTY = true, true, true
		d, s := newDeps(env), protocol.Session{Principal: "human:ada"}
		change(d, &s)
		return d.mayAsk(s)
	}
	if !ask(func(*deps, *protocol.Session) {}) {
		t.Error("a person on a terminal is not asked")
	}
	for name, change := range map[string]func(*deps, *protocol.Session){
		"with --json":          func(d *deps, _ *protocol.Session) { d.flags.JSON = true },
		"an agent":             func(_ *deps, s *protocol.Session) { s.Principal = "agent:claude-code" },
		"a service":            func(_ *deps, s *protocol.Session) { s.Principal = "service:nightly" },
		"no principal":         func(_ *deps, s *protocol.Session) { s.Principal = "" },
		"stdin is no terminal": func(d *deps, _ *protocol.Session) { d.env.InTTY = false },
		"nobody would see it":  func(d *deps, _ *protocol.Session) { d.env.ErrTTY = false },
	} {
		if ask(change) {
			t.Errorf("%s is asked", name)
		}
	}
}

func TestAnswerToAQuestion(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "yes\n": true, " YES \r\n": true, "\n": false, "": false, "n\n": false, "yellow\n": false, "y": true} {
		env, out, errs := terminalFree(t)
		env.In = strings.NewReader(answer)
		got, err := newDeps(env).ask("Run it?")
		if err != nil || got != want || out.Len() > 0 || errs.String() != "Run it? [y/N] " {
			t.Errorf("%q: %v, %v, %q", answer, got, err, errs)
		}
	}
}

// A signal ends a question: nothing is done, and nobody has to press return.
func TestASignalEndsAQuestion(t *testing.T) {
	env, _, _ := terminalFree(t)
	in, open := io.Pipe()
	defer open.Close()
	env.In = in
	d := newDeps(env)
	gone := make(chan struct{})
	close(gone)
	d.done = gone
	yes, err := d.ask("Run it?")
	var e *protocol.Error
	if yes || !errors.As(err, &e) || e.Code != protocol.Canceled {
		t.Errorf("%v, %v", yes, err)
	}
}

func TestNothingFromOutsideMovesTheCursor(t *testing.T) {
	var b bytes.Buffer
	p := &page{out: &b}
	p.line("%s", "a\x1b[2Jb\r\n\u202ec\x9b")
	p.table([]string{"name"}, [][]cell{row("x\x1b]0;y\x07"), row("漢字", "z")})
	p.raw(quoted([]string{"rm", "a b", "it's", "\x1b[1A", "", "$(x)"}) + "\n")
	want := `a\u001b[2Jb\u000d\n\u202ec` + "\uFFFD" + `
name
x\u001b]0;y\u0007
漢字                 z
rm 'a b' $'it\'s' $'\u001b[1A' '' '$(x)'
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Error(diff)
	}
}

func TestColourOnlyWhereItIsWanted(t *testing.T) {
	for _, tt := range []struct {
		when, noColor, term string
		tty, want           bool
	}{
		{"auto", "", "xterm", true, true}, {"auto", "", "xterm", false, false}, {"auto", "1", "xterm", true, false},
		{"auto", "", "dumb", true, false}, {"always", "1", "dumb", false, true}, {"never", "", "xterm", true, false},
	} {
		env, _, _ := terminalFree(t)
		env.Getenv = func(name string) string { return map[string]string{"NO_COLOR": tt.noColor, "TERM": tt.term}[name] }
		d := newDeps(env)
		d.flags.Color = tt.when
		if d.colored(tt.tty) != tt.want {
			t.Errorf("%+v", tt)
		}
	}
}

// failing is a stream that is full.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestAnAnswerThatCannotBeWrittenIsNoSuccess(t *testing.T) {
	for _, args := range [][]string{{"version"}, {"version", "--json"}, {"help"}} {
		env, _, _ := terminalFree(t, args...)
		env.Out = failing{}
		if code := Main(context.Background(), env); code != 70 {
			t.Errorf("%v: exit %d", args, code)
		}
	}
}
