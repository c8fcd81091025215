package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"hcpx/internal/adapter/composite"
	"hcpx/internal/adapter/composite/machinetest"
	"hcpx/internal/jq"
	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// The test binary is the program with the stage.
func TestMain(m *testing.M) {
	if code, ok := Stage(os.Args, prober{jq.New()}, os.Stdin, os.Stdout); ok {
		os.Exit(code)
	}
	if os.Getenv(asParent) != "" {
		parent()
	}
	os.Exit(m.Run())
}

func client(t *testing.T) *Client {
	t.Helper()
	c := New(os.Executable)
	t.Cleanup(c.Close)
	return c
}

func eval(t *testing.T, c composite.Machine, expr string) (string, error) {
	t.Helper()
	v, err := c.Eval(t.Context(), expr, jsondoc.Obj(jsondoc.Member{Key: "args", Value: jsondoc.Obj()}))
	if err != nil {
		return "", err
	}
	return string(v.Append(nil)), nil
}

func Test_3_5_Worker(t *testing.T) { machinetest.Run(t, client(t)) }

// take gets memory inside a worker and writes to it.
func take(how string) any {
	const part = 8 << 20
	var kept [][]byte
	switch how {
	case "memory at once":
		kept = append(kept, make([]byte, 4*composite.MaxMemory))
	case "memory in parts":
		for range 4 * composite.MaxMemory / part {
			kept = append(kept, bytes.Repeat([]byte("x"), part))
		}
	case "memory that fits":
		for range composite.MaxMemory / 2 / part {
			kept = append(kept, bytes.Repeat([]byte("x"), part))
		}
		runtime.KeepAlive(kept)
		return "fits"
	case "stack":
		return dig(1 << 40)
	}
	return len(kept)
}

func dig(n int) int {
	var frame [1024]byte
	if n > 0 {
		frame[n%len(frame)] = byte(dig(n - 1))
	}
	return int(frame[(n+1)%len(frame)]) + n
}

// §3.5: what an expression sees is bounded too, before it is sent.
func Test_3_5_WhatItSeesIsBounded(t *testing.T) {
	c := client(t)
	in := jsondoc.Str(strings.Repeat("x", maxRequest)) // and its quotes
	if _, err := c.Eval(t.Context(), `1`, in); err == nil || !strings.Contains(err.Error(), "larger than 64 MiB") {
		t.Error(err)
	}
	if got, err := eval(t, c, `1`); got != "1" {
		t.Error(err)
	}
}

// program makes a script that stands where the worker should.
func program(t *testing.T, script string, mode os.FileMode) func() (string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hcpxd")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), mode); err != nil {
		t.Fatal(err)
	}
	return func() (string, error) { return path, nil }
}

