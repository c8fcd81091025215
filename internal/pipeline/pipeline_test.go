package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hcpx/internal/binding"
	"hcpx/internal/grant"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
	"hcpx/internal/store"
)

const (
	show = `{"pack_id":"tool","verb_key":"show","args":{"name":"a"}}`
	move = `{"pack_id":"tool","verb_key":"move","args":{"to":"b"},"confirm":true}`
)

// §6.2: the result envelope has exactly its members, in order, for success and denial alike.
func Test_6_2_ResultEnvelope(t *testing.T) {
	r := newRig(t)
	for envelope, want := range map[string]string{
		show:            `{"ok":true,"pack_id":"tool","verb_key":"show","result":{"ok":true}}`,
		`{"pack_id":1}`: `{"ok":false,"pack_id":"","verb_key":"","error":{"code":"invalid_envelope","message":"pack_id and surface_id must be one string.","step":1,"details":{"pointer":"/pack_id"}}}`,
	} {
		b, err := json.Marshal(r.exec(envelope))
		if err != nil || string(b) != want {
			t.Errorf("%s\n have %s %v\n want %s", envelope, b, err, want)
		}
	}
}

// §6.1, HCP-1.1-2: closed shape; no member names a Principal, tenant, policy or binding.
func TestHCP_1_1_2_EnvelopeIsClosed(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200)
	for name, envelope := range map[string]string{
		"not JSON": `{"pack_id":`, "empty": ``, "array": `[]`, "null": `null`, "trailing": show + `{}`,
		"principal":         `{"pack_id":"tool","verb_key":"show","principal":"human:eve"}`,
		"tenant":            `{"pack_id":"tool","verb_key":"show","tenant":"t"}`,
		"policy":            `{"pack_id":"tool","verb_key":"show","policy":{}}`,
		"binding":           `{"pack_id":"tool","verb_key":"show","binding":{}}`,
		"duplicate":         `{"pack_id":"tool","pack_id":"tool","verb_key":"show"}`,
		"duplicate in args": `{"pack_id":"tool","verb_key":"show","args":{"name":"a","name":"b"}}`,
		"case":              `{"Pack_ID":"tool","verb_key":"show"}`,
		"no verb":           `{"pack_id":"tool"}`, "no pack": `{"verb_key":"show"}`,
		"both ids":     `{"pack_id":"tool","surface_id":"other","verb_key":"show"}`,
		"args array":   `{"pack_id":"tool","verb_key":"show","args":[]}`,
		"args null":    `{"pack_id":"tool","verb_key":"show","args":null}`,
		"confirm 1":    `{"pack_id":"tool","verb_key":"show","confirm":1}`,
		"project":      `{"pack_id":"tool","verb_key":"show","project":"a..b"}`,
		"project path": `{"pack_id":"tool","verb_key":"show","project":"../x"}`,
		"key":          `{"pack_id":"tool","verb_key":"show","idempotency_key":""}`,
		"utf-8":        "{\"pack_id\":\"tool\",\"verb_key\":\"\xff\"}",
		"deep":         `{"pack_id":"tool","verb_key":"show","args":` + deep + `}`,
		"large":        `{"pack_id":"tool","verb_key":"show","args":{"name":"` + strings.Repeat("x", 1<<20) + `"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.refused(r.exec(envelope), protocol.InvalidEnvelope, 1)
		})
	}
}

// §2.3: surface_id is an alias of pack_id on the wire.
func Test_2_3_SurfaceIDIsAnAlias(t *testing.T) {
	r := newRig(t)
	for _, e := range []string{`{"surface_id":"tool","verb_key":"show","args":{"name":"a"}}`,
		`{"surface_id":"tool","pack_id":"tool","verb_key":"show","args":{"name":"a"}}`} {
		if res := r.exec(e); !res.OK || res.PackID != "tool" {
			t.Errorf("%s: %+v", e, res.Error)
		}
	}
}

// HCP-11.1-1: a runtime never executes a command of a pack that is not activated.
func TestHCP_11_1_1_NotActivatedIsRefused(t *testing.T) {
	r := newRig(t)
	r.s.ID = "other"
	r.refused(r.exec(show), protocol.PackNotActivated, 2)
}

func Test_6_3_Step2_NotInstalled(t *testing.T) {
	r := newRig(t)
	r.refused(r.exec(`{"pack_id":"nothing","verb_key":"show"}`), protocol.PackNotInstalled, 2)
}

// §2.4: a pack whose files differ from its digest is refused at exec.
func Test_2_4_TamperedIsRefused(t *testing.T) {
	r := newRig(t)
	file := filepath.Join(r.store.Dir("tool"), "bin", "tool")
	if err := os.Chmod(file, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("#!/bin/sh\nevil\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	r.refused(r.exec(show), protocol.PackTampered, 2)
}

func Test_6_3_Step3_UnknownCommandNamesTheNearest(t *testing.T) {
	r := newRig(t)
	res := r.exec(`{"pack_id":"tool","verb_key":"shw"}`)
	r.refused(res, protocol.UnknownCommand, 3)
	if near := fmt.Sprint(res.Error.Details["nearest"]); !strings.Contains(near, "show") {
		t.Errorf("nearest is %s", near)
	}
}

// §2.6: a command that needs a member this runtime does not know is not executable.
func Test_2_6_MustUnderstand(t *testing.T) {
	r := newRig(t)
	r.install("newer", strings.Replace(strings.Replace(toolManifest, `"id":"tool"`, `"id":"newer"`, 1), `"adapter"`, `"must_understand":["quorum"],"quorum":2,"adapter"`, 1),
		strings.Replace(toolPolicy, `"surface_id":"tool"`, `"surface_id":"newer"`, 1))
	r.activate("newer", true)
	r.refused(r.exec(`{"pack_id":"newer","verb_key":"show","args":{"name":"a"}}`), protocol.NotExecutable, 3)
}

// §6.3 step 4: whoever may not run it learns nothing of its arguments; HCP-14.3-3 the capability is enforced.
func Test_6_3_Step4_GrantBeforeArguments(t *testing.T) {
	r := newRig(t)
	r.s.Principal = "agent:claude-code"
	res := r.exec(`{"pack_id":"tool","verb_key":"move","args":{"wrong":1}}`)
	r.refused(res, protocol.GrantMissing, 4)
	text, err := json.Marshal(res.Error)
	if err != nil || strings.Contains(string(text), "wrong") || strings.Contains(string(text), "schema") {
		t.Errorf("the denial tells of the arguments: %s %v", text, err)
	}
	for _, part := range []string{"verb.exec.write", "agent:claude-code"} {
		if !strings.Contains(res.Error.Message, part) {
			t.Errorf("the message does not name %s: %s", part, res.Error.Message)
		}
	}
}

func Test_9_5_UnauthenticatedAndTenant(t *testing.T) {
	r := newRig(t)
	r.s.Principal = "eve"
	r.refused(r.exec(show), protocol.Unauthenticated, 4)
	r = newRig(t)
	r.s.Tenant = ""
	r.refused(r.exec(show), protocol.TenantUnresolved, 4)
}

// §9.2, HCP-14.3-4: land brain needs a project; the envelope's beats the session's.
func TestHCP_14_3_4_BrainNeedsAProject(t *testing.T) {
	r := newRig(t)
	r.refused(r.exec(`{"pack_id":"tool","verb_key":"note"}`), protocol.ProjectRequired, 4)
	r = newRig(t)
	r.s.Project = "north"
	if res := r.exec(`{"pack_id":"tool","verb_key":"note","project":"south"}`); !res.OK {
		t.Fatalf("%+v", res.Error)
	}
	if dir := r.box.prepared[0].Dir; !strings.Contains(dir, "south") || strings.Contains(dir, "north") {
		t.Errorf("the run's directory is %s", dir)
	}
}

func Test_6_3_Step5_InvalidArgs(t *testing.T) {
	r := newRig(t)
	res := r.exec(`{"pack_id":"tool","verb_key":"show","args":{"limit":"x"}}`)
	r.refused(res, protocol.InvalidArgs, 5)
	bad, ok := res.Error.Details["violations"].([]protocol.Violation)
	if !ok || len(bad) != 2 {
		t.Errorf("violations: %+v", res.Error.Details["violations"])
	}
	if res.Error.Details["schema"] == nil || res.Error.Details["example"] == nil {
		t.Errorf("no schema or example: %v", res.Error.Details)
	}
	for args, want := range map[string]string{
		`{"limit":"x","name":"n"}`: "Arguments of tool/show are not valid at /limit. The value is a string",
		`{"limit":1}`:              `Arguments of tool/show are not valid. The member "name" is missing.`,
	} {
		if res := r.exec(`{"pack_id":"tool","verb_key":"show","args":` + args + `}`); !strings.HasPrefix(res.Error.Message, want) {
			t.Errorf("%s: %s", args, res.Error.Message)
		}
	}
}

// §3.3: an argument that would be read as an option is refused.
func Test_3_3_OptionInjectionIsRefused(t *testing.T) {
	r := newRig(t)
	r.refused(r.exec(`{"pack_id":"tool","verb_key":"show","args":{"name":"--upload-pack=x"}}`), protocol.InvalidArgs, 5)
}

// §9.6: argument rules of grants are asked after defaults, at step 5.
func Test_9_6_ArgumentRules(t *testing.T) {
	for to, ok := range map[string]bool{"agent/fix": true, "main": false} {
		r := newRig(t)
		r.s.Principal = "agent:claude-code"
		if err := r.store.Update(func(st *store.State) error {
			st.Grants = append(st.Grants, grant.Grant{Principal: "agent:*", Effect: grant.Allow, SelfConfirm: true,
				Capabilities: []protocol.Capability{protocol.VerbExecWrite}, Args: map[string][]json.RawMessage{"to": {json.RawMessage(`"agent/*"`)}}})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		res := r.exec(`{"pack_id":"tool","verb_key":"move","args":{"to":"` + to + `"},"confirm":true}`)
		if ok && !res.OK {
			t.Errorf("%s: %+v", to, res.Error)
		}
		if !ok {
			r.refused(res, protocol.GrantMissing, 5)
		}
	}
}

// HCP-1.4-1, §4.5: the runtime refuses unless the envelope carries explicit confirmation.
func TestHCP_1_4_1_ConfirmIsRequired(t *testing.T) {
	for name, envelope := range map[string]string{
		"absent":   `{"pack_id":"tool","verb_key":"move","args":{"to":"b"}}`,
		"false":    `{"pack_id":"tool","verb_key":"move","args":{"to":"b"},"confirm":false}`,
		"approval": `{"pack_id":"tool","verb_key":"move","args":{"to":"b"},"confirm":"01HUNKNOWN"}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			res := r.exec(envelope)
			r.refused(res, protocol.ConfirmRequired, 6)
			if res.Error.Details["message"] != "Move to b?" || fmt.Sprint(res.Error.Details["argv"]) != "[tool move -- b]" {
				t.Errorf("details: %v", res.Error.Details)
			}
		})
	}
	r := newRig(t)
	if res := r.exec(move); !res.OK || r.box.runs != 1 {
		t.Errorf("confirmed: %+v, %d runs", res.Error, r.box.runs)
	}
}

