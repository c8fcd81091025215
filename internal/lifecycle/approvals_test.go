package lifecycle

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"hcpx/internal/approval"
	"hcpx/internal/audit"
	"hcpx/internal/grant"
	"hcpx/internal/protocol"
)

const agent = protocol.Principal("agent:claude-code")

// opened asks for notes/keep as the pipeline would.
func (w *world) opened(preview string) string {
	w.t.Helper()
	loaded, refusal := w.Gate.Installed("notes")
	if refusal != nil {
		w.t.Fatal(refusal)
	}
	a, _, err := w.book().Ask(approval.Request{Principal: agent, Where: approval.Where{Session: "default", Tenant: "local", Dir: "/srv/here"}, Pack: "notes", Version: "1.0.0",
		Digest: loaded.Digest, Verb: "keep", Operation: protocol.Write, Message: "Keep it?", Args: json.RawMessage(`{}`), Plan: json.RawMessage(`{"argv":["tool","keep"]}`),
		Preview: preview, Canonical: []byte(w.NewID())}, "")
	if err != nil {
		w.t.Fatal(err)
	}
	return a.ID
}

func (w *world) approve(s protocol.Session, id string) (ApprovalView, *protocol.Error) {
	return w.Approve(context.Background(), s, id, ApproveOptions{})
}

// §15.2: the approver is another, human Principal who holds the command's own capability; an agent never.
func Test_15_2_WhoApproves(t *testing.T) {
	w := newWorld(t)
	w.ready("notes")
	id := w.opened("")
	w.give(grant.Grant{Principal: "agent:*", Effect: grant.Allow, Capabilities: protocol.Capabilities})
	w.give(grant.Grant{Principal: "human:bob", Effect: grant.Deny, Capabilities: []protocol.Capability{protocol.VerbExecWrite}, Verbs: []string{"keep"}})
	before := len(w.acts())
	for who, want := range map[protocol.Principal]protocol.Code{
		agent: protocol.OperatorRequired, "agent:codex": protocol.OperatorRequired, "service:ci": protocol.OperatorRequired, "mothership:m": protocol.OperatorRequired,
		"human:bob": protocol.GrantMissing,
	} {
		_, err := w.approve(as(who), id)
		refused(t, err, want)
	}
	if acts := w.acts()[before:]; len(acts) != 5 || strings.Join(acts, " ") != strings.TrimSuffix(strings.Repeat("denial approve ", 5), " ") {
		t.Errorf("the refusals are not on record: %q", acts)
	}
	_, err := w.Reject(as(agent), id, "")
	refused(t, err, protocol.OperatorRequired)
	v, err := w.approve(ada, id)
	if err != nil || v.State != approval.Approved || v.By != "human:ada" {
		t.Fatalf("%+v %v", v, err)
	}
	entries := w.log.Entries()
	if last := entries[len(entries)-1]; last.Kind != audit.Change || last.Act != "approve" || last.Principal != "human:ada" || !strings.Contains(string(last.Detail), `"approval_id":"`+id+`"`) {
		t.Errorf("%+v", last)
	}
	_, err = w.approve(ada, id)
	refused(t, err, protocol.NotFound)
	_, err = w.Withdraw(as(agent), id, "")
	refused(t, err, protocol.OperatorRequired)
	if v, err := w.Withdraw(ada, id, ""); err != nil || v.State != approval.Withdrawn {
		t.Errorf("%+v %v", v, err)
	}
}

