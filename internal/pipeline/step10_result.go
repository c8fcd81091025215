package pipeline

import (
	"encoding/json"
	"fmt"

	"hcpx/internal/adapter"
	"hcpx/internal/protocol"
)

// finish is step 10: validate, redact, record, and the one envelope (§6.2). An outcome that cannot be
// recorded is internal with details.ran, never a success.
func (r *run) finish(out *adapter.Output, err *protocol.Error) protocol.Result {
	var value json.RawMessage
	if err = r.undone(err); err == nil {
		r.step = 10
		value, err = r.result(out)
	}
	if err != nil && err.Step == 0 {
		err.Step = r.step
		if steps := err.Code.Info().Steps; len(steps) == 1 {
			err.Step = steps[0]
		}
	}
	r.discreet(err)
	r.mask.refusal(err)
	if fault := r.record(out, err); fault != nil {
		return protocol.Denied(r.req.PackID, r.req.VerbKey, fault)
	}
	r.settle()
	if err != nil {
		return protocol.Denied(r.req.PackID, r.req.VerbKey, err)
	}
	return protocol.Result{OK: true, PackID: r.req.PackID, VerbKey: r.req.VerbKey, Result: value, Notes: notes(out)}
}

// notes tells a person what was done to the output (§6.5).
func notes(out *adapter.Output) []string {
	switch {
	case out.Replaced == 0:
		return nil
	case out.Replaced == 1:
		return []string{"One sequence of bytes was not valid UTF-8 and was replaced."}
	default:
		return []string{fmt.Sprintf("%d sequences of bytes were not valid UTF-8 and were replaced.", out.Replaced)}
	}
}

// settle renews stamps that did not prove the pack by themselves, once they can (§2.4). Where that fails the next exec only hashes again, as this one did.
func (r *run) settle() {
	if r.pack.Ripe() {
		_ = r.p.Gate.Store.Restamp(r.pack.ID)
	}
}

// result holds the value against the declared schema, then replaces what the policy redacts (§4.6). What did
// not come through a sandbox, whose cap it passed, is held against the cap here (§6.5).
func (r *run) result(out *adapter.Output) (json.RawMessage, *protocol.Error) {
	if out == nil || out.Value == nil {
		return nil, protocol.Fail(protocol.InternalError, "The command gave no result and no reason.")
	}
	schema, err := r.verb.Command.Result()
	if err != nil {
		return nil, protocol.Fail(protocol.InternalError, fmt.Sprintf("The result schema of %s/%s does not compile: %v.", r.pack.ID, r.verb.Command.Key, err))
	}
	if schema != nil {
		if bad := schema.Validate(out.Value); len(bad) > 0 {
			return nil, protocol.Fail(protocol.InvalidResult, fmt.Sprintf("The result of %s/%s is not what it declares%s. %s", r.pack.ID, r.verb.Command.Key, at(bad[0]), bad[0].Message)).
				With("violations", bad)
		}
	}
	text := raw(r.mask.node(r.verb.Entry.RedactResult(out.Value)))
	if r.world.Spec == nil && len(text) > r.p.OutputCap {
		return nil, protocol.Fail(protocol.OutputTooLarge, fmt.Sprintf("The result of %s/%s is larger than %d bytes (setting limits.output).", r.pack.ID, r.verb.Command.Key, r.p.OutputCap))
	}
	return text, nil
}

// discreet takes out of an error what the policy redacts in a result (§4.6): raw output, and messages that may
// repeat a value.
func (r *run) discreet(err *protocol.Error) {
	if err == nil || r.verb == nil || len(r.verb.Entry.Redact) == 0 {
		return
	}
	delete(err.Details, "stdout_tail")
	delete(err.Details, "body")
	if err.Code == protocol.InvalidResult {
		err.Message = fmt.Sprintf("The result of %s/%s is not what it declares.", r.pack.ID, r.verb.Command.Key)
		err.Details = nil
	}
}