// §15.2: an agent's own confirmation counts only under a grant with self_confirm, or by the operator's setting.
func Test_15_2_AnAgentsOwnConfirmation(t *testing.T) {
	write := func(self bool) grant.Grant {
		return grant.Grant{Principal: "agent:*", Effect: grant.Allow, Capabilities: []protocol.Capability{protocol.VerbExecWrite}, SelfConfirm: self}
	}
	for _, c := range []struct{ self, setting, ok bool }{{false, false, false}, {true, false, true}, {false, true, true}} {
		r := newRig(t)
		r.s.Principal, r.p.AgentEnvelope = "agent:claude-code", c.setting
		if err := r.store.Update(func(st *store.State) error { st.Grants = append(st.Grants, write(c.self)); return nil }); err != nil {
			t.Fatal(err)
		}
		res := r.exec(move)
		if c.ok && !res.OK {
			t.Errorf("%+v: %+v", c, res.Error)
		}
		if !c.ok {
			r.refused(res, protocol.ConfirmRequired, 6)
		}
	}
}

// §8.4: not connected, or a mode that this runtime cannot mint: refused at step 7, no fallback.
func Test_8_4_NotConnected(t *testing.T) {
	r := newRig(t)
	r.activate("tool", false)
	r.refused(r.exec(show), protocol.NotConnected, 7)
	if r.hub.count != 0 {
		t.Error("minted without being connected")
	}
}

