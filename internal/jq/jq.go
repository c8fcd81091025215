// Package jq is the machine of composite expressions (§3.5): jq as gojq has it, without what would bring in a clock,
// the environment, other input or an end of the program. An expression reads no file and opens no connection: of the
// functions that could, none is compiled in.
//
// Bounds on one expression are 1 s, one value, 1 MiB. It cannot be stopped inside a single call, and its memory is not
// bounded here: worker runs this machine in a process of its own, which is. The core does not link this room.
//
// Numbers: whatever an expression passes on keeps its text, whole numbers of any size are computed exactly, and
// decimals that an expression computes with are doubles, as in jq. A value that is no JSON number (infinite, nan)
// fails instead of becoming null.
package jq

import (
	"context"

	"hcpx/internal/adapter/composite"
	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// Machine evaluates in this process.
type Machine struct{ bounds bounds }

// New makes the machine.
func New() *Machine { return &Machine{limits()} }

var _ composite.Machine = (*Machine)(nil)

// Ready implements composite.Machine.
func (*Machine) Ready() *protocol.Error { return nil }

// Warm implements composite.Machine.
func (*Machine) Warm() {}

// Check implements composite.Machine.
func (*Machine) Check(_ context.Context, exprs []string) ([]error, *protocol.Error) {
	faults := make([]error, len(exprs))
	for i, src := range exprs {
		if _, err := compile(src); err != nil {
			faults[i] = short(err)
		}
	}
	return faults, nil
}

// Eval implements composite.Machine. What was linted once is inspected again: a pack may have come in under another
// list of what is closed.
func (m *Machine) Eval(ctx context.Context, expr string, input *jsondoc.Node) (*jsondoc.Node, error) {
	e, err := compile(expr)
	if err != nil {
		return nil, short(err)
	}
	return e.run(ctx, input.Any(), m.bounds)
}