// §3.5, §11: without the program, or with another one, nothing is evaluated, and the refusal says what to do.
func Test_3_5_FailsClosed(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("no sh")
	}
	for name, test := range map[string]struct {
		program func() (string, error)
		code    protocol.Code
		ready   bool
	}{
		"no place":       {func() (string, error) { return "", errors.New("gone") }, protocol.ComponentMissing, false},
		"none":           {func() (string, error) { return filepath.Join(t.TempDir(), "hcpxd"), nil }, protocol.ComponentMissing, false},
		"a directory":    {func() (string, error) { return t.TempDir(), nil }, protocol.ComponentMissing, false},
		"no program":     {program(t, "exit 0", 0o600), protocol.ComponentMissing, false},
		"ends at once":   {program(t, "exit 0", 0o700), protocol.InternalError, true},
		"fails":          {program(t, "exit 1", 0o700), protocol.InternalError, true},
		"no memory":      {program(t, "exit 3", 0o700), "", true}, // the expression's fault
		"Go's own end":   {program(t, "echo fatal error: out of memory >&2; exit 2", 0o700), "", true},
		"not confined":   {program(t, "exit 4", 0o700), protocol.SandboxUnavailable, true},
		"garbage":        {program(t, "echo '{\"ok\": true}'; exec cat >/dev/null", 0o700), protocol.InternalError, true},
		"no JSON":        {program(t, `printf '\0\0\0\3{x}'; exec cat >/dev/null`, 0o700), protocol.InternalError, true},
		"no object":      {program(t, `printf '\0\0\0\2[]'; exec cat >/dev/null`, 0o700), protocol.InternalError, true},
		"no answer":      {program(t, `printf '\0\0\0\2{}'; exec cat >/dev/null`, 0o700), protocol.InternalError, true},
		"half an answer": {program(t, `printf '\0\0\0\17{"value":'`, 0o700), protocol.InternalError, true},
		"both":           {program(t, `printf '\0\0\0\35{"value": 1, "fault": "why"}'; exec cat >/dev/null`, 0o700), protocol.InternalError, true},
		"too much":       {program(t, `printf '\177\0\0\0'; exec cat >/dev/null`, 0o700), protocol.InternalError, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := New(test.program)
			defer c.Close()
			if ready := c.Ready(); (ready == nil) != test.ready {
				t.Errorf("ready: %v", ready)
			}
			c.Warm()
			_, err := eval(t, c, `1`)
			own := (*protocol.Error)(nil)
			if err == nil || errors.As(err, &own) != (test.code != "") || own != nil && (own.Code != test.code || own.Hint == "" || !strings.HasSuffix(own.Message, ".")) {
				t.Errorf("evaluated: %v, %+v", err, own)
			}
			_, refusal := c.Check(t.Context(), []string{"1"})
			if test.code != "" && (refusal == nil || refusal.Code != test.code) {
				t.Errorf("checked: %+v", refusal)
			}
		})
	}
}

// §3.5: a worker that says nothing is ended when its time is over, or the run is.
func Test_3_5_ASilentWorkerIsEnded(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("no sh")
	}
	c := New(program(t, "exec sleep 1000", 0o700))
	defer c.Close()
	w, refusal := c.take()
	if refusal != nil {
		t.Fatal(refusal)
	}
	_, alive, err := w.ask(t.Context(), 20*time.Millisecond, jsondoc.Obj())
	if err != composite.ErrTime || alive {
		t.Error(err)
	}
	if exit, _ := w.aide.Wait(); exit != -1 {
		t.Errorf("exit %d", exit)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := c.Eval(ctx, "1", jsondoc.Obj()); err == nil {
		t.Error("a value")
	}
}

// One worker serves what comes one after the other; Close ends it.
func Test_3_5_OneWorkerForOneAfterTheOther(t *testing.T) {
	c := client(t)
	c.Warm()
	for range 5 {
		if _, err := eval(t, c, `1`); err != nil {
			t.Fatal(err)
		}
	}
	c.mu.Lock()
	idle := c.idle
	c.mu.Unlock()
	if len(idle) != 1 {
		t.Fatalf("%d workers", len(idle))
	}
	c.Close()
	idle[0].aide.Wait()
	if w, refusal := c.take(); refusal == nil {
		c.put(w)
		if w.aide.Wait(); len(c.idle) > 0 {
			t.Error("a closed client keeps a worker")
		}
	}
}

// A client that was closed before its worker was warm starts none, which nobody would end.
func Test_3_5_NoWorkerIsStartedAfterTheEnd(t *testing.T) {
	c := client(t)
	c.Close()
	if c.warm(); c.begun || len(c.idle) > 0 {
		t.Errorf("%d workers", len(c.idle))
	}
	open := client(t)
	if open.warm(); len(open.idle) != 1 {
		t.Errorf("%d workers", len(open.idle))
	}
}

// stuck is a machine whose evaluation does not end.
type stuck struct{ composite.Machine }

func (stuck) Eval(context.Context, string, *jsondoc.Node) (*jsondoc.Node, error) { select {} }