// §8.4: the minted value reaches the child's environment alone; its forms are masked in what comes back.
func Test_8_4_MintedValueIsMasked(t *testing.T) {
	r := newRig(t)
	r.box.outcome.Stdout = []byte(`{"said":"` + binding.MockCredential + `","coded":"aGNwLW1vY2stY3JlZGVudGlhbA=="}`)
	res := r.exec(show)
	if string(res.Result) != `{"said":"[redacted]","coded":"[redacted]"}` {
		t.Errorf("result %s", res.Result)
	}
	if env := fmt.Sprint(r.box.prepared[0].Env); env != "[TOOL_TOKEN="+binding.MockCredential+"]" {
		t.Errorf("environment %s", env)
	}
	if b, err := json.Marshal(r.log.entries); err != nil || strings.Contains(string(b), binding.MockCredential) {
		t.Errorf("the audit holds the credential: %s %v", b, err)
	}
	r = newRig(t)
	r.box.outcome = sandbox.Outcome{Exit: 1, Stderr: []byte(binding.MockCredential)}
	if b, err := json.Marshal(r.exec(show)); err != nil || strings.Contains(string(b), binding.MockCredential) {
		t.Errorf("an error holds the credential: %s %v", b, err)
	}
}

// HCP-14.3-6, §10.5: what the sandbox cannot hold is refused at step 8; nothing ran.
func TestHCP_14_3_6_SandboxUnavailableIsRefused(t *testing.T) {
	r := newRig(t)
	r.box.refuse = protocol.Fail(protocol.SandboxUnavailable, "This kernel has no Landlock.")
	r.refused(r.exec(show), protocol.SandboxUnavailable, 8)
}

