package app

import (
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
)

// readySandbox is the one door through which children start, held until a signal would be heard: from then on
// a signal at any moment takes the whole tree along (§6.9). Before it, a signal ends a process without children.
type readySandbox struct {
	sandbox.Sandbox
	ready <-chan struct{}
}

// Prepare implements sandbox.Sandbox.
func (s readySandbox) Prepare(spec *sandbox.Spec) (sandbox.Box, *protocol.Error) {
	<-s.ready
	return s.Sandbox.Prepare(spec)
}
