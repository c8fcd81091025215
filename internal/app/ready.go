package app

import (
	"context"

	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
)

// readySandbox is the one door through which children start, held until a signal would be heard: from then on
// a signal at any moment takes the whole tree along (§6.9). Before it, a signal ends a process without children.
type readySandbox struct {
	sandbox.Sandbox
	ready <-chan struct{}
}

// Prepare implements sandbox.Sandbox; it waits for nothing, since it starts nothing.
func (s readySandbox) Prepare(spec *sandbox.Spec) (sandbox.Box, *protocol.Error) {
	box, refusal := s.Sandbox.Prepare(spec)
	if refusal != nil {
		return nil, refusal
	}
	return readyBox{box, s.ready}, nil
}

type readyBox struct {
	sandbox.Box
	ready <-chan struct{}
}

// Run implements sandbox.Box.
func (b readyBox) Run(ctx context.Context) (*sandbox.Outcome, *protocol.Error) {
	<-b.ready
	return b.Box.Run(ctx)
}
