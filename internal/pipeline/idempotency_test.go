package pipeline

import (
	"context"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"hcpx/internal/approval"
	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
)

// keyed is an envelope with an idempotency key.
func keyed(envelope, key string) string {
	return strings.TrimSuffix(envelope, "}") + `,"idempotency_key":"` + key + `"}`
}

func text(r protocol.Result) string { return string(r.AppendJSON(nil)) }

// §15.5: a key stands on writes only.
func Test_15_5_AKeyOnAReadIsWrong(t *testing.T) {
	r := newRig(t)
	r.refused(r.exec(keyed(show, "k")), protocol.InvalidEnvelope, 5)
}

// §15.5: a repeat gets the recorded envelope, byte for byte, and nothing runs; so does one of a run that failed.
func Test_15_5_TheSameAnswer(t *testing.T) {
	for name, out := range map[string]sandbox.Outcome{
		"a result":  {Stdout: []byte(`{"n":1.50,"big":9007199254740993,"s":"é<&>\u2028"}`)},
		"a failure": {Exit: 3, Stderr: []byte("No <such> \"thing\"\tat all.\n")},
		"no result": {Stdout: []byte(`not json`)},
	} {
		r := newRig(t)
		r.box.outcome = out
		first := r.exec(keyed(move, "k"))
		entries := len(r.log.entries)
		r.box.outcome = sandbox.Outcome{Stdout: []byte(`"another"`)}
		again := r.exec(keyed(move, "k"))
		if text(first) != text(again) || r.box.runs != 1 {
			t.Errorf("%s: %d runs\n%s\n%s", name, r.box.runs, text(first), text(again))
		}
		if len(r.log.entries) != entries || r.hub.count != 1 || len(again.Notes) != 1 {
			t.Errorf("%s: a repeat was recorded or minted: %s, %d mints, %q", name, r.log.kinds(), r.hub.count, again.Notes)
		}
		// However it is said: the members' order and the form of numbers are no other request.
		if again := r.exec(keyed(`{"args":{"to":"\u0062"},"verb_key":"move","pack_id":"tool","confirm":true}`, "k")); text(again) != text(first) {
			t.Errorf("%s: %s", name, text(again))
		}
	}
}

// §15.5: a key stands for one request of one Principal, for 24 hours.
func Test_15_5_Standing(t *testing.T) {
	r := newRig(t)
	if res := r.exec(keyed(move, "k")); !res.OK {
		t.Fatalf("%+v", res.Error)
	}
	other := strings.Replace(move, `"b"`, `"c"`, 1)
	if res := r.exec(keyed(other, "k")); res.OK || res.Error.Code != protocol.IdempotencyConflict || res.Error.Step != 5 || r.box.runs != 1 {
		t.Errorf("another request: %+v", res.Error)
	}
	r.s.Project = "apollo"
	if res := r.exec(keyed(move, "k")); res.OK || res.Error.Code != protocol.IdempotencyConflict {
		t.Errorf("another project: %+v", res.Error)
	}
	r.s.Project = ""
	r.s.Principal = "human:eve"
	if res := r.exec(keyed(other, "k")); !res.OK || r.box.runs != 2 {
		t.Errorf("another Principal: %+v", res.Error)
	}
	r.s.Principal = "human:ada"
	r.now = testNow.Add(approval.KeyLife - 1)
	if r.exec(keyed(move, "k")); r.box.runs != 2 {
		t.Error("a key ended before its time")
	}
	r.now = testNow.Add(approval.KeyLife)
	if res := r.exec(keyed(other, "k")); !res.OK || r.box.runs != 3 {
		t.Errorf("a day later: %+v", res.Error)
	}
}

// §15.5: denials record nothing, at whatever step.
func Test_15_5_DenialsRecordNothing(t *testing.T) {
	r := newRig(t)
	plain := strings.Replace(move, `,"confirm":true`, "", 1)
	deny := map[string]func() func(){
		"6": func() func() { return func() {} },
		"7": func() func() { r.activate("tool", false); return func() { r.activate("tool", true) } },
		"8": func() func() {
			r.box.refuse = protocol.Fail(protocol.SandboxUnavailable, "No.")
			return func() { r.box.refuse = nil }
		},
		"audit": func() func() { r.log.failAt = 1; return func() { r.log.failAt = 0 } },
	}
	for step, set := range deny {
		e := move
		if step == "6" {
			e = plain
		}
		undo := set()
		if res := r.exec(keyed(e, "k")); res.OK || r.box.runs != 0 {
			t.Fatalf("%s: %+v", step, res)
		}
		undo()
	}
	if names, err := r.store.Shelf(approval.KeyKind).Names(); err != nil || len(names) != 0 {
		t.Errorf("records %q %v", names, err)
	}
	if res := r.exec(keyed(move, "k")); !res.OK || r.box.runs != 1 {
		t.Errorf("%+v", res.Error)
	}
}

