package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"hcpx/internal/binding"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
	"hcpx/internal/store"
)

// §4.6: what the policy redacts in a result does not leave by an error's output either.
func Test_4_6_RedactedValuesLeaveByNoError(t *testing.T) {
	for name, out := range map[string]sandbox.Outcome{
		"failed":  {Exit: 1, Stdout: []byte(`{"secret":"hush"}`)},
		"timeout": {Exit: -1, TimedOut: true, Stdout: []byte(`{"secret":"hush"}`)},
		"no json": {Stdout: []byte(`{"secret":"hush"`)},
	} {
		r := newRig(t)
		r.box.outcome = out
		res := r.exec(show)
		text, err := json.Marshal(res)
		if err != nil || res.OK || strings.Contains(string(text), "hush") {
			t.Errorf("%s: %s %v", name, text, err)
		}
		if log, err := json.Marshal(r.log.entries); err != nil || strings.Contains(string(log), "hush") {
			t.Errorf("%s: the audit has it: %s %v", name, log, err)
		}
	}
}

// §8.4: minted values are masked before anything is cut; what the sandbox's own caps cut leaves no piece.
func Test_8_4_NoPieceOfASecretAtACut(t *testing.T) {
	secret := binding.MockCredential
	for n := 1; n < len(secret); n++ {
		r := newRig(t)
		r.box.outcome = sandbox.Outcome{Exit: -1, Overflow: true, Stdout: []byte("out " + secret[:n]), Stderr: []byte(secret[n:] + " err"), StderrSize: 1 << 20}
		res := r.exec(show)
		for _, tail := range []string{"stdout_tail", "stderr_tail"} {
			if text := fmt.Sprint(res.Error.Details[tail]); strings.Contains(text, secret[:n]) || n < len(secret)-1 && strings.HasPrefix(text, secret[n:]) {
				t.Fatalf("%s after %d bytes: %q", tail, n, text)
			}
		}
	}
}

// §15.4: arguments that the schema hides are not in the audit, however deep and through whatever reference.
func Test_15_4_HiddenArgumentsAtAnyDepth(t *testing.T) {
	const m = `{"hcp":{"version":"1.1"},"id":"deep","version":"1.0.0","summary":"Deep.","adapter":"wrap","wrap":{"bin":"./bin/tool"},
"verbs":{"go":{"summary":"Go","argv":["{a|json}"],"args":{"type":"object","$defs":{"pin":{"type":"string","writeOnly":true}},"properties":{
"a":{"type":"object","properties":{"pin":{"$ref":"#/$defs/pin"},"list":{"type":"array","items":{"type":"object","properties":{"word":{"type":"string","format":"password"},"open":{"type":"string"}}}}}}}}}}}`
	r := newRig(t)
	r.install("deep", m, `{"surface_id":"deep","verbs":{"go":{"operation":"read","privacy":{"land":"personal"}}}}`)
	r.activate("deep", false)
	if res := r.exec(`{"pack_id":"deep","verb_key":"go","args":{"a":{"pin":"hush","list":[{"word":"hush","open":"seen"}]}}}`); !res.OK {
		t.Fatal(res.Error)
	}
	if args := string(r.log.entries[0].Args); args != `{"a":{"pin":"[redacted]","list":[{"word":"[redacted]","open":"seen"}]}}` {
		t.Error(args)
	}
}

// §8.2, §15.1: a credential is given as a file; plan names the variable and the directory and knows no value, the run has
// the content, which is wiped afterwards, and neither answer nor audit has any of it.
func Test_8_2_AFileIsGivenToTheRunAlone(t *testing.T) {
	r := newRig(t)
	r.install("filed", strings.Replace(strings.Replace(toolManifest, `"id":"tool"`, `"id":"filed"`, 1), `"inject":{`, `"inject":{"file":{"KEY_FILE":"key={token};{{}}\n"},`, 1),
		strings.Replace(toolPolicy, `"surface_id":"tool"`, `"surface_id":"filed"`, 1))
	r.activate("filed", true)
	const show = `{"pack_id":"filed","verb_key":"show","args":{"name":"a"}}`
	plan := r.p.Plan(context.Background(), r.s, []byte(show))
	if !plan.OK || !strings.Contains(string(plan.Result), `"KEY_FILE"`) || !strings.Contains(string(plan.Result), `"<private>/given"`) {
		t.Errorf("%s %v", plan.Result, plan.Error)
	}
	var file sandbox.File
	r.box.during = func() {
		file = r.box.prepared[0].Files[0]
		if want := "key=" + binding.MockCredential + ";{}\n"; file.Env != "KEY_FILE" || string(file.Content) != want {
			t.Errorf("%s has %q, want %q", file.Env, file.Content, want)
		}
	}
	res := r.exec(show)
	if !res.OK || file.Env == "" {
		t.Fatal(res.Error)
	}
	if strings.Trim(string(file.Content), "\x00") != "" {
		t.Errorf("%q is left in memory", file.Content)
	}
	text, err := json.Marshal([]any{plan, res, r.log.entries})
	if err != nil || strings.Contains(string(text), binding.MockCredential) {
		t.Errorf("%s %v", text, err)
	}
}