// §10.2: a program that the operator has not allowed is refused at step 8.
func Test_10_2_BinNotAllowed(t *testing.T) {
	r := newRig(t)
	r.install("curl-tool", strings.Replace(strings.Replace(toolManifest, `"id":"tool"`, `"id":"curl-tool"`, 1), `./bin/tool`, `curl`, 1),
		strings.Replace(toolPolicy, `"surface_id":"tool"`, `"surface_id":"curl-tool"`, 1))
	r.activate("curl-tool", true)
	r.refused(r.exec(`{"pack_id":"curl-tool","verb_key":"show","args":{"name":"a"}}`), protocol.BinNotAllowed, 8)
}

// §6.3: if the intent can't be written nothing runs; if the outcome can't be, it is internal with ran.
func Test_6_3_AuditBeforeAndAfter(t *testing.T) {
	r := newRig(t)
	r.log.failAt = 1
	res := r.exec(move)
	if res.OK || res.Error.Code != protocol.InternalError || res.Error.Step != 9 || r.box.runs != 0 {
		t.Errorf("intent: %+v, %d runs", res.Error, r.box.runs)
	}
	r = newRig(t)
	r.log.failAt = 2
	res = r.exec(move)
	if res.OK || res.Error.Code != protocol.InternalError || res.Error.Step != 10 || res.Error.Details["ran"] != true || r.box.runs != 1 {
		t.Errorf("outcome: %+v, %d runs", res.Error, r.box.runs)
	}
	r = newRig(t)
	r.log.failAt = 1
	if res := r.exec(`{}`); res.Error.Code != protocol.InternalError || res.Error.Details["code"] != protocol.InvalidEnvelope {
		t.Errorf("a denial that cannot be recorded: %+v", res.Error)
	}
}

// §15.4: intent and outcome linked by id; writes durable, reads not; the plan's hash and no hidden argument.
func Test_15_4_TwoEntriesForARun(t *testing.T) {
	r := newRig(t)
	if res := r.exec(`{"pack_id":"tool","verb_key":"show","args":{"name":"a","pin":"1234"}}`); !res.OK {
		t.Fatalf("%+v", res.Error)
	}
	if res := r.exec(move); !res.OK {
		t.Fatalf("%+v", res.Error)
	}
	if r.log.kinds() != "intent outcome intent outcome" || fmt.Sprint(r.log.durable) != "[false false true true]" {
		t.Fatalf("%s %v", r.log.kinds(), r.log.durable)
	}
	intent, outcome := r.log.entries[0], r.log.entries[1]
	if intent.ID != outcome.ID || intent.PlanHash == "" || outcome.Exit == nil || outcome.Sandbox == nil || len(intent.Grant) == 0 {
		t.Errorf("%+v\n%+v", intent, outcome)
	}
	if string(intent.Args) != `{"name":"a","pin":"[redacted]","limit":3}` {
		t.Errorf("args %s", intent.Args)
	}
}

// §6.3: a panic is caught and fails closed, at its step, with the outcome recorded.
func Test_6_3_PanicFailsClosed(t *testing.T) {
	r := newRig(t)
	r.box.panics = true
	res := r.exec(show)
	if res.OK || res.Error.Code != protocol.InternalError || res.Error.Step != 9 || res.Error.Details["ran"] != true {
		t.Errorf("%+v", res.Error)
	}
	if r.log.kinds() != "intent outcome" || r.box.closed != 1 {
		t.Errorf("audit %q, closed %d", r.log.kinds(), r.box.closed)
	}
}

