package app

import (
	"context"
	"testing"

	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
)

// asks is a sandbox and its box that note whether a signal would have been heard when the child was started.
type asks struct {
	sandbox.Sandbox
	ready    <-chan struct{}
	prepared chan struct{}
	heard    bool
}

func (a *asks) Prepare(*sandbox.Spec) (sandbox.Box, *protocol.Error) {
	close(a.prepared)
	return a, nil
}

func (a *asks) Run(context.Context) (*sandbox.Outcome, *protocol.Error) {
	select {
	case <-a.ready:
		a.heard = true
	default:
	}
	return nil, nil
}

func (a *asks) Close() error { return nil }

// §6.9: no child starts before a signal would be heard; conformance, demo and probes pass the same door.
func Test_6_9_NoChildBeforeASignalIsHeard(t *testing.T) {
	ready := make(chan struct{})
	door := &asks{ready: ready, prepared: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		box, err := readySandbox{door, ready}.Prepare(nil)
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := box.Run(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	<-door.prepared // preparing needs no signal
	close(ready)
	<-done
	if !door.heard {
		t.Error("a child was started before")
	}
	o := options(t, nil)
	o.Ready = ready
	a, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, waits := a.gate().Sandbox.(readySandbox); !waits {
		t.Errorf("the gate's sandbox is %T", a.gate().Sandbox)
	}
}