// §3.5: the worker ends with its input, also while it evaluates.
func Test_3_5_TheWorkerEndsWithItsInput(t *testing.T) {
	in, write := io.Pipe()
	ended := make(chan int)
	go func() { ended <- serve(stuck{jq.New()}, in, io.Discard) }()
	if err := send(write, jsondoc.Obj(jsondoc.Member{Key: "eval", Value: jsondoc.Str("1")}, jsondoc.Member{Key: "input", Value: jsondoc.Obj()}), maxRequest); err != nil {
		t.Fatal(err)
	}
	write.Close()
	if code := <-ended; code != 0 {
		t.Errorf("exit %d", code)
	}
}

// Only the word starts it, and nothing else is it.
func Test_3_5_StageIsNoCommand(t *testing.T) {
	for _, argv := range [][]string{nil, {"hcpxd"}, {"hcpxd", "serve"}, {"hcpxd", Word, "x"}, {Word}, {"hcpxd", "x", Word}} {
		if _, ok := Stage(argv, jq.New(), strings.NewReader(""), io.Discard); ok {
			t.Errorf("%q is taken for a worker", argv)
		}
	}
}

func frames(t testing.TB, nodes ...string) []byte {
	var b bytes.Buffer
	for _, text := range nodes {
		n, _ := jsondoc.Parse([]byte(text), jsondoc.Limits{})
		if err := send(&b, n, maxRequest); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// FuzzServe: whatever comes in, the worker ends with its input, and what it says are frames that the client reads.
func FuzzServe(f *testing.F) {
	f.Add(frames(f, `{"eval":".","input":{"a":1}}`, `{"check":"now"}`, `{"eval":"1,2","input":null}`))
	f.Add(frames(f, `{"eval":1}`, `{"check":[]}`, `{}`))
	f.Add([]byte("\xff\xff\xff\xff{"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var out bytes.Buffer
		if code := serve(jq.New(), bytes.NewReader(raw), &out); code != 0 {
			t.Fatalf("exit %d", code)
		}
		for out.Len() > 0 {
			reply, err := receive(&out, maxReply)
			if err != nil {
				t.Fatal(err)
			}
			if v, err := opened(reply); (v == nil) == (err == nil) {
				t.Fatalf("%s: %v", reply.Append(nil), err)
			}
		}
	})
}

// FuzzReply: no answer of a worker makes a value and an error, or takes more memory than it sent.
func FuzzReply(f *testing.F) {
	f.Add(frames(f, `{"value":{"a":[1]}}`))
	f.Add(frames(f, `{"fault":"why","last":true}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		reply, err := receive(bytes.NewReader(raw), maxReply)
		if err != nil {
			return
		}
		if v, err := opened(reply); (v == nil) == (err == nil) {
			t.Fatal(v, err)
		}
	})
}

func Benchmark(b *testing.B) {
	in := jsondoc.Obj(jsondoc.Member{Key: "args", Value: jsondoc.Obj()})
	for name, m := range map[string]composite.Machine{"worker": New(os.Executable), "in process": jq.New()} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := m.Eval(b.Context(), `{from: .args.a, to: .args.b}`, in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("start", func(b *testing.B) {
		for b.Loop() {
			c := New(os.Executable)
			if _, err := c.Eval(b.Context(), `1`, in); err != nil {
				b.Fatal(err)
			}
			c.Close()
		}
	})
}

// prober is jq, and an expression that tries what a worker may not do.
type prober struct{ composite.Machine }

const probe = "# probe "

func (p prober) Eval(ctx context.Context, expr string, in *jsondoc.Node) (*jsondoc.Node, error) {
	what, ok := strings.CutPrefix(expr, probe)
	if !ok {
		return p.Machine.Eval(ctx, expr, in)
	}
	if what == "stack" || strings.HasPrefix(what, "memory") {
		return jsondoc.Str(fmt.Sprint(take(what))), nil
	}
	return jsondoc.Str(fmt.Sprint(attempt(what))), nil
}
