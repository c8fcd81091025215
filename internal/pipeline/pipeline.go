// Package pipeline is §6.3: ten steps in one fixed order, failing closed at each. run.go reads them as a
// straight line, a file holds each step, plan.go shares all of admit with run, so that what plan shows is
// what exec does.
//
// It refuses before it does: a denial at steps 1 to 8 has run nothing of the command. The intent is in the
// audit before step 9 and the outcome after; if the intent can't be written, nothing runs. Faces hold it as
// a protocol.Executor and cannot skip a step.
package pipeline

import (
	"context"
	"time"

	"hcpx/internal/approval"
	"hcpx/internal/audit"
	"hcpx/internal/gate"
	"hcpx/internal/protocol"
)

// Builtin runs a command line of the bootstrap pack in this process (§11.4), as the same Session, without
// prompts, and answers its standard output and exit code.
type Builtin func(ctx context.Context, s protocol.Session, argv []string) (stdout []byte, exit int)

// Deps are the doors of a Pipeline. All are needed but Builtin, without which hcp-cli is not executable.
type Deps struct {
	Gate    *gate.Gate
	Audit   audit.Log
	Now     func() time.Time
	NewID   func() string // of a run; unique and sortable
	Builtin Builtin
	// AgentEnvelope lets an agent's own confirm: true count ([confirm] agent = "envelope", §15.2).
	AgentEnvelope bool
	// NoSelfConfirm: no grant lets it count either ([confirm] agent = "approval").
	NoSelfConfirm bool
	OutputCap     int // bytes of a result (§6.5)
}

// Pipeline is the Executor.
type Pipeline struct {
	Deps
	approvals *approval.Book
	keys      *approval.Keys
}

// New makes a Pipeline.
func New(d Deps) *Pipeline {
	st := d.Gate.Store
	return &Pipeline{d, &approval.Book{Shelf: st.Shelf(approval.Kind), Now: d.Now, NewID: d.NewID},
		&approval.Keys{Shelf: st.Shelf(approval.KeyKind), Now: d.Now}}
}

var _ protocol.Executor = (*Pipeline)(nil)
