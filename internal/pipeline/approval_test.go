package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"hcpx/internal/approval"
	"hcpx/internal/audit"
	"hcpx/internal/grant"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// asAgent lets an agent write, and be the caller.
func (r *rig) asAgent() {
	r.t.Helper()
	r.s.Principal = "agent:claude-code"
	r.grants(grant.Grant{Principal: "agent:*", Effect: grant.Allow, Capabilities: []protocol.Capability{protocol.VerbExecWrite}})
}

func (r *rig) grants(more ...grant.Grant) {
	r.t.Helper()
	if err := r.store.Update(func(st *store.State) error { st.Grants = append(st.Grants, more...); return nil }); err != nil {
		r.t.Fatal(err)
	}
}

const ask = `{"pack_id":"tool","verb_key":"move","args":{"to":"b"}}`

// with is an envelope with an approval id.
func with(envelope, id string) string {
	return strings.TrimSuffix(envelope, "}") + `,"confirm":"` + id + `"}`
}

// asked asks and gives the id.
func (r *rig) asked(envelope string) string {
	r.t.Helper()
	res := r.exec(envelope)
	id, _ := res.Error.Details["approval_id"].(string)
	if res.OK || res.Error.Code != protocol.ConfirmRequired || res.Error.Step != 6 || id == "" {
		r.t.Fatalf("%+v", res.Error)
	}
	return id
}

func (r *rig) decided(id string, to approval.State, by protocol.Principal) {
	r.t.Helper()
	if _, err := r.p.approvals.Decide(id, approval.Decision{To: to, By: by}, func(*approval.Approval) error { return nil }); err != nil {
		r.t.Fatal(err)
	}
}

// unconfirmed demands a refusal with the reason, and that nothing ran or was spent.
func (r *rig) unconfirmed(envelope string, why approval.Reason) protocol.Result {
	r.t.Helper()
	runs := r.box.runs
	res := r.exec(envelope)
	if res.OK || res.Error.Code != protocol.ConfirmRequired || res.Error.Step != 6 || res.Error.Details["reason"] != why {
		r.t.Errorf("want %s: %+v", why, res.Error)
	}
	if r.box.runs != runs {
		r.t.Errorf("%s: it ran", why)
	}
	return res
}

// §15.2: the repeat with the approved id runs exactly what was approved, once.
func Test_15_2_ApprovedRunsOnce(t *testing.T) {
	r := newRig(t)
	r.asAgent()
	id := r.asked(ask)
	if again := r.asked(move); again != id {
		t.Errorf("asking again gives %s, then %s", id, again)
	}
	r.unconfirmed(with(ask, id), approval.ReasonPending)
	if a, err := r.p.approvals.Find(id); err != nil || a.Message != "Move to b?" || !strings.Contains(string(a.Plan), `"argv":["tool","move","--","b"]`) {
		t.Errorf("%+v %v", a, err)
	}
	r.decided(id, approval.Approved, "human:ada")
	if again := r.asked(ask); again != id {
		t.Errorf("what is approved is asked again as %s", again)
	}
	plan := r.p.Plan(context.Background(), r.s, []byte(with(ask, id)))
	if !strings.Contains(string(plan.Result), `"given":true,"by":"approval"`) {
		t.Errorf("plan says %s", plan.Result)
	}
	if res := r.exec(with(ask, id)); !res.OK || r.box.runs != 1 {
		t.Fatalf("%+v, %d runs", res.Error, r.box.runs)
	}
	intent := r.log.entries[len(r.log.entries)-2]
	if intent.Kind != audit.Intent || intent.Confirm != "approval" || string(intent.Detail) != fmt.Sprintf(`{"approval_id":%q,"approved_by":"human:ada"}`, id) {
		t.Errorf("the intent is %+v", intent)
	}
	if res := r.unconfirmed(with(ask, id), approval.ReasonSpent); res.Error.Details["approval_id"] != nil {
		t.Error("what was done is asked about again")
	}
	if fresh := r.asked(ask); fresh == id {
		t.Error("a new question has the old id")
	}
}

