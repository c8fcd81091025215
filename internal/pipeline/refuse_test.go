package pipeline

import (
	"strings"
	"testing"

	"hcpx/internal/protocol"
)

// §9.7: what a face must refuse passes the steps before it, runs nothing, and leaves one denial with its step.
func Test_9_7_ARefusalOfTheFacePassesTheStepsBefore(t *testing.T) {
	why := func(code protocol.Code, step int) *protocol.Error {
		e := protocol.Fail(code, "No.")
		e.Step = step
		return e
	}
	agent := func(r *rig) { r.s.Principal = "agent:claude-code" }
	for _, tt := range []struct {
		name, envelope string
		why            *protocol.Error
		change         func(*rig)
		code           protocol.Code
		step           int
	}{
		{"words that are no arguments", `{"pack_id":"tool","verb_key":"show"}`, why(protocol.InvalidArgs, 5), nil, protocol.InvalidArgs, 5},
		{"such words of one who may not", `{"pack_id":"tool","verb_key":"move"}`, why(protocol.InvalidArgs, 5), agent, protocol.GrantMissing, 4},
		{"such words to no command", `{"pack_id":"tool","verb_key":"hide"}`, why(protocol.InvalidArgs, 5), nil, protocol.UnknownCommand, 3},
		{"nobody", `{"pack_id":"tool","verb_key":"show"}`, why(protocol.Unauthenticated, 4), nil, protocol.Unauthenticated, 4},
		{"nobody, and no envelope", `{`, why(protocol.Unauthenticated, 4), nil, protocol.InvalidEnvelope, 1},
		{"a no to the question", `{"pack_id":"tool","verb_key":"move","args":{"to":"b"}}`, why(protocol.ConfirmRequired, 6), nil, protocol.ConfirmRequired, 6},
		{"a no, and wrong arguments", `{"pack_id":"tool","verb_key":"move"}`, why(protocol.ConfirmRequired, 6), nil, protocol.InvalidArgs, 5},
		{"a store without a way in", `{"pack_id":"nowhere","verb_key":"show"}`, why(protocol.StateDamaged, 2), nil, protocol.StateDamaged, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			if tt.change != nil {
				tt.change(r)
			}
			res := r.p.Refuse(t.Context(), r.s, []byte(tt.envelope), tt.why)
			if res.OK || res.Error.Code != tt.code || res.Error.Step != tt.step {
				t.Fatalf("%+v", res)
			}
			if r.box.runs+len(r.box.prepared)+r.hub.count != 0 || r.log.kinds() != "denial" {
				t.Errorf("%d runs, %d mints, audit %s", r.box.runs, r.hub.count, r.log.kinds())
			}
			if e := r.log.entries[0]; e.Code != string(tt.code) || e.Step != tt.step || e.Message != res.Error.Message {
				t.Errorf("audit: %+v", e)
			}
			if why := res.Error; why == tt.why && tt.step == 5 && (why.Details["schema"] == nil || why.Details["example"] == nil || why.Hint == "") {
				t.Errorf("it teaches nothing: %+v", why)
			}
		})
	}
	r := newRig(t)
	r.log.failAt = 1
	res := r.p.Refuse(t.Context(), r.s, []byte(`{"pack_id":"tool","verb_key":"show"}`), why(protocol.InvalidArgs, 5))
	if res.OK || res.Error.Code != protocol.InternalError || res.Error.Details["code"] != protocol.InvalidArgs {
		t.Errorf("a refusal that cannot be recorded: %+v", res)
	}
}

// §12.1: what cannot be said and what the schema refuses is told at once, each once.
func Test_12_1_AllThatIsWrongIsToldAtOnce(t *testing.T) {
	r := newRig(t)
	why := protocol.Fail(protocol.InvalidArgs, "No.").With("violations", []protocol.Violation{{Message: "There is no flag --extra."}})
	why.Step = 5
	res := r.p.Refuse(t.Context(), r.s, []byte(`{"pack_id":"tool","verb_key":"move","args":{"to":5,"zip":1}}`), why)
	told := res.Error.Details["violations"].([]protocol.Violation)
	if len(told) != 3 || told[0].Message != "There is no flag --extra." || told[1].Pointer != "/to" || told[2].Pointer != "/zip" {
		t.Errorf("%+v", told)
	}
	for _, args := range []string{`{"to":5}`, `{}`} { // as it was refused, and as it is missing then
		why := protocol.Fail(protocol.InvalidArgs, "No.").With("violations", []protocol.Violation{{Pointer: "/to", Message: "--to is given twice."}})
		why.Step = 5
		res := r.p.Refuse(t.Context(), r.s, []byte(`{"pack_id":"tool","verb_key":"move","args":`+args+`}`), why)
		if told := res.Error.Details["violations"].([]protocol.Violation); len(told) != 1 {
			t.Errorf("%s: %+v", args, told)
		}
	}
}

// §6.5: how many invalid sequences were replaced is a note for a person, and no part of the envelope.
func Test_6_5_ReplacedSequencesAreNoted(t *testing.T) {
	for stdout, want := range map[string]string{"fine": "", "a\xff": "One sequence", "a\xff\n\xfeb": "2 sequences"} {
		r := newRig(t)
		r.install("talk", strings.NewReplacer(`"tool"`, `"talk"`, `"argv":["show"`, `"output":"text","argv":["show"`).Replace(toolManifest),
			strings.ReplaceAll(toolPolicy, `"tool"`, `"talk"`))
		r.activate("talk", true)
		r.box.outcome.Stdout = []byte(stdout)
		res := r.exec(`{"pack_id":"talk","verb_key":"show","args":{"name":"x"}}`)
		if !res.OK || strings.Contains(string(res.AppendJSON(nil)), "sequence") {
			t.Fatalf("%q: %+v", stdout, res)
		}
		if got := strings.Join(res.Notes, "|"); !strings.HasPrefix(got, want) || (want == "") != (got == "") {
			t.Errorf("%q: %q", stdout, got)
		}
	}
}
