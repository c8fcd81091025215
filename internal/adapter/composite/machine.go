package composite

import (
	"context"
	"errors"
	"time"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// Machine evaluates the jq expressions of composites (§3.5). Nobody here knows jq: an expression is a stranger's
// program, and where it runs is the machine's own. Every machine passes machinetest.
type Machine interface {
	// Ready answers whether there is a machine at all; nil when there is. It starts nothing.
	Ready() *protocol.Error
	// Warm begins what the first evaluation would wait for, and does not wait itself.
	Warm()
	// Check judges expressions: per expression a clause for a person, or nil. The refusal says that they could
	// not be judged, none of them.
	Check(ctx context.Context, exprs []string) ([]error, *protocol.Error)
	// Eval gives the one value of an expression over an input, within the bounds below. The error is a clause for a
	// person, or a *protocol.Error when it was not the expression that failed.
	Eval(ctx context.Context, expr string, input *jsondoc.Node) (*jsondoc.Node, error)
}

// The bounds of one expression (§3.5).
const (
	MaxTime   = time.Second
	MaxValue  = 1 << 20   // bytes of its value as JSON
	MaxDepth  = 128       // of its value
	MaxLength = 64 << 10  // bytes of its text: its nesting is walked by recursion
	MaxMemory = 256 << 20 // of the process that evaluates it, with what it sees
)

// ErrTime is what a machine answers for an expression that did not end. It may have left it running.
var ErrTime = errors.New("it did not end within " + MaxTime.String())

// nowhere is no machine: whatever asks it is refused.
type nowhere struct{}

func (nowhere) Ready() *protocol.Error {
	return protocol.Fail(protocol.ComponentMissing, "There is nothing here that evaluates expressions.").WithHint("hcpx doctor")
}

func (nowhere) Warm() {}

func (n nowhere) Check(context.Context, []string) ([]error, *protocol.Error) { return nil, n.Ready() }

func (n nowhere) Eval(context.Context, string, *jsondoc.Node) (*jsondoc.Node, error) {
	return nil, n.Ready()
}
