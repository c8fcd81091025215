package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/audit"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
	"hcpx/internal/store"
)

// compose installs and activates a composite pack: per command its operation ("read", "write" or "confirm") and steps.
func (r *rig) compose(id string, commands ...[3]string) {
	r.t.Helper()
	var verbs, entries []string
	for _, c := range commands {
		verbs = append(verbs, fmt.Sprintf(`%q:{"summary":"s","steps":[%s]}`, c[0], c[2]))
		operation, confirm := c[1], ""
		if operation == "confirm" {
			operation, confirm = "write", `,"confirm":true`
		}
		entries = append(entries, fmt.Sprintf(`%q:{"operation":%q,"privacy":{"land":"personal"}%s}`, c[0], operation, confirm))
	}
	r.install(id, fmt.Sprintf(`{"hcp":{"version":"1.1"},"id":%q,"version":"1.0.0","summary":"S.","adapter":"composite","verbs":{%s}}`, id, strings.Join(verbs, ",")),
		fmt.Sprintf(`{"surface_id":%q,"verbs":{%s}}`, id, strings.Join(entries, ",")))
	r.activate(id, false)
}

const look = `{"id":"look","pack":"tool","verb":"show","args":"{name: \"a\"}"}`

// outcome is what a failed composite tells: code, step, its step's id and code, and what was completed.
func told(res protocol.Result) string {
	if res.OK || res.Error == nil {
		return "ok " + string(res.Result)
	}
	d := res.Error.Details
	inner := protocol.Code("")
	if e, ok := d["error"].(*protocol.Error); ok {
		inner = e.Code
	}
	return fmt.Sprint(res.Error.Code, " ", res.Error.Step, " ", d["step_id"], " ", inner, " ", d["completed"])
}

// §3.5: the first failing step ends it; what was completed is told, a skipped step is not among it, and nothing that
// comes later is asked for.
func Test_3_5_TheFirstFailingStepEndsIt(t *testing.T) {
	r := newRig(t)
	r.compose("both", [3]string{"go", "read", look + `,{"id":"no","value":"1","when":".steps.look.ok | not"},{"id":"bad","pack":"tool","verb":"show","args":"{}"},{"id":"later","pack":"tool","verb":"show","args":"{name: \"b\"}"}`})
	res := r.exec(`{"pack_id":"both","verb_key":"go"}`)
	if got := told(res); got != "step_failed 9 bad invalid_args [look]" {
		t.Error(got)
	}
	if r.box.runs != 1 || r.log.kinds() != "intent intent outcome denial outcome" {
		t.Errorf("%d runs, audit %q", r.box.runs, r.log.kinds())
	}
}

// §3.5, §15.4: a step is a run of its own with its own entries, and names the run right above it.
func Test_3_5_StepsAreChildrenInTheAudit(t *testing.T) {
	r := newRig(t)
	r.compose("inner", [3]string{"go", "read", look + `,{"id":"again","pack":"tool","verb":"show","args":"{name: \"b\"}"}`})
	r.compose("outer", [3]string{"go", "read", `{"id":"a","pack":"inner","verb":"go"},{"id":"b","value":".steps.a.look.ok"}`})
	if res := r.exec(`{"pack_id":"outer","verb_key":"go"}`); told(res) != `ok {"a":{"again":{"ok":true},"look":{"ok":true}},"b":true}` {
		t.Error(told(res))
	}
	ids, parents := map[string]string{}, map[string]string{}
	for _, e := range r.log.entries {
		if e.Kind == audit.Intent {
			ids[e.ID] = e.Pack
		}
		if was, ok := parents[e.ID]; ok && was != e.Parent {
			t.Errorf("%s has the parents %q and %q", e.ID, was, e.Parent)
		}
		parents[e.ID] = e.Parent
	}
	var links []string
	for _, e := range r.log.entries {
		if e.Kind == audit.Intent {
			links = append(links, e.Pack+" below "+ids[e.Parent])
		}
	}
	if diff := cmp.Diff([]string{"outer below ", "inner below outer", "tool below inner", "tool below inner"}, links); diff != "" {
		t.Error(diff)
	}
}

