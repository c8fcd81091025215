package composite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"hcpx/internal/adapter"
	"hcpx/internal/jsondoc"
	"hcpx/internal/order"
	"hcpx/internal/protocol"
)

// state is one run: what was computed, and what was done.
type state struct {
	*adapter.Run
	machine Machine
	steps   []jsondoc.Member // in the order of the steps
	done    []adapter.StepDone
}

// seen is what an expression sees.
func seen(args *jsondoc.Node, steps []jsondoc.Member) *jsondoc.Node {
	return jsondoc.Obj(jsondoc.Member{Key: "args", Value: args}, jsondoc.Member{Key: "steps", Value: jsondoc.Obj(steps...)})
}

// Run runs the steps in order (§3.5). The first failing one ends it with step_failed; a step skipped by
// when is null.
func (c *command) Run(ctx context.Context, run *adapter.Run) (*adapter.Output, *protocol.Error) {
	s := &state{Run: run, machine: c.machine}
	for i := range c.steps {
		if err := s.step(ctx, &c.steps[i]); err != nil {
			return &adapter.Output{Steps: s.done}, err
		}
	}
	out := &adapter.Output{Steps: s.done}
	if c.output == "" {
		order.By(s.steps, func(a, b jsondoc.Member) int { return strings.Compare(a.Key, b.Key) })
		out.Value = jsondoc.Obj(s.steps...)
		return out, nil
	}
	v, err := s.eval(ctx, "output", c.output)
	if err != nil {
		return out, s.broken(ctx, &step{}, err)
	}
	out.Value = v
	return out, nil
}

// step runs one step and keeps its value.
func (s *state) step(ctx context.Context, st *step) *protocol.Error {
	if ctx.Err() != nil {
		return s.broken(ctx, st, nil)
	}
	done := adapter.StepDone{ID: st.ID, Pack: st.Pack, Verb: st.Verb}
	if st.when != "" {
		v, err := s.eval(ctx, "when", st.when)
		if err != nil {
			return s.broken(ctx, st, err)
		}
		done.Skipped = v.Kind == jsondoc.Null || (v.Kind == jsondoc.Bool && v.Text == "false")
	}
	value := jsondoc.NullNode()
	if !done.Skipped {
		var err *protocol.Error
		if value, err = s.value(ctx, st); err != nil {
			return s.broken(ctx, st, err)
		}
	}
	s.steps = append(s.steps, jsondoc.Member{Key: st.ID, Value: value})
	s.done = append(s.done, done)
	return nil
}

// eval computes the expression of a member over what is known so far.
func (s *state) eval(ctx context.Context, member, expr string) (*jsondoc.Node, *protocol.Error) {
	v, err := s.machine.Eval(ctx, expr, seen(s.Call.Args, s.steps))
	if err == nil {
		return v, nil
	}
	if own := (*protocol.Error)(nil); errors.As(err, &own) {
		return nil, own // not the expression's
	}
	return nil, fault(fmt.Sprintf("The expression of %s failed: %s.", member, protocol.Clause(err.Error())))
}

// value computes a value step, or makes the call of a call step.
func (s *state) value(ctx context.Context, st *step) (*jsondoc.Node, *protocol.Error) {
	if st.Verb != "" {
		return s.call(ctx, st)
	}
	return s.eval(ctx, "value", st.value)
}

// call goes through the whole pipeline for the step's own command, as the same Principal (§3.5).
func (s *state) call(ctx context.Context, st *step) (*jsondoc.Node, *protocol.Error) {
	args := json.RawMessage("{}")
	if st.args != "" {
		v, err := s.eval(ctx, "args", st.args)
		if err != nil {
			return nil, err
		}
		if v.Kind != jsondoc.Object {
			return nil, fault("The expression of args gives no object.")
		}
		args = v.Append(nil)
	}
	if s.Sub == nil {
		return nil, protocol.Fail(protocol.InternalError, "No pipeline was given for the calls of a composite.")
	}
	result := s.Sub(ctx, st.Pack, st.Verb, args)
	switch {
	case !result.OK && result.Error == nil:
		return nil, protocol.Fail(protocol.InternalError, "The step was refused without a reason.")
	case !result.OK:
		return nil, result.Error
	case len(result.Result) == 0:
		return jsondoc.NullNode(), nil
	}
	v, faults := jsondoc.Parse(result.Result, jsondoc.Limits{Bytes: len(result.Result), Depth: 2 * MaxDepth})
	if v == nil || len(faults) > 0 {
		return nil, protocol.Fail(protocol.InternalError, "The step's result is no JSON.")
	}
	return v, nil
}

// fault is the inner error of an expression.
func fault(message string) *protocol.Error { return protocol.Fail(protocol.StepFailed, message) }

// broken ends the run at a step: when the run itself was cancelled or out of time, that is why.
func (s *state) broken(ctx context.Context, st *step, inner *protocol.Error) *protocol.Error {
	var e *protocol.Error
	switch ctx.Err() {
	case nil:
		return s.failed(st, inner)
	case context.DeadlineExceeded:
		e = protocol.Fail(protocol.Timeout, fmt.Sprintf("The composite did not end in its time; it was at %s.", st.name()))
	default:
		e = protocol.Fail(protocol.Canceled, fmt.Sprintf("The composite was cancelled at %s.", st.name()))
	}
	return s.details(e, st, inner)
}

// failed is step_failed with what nobody may hide (§3.5): the step, its whole error, and the ids of the
// steps that were completed before.
func (s *state) failed(st *step, inner *protocol.Error) *protocol.Error {
	message := "The composite stopped at " + st.name() + ": " + inner.Message
	return s.details(protocol.Fail(protocol.StepFailed, message).WithHint(inner.Hint), st, inner)
}

func (s *state) details(e *protocol.Error, st *step, inner *protocol.Error) *protocol.Error {
	completed := []string{}
	for _, d := range s.done {
		if !d.Skipped {
			completed = append(completed, d.ID)
		}
	}
	e = e.With("step_id", st.ID).With("pack_id", st.Pack).With("verb_key", st.Verb).With("completed", completed)
	if inner != nil {
		e = e.With("error", inner)
	}
	return e
}

// name is the step for a person; the empty one is the output.
func (st *step) name() string {
	if st.ID == "" {
		return "its output"
	}
	return fmt.Sprintf("step %q", st.ID)
}
