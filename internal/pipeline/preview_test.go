package pipeline

import (
	"strings"
	"testing"

	"hcpx/internal/approval"
	"hcpx/internal/audit"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
)

// previewed is a rig with a write that a read shows.
func previewedRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	r.asAgent()
	m := strings.NewReplacer(`"id":"tool"`, `"id":"sender"`, `"show":{"summary":"Show","argv":["show","{name}"],"args":{"type":"object","properties":{"name":{"type":"string"},"limit":{"type":"integer","default":3},"pin":{"type":"string","writeOnly":true}},"required":["name"]}}`,
		`"show":{"summary":"Show","argv":["show","{to}"],"args":{"type":"object","properties":{"to":{"type":"string"}},"required":["to"],"additionalProperties":false}}`,
		`"properties":{"to":{"type":"string"}},"required":["to"]`, `"properties":{"to":{"type":"string"},"force":{"type":"boolean","default":false}},"required":["to"]`).Replace(toolManifest)
	r.install("sender", m, strings.NewReplacer(`"surface_id":"tool"`, `"surface_id":"sender"`, `,"redact":["/secret"]`, ``, `"confirm":{`, `"preview":"show","confirm":{`).Replace(toolPolicy))
	r.activate("sender", true)
	return r
}

const push = `{"pack_id":"sender","verb_key":"move","args":{"to":"b"}}`

// approvedWith approves as a person who was shown a preview.
func (r *rig) approvedWith(shown string) string {
	r.t.Helper()
	id := r.asked(push)
	hash := approval.PreviewHash(protocol.Result{OK: true, Result: []byte(shown)})
	if _, err := r.p.approvals.Decide(id, approval.Decision{To: approval.Approved, By: "human:bob", Shown: hash}, func(*approval.Approval) error { return nil }); err != nil {
		r.t.Fatal(err)
	}
	return id
}

// §15.3: before step 7 the preview is run again under the approver's Principal, as an exec of its own, and the same value
// lets the command run.
func Test_15_3_ThePreviewIsRunAgain(t *testing.T) {
	r := previewedRig(t)
	r.box.outcome.Stdout = []byte(`{"commits":["b","a"],"n":1}`)
	if id := r.asked(push); r.box.runs != 0 {
		t.Fatalf("asking for %s ran a preview inside the denied run", id)
	}
	id := r.approvedWith(`{"n":1.0,"commits":["b","a"]}`) // by value
	r.log.entries = nil
	if res := r.exec(with(push, id)); !res.OK || r.box.runs != 2 {
		t.Fatalf("%+v, %d runs", res.Error, r.box.runs)
	}
	if got := r.box.prepared[0].Args; len(got) != 2 || got[0] != "show" || got[1] != "b" {
		t.Errorf("the preview ran %q", got)
	}
	if r.log.kinds() != "intent outcome intent outcome" {
		t.Fatalf("audit %q", r.log.kinds())
	}
	first, second := r.log.entries[0], r.log.entries[2]
	if first.Principal != "human:bob" || first.Verb != "show" || first.Parent != second.ID || second.Principal != "agent:claude-code" || second.Confirm != "approval" {
		t.Errorf("%+v\n%+v", first, second)
	}
}

// §15.3: another hash, and a preview that fails or may not run, is confirm_required and spends nothing; the next question is
// a new one, and the old approval counts again once the preview is as it was.
func Test_15_3_AnotherPreviewSpendsNothing(t *testing.T) {
	for name, change := range map[string]func(r *rig){
		"another value": func(r *rig) { r.box.outcome.Stdout = []byte(`{"commits":["c"]}`) },
		"a failure":     func(r *rig) { r.box.outcome = sandbox.Outcome{Exit: 1} },
		"no JSON":       func(r *rig) { r.box.outcome.Stdout = []byte(`{`) },
	} {
		r := previewedRig(t)
		r.box.outcome.Stdout = []byte(`{"commits":["a"]}`)
		id := r.approvedWith(`{"commits":["a"]}`)
		before := r.box.outcome
		change(r)
		res := r.exec(with(push, id))
		if res.OK || res.Error.Code != protocol.ConfirmRequired || res.Error.Step != 6 || res.Error.Details["reason"] != approval.ReasonPreview {
			t.Fatalf("%s: %+v", name, res.Error)
		}
		if fresh := res.Error.Details["approval_id"]; fresh == id || fresh == nil {
			t.Errorf("%s: the next question is %v", name, fresh)
		}
		for _, e := range r.log.entries {
			if e.Kind == audit.Intent && e.Verb == "move" {
				t.Errorf("%s: it ran", name)
			}
		}
		if a, err := r.p.approvals.Find(id); err != nil || a.State != approval.Approved {
			t.Errorf("%s: %+v %v", name, a, err)
		}
		r.box.outcome = before
		if res := r.exec(with(push, id)); !res.OK {
			t.Errorf("%s: %+v", name, res.Error)
		}
	}
}

// §15.3: an approval that was given without its preview confirms nothing.
func Test_15_3_UnseenConfirmsNothing(t *testing.T) {
	r := previewedRig(t)
	id := r.asked(push)
	r.decided(id, approval.Approved, "human:ada")
	if res := r.exec(with(push, id)); res.OK || res.Error.Details["reason"] != approval.ReasonPreview {
		t.Errorf("%+v", res.Error)
	}
}