// §3.5, §6.9: cancelled while a step runs, the composite is canceled at that step, and no other begins.
func Test_3_5_CancelledInTheMiddle(t *testing.T) {
	r := newRig(t)
	r.compose("both", [3]string{"go", "read", `{"id":"first","value":"1"},` + look + `,{"id":"later","pack":"tool","verb":"show","args":"{name: \"b\"}"}`})
	ctx, cancel := context.WithCancel(t.Context())
	r.box.outcome = sandbox.Outcome{Exit: -1, Signal: "SIGKILL", Canceled: true}
	r.box.during = cancel
	res := r.p.Exec(ctx, r.s, []byte(`{"pack_id":"both","verb_key":"go"}`))
	if got := told(res); got != "canceled 9 look canceled [first]" || r.box.runs != 1 {
		t.Errorf("%s, %d runs", got, r.box.runs)
	}
	if r.log.kinds() != "intent intent outcome outcome" {
		t.Errorf("audit %q", r.log.kinds())
	}
}

// §3.5: each call passes the whole pipeline when its turn comes: what changed since step 3 counts.
func Test_3_5_WhatChangesBetweenSteps(t *testing.T) {
	for name, test := range map[string]struct {
		change func(r *rig)
		want   string
	}{
		"deactivated": {func(r *rig) {
			_ = r.store.Update(func(st *store.State) error { st.SetActivated("default", "tool", false); return nil })
		}, "step_failed 9 second pack_not_activated [look]"},
		"uninstalled": {func(r *rig) { _ = r.store.Remove("tool") }, "step_failed 9 second pack_not_installed [look]"},
		"the grant is gone": {func(r *rig) {
			_ = r.store.Update(func(st *store.State) error { st.Grants = nil; return nil })
		}, "step_failed 9 second grant_missing [look]"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.compose("both", [3]string{"go", "read", look + `,{"id":"second","pack":"tool","verb":"show","args":"{name: \"b\"}"}`})
			r.box.during = func() { test.change(r) }
			if got := told(r.exec(`{"pack_id":"both","verb_key":"go"}`)); got != test.want || r.box.runs != 1 {
				t.Errorf("%s, %d runs; want %s", got, r.box.runs, test.want)
			}
		})
	}
}

// §3.5: the envelope's confirmation of a composite that declares confirm covers its steps; without it nothing runs.
func Test_3_5_ConfirmationCoversTheSteps(t *testing.T) {
	r := newRig(t)
	r.compose("both", [3]string{"go", "confirm", look + `,{"id":"mv","pack":"tool","verb":"move","args":"{to: \"b\"}"}`})
	r.refused(r.exec(`{"pack_id":"both","verb_key":"go"}`), protocol.ConfirmRequired, 6)
	if res := r.exec(`{"pack_id":"both","verb_key":"go","confirm":true}`); !res.OK || r.box.runs != 2 {
		t.Errorf("%s, %d runs", told(res), r.box.runs)
	}
}

// chain makes n composites in packs of their own, each of the given number of steps that call the next; the last calls
// the tool. It answers the first.
func (r *rig) chain(n, steps int) string {
	for i := range n {
		var list []string
		for s := range steps {
			call := fmt.Sprintf(`"pack":"c%d","verb":"go"`, i+1)
			if i == n-1 {
				call = `"pack":"tool","verb":"show","args":"{name: \"a\"}"`
			}
			list = append(list, fmt.Sprintf(`{"id":"s%d",%s,"when":".args.none"}`, s, call))
		}
		r.compose(fmt.Sprintf("c%d", i), [3]string{"go", "read", strings.Join(list, ",")})
	}
	return `{"pack_id":"c0","verb_key":"go"}`
}

// §3.5: nesting is at most 8, and however many ways lead down, each command is looked at once.
func Test_3_5_NestingIsBounded(t *testing.T) {
	r := newRig(t)
	if res := r.exec(r.chain(7, 64)); !res.OK {
		t.Error(told(res))
	}
	r = newRig(t)
	res := r.exec(r.chain(8, 64))
	r.refused(res, protocol.NotExecutable, 3)
	if !strings.Contains(res.Error.Message, "more than 8 deep") {
		t.Error(res.Error.Message)
	}
}

