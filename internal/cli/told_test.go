package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"hcpx/internal/lifecycle"
	"hcpx/internal/protocol"
)

// §6.5: what a run or a pack gave reaches a pipe byte for byte, and a terminal without anything that could steer it.
func Test_6_5_NothingSteersATerminal(t *testing.T) {
	const evil = "a\x1b]0;title\x07\tb\r\n\u009b2Jc\u202e"
	result, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	failed := protocol.Fail(protocol.CommandFailed, "It failed.").With("stderr_tail", evil)
	for name, r := range map[string]protocol.Result{
		"text": {OK: true, Result: result}, "json": {OK: true, Result: json.RawMessage(`{"x":"` + "\u009b" + `"}`)}, "stderr": {Error: failed},
	} {
		for _, asJSON := range []bool{false, true} {
			for _, tty := range []bool{false, true} {
				env, out, errs := terminalFree(t)
				env.OutTTY, env.ErrTTY = tty, tty
				d := newDeps(env)
				d.asJSON, d.flags.Color = asJSON, "never"
				_ = d.answer(r) // its exit code
				got := out.String() + errs.String()
				if steers := strings.ContainsFunc(strings.NewReplacer("\n", "", "\t", "").Replace(got), unsafeRune); steers && tty {
					t.Errorf("%s, JSON %v, on a terminal: %q", name, asJSON, got)
				}
				if asJSON && !json.Valid(out.Bytes()) {
					t.Errorf("%s, terminal %v: %q", name, tty, got)
				}
				if name == "text" && !asJSON && !tty && got != evil+"\n" {
					t.Errorf("a pipe got %q", got)
				}
			}
		}
	}
}

// §6.10: what is wrong with a flag is said in words.
func Test_6_10_AWrongFlagIsSaidInWords(t *testing.T) {
	for line, want := range map[string]string{
		"exec echo say --confirm=maybe": `--confirm takes true or false, not \"maybe\".`,
		"list --json=perhaps":           `--json takes true or false, not \"perhaps\".`,
		"list --nothing":                `Unknown flag: --nothing.`,
	} {
		env, out, _ := terminalFree(t, append([]string{"--json"}, strings.Fields(line)...)...)
		if exit := Main(context.Background(), env); exit != 64 || !strings.Contains(out.String(), want) || strings.Contains(out.String(), "strconv") {
			t.Errorf("%s: exit %d, %s", line, exit, out)
		}
	}
}

// §6.7: words that are refused keep the caller's case, and say what was typed.
func Test_6_7_ARefusalSpeaksOfTheWordsThatWereTyped(t *testing.T) {
	_, bad := buildArgs([]string{"o.a=1", "o.a.b=2"}, nil)
	if len(bad) != 1 || bad[0].Message != `"o.a.b" is given both as a value and with members.` {
		t.Errorf("%+v", bad)
	}
	o := execOptions{Pack: "demo", Verb: "show"}
	args, _ := buildArgs([]string{"limit=5.5", "list=x"}, nil)
	violations := []protocol.Violation{{Pointer: "/limit", Message: "The value is a string, not an integer."}, {Pointer: "/none", Message: "The value is a string, not an integer."}}
	refusal := protocol.Fail(protocol.InvalidArgs, "Arguments of demo/show are not valid at /limit. The value is a string, not an integer.").With("violations", violations)
	r := typed(protocol.Result{PackID: "demo", Error: refusal}, args)
	if r.Error.Message != `Arguments of demo/show are not valid at /limit. "5.5" is not an integer.` {
		t.Errorf("%s", r.Error.Message)
	}
	told := decode[[]protocol.Violation](r.Error.Details["violations"])
	if told[0].Message != `"5.5" is not an integer.` || told[1].Message != violations[1].Message || violations[0].Message == told[0].Message {
		t.Errorf("%+v", told)
	}
	if r := o.named(protocol.Result{Error: protocol.Fail(protocol.InvalidEnvelope, "Too deep.")}); r.PackID != "demo" || r.VerbKey != "show" {
		t.Errorf("%+v", r)
	}
}