// §6.3 step 9 and 10: what ran and failed keeps its code and step, and has an outcome.
func Test_6_3_Step9And10(t *testing.T) {
	for name, c := range map[string]struct {
		out  sandbox.Outcome
		code protocol.Code
		step int
	}{
		"exit":    {sandbox.Outcome{Exit: 2, Stderr: []byte("no")}, protocol.CommandFailed, 9},
		"timeout": {sandbox.Outcome{Exit: -1, Signal: "SIGTERM", TimedOut: true}, protocol.Timeout, 9},
		"cancel":  {sandbox.Outcome{Exit: -1, Canceled: true}, protocol.Canceled, 9},
		"large":   {sandbox.Outcome{Exit: -1, Overflow: true}, protocol.OutputTooLarge, 9},
		"no json": {sandbox.Outcome{Stdout: []byte("hello")}, protocol.InvalidResult, 10},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.box.outcome = c.out
			r.refused(r.exec(show), c.code, c.step)
			if r.log.kinds() != "intent outcome" || r.log.entries[1].Code != string(c.code) {
				t.Errorf("audit %q %+v", r.log.kinds(), r.log.entries)
			}
		})
	}
}

func Test_6_9_CanceledBeforeItStarts(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r.refused(r.p.Exec(ctx, r.s, []byte(show)), protocol.Canceled, 9)
	if r.box.runs != 0 {
		t.Error("it ran")
	}
}

// §4.6: what the policy redacts leaves no runtime.
func Test_4_6_Redact(t *testing.T) {
	r := newRig(t)
	r.box.outcome.Stdout = []byte(`{"secret":"s","n":9007199254740993}`)
	if res := r.exec(show); string(res.Result) != `{"secret":"[redacted]","n":9007199254740993}` {
		t.Errorf("%s", res.Result)
	}
}

// §15.1: plan shows what exec does: same argv, directory, environment names; nothing minted, run or made.
func Test_15_1_PlanIsWhatExecDoes(t *testing.T) {
	r := newRig(t)
	planned := r.p.Plan(context.Background(), r.s, []byte(show))
	if !planned.OK || r.hub.count != 0 || len(r.box.prepared) != 0 || len(r.log.entries) != 0 {
		t.Fatalf("%+v, %d mints, %d prepared", planned.Error, r.hub.count, len(r.box.prepared))
	}
	var plan struct {
		Argv    []string
		Cwd     string
		Env     []string
		Confirm struct{ Needed, Given bool }
	}
	if err := json.Unmarshal(planned.Result, &plan); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(plan.Cwd); err == nil {
		t.Error("plan made the land directory")
	}
	if res := r.exec(show); !res.OK {
		t.Fatalf("%+v", res.Error)
	}
	spec := r.box.prepared[0]
	if fmt.Sprint(plan.Argv[1:]) != fmt.Sprint(spec.Args) || plan.Cwd != spec.Dir || fmt.Sprint(plan.Env) != "[HOME TOOL_TOKEN]" {
		t.Errorf("plan %+v\nspec %+v", plan, spec)
	}
	res := r.p.Plan(context.Background(), r.s, []byte(`{"pack_id":"tool","verb_key":"move","args":{"to":"b"}}`))
	if err := json.Unmarshal(res.Result, &plan); err != nil || !res.OK || !plan.Confirm.Needed || plan.Confirm.Given {
		t.Errorf("a missing confirmation is shown and does not refuse: %s %v", res.Result, err)
	}
}

// §3.5: a composite's calls pass the pipeline as the same Principal; it lends no rights.
func Test_3_5_CompositeLendsNoRights(t *testing.T) {
	const m = `{"hcp":{"version":"1.1"},"id":"both","version":"1.0.0","summary":"Both.","adapter":"composite",
"verbs":{"go":{"summary":"Go","steps":[{"id":"see","pack":"tool","verb":"show","args":"{name: \"a\"}"}],"output":"{seen: .steps.see}"},
"sly":{"summary":"Sly","steps":[{"id":"mv","pack":"tool","verb":"move","args":"{to: \"b\"}"}],"output":".steps.mv"}}}`
	const p = `{"surface_id":"both","verbs":{"go":{"operation":"read","privacy":{"land":"personal"}},"sly":{"operation":"read","privacy":{"land":"personal"}}}}`
	r := newRig(t)
	r.install("both", m, p)
	r.activate("both", false)
	if res := r.exec(`{"pack_id":"both","verb_key":"go"}`); !res.OK || string(res.Result) != `{"seen":{"ok":true}}` {
		t.Errorf("%s %+v", res.Result, res.Error)
	}
	if r.log.kinds() != "intent intent outcome outcome" || r.log.entries[1].Parent != r.log.entries[0].ID {
		t.Errorf("audit %q", r.log.kinds())
	}
	r.log.entries = nil
	r.hub.count, r.box.runs, r.box.prepared = 0, 0, nil
	r.refused(r.exec(`{"pack_id":"both","verb_key":"sly"}`), protocol.CompositeEscalation, 3)
}