// §15.5: while a run goes on a repeat is refused; of many at once one runs.
func Test_15_5_InProgress(t *testing.T) {
	r := newRig(t)
	r.box.during = func() {
		r.box.during = nil
		if res := r.exec(keyed(move, "k")); res.OK || res.Error.Code != protocol.IdempotencyInProgress || res.Error.Step != 5 {
			t.Errorf("%+v", res.Error)
		}
		if res := r.exec(keyed(strings.Replace(move, `"b"`, `"c"`, 1), "k")); res.OK || res.Error.Code != protocol.IdempotencyConflict {
			t.Errorf("%+v", res.Error)
		}
	}
	if res := r.exec(keyed(move, "k")); !res.OK || r.box.runs != 1 {
		t.Fatalf("%+v", res.Error)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			res := r.p.Exec(context.Background(), r.s, []byte(keyed(move, "many")))
			if !res.OK && res.Error.Code != protocol.IdempotencyInProgress {
				t.Errorf("%+v", res.Error)
			}
		})
	}
	all.Wait()
	if r.box.runs != 2 {
		t.Errorf("%d runs of one key", r.box.runs-1)
	}
}

// §15.5, §6.3: a fault in the run is its answer, and stays it.
func Test_15_5_AFaultIsKept(t *testing.T) {
	r := newRig(t)
	r.box.panics = true
	first := r.exec(keyed(move, "k"))
	r.box.panics = false
	if again := r.exec(keyed(move, "k")); first.OK || text(first) != text(again) || r.box.runs != 0 {
		t.Errorf("%s\n%s", text(first), text(again))
	}
}

// §15.5: whoever may not run it any more gets no recorded answer.
func Test_15_5_GrantsComeFirst(t *testing.T) {
	r := newRig(t)
	r.asAgent()
	id := r.asked(keyed(ask, "k"))
	r.decided(id, approval.Approved, "human:ada")
	first := r.exec(keyed(with(ask, id), "k"))
	if !first.OK {
		t.Fatalf("%+v", first.Error)
	}
	// A repeat of a recorded run needs no second approval, whatever stands in confirm.
	for _, e := range []string{with(ask, id), ask, with(ask, "01HUNKNOWN")} {
		if again := r.exec(keyed(e, "k")); text(again) != text(first) {
			t.Errorf("%s", text(again))
		}
	}
	if plan := r.p.Plan(context.Background(), r.s, []byte(keyed(ask, "k"))); !plan.OK || !strings.Contains(string(plan.Result), `"recorded":"run-`) {
		t.Errorf("plan %s", text(plan))
	}
	r.s.Principal = "agent:none.such"
	if res := r.exec(keyed(ask, "k")); res.OK || res.Error.Code != protocol.ConfirmRequired {
		t.Errorf("%+v", res.Error)
	}
}

// §6.2, §15.5: an envelope that was read back gives the same bytes.
func FuzzReadResult(f *testing.F) {
	for _, out := range []string{`{"a":1.0}`, `"x"`, `null`} {
		f.Add(out, "message <b>", "tail \u2028\"\x01", true)
		f.Add(out, "m", "", false)
	}
	f.Fuzz(func(t *testing.T, result, message, detail string, ok bool) {
		n := protocol.Result{OK: ok, PackID: "tool", VerbKey: "move"}
		if ok {
			n.Result = raw(parsed(result))
		} else {
			n.Error = protocol.Fail(protocol.CommandFailed, message).WithHint(detail).With("stderr_tail", detail).With("exit_code", 3).
				With("signal", nil).With("violations", []protocol.Violation{{Pointer: detail, Message: message}}).With("error", protocol.Fail(protocol.Timeout, detail))
		}
		first := n.AppendJSON(nil)
		again, err := protocol.ReadResult(first)
		if err != nil || string(again.AppendJSON(nil)) != string(first) {
			t.Errorf("%s\n%s %v", first, again.AppendJSON(nil), err)
		}
		again.Said = nil // its members say the same; what was no text is shown by another escape
		if utf8.ValidString(message) && utf8.ValidString(detail) && string(again.AppendJSON(nil)) != string(first) {
			t.Errorf("%s\n%s", first, again.AppendJSON(nil))
		}
	})
}

// parsed is a JSON value, or the text as one.
func parsed(s string) *jsondoc.Node {
	if n, faults := jsondoc.Parse([]byte(s), jsondoc.Limits{}); n != nil && len(faults) == 0 {
		return n
	}
	return jsondoc.Str(s)
}

// §15.5: what is kept under keys is bounded, and beyond the bound a new key is refused and nothing runs; none is forgotten before
// its time, and those that stand answer still.
func Test_15_5_BeyondTheBoundNothingRunsAndNothingIsForgotten(t *testing.T) {
	r := newRig(t)
	r.p.keys.Most = 2
	first := r.exec(keyed(move, "a"))
	if second := r.exec(keyed(move, "b")); !first.OK || !second.OK {
		t.Fatal(first.Error, second.Error)
	}
	res := r.exec(keyed(move, "c"))
	if res.OK || res.Error.Code != protocol.InvalidEnvelope || res.Error.Step != 5 || res.Error.Details["reason"] != "too_many_keys" || res.Error.Hint == "" || r.box.runs != 2 {
		t.Errorf("%s, %d runs", text(res), r.box.runs)
	}
	if again := r.exec(keyed(move, "a")); text(again) != text(first) || r.box.runs != 2 {
		t.Errorf("%s", text(again))
	}
	if res := r.exec(move); !res.OK || r.box.runs != 3 {
		t.Errorf("without a key: %s", text(res))
	}
	r.now = r.now.Add(approval.KeyLife)
	if res := r.exec(keyed(move, "c")); !res.OK || r.box.runs != 4 {
		t.Errorf("a day later: %s", text(res))
	}
}