// §15.2: an unknown, unapproved, rejected, withdrawn, expired or mismatching id spends nothing.
func Test_15_2_WhatConfirmsNothing(t *testing.T) {
	fresh := func(t *testing.T) (*rig, string) {
		r := newRig(t)
		r.asAgent()
		return r, r.asked(ask)
	}
	for name, c := range map[string]struct {
		do  func(r *rig, id string) string
		why approval.Reason
	}{
		"unknown":   {func(*rig, string) string { return with(ask, "01HUNKNOWN") }, approval.ReasonUnknown},
		"too long":  {func(*rig, string) string { return with(ask, strings.Repeat("0", 5000)) }, approval.ReasonUnknown},
		"a path":    {func(*rig, string) string { return with(ask, "../state.json") }, approval.ReasonUnknown},
		"rejected":  {func(r *rig, id string) string { r.decided(id, approval.Rejected, "human:ada"); return with(ask, id) }, approval.ReasonRejected},
		"withdrawn": {func(r *rig, id string) string { r.decided(id, approval.Withdrawn, r.s.Principal); return with(ask, id) }, approval.ReasonWithdrawn},
		"taken back by the approver": {func(r *rig, id string) string {
			r.decided(id, approval.Approved, "human:ada")
			r.decided(id, approval.Withdrawn, "human:ada")
			return with(ask, id)
		}, approval.ReasonWithdrawn},
		"expired": {func(r *rig, id string) string {
			r.decided(id, approval.Approved, "human:ada")
			r.now = testNow.Add(approval.Expiry)
			return with(ask, id)
		}, approval.ReasonExpired},
		"other arguments": {func(r *rig, id string) string {
			r.decided(id, approval.Approved, "human:ada")
			return with(strings.Replace(ask, `"b"`, `"c"`, 1), id)
		}, approval.ReasonMismatch},
		"another project": {func(r *rig, id string) string {
			r.decided(id, approval.Approved, "human:ada")
			r.s.Project = "apollo"
			return with(ask, id)
		}, approval.ReasonMismatch},
		"another version": {func(r *rig, id string) string {
			r.decided(id, approval.Approved, "human:ada")
			r.install("tool", strings.Replace(toolManifest, `"summary":"Move"`, `"summary":"Moves"`, 1), toolPolicy)
			return with(ask, id)
		}, approval.ReasonMismatch},
		"another agent's": {func(r *rig, id string) string {
			r.decided(id, approval.Approved, "human:ada")
			r.s.Principal = "agent:codex"
			return with(ask, id)
		}, approval.ReasonUnknown},
		"a person's use": {func(r *rig, id string) string {
			r.decided(id, approval.Approved, "human:ada")
			r.s.Principal = "human:eve"
			return with(ask, id)
		}, approval.ReasonUnknown},
		"an approver who may not any more": {func(r *rig, id string) string {
			r.decided(id, approval.Approved, "human:bob")
			r.grants(grant.Grant{Principal: "human:bob", Effect: grant.Deny, Capabilities: []protocol.Capability{protocol.VerbExecWrite}})
			return with(ask, id)
		}, approval.ReasonApprover},
	} {
		t.Run(name, func(t *testing.T) {
			r, id := fresh(t)
			res := r.unconfirmed(c.do(r, id), c.why)
			if said := strings.Contains(res.Error.Hint, "a person said no"); said != (c.why == approval.ReasonRejected) {
				t.Errorf("hint: %s", res.Error.Hint)
			}
			if a, err := r.p.approvals.Find(id); err != nil || a.State == approval.Spent {
				t.Errorf("it was spent: %+v %v", a, err)
			}
			if r.hub.count > 0 {
				t.Error("minted")
			}
		})
	}
}

// §15.2: what works in a place is approved for that place; what does not is one request from anywhere.
func Test_15_2_ThePlace(t *testing.T) {
	for land, placed := range map[string]bool{"personal": false, "local": true} {
		r := newRig(t)
		r.asAgent()
		r.install("here", strings.Replace(toolManifest, `"id":"tool"`, `"id":"here"`, 1), strings.NewReplacer(`"surface_id":"tool"`, `"surface_id":"here"`,
			`"move":{"operation":"write","privacy":{"land":"personal"}`, `"move":{"operation":"write","privacy":{"land":"`+land+`"}`).Replace(toolPolicy))
		r.activate("here", true)
		one, two := t.TempDir(), t.TempDir()
		e := `{"pack_id":"here","verb_key":"move","args":{"to":"b"}}`
		r.s.Workspace, r.s.Dir = one, one
		id := r.asked(e)
		r.s.Workspace, r.s.Dir = two, two
		if (r.asked(e) != id) != placed {
			t.Errorf("%s: another place is another request %v", land, !placed)
		}
		r.decided(id, approval.Approved, "human:ada")
		if placed {
			r.unconfirmed(with(e, id), approval.ReasonMismatch)
			r.s.Workspace, r.s.Dir = one, one
		}
		if res := r.exec(with(e, id)); !res.OK {
			t.Errorf("%s: %+v", land, res.Error)
		}
	}
}

