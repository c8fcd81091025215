package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"hcpx/internal/adapter/composite"
	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
)

// The bounds of the one who asks. The worker itself ends an expression that takes longer than it may, and says so; only
// one that cannot even say that comes to these.
const (
	startTime = 10 * time.Second // until the program has begun, on a busy machine
	checkTime = 5 * time.Second  // one expression read
	batchTime = time.Minute      // all of one Check
	atOnce    = 4                // processes
)

// Client evaluates in workers. It may be used by several at once; each evaluation has a worker of its own, so that one
// that is ended takes no other with it.
type Client struct {
	program func() (string, error)
	slots   chan struct{}

	mu     sync.Mutex
	idle   []*child
	begun  bool // some worker was started
	closed bool
}

// New makes the client. program names the program that has the Stage, by its absolute path.
func New(program func() (string, error)) *Client {
	return &Client{program: program, slots: make(chan struct{}, atOnce)}
}

var _ composite.Machine = (*Client)(nil)

// Ready implements composite.Machine: the program is there. It starts nothing.
func (c *Client) Ready() *protocol.Error {
	_, err := c.find()
	return err
}

func (c *Client) find() (string, *protocol.Error) {
	path, err := c.program()
	if err != nil {
		return "", missing("found, since the place of this program is not known")
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return "", missing("at " + path)
	}
	return path, nil
}

func missing(where string) *protocol.Error {
	return protocol.Fail(protocol.ComponentMissing, "Expressions are evaluated by hcpxd, which is not "+where+".").
		With("program", "hcpxd").WithHint("put the hcpxd of the same release beside hcpx")
}

// Warm implements composite.Machine.
func (c *Client) Warm() {
	go c.warm()
}

// warm starts the first worker, unless there was one, or the client is closed already.
func (c *Client) warm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun || c.closed {
		return
	}
	if w, err := c.start(); err == nil { // whoever evaluates finds out by himself
		c.idle = append(c.idle, w)
	}
}

// Check implements composite.Machine.
func (c *Client) Check(ctx context.Context, exprs []string) ([]error, *protocol.Error) {
	ctx, cancel := context.WithTimeout(ctx, batchTime)
	defer cancel()
	faults := make([]error, len(exprs))
	for i, expr := range exprs {
		if len(expr) > composite.MaxLength {
			faults[i] = errLength()
			continue
		}
		_, err := c.ask(ctx, checkTime, jsondoc.Obj(jsondoc.Member{Key: "check", Value: jsondoc.Str(expr)}))
		if own := (*protocol.Error)(nil); errors.As(err, &own) {
			return nil, own
		}
		switch {
		case err == composite.ErrTime && ctx.Err() != nil:
			err = fmt.Errorf("it was not read, since all that were to be read took longer than %s", batchTime)
		case err == composite.ErrTime:
			err = fmt.Errorf("it could not be read within %s", checkTime)
		}
		faults[i] = err
	}
	return faults, nil
}

// Eval implements composite.Machine.
func (c *Client) Eval(ctx context.Context, expr string, input *jsondoc.Node) (*jsondoc.Node, error) {
	if len(expr) > composite.MaxLength {
		return nil, errLength()
	}
	return c.ask(ctx, 2*composite.MaxTime, jsondoc.Obj(
		jsondoc.Member{Key: "eval", Value: jsondoc.Str(expr)}, jsondoc.Member{Key: "input", Value: input}))
}

func errLength() error { return fmt.Errorf("it is longer than %d bytes", composite.MaxLength) }

// ask has one request answered by a worker of its own.
func (c *Client) ask(ctx context.Context, bound time.Duration, request *jsondoc.Node) (*jsondoc.Node, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return nil, composite.ErrTime
	}
	w, refusal := c.take()
	if refusal != nil {
		return nil, refusal
	}
	if w.fresh {
		bound += startTime
	}
	value, alive, err := w.ask(ctx, bound, request)
	if alive {
		c.put(w)
	}
	return value, err
}

// take gives an idle worker, or a new one.
func (c *Client) take() (*child, *protocol.Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := len(c.idle); n > 0; n = len(c.idle) {
		w := c.idle[n-1]
		c.idle = c.idle[:n-1]
		if !w.aide.Over() {
			return w, nil
		}
		w.aide.End()
	}
	return c.start()
}

// start starts a worker; the lock is held.
func (c *Client) start() (*child, *protocol.Error) {
	c.begun = true
	path, refusal := c.find()
	if refusal != nil {
		return nil, refusal
	}
	aide, err := sandbox.StartAide(path, Word)
	if err != nil {
		return nil, protocol.Fail(protocol.ComponentMissing, fmt.Sprintf("Expressions are evaluated by %s, which could not be started: %s.", path, protocol.Clause(err.Error()))).
			With("program", "hcpxd").WithHint("put the hcpxd of the same release beside hcpx")
	}
	return &child{aide: aide, fresh: true}, nil
}

func (c *Client) put(w *child) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		w.aide.End()
		return
	}
	c.idle = append(c.idle, w)
}

// Close ends the workers. One that is at work ends when it has answered.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, w := range c.idle {
		w.aide.End()
	}
	c.idle = nil
}

// child is one worker.
type child struct {
	aide  *sandbox.Aide
	fresh bool // it has answered nothing yet
}

// ask sends a request and waits for its answer. alive says that the worker can take another one; else it was ended.
func (w *child) ask(ctx context.Context, bound time.Duration, request *jsondoc.Node) (value *jsondoc.Node, alive bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	stop := context.AfterFunc(ctx, w.aide.End)
	defer func() { alive = stop() && alive }()
	if err = send(w.aide.In, request, maxRequest); errors.Is(err, errTooLarge) {
		return nil, true, fmt.Errorf("what it sees is larger than %d MiB", maxRequest>>20)
	}
	var reply *jsondoc.Node
	if err == nil {
		reply, err = receive(w.aide.Out, maxReply)
	}
	if err == nil {
		if value, err = opened(reply); err == nil || value == nil && errors.As(err, new(clause)) {
			w.fresh = false
			if alive = !reply.Has("last"); !alive {
				w.aide.End()
			}
			return value, alive, err
		}
	}
	w.aide.End()
	if ctx.Err() != nil {
		return nil, false, composite.ErrTime
	}
	return nil, false, w.ended()
}

// clause is what a worker says of an expression.
type clause string

func (c clause) Error() string { return string(c) }

// opened is the value or the fault of an answer; any other error means that it is no answer.
func opened(reply *jsondoc.Node) (*jsondoc.Node, error) {
	if value := reply.Get("value"); value != nil && !reply.Has("fault") {
		return value, nil
	}
	fault := reply.Get("fault")
	if fault == nil || fault.Kind != jsondoc.String || fault.Text == "" || reply.Has("value") {
		return nil, errors.New("the answer is none")
	}
	return nil, clause(fault.Text)
}

// ended says how a worker came to its end without an answer.
func (w *child) ended() error {
	exit, last := w.aide.Wait()
	switch {
	case exit == exitMemory, exit == exitGo && len(last) > 0:
		return fmt.Errorf("it needs more than the %d MiB of memory that an expression has, with what it sees", composite.MaxMemory>>20)
	case exit == exitOpen:
		return protocol.Fail(protocol.SandboxUnavailable, "The process that evaluates expressions could not confine itself, so it evaluates none.").WithHint("hcpx doctor")
	}
	return protocol.Fail(protocol.InternalError, "The process that evaluates expressions (hcpxd) ended, or answered what is no answer.").
		WithHint("put the hcpxd of the same release beside hcpx")
}
