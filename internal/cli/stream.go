package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"syscall"

	"hcpx/internal/app"
	"hcpx/internal/protocol"
)

// Stream is §6.8: one envelope a line on stdin, one result envelope a line on stdout, in the order of the input.
//
// At most --jobs requests are held at once, from the moment a line begins to be read to that in which its answer is
// written: who reads slowly stops the reading, and what is in memory is bounded by jobs times the bounds of one request.
// A line over 1 MiB is read past, not kept. The end of the input lets what runs end; a signal, or a stdout that takes
// nothing any more, cancels it, and each is answered where anybody still reads.

// stream is one run of it.
type stream struct {
	d      *deps
	answer func(ctx context.Context, envelope []byte) protocol.Result
	places chan struct{}             // a place for each request that is held
	queue  chan chan protocol.Result // the answers to come, in the order of the lines
	failed bool                      // an answer was not ok
}

func (d *deps) execStream(ctx context.Context, o execOptions) error {
	a, x, s, err := d.executor()
	if a == nil {
		return err
	}
	if d.env.KeepPipe != nil {
		d.env.KeepPipe()
	}
	if d.env.Ready != nil {
		<-d.env.Ready // a signal is heard before the first line is
	}
	st := &stream{d: d, answer: streamed(a, x, s, err, o.Plan), places: make(chan struct{}, o.Jobs), queue: make(chan chan protocol.Result, o.Jobs)}
	return st.run(ctx)
}

// streamed is how one line is answered: as --envelope answers its one (§6.6).
func streamed(a *app.App, x protocol.Executor, s protocol.Session, err error, plan bool) func(context.Context, []byte) protocol.Result {
	return func(ctx context.Context, envelope []byte) protocol.Result {
		switch {
		case err != nil:
			return a.Refuse(ctx, s, envelope, stepped(err))
		case plan:
			return x.Plan(ctx, s, envelope)
		}
		return x.Exec(ctx, s, envelope)
	}
}

// run reads, runs and writes until the input ends, a signal comes or stdout takes no more. The exit code is 0 when all
// lines were read and every answer is ok, 70 when stdin or stdout is broken, else 1: also after a signal, and when
// whoever read the answers left.
func (st *stream) run(ctx context.Context) error {
	work, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- st.read(work)
		close(st.queue)
	}()
	unwritten := st.write(cancel)
	unread := <-ended
	switch {
	case ctx.Err() != nil || errors.Is(unwritten, syscall.EPIPE):
		return exit(1)
	case unwritten != nil:
		return st.broke("write the answers", unwritten)
	case unread != nil:
		return st.broke("read the stream", unread)
	case st.failed:
		return exit(1)
	}
	return nil
}

// broke says on stderr what broke: stdout holds results and nothing else.
func (st *stream) broke(doing string, why error) error {
	e := asFailure(broken(doing, why))
	st.d.explain(st.d.errPage(), e)
	return exit(e.Code.Exit())
}

// read takes line by line, and starts each. It ends with the input or with ctx: a read that still waits is left behind.
func (st *stream) read(ctx context.Context) error {
	lines := make(chan []byte)
	ended := make(chan error, 1)
	go func() {
		in := bufio.NewReaderSize(st.d.env.In, 64<<10)
		for {
			select { // a place first: a line that nobody can take is not read
			case st.places <- struct{}{}:
			case <-ctx.Done():
				ended <- nil
				return
			}
			line, err := readLine(in)
			if err != nil {
				ended <- err
				return
			}
			select {
			case lines <- line:
			case <-ctx.Done():
				ended <- nil
				return
			}
		}
	}()
	for {
		select {
		case line := <-lines:
			st.start(ctx, line)
		case err := <-ended:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// start runs one request beside the others. It was read, so it is answered, canceled or not.
func (st *stream) start(ctx context.Context, line []byte) {
	out := make(chan protocol.Result, 1)
	st.queue <- out
	go func() { out <- st.answer(ctx, line) }()
}

// write gives the answers out in order. When one can't be written the rest is canceled and waited for; the audit has it.
func (st *stream) write(cancel func()) (wrong error) {
	for out := range st.queue {
		r := <-out
		st.failed = st.failed || !r.OK
		if wrong == nil {
			if wrong = st.d.put(append(r.AppendJSON(nil), '\n')); wrong != nil {
				cancel()
			}
		}
		<-st.places
	}
	return wrong
}

// readLine is the next line without its end; io.EOF when there is none. Of one that is longer than an envelope may be
// there comes one byte more than that, for step 1 to refuse, and the rest is read past.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part[:min(len(part), maxEnvelope+1-len(line))]...) // with the end of the longest that is cut here
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(line) > 0:
			err = nil // the last line may have no end
		}
		return bytes.TrimSuffix(line[:min(len(line), maxEnvelope)], []byte("\n")), err
	}
}