// §15.2: arguments are held by value, after defaults, never as doubles.
func Test_15_2_CanonicalArguments(t *testing.T) {
	r := newRig(t)
	r.asAgent()
	r.install("sum", strings.NewReplacer(`"id":"tool"`, `"id":"sum"`, `"properties":{"to":{"type":"string"}},"required":["to"]`, `"properties":{"n":{"type":"number"},"x":{"type":"integer","default":1}}`, `"move","--","{to}"`, `"move","--","{n}"`).Replace(toolManifest),
		strings.Replace(strings.Replace(toolPolicy, `"surface_id":"tool"`, `"surface_id":"sum"`, 1), "{to}", "{n}", 1))
	r.activate("sum", true)
	e := func(args string) string { return `{"pack_id":"sum","verb_key":"move","args":` + args + `}` }
	first := r.asked(e(`{"n":9007199254740993}`))
	for args, same := range map[string]bool{`{"x":1,"n":9007199254740993.0}`: true, `{"n":9.007199254740993e15,"x":1.0}`: true, `{"n":9007199254740992}`: false, `{"n":9007199254740993,"x":2}`: false} {
		if got := r.asked(e(args)); (got == first) != same {
			t.Errorf("%s: the same request %v", args, got == first)
		}
	}
}

// §15.2: an approval that could not begin its run is given back; one whose run began is not.
func Test_15_2_SpentWithTheIntent(t *testing.T) {
	r := newRig(t)
	r.asAgent()
	id := r.asked(ask)
	r.decided(id, approval.Approved, "human:ada")
	r.log.failAt = len(r.log.entries) + 1
	if res := r.exec(with(ask, id)); res.OK || res.Error.Code != protocol.InternalError || r.box.runs != 0 {
		t.Fatalf("%+v", res)
	}
	if a, err := r.p.approvals.Find(id); err != nil || a.State != approval.Approved || a.Run != "" {
		t.Errorf("nothing ran, and the approval is %+v %v", a, err)
	}
	r.log.failAt = 0
	r.box.outcome.Exit = 1
	if res := r.exec(with(ask, id)); res.OK || res.Error.Code != protocol.CommandFailed {
		t.Fatalf("%+v", res)
	}
	r.box.outcome.Exit = 0
	r.unconfirmed(with(ask, id), approval.ReasonSpent)
}

// §15.2: of uses that race, exactly one runs.
func Test_15_2_ManyUsesOneRun(t *testing.T) {
	for range 20 {
		r := newRig(t)
		r.asAgent()
		id := r.asked(ask)
		r.decided(id, approval.Approved, "human:ada")
		var all sync.WaitGroup
		codes := make(chan any, 8)
		for range cap(codes) {
			all.Go(func() {
				res := r.p.Exec(context.Background(), r.s, []byte(with(ask, id)))
				if res.OK {
					codes <- "ran"
				} else {
					codes <- res.Error.Details["reason"]
				}
			})
		}
		all.Wait()
		close(codes)
		count := map[any]int{}
		for c := range codes {
			count[c]++
		}
		if r.box.runs != 1 || count["ran"] != 1 || count[approval.ReasonSpent] != cap(codes)-1 {
			t.Fatalf("%d runs, %v", r.box.runs, count)
		}
	}
}

// §15.2: a secret argument stands in no approval, no message of a person's and no audit; another secret is another request.
func Test_15_2_SecretsAreNotKept(t *testing.T) {
	r := newRig(t)
	r.asAgent()
	m := strings.NewReplacer(`"id":"tool"`, `"id":"safe"`, `"properties":{"to":{"type":"string"}}`, `"properties":{"to":{"type":"string","writeOnly":true}}`).Replace(toolManifest)
	r.install("safe", m, strings.Replace(toolPolicy, `"surface_id":"tool"`, `"surface_id":"safe"`, 1))
	r.activate("safe", true)
	e := func(to string) string { return `{"pack_id":"safe","verb_key":"move","args":{"to":"` + to + `"}}` }
	id := r.asked(e("hunter2"))
	if r.asked(e("hunter3")) == id {
		t.Error("another secret is the same request")
	}
	r.decided(id, approval.Approved, "human:ada")
	r.unconfirmed(with(e("hunter4"), id), approval.ReasonMismatch)
	if res := r.exec(with(e("hunter2"), id)); !res.OK {
		t.Fatalf("%+v", res.Error)
	}
	all, err := r.p.approvals.List()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal([]any{all, r.log.entries})
	if err != nil || strings.Contains(string(text), "hunter") {
		t.Errorf("%s %v", text, err)
	}
}