// §8.4: no command runs without a credential that its pack declares.
func Test_8_4_AFileThatCannotBeFilledRunsNothing(t *testing.T) {
	t.Setenv("EMPTY", "")
	r := newRig(t)
	r.install("filed", strings.Replace(strings.Replace(toolManifest, `"id":"tool"`, `"id":"filed"`, 1), `"mode":"mock","hub":"none","inject":{`, `"mode":"local","hub":"none","inject":{"file":{"KEY_FILE":"{token}"},`, 1),
		strings.Replace(toolPolicy, `"surface_id":"tool"`, `"surface_id":"filed"`, 1))
	r.activate("filed", true)
	r.refused(r.exec(`{"pack_id":"filed","verb_key":"show","args":{"name":"a"}}`), protocol.BindingFailed, 8)
}

// §2.6: must_understand asks for what this build honours, not for what it merely knows the shape of.
func Test_2_6_WhatIsNotBuiltIsNotUnderstood(t *testing.T) {
	for _, name := range []string{"foresight", "preview"} {
		r := newRig(t)
		r.install("strict", strings.Replace(toolManifest, `"id":"tool"`, `"id":"strict"`, 1),
			strings.Replace(toolPolicy, `{"surface_id":"tool",`, `{"surface_id":"strict","must_understand":["`+name+`"],`, 1))
		r.install("entry", strings.Replace(toolManifest, `"id":"tool"`, `"id":"entry"`, 1),
			strings.Replace(strings.Replace(toolPolicy, `{"surface_id":"tool",`, `{"surface_id":"entry",`, 1), `"show":{`, `"show":{"must_understand":["`+name+`"],`, 1))
		for _, id := range []string{"strict", "entry"} {
			r.activate(id, true)
			r.log.entries = nil
			res := r.exec(`{"pack_id":"` + id + `","verb_key":"show","args":{"name":"a"}}`)
			if name == "preview" { // which this build has
				if !res.OK {
					t.Errorf("%s: %+v", id, res.Error)
				}
				continue
			}
			r.refused(res, protocol.NotExecutable, 3)
		}
	}
}

// §6.5: a result that no sandbox capped is held against the cap here.
func Test_6_5_CompositeResultIsCapped(t *testing.T) {
	const m = `{"hcp":{"version":"1.1"},"id":"big","version":"1.0.0","summary":"Big.","adapter":"composite",
"verbs":{"go":{"summary":"Go","steps":[{"id":"x","value":"[range(200)]"}],"output":".steps.x"}}}`
	r := newRig(t)
	r.p.OutputCap = 100
	r.install("big", m, `{"surface_id":"big","verbs":{"go":{"operation":"read","privacy":{"land":"personal"}}}}`)
	r.activate("big", false)
	r.refused(r.exec(`{"pack_id":"big","verb_key":"go"}`), protocol.OutputTooLarge, 9)
}

// §10.3: a plan of native-local says what the child may do: whatever the user may.
func Test_10_3_NativePlanIsHonest(t *testing.T) {
	r := newRig(t)
	r.install("free", strings.Replace(strings.Replace(toolManifest, `"id":"tool"`, `"id":"free"`, 1), `"bin":"./bin/tool"`, `"bin":"./bin/tool","isolation":"native-local"`, 1),
		strings.Replace(toolPolicy, `"surface_id":"tool"`, `"surface_id":"free"`, 1))
	r.activate("free", true)
	if err := r.store.Update(func(st *store.State) error { st.Native = []string{"free"}; return nil }); err != nil {
		t.Fatal(err)
	}
	var plan struct {
		Reads, Writes, Executes []string
		Network                 struct{ Mode string }
		Isolation               string
		Limits                  map[string]any
	}
	res := r.p.Plan(context.Background(), r.s, []byte(`{"pack_id":"free","verb_key":"show","args":{"name":"a"}}`))
	if err := json.Unmarshal(res.Result, &plan); err != nil || fmt.Sprintf("%v %v %v %v %v", plan.Reads, plan.Writes, plan.Executes, plan.Network, plan.Isolation) != "[/] [/] [/] {full} native-local" {
		t.Errorf("%s %v %v", res.Result, res.Error, err)
	}
	note := plan.Limits["note"]
	delete(plan.Limits, "note")
	if held := slices.Sorted(maps.Keys(plan.Limits)); fmt.Sprint(held) != "[output wall]" || note != sandbox.LimitsNote(true) {
		t.Errorf("limits that nothing holds: %s", res.Result)
	}
}