// §3.5: a circle that came about by installs, which no lint of one call saw, is refused at step 3.
func Test_3_5_ACircleThroughPacksIsRefused(t *testing.T) {
	r := newRig(t)
	r.compose("one", [3]string{"go", "read", look + `,{"id":"on","pack":"two","verb":"go"}`}, [3]string{"self", "read", `{"id":"on","verb":"self"}`})
	r.compose("two", [3]string{"go", "read", `{"id":"on","pack":"one","verb":"go","when":"false"}`})
	for _, verb := range []string{"go", "self"} {
		r.log.entries = nil
		res := r.exec(`{"pack_id":"one","verb_key":"` + verb + `"}`)
		r.refused(res, protocol.NotExecutable, 3)
		if !strings.Contains(res.Error.Message, "leads back to itself") {
			t.Error(res.Error.Message)
		}
	}
}

// §3.5: a write below a read is refused before anything runs, also two packs further down, and where the pack that is
// called became a write by an upgrade.
func Test_3_5_EscalationAtStep3(t *testing.T) {
	r := newRig(t)
	r.compose("low", [3]string{"go", "write", `{"id":"v","value":"1"}`})
	r.compose("mid", [3]string{"go", "read", look + `,{"id":"w","pack":"low","verb":"go"}`})
	r.compose("top", [3]string{"go", "read", `{"id":"m","pack":"mid","verb":"go"}`}, [3]string{"write", "write", `{"id":"m","pack":"mid","verb":"go"}`})
	for _, verb := range []string{"go", "write"} { // a write may not hide it either
		r.log.entries = nil
		r.refused(r.exec(`{"pack_id":"top","verb_key":"`+verb+`"}`), protocol.CompositeEscalation, 3)
	}
	r.compose("low", [3]string{"go", "read", `{"id":"v","value":"1"}`})
	if res := r.exec(`{"pack_id":"top","verb_key":"go"}`); !res.OK {
		t.Error(told(res))
	}
}

// §3.5: what is hidden is not: the whole error of the step stands in the details as the step's own run would give it.
func Test_3_5_TheStepsErrorIsWhole(t *testing.T) {
	r := newRig(t)
	r.compose("both", [3]string{"go", "read", `{"id":"x","pack":"tool","verb":"show","args":"{name: 1}"}`})
	res := r.exec(`{"pack_id":"both","verb_key":"go"}`)
	alone := r.exec(`{"pack_id":"tool","verb_key":"show","args":{"name":1}}`)
	got, err1 := json.Marshal(res.Error.Details["error"])
	want, err2 := json.Marshal(alone.Error)
	if err1 != nil || err2 != nil || string(got) != string(want) {
		t.Errorf("%s\n%s", got, want)
	}
}

// §15.2: what a yes to a plan is to: the same for the same request, confirmed or not, and another when arguments, the pack, or
// the pack of a step are others.
func Test_15_2_APlanSaysWhatAYesIsTo(t *testing.T) {
	r := newRig(t)
	r.compose("both", [3]string{"go", "confirm", look}, [3]string{"see", "read", look})
	exact := func(rest string) string {
		res := r.p.Plan(context.Background(), r.s, []byte(`{"pack_id":"both","verb_key":`+rest+`}`))
		if !res.OK {
			t.Fatal(told(res))
		}
		return res.Exact
	}
	first := exact(`"go"`)
	if first == "" || exact(`"go"`) != first || exact(`"go","confirm":true`) != first || exact(`"see"`) != "" {
		t.Errorf("%q %q %q", first, exact(`"go","confirm":true`), exact(`"see"`))
	}
	r.install("tool", toolManifest+" ", toolPolicy)
	step := exact(`"go"`)
	if step == first {
		t.Error("a step of another pack is the same")
	}
	r.compose("both", [3]string{"go", "confirm", look + " "}, [3]string{"see", "read", look})
	if exact(`"go"`) == step {
		t.Error("another pack is the same")
	}
}