// §15.2: where agents must ask, no grant lets one confirm by itself, and an approval does.
func Test_15_2_ApprovalAlone(t *testing.T) {
	r := newRig(t)
	r.asAgent()
	r.p.NoSelfConfirm = true
	r.grants(grant.Grant{Principal: "agent:*", Effect: grant.Allow, Capabilities: []protocol.Capability{protocol.VerbExecWrite}, SelfConfirm: true})
	id := r.asked(move)
	r.decided(id, approval.Approved, "human:ada")
	if res := r.exec(with(ask, id)); !res.OK {
		t.Errorf("%+v", res.Error)
	}
}

// §15.2: whose own word counts is not told to ask somebody.
func Test_15_2_NobodyElseAsks(t *testing.T) {
	r := newRig(t)
	for _, who := range []protocol.Principal{"human:ada", "service:ci", "mothership:hub", "agent:trusted"} {
		r.grants(grant.Grant{Principal: string(who), Effect: grant.Allow, Capabilities: []protocol.Capability{protocol.VerbExecWrite}, SelfConfirm: true})
		r.s.Principal = who
		if res := r.exec(ask); res.OK || res.Error.Code != protocol.ConfirmRequired || res.Error.Details["approval_id"] != nil {
			t.Errorf("%s: %+v", who, res.Error)
		}
	}
	if all, err := r.p.approvals.List(); err != nil || len(all) != 0 {
		t.Errorf("%v %v", all, err)
	}
}

// §15.2: what could not run even if it were approved is not asked about.
func Test_15_2_BlockedIsNotAsked(t *testing.T) {
	r := newRig(t)
	r.asAgent()
	r.box.refuse = protocol.Fail(protocol.SandboxUnavailable, "The kernel keeps no rule.")
	res := r.unconfirmed(ask, approval.ReasonBlocked)
	if inner, ok := res.Error.Details["error"].(*protocol.Error); !ok || inner.Code != protocol.SandboxUnavailable || res.Error.Details["approval_id"] != nil {
		t.Errorf("%+v", res.Error)
	}
}

// §15.2: a request that cannot be recorded is not open.
func Test_15_2_AnAskIsRecordedOrNotMade(t *testing.T) {
	r := newRig(t)
	r.asAgent()
	r.log.failAt = 1
	if res := r.exec(ask); res.OK || res.Error.Code != protocol.InternalError {
		t.Fatalf("%+v", res)
	}
	if all, err := r.p.approvals.List(); err != nil || len(all) != 0 {
		t.Errorf("%v %v", all, err)
	}
}

