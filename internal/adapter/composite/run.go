package composite

import (
	"context"
	"encoding/json"
	"fmt"

	"hcpx/internal/adapter"
	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// state is one run: what jq sees, and what was done.
type state struct {
	*adapter.Run
	bounds bounds
	input  map[string]any // args and steps
	steps  map[string]any
	done   []adapter.StepDone
}

// Run runs the steps in order (§3.5). The first failing one ends it with step_failed; a step skipped by
// when is null.
func (c *command) Run(ctx context.Context, run *adapter.Run) (*adapter.Output, *protocol.Error) {
	s := &state{Run: run, bounds: c.bounds, steps: map[string]any{}}
	s.input = map[string]any{"args": run.Call.Args.Any(), "steps": s.steps}
	for i := range c.steps {
		if err := s.step(ctx, &c.steps[i]); err != nil {
			return &adapter.Output{Steps: s.done}, err
		}
	}
	out := &adapter.Output{Steps: s.done}
	if c.output == nil {
		v, err := jsondoc.FromAny(s.steps)
		if err != nil {
			return out, s.failed(&step{}, fault("The results of the steps are no JSON: "+protocol.Clause(err.Error())+"."))
		}
		out.Value = v
		return out, nil
	}
	v, err := c.output.run(ctx, s.input, s.bounds)
	if err != nil {
		return out, s.broken(ctx, &step{}, fault(fmt.Sprintf("The expression of output failed: %s.", protocol.Clause(err.Error()))))
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
	if st.when != nil {
		v, err := st.when.run(ctx, s.input, s.bounds)
		if err != nil {
			return s.broken(ctx, st, fault(fmt.Sprintf("The expression of when failed: %s.", protocol.Clause(err.Error()))))
		}
		done.Skipped = v.Kind == jsondoc.Null || (v.Kind == jsondoc.Bool && v.Text == "false")
	}
	var value any
	if !done.Skipped {
		var err *protocol.Error
		if value, err = s.value(ctx, st); err != nil {
			return s.broken(ctx, st, err)
		}
	}
	s.steps[st.ID] = value
	s.done = append(s.done, done)
	return nil
}

// value computes a value step, or makes the call of a call step.
func (s *state) value(ctx context.Context, st *step) (any, *protocol.Error) {
	if st.Verb != "" {
		return s.call(ctx, st)
	}
	v, err := st.value.run(ctx, s.input, s.bounds)
	if err != nil {
		return nil, fault(fmt.Sprintf("The expression of value failed: %s.", protocol.Clause(err.Error())))
	}
	return v.Any(), nil
}

// call goes through the whole pipeline for the step's own command, as the same Principal (§3.5).
func (s *state) call(ctx context.Context, st *step) (any, *protocol.Error) {
	args := json.RawMessage("{}")
	if st.args != nil {
		v, err := st.args.run(ctx, s.input, s.bounds)
		if err != nil {
			return nil, fault(fmt.Sprintf("The expression of args failed: %s.", protocol.Clause(err.Error())))
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
		return nil, nil
	}
	v, faults := jsondoc.Parse(result.Result, jsondoc.Limits{Bytes: len(result.Result), Depth: 2 * s.bounds.depth})
	if v == nil || len(faults) > 0 {
		return nil, protocol.Fail(protocol.InternalError, "The step's result is no JSON.")
	}
	return v.Any(), nil
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