// §10.2, §15.1: a plan shows what the sandbox says that it builds the jail of, each path once, and what weakens it.
func Test_15_1_PlanShowsTheWholeWorld(t *testing.T) {
	r := newRig(t)
	r.install("tool", toolManifest, toolPolicy)
	r.activate("tool", true)
	res := r.p.Plan(context.Background(), r.s, []byte(`{"pack_id":"tool","verb_key":"show","args":{"name":"a"}}`))
	type opened struct{ Reads, Writes, Executes, Devices []string }
	var plan struct {
		Reads, Writes, Executes, Degraded []string
		Private, Base                     opened
		Backend                           string
	}
	if err := json.Unmarshal(res.Result, &plan); err != nil {
		t.Fatalf("%s %v", res.Result, err)
	}
	spec := sandbox.Spec{Program: sandbox.Program{Name: "tool", Path: plan.Executes[0]}, Read: plan.Reads, Write: plan.Writes, Exec: []string{strings.TrimSuffix(plan.Executes[1], "/")}}
	jail := r.box.Jail(&spec, privateHome)
	for name, pair := range map[string][2]access{
		"declared": {accessOf(jail.Declared), {reads: plan.Reads, writes: plan.Writes, executes: plan.Executes}},
		"private":  {accessOf(jail.Own), access{plan.Private.Reads, plan.Private.Writes, plan.Private.Executes, plan.Private.Devices}},
		"base":     {accessOf(jail.Base), access{plan.Base.Reads, plan.Base.Writes, plan.Base.Executes, plan.Base.Devices}},
	} {
		if fmt.Sprint(pair[0]) != fmt.Sprint(pair[1]) {
			t.Errorf("%s: the sandbox says %v, the plan %v", name, pair[0], pair[1])
		}
	}
	if plan.Backend != jail.Backend || fmt.Sprint(plan.Degraded) != fmt.Sprint(jail.Degraded) {
		t.Errorf("%s", res.Result)
	}
}

// §10.4: a plan shows a limit together with what of it is not enforced.
func Test_10_4_PlanSaysWhatIsNotLimited(t *testing.T) {
	r := newRig(t)
	r.install("tool", toolManifest, toolPolicy)
	r.activate("tool", true)
	res := r.p.Plan(context.Background(), r.s, []byte(`{"pack_id":"tool","verb_key":"show","args":{"name":"a"}}`))
	if !strings.Contains(string(res.Result), "what comes between two looks is not limited") {
		t.Errorf("%s %v", res.Result, res.Error)
	}
}

// §6.3: an audit that breaks while a panic is answered changes nothing of the answer.
func Test_6_3_SecondPanicFailsClosedToo(t *testing.T) {
	r := newRig(t)
	r.box.panics, r.log.panicAt = true, 2
	res := r.exec(show)
	if res.OK || res.Error == nil || res.Error.Code != protocol.InternalError || res.Error.Step != 9 {
		t.Errorf("%+v", res.Error)
	}
}

// §3.5: a composite whose step needs a confirmation that it does not ask for can never work, and says so at step 3.
func Test_3_5_StepThatNeedsMoreThanTheCompositeAsks(t *testing.T) {
	const m = `{"hcp":{"version":"1.1"},"id":"meek","version":"1.0.0","summary":"Meek.","adapter":"composite",
"verbs":{"go":{"summary":"Go","steps":[{"id":"mv","pack":"tool","verb":"move","args":"{to: \"b\"}"}]}}}`
	r := newRig(t)
	r.install("meek", m, `{"surface_id":"meek","verbs":{"go":{"operation":"write","privacy":{"land":"personal"}}}}`)
	r.activate("meek", false)
	res := r.exec(`{"pack_id":"meek","verb_key":"go","confirm":true}`)
	r.refused(res, protocol.NotExecutable, 3)
	if res.Error.Details["step_id"] != "mv" {
		t.Errorf("%+v", res.Error)
	}
}