// §6.1: arguments that are nested too deeply are refused with the names that are known.
func Test_6_1_TooDeepWordsNameTheCommand(t *testing.T) {
	env, out, _ := terminalFree(t, "exec", "hcp-cli", "list", "--json", "--", strings.Repeat("a.", 200)+"a=1")
	if exit := Main(context.Background(), env); exit != 64 || !strings.Contains(out.String(), `"pack_id":"hcp-cli","verb_key":"list"`) {
		t.Errorf("exit %d, %s", exit, out)
	}
}

// §10.2: a person sees what the sandbox refused, also of a step.
func Test_10_2_RefusalsAreShown(t *testing.T) {
	inner := protocol.Fail(protocol.CommandFailed, "curl failed.").With("denied", []string{"connect 10.0.0.5:5432: private address", "and 3 more"})
	outer := protocol.Fail(protocol.StepFailed, "It stopped.").With("error", inner)
	var b bytes.Buffer
	explainDetails(&page{out: &b}, outer)
	if got := b.String(); !strings.Contains(got, "the sandbox refused:\n  connect 10.0.0.5:5432: private address\n  and 3 more\n") {
		t.Errorf("%q", got)
	}
}

// §3.5: of a composite that failed a person sees the steps that were done and stay so.
func Test_3_5_WhatWasDoneBeforeIsShown(t *testing.T) {
	outer := protocol.Fail(protocol.StepFailed, "It stopped.").With("completed", []string{"create", "fill"}).With("error", protocol.Fail(protocol.CommandFailed, "No."))
	var b bytes.Buffer
	explainDetails(&page{out: &b}, outer)
	if got := b.String(); got != "done before it, and not undone: create, fill\n" {
		t.Errorf("%q", got)
	}
}

// A number has its noun.
func TestANumberHasItsNoun(t *testing.T) {
	for n, want := range []string{"0 errors", "1 error", "2 errors"} {
		if got := counted(n, "error", "errors"); got != want {
			t.Errorf("%q", got)
		}
	}
}

// §15.6: the next command takes the directory that was written, also where its name could be a pack's id.
func Test_15_6_TheNextCommandAddsTheDirectory(t *testing.T) {
	for dir, want := range map[string]string{"p": "hcpx add ./p", "a/p": "hcpx add a/p", "/p": "hcpx add /p"} {
		var b bytes.Buffer
		showImport(&page{out: &b}, ImportReport{Dir: dir})
		if got := b.String(); !strings.Contains(got, want+"\n") {
			t.Errorf("%s: %q", dir, got)
		}
	}
}

// §3.5: of a composite that failed a person sees the failing step's last words.
func Test_3_5_TheLastWordsOfAStepAreShown(t *testing.T) {
	inner := protocol.Fail(protocol.CommandFailed, "ls failed.").With("stderr_tail", "no such file\n")
	outer := protocol.Fail(protocol.StepFailed, "It stopped.").With("error", protocol.Fail(protocol.StepFailed, "Inside.").With("error", inner))
	var b bytes.Buffer
	explainDetails(&page{out: &b}, outer)
	if got := b.String(); !strings.Contains(got, "last words:\nno such file\n") {
		t.Errorf("%q", got)
	}
}

// §11.2: where a command wants a credential the page says which packs are to be connected.
func Test_11_2_NotConnectedNamesConnect(t *testing.T) {
	wants := map[string]lifecycle.CommandAvailability{"read": {Reason: protocol.NotConnected}, "write": {Reason: protocol.NotConnected}}
	other := map[string]lifecycle.CommandAvailability{"read": {Reason: protocol.GrantMissing}, "write": {Executable: true}}
	got := unconnected(lifecycle.AvailabilityView{Packs: []lifecycle.PackAvailability{{PackID: "shop", Commands: wants}, {PackID: "git", Commands: other}}})
	if len(got) != 1 || got[0] != "shop" {
		t.Errorf("%q", got)
	}
}
