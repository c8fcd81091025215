package worker

import (
	"context"
	"errors"
	"io"
	"runtime"
	"runtime/debug"
	"time"

	"hcpx/internal/adapter/composite"
	"hcpx/internal/jsondoc"
)

// How the worker ends, when not with its input or by a signal.
const (
	exitFault  = 1
	exitGo     = 2 // Go's own end, with words: a panic is answered, so what is left is the memory, in whatever part of Go it was missed
	exitMemory = 3
	exitOpen   = 4 // it could not confine itself
)

// Stage is the worker, when this program was started as one; ok is false for a start of any other kind. It comes before
// anything else of main. in and out are its streams, machine evaluates.
func Stage(argv []string, machine composite.Machine, in io.Reader, out io.Writer) (code int, ok bool) {
	if len(argv) != 2 || argv[1] != Word {
		return 0, false
	}
	debug.SetTraceback("none")
	debug.SetMaxStack(composite.MaxMemory / 4)
	debug.SetMemoryLimit(composite.MaxMemory / 4 * 3) // from here on it collects more eagerly
	if err := seclude(); err != nil {
		return exitOpen, true
	}
	return serve(machine, in, out), true
}

// lookEvery is how often the worker looks at its own memory while it evaluates. Where the kernel holds it (Seclude) this
// only makes the end a cleaner one.
const lookEvery = 10 * time.Millisecond

// serve answers requests one after the other until its input ends.
func serve(machine composite.Machine, in io.Reader, out io.Writer) int {
	requests, gone := make(chan *jsondoc.Node), make(chan struct{})
	go func() {
		defer close(gone)
		for {
			request, err := receive(in, maxRequest)
			if err != nil {
				return
			}
			requests <- request
		}
	}()
	for {
		select {
		case <-gone:
			return 0
		case request := <-requests:
			reply, code := attend(machine, request, gone)
			if reply == nil {
				return code
			}
			if err := send(out, reply, maxReply); err != nil {
				return exitFault
			}
			if reply.Has("last") {
				return 0
			}
		}
	}
}

// attend answers one request; nil means that the worker ends without an answer.
func attend(machine composite.Machine, request *jsondoc.Node, gone <-chan struct{}) (reply *jsondoc.Node, code int) {
	done := make(chan *jsondoc.Node, 1)
	go func() { done <- answer(machine, request) }()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case reply := <-done:
			return reply, 0
		case <-gone: // whoever asked does not want it any more
			return nil, 0
		case <-look.C:
			if held() > composite.MaxMemory {
				return nil, exitMemory
			}
		}
	}
}

func answer(machine composite.Machine, request *jsondoc.Node) *jsondoc.Node {
	if expr := request.Get("check"); expr != nil {
		faults, refusal := machine.Check(context.Background(), []string{expr.Text})
		switch {
		case refusal != nil:
			return faulty(refusal)
		case faults[0] != nil:
			return faulty(faults[0])
		}
		return jsondoc.Obj(jsondoc.Member{Key: "value", Value: jsondoc.NullNode()})
	}
	expr := request.Get("eval")
	if expr == nil {
		return faulty(errors.New("it was asked for nothing"))
	}
	value, err := machine.Eval(context.Background(), expr.Text, request.Get("input"))
	if err != nil {
		return faulty(err)
	}
	return jsondoc.Obj(jsondoc.Member{Key: "value", Value: value})
}

// faulty is the answer of an expression that failed. One that did not end is still running, so the worker ends.
func faulty(err error) *jsondoc.Node {
	n := jsondoc.Obj(jsondoc.Member{Key: "fault", Value: jsondoc.Str(err.Error())})
	if errors.Is(err, composite.ErrTime) {
		n = n.With("last", jsondoc.Boolean(true))
	}
	return n
}

// held is the memory that the runtime of this process has from the system.
func held() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Sys - m.HeapReleased
}