// §15.2: an approval of a composite covers the gated steps whose arguments a person saw, and no other.
func Test_15_2_CompositeSteps(t *testing.T) {
	const m = `{"hcp":{"version":"1.1"},"id":"both","version":"1.0.0","summary":"Both.","adapter":"composite",
"verbs":{"known":{"summary":"Known","args":{"type":"object","properties":{"to":{"type":"string"}}},"steps":[{"id":"mv","pack":"tool","verb":"move","args":"{to: .args.to}"}],"output":".steps.mv"},
"found":{"summary":"Found","steps":[{"id":"see","pack":"tool","verb":"show","args":"{name: \"a\"}"},{"id":"mv","pack":"tool","verb":"move","args":"{to: .steps.see.to}"}],"output":".steps.mv"},
"sly":{"summary":"Sly","steps":[{"id":"see","pack":"tool","verb":"show","args":"{name: \"a\"}"},{"id":"mv","pack":"tool","verb":"move","args":"{to: ([..|.to?|strings]|last // \"b\")}"}],"output":".steps.mv"}}}`
	const gated = `{"operation":"write","privacy":{"land":"personal"},"confirm":true}`
	r := newRig(t)
	r.asAgent()
	r.install("both", m, `{"surface_id":"both","verbs":{"known":`+gated+`,"found":`+gated+`,"sly":`+gated+`}}`)
	r.activate("both", false)
	r.box.outcome.Stdout = []byte(`{"to":"x"}`)

	known := `{"pack_id":"both","verb_key":"known","args":{"to":"b"}}`
	id := r.asked(known)
	a, err := r.p.approvals.Find(id)
	if err != nil || !strings.Contains(string(a.Plan), `"args":{"to":"b"},"plan":{"argv":["tool","move","--","b"]`) {
		t.Fatalf("%s %v", a.Plan, err)
	}
	r.decided(id, approval.Approved, "human:ada")
	if res := r.exec(with(known, id)); !res.OK || r.box.runs != 1 {
		t.Fatalf("%+v", res.Error)
	}

	for verb, runs := range map[string]int{"found": 1, "sly": 1} {
		r.box.runs = 0
		e := `{"pack_id":"both","verb_key":"` + verb + `"}`
		id := r.asked(e)
		r.decided(id, approval.Approved, "human:ada")
		res := r.exec(with(e, id))
		if res.OK || res.Error.Code != protocol.StepFailed || r.box.runs != runs {
			t.Fatalf("%s: %+v, %d runs", verb, res.Error, r.box.runs)
		}
		inner := res.Error.Details["error"].(*protocol.Error)
		step, _ := inner.Details["approval_id"].(string)
		if inner.Code != protocol.ConfirmRequired || step == "" {
			t.Fatalf("%s: %+v", verb, inner)
		}
		if a, err := r.p.approvals.Find(step); err != nil || a.Pack != "tool" || string(a.Args) != `{"to":"x"}` {
			t.Fatalf("%s: the step asks for %+v %v", verb, a, err)
		}
		// Approved, it confirms that step of a repeat, whose own approval is another one.
		r.decided(step, approval.Approved, "human:ada")
		id = r.asked(e)
		r.decided(id, approval.Approved, "human:ada")
		if res := r.exec(with(e, id)); !res.OK {
			t.Fatalf("%s: %+v", verb, res.Error)
		}
		if a, err := r.p.approvals.Find(step); err != nil || a.State != approval.Spent {
			t.Errorf("%s: the step's approval is %+v %v", verb, a, err)
		}
	}
}

// §15.2: a composite hands its secret to a step that does not know it for one; neither shows it.
func Test_15_2_ACompositesSecretIsNotShown(t *testing.T) {
	const m = `{"hcp":{"version":"1.1"},"id":"both","version":"1.0.0","summary":"Both.","adapter":"composite",
"verbs":{"inner":{"summary":"Inner","args":{"type":"object","properties":{"to":{"type":"string"}}},"steps":[{"id":"mv","pack":"tool","verb":"move","args":"{to: .args.to}"}],"output":".steps.mv"},
"outer":{"summary":"Outer","args":{"type":"object","properties":{"pin":{"type":"string","format":"password"}}},"steps":[{"id":"in","verb":"inner","args":"{to: .args.pin}"}],"output":".steps.in"}}}`
	const gated = `{"operation":"write","privacy":{"land":"personal"},"confirm":{"message":"Do {pin}?"}}`
	r := newRig(t)
	r.asAgent()
	r.install("both", m, `{"surface_id":"both","verbs":{"inner":`+strings.Replace(gated, "{pin}", "{to}", 1)+`,"outer":`+gated+`}}`)
	r.activate("both", false)
	e := `{"pack_id":"both","verb_key":"outer","args":{"pin":"hunter2"}}`
	id := r.asked(e)
	a, err := r.p.approvals.Find(id)
	if err != nil || !strings.Contains(string(a.Plan), `"verb_key":"move"`) {
		t.Errorf("the inner steps are not shown: %s %v", a.Plan, err)
	}
	r.decided(id, approval.Approved, "human:ada")
	if res := r.exec(with(e, id)); !res.OK || r.box.runs != 1 || r.box.prepared[0].Args[2] != "hunter2" {
		t.Fatalf("%+v", res.Error)
	}
	text, err := json.Marshal(a)
	if err != nil || strings.Contains(string(text), "hunter") {
		t.Errorf("%s %v", text, err)
	}
	for _, entry := range r.log.entries {
		if entry.Verb == "outer" && strings.Contains(fmt.Sprintf("%s %s %s", entry.Args, entry.Message, entry.Detail), "hunter") {
			t.Errorf("the audit has it: %+v", entry)
		}
	}
}