// §15.2: a person sees every request, an agent its own; what nobody may see is not there.
func Test_15_2_WhoSees(t *testing.T) {
	w := newWorld(t)
	w.ready("notes")
	id := w.opened("")
	for who, sees := range map[protocol.Principal]bool{"human:ada": true, "human:bob": true, agent: true, "agent:codex": false, "service:ci": false} {
		list, err := w.Approvals(as(who), false)
		if err != nil || (len(list.Approvals) == 1) != sees {
			t.Errorf("%s: %+v %v", who, list, err)
		}
		if _, err := w.Approval(context.Background(), as(who), id); (err == nil) != sees {
			t.Errorf("%s: %v", who, err)
		}
		if !sees {
			_, err := w.Withdraw(as(who), id, "")
			refused(t, err, protocol.NotFound)
		}
	}
	w.clock = w.clock.Add(approval.Expiry)
	if list, err := w.Approvals(ada, false); err != nil || len(list.Approvals) != 0 {
		t.Errorf("%+v %v", list, err)
	}
	if list, err := w.Approvals(ada, true); err != nil || len(list.Approvals) != 1 || list.Approvals[0].State != approval.Expired || list.Approvals[0].AgeSeconds != 900 {
		t.Errorf("%+v %v", list, err)
	}
}

// §15.2: a request for another version of the pack is approved no more.
func Test_15_2_AnotherVersionIsNotApproved(t *testing.T) {
	w := newWorld(t)
	w.ready("notes")
	id := w.opened("")
	w.install(w.pack("notes", `"version": "1.0.0"`, `"version": "1.1.0"`), InstallOptions{AllowBin: true, AllowRead: true})
	_, err := w.approve(ada, id)
	refused(t, err, protocol.NotFound)
}

// §15.3: showing and approving run the preview under the person's Principal, in the place of the request; its hash is bound.
func Test_15_3_ThePersonIsShownThePreview(t *testing.T) {
	w := newWorld(t)
	w.ready("notes")
	id := w.opened("show")
	if v, err := w.approve(ada, id); code(err) != protocol.InternalError || v.State == approval.Approved {
		t.Errorf("approved without its preview: %+v %v", v, err)
	}
	var ran []protocol.Session
	answer := protocol.Result{OK: true, PackID: "notes", VerbKey: "show", Result: []byte(`["a"]`)}
	w.Run = func(_ context.Context, s protocol.Session, envelope []byte) protocol.Result {
		if string(envelope) != `{"pack_id":"notes","verb_key":"show","args":{}}` {
			t.Errorf("%s", envelope)
		}
		ran = append(ran, s)
		return answer
	}
	shown, err := w.Approval(context.Background(), as("human:bob"), id)
	if err != nil || shown.Preview == nil || string(shown.Preview.Result) != `["a"]` || len(ran) != 1 || ran[0].Principal != "human:bob" || ran[0].Dir != "/srv/here" {
		t.Fatalf("%+v %v, ran %+v", shown, err, ran)
	}
	if _, err := w.Approval(context.Background(), as(agent), id); err != nil || len(ran) != 1 {
		t.Errorf("an agent ran a preview: %v", err)
	}
	answer.Result = []byte(`["a","b"]`)
	_, err = w.Approve(context.Background(), ada, id, ApproveOptions{Preview: shown.Preview.Hash})
	if code(err) != protocol.ConfirmRequired || err.Details["preview_hash"] != approval.PreviewHash(answer) {
		t.Errorf("what was looked at is another: %+v", err)
	}
	answer = protocol.Denied("notes", "show", protocol.Fail(protocol.CommandFailed, "No."))
	if _, err := w.approve(ada, id); code(err) != protocol.CommandFailed {
		t.Errorf("a preview that failed: %v", err)
	}
	answer = protocol.Result{OK: true, Result: []byte(`["a"]`)}
	asked := ApproveOptions{Ask: func(v ApprovalView) bool { return v.Preview != nil && string(v.Preview.Result) == `["b"]` }}
	if _, err := w.Approve(context.Background(), ada, id, asked); code(err) != protocol.ConfirmRequired {
		t.Errorf("a no: %v", err)
	}
	if v, err := w.Approve(context.Background(), ada, id, ApproveOptions{Preview: shown.Preview.Hash}); err != nil || v.PreviewHash != shown.Preview.Hash {
		t.Errorf("%+v %v", v, err)
	}
}
