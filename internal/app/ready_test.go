package app

import (
	"testing"

	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
)

// asks tells whether a signal would have been heard when a child was prepared.
type asks struct {
	sandbox.Sandbox
	ready <-chan struct{}
	heard bool
}

func (a *asks) Prepare(*sandbox.Spec) (sandbox.Box, *protocol.Error) {
	select {
	case <-a.ready:
		a.heard = true
	default:
	}
	return nil, nil
}

// §6.9: no child starts before a signal would be heard; conformance, demo and probes pass the same door.
func Test_6_9_NoChildBeforeASignalIsHeard(t *testing.T) {
	ready := make(chan struct{})
	door := &asks{ready: ready}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := (readySandbox{door, ready}).Prepare(nil); err != nil {
			t.Error(err)
		}
	}()
	close(ready)
	<-done
	if !door.heard {
		t.Error("a child was prepared before")
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
