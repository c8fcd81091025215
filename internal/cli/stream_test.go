package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// streams runs hcpx exec --stream over input and answers each line that came.
func (p place) streams(input string, more ...string) (lines []*jsondoc.Node, code int) {
	p.t.Helper()
	env, out, errs := p.env(append([]string{"exec", "--stream"}, more...)...)
	env.In = strings.NewReader(input)
	code = Main(context.Background(), env)
	if errs.Len() > 0 {
		p.t.Errorf("stderr: %s", errs)
	}
	for line := range bytes.Lines(out.Bytes()) {
		n, faults := jsondoc.Parse(bytes.TrimRight(line, "\n"), jsondoc.Limits{})
		if len(faults) > 0 || !bytes.HasSuffix(line, []byte("\n")) {
			p.t.Fatalf("no line of JSON: %q", line)
		}
		lines = append(lines, n)
	}
	return lines, code
}

// §6.8: a line is answered by a line, in the order of the input, whatever stands in it.
func Test_6_8_ALineIsAnsweredByALine(t *testing.T) {
	p := facePlace(t)
	long := `{"pack_id":"kinds","verb_key":"kinds.show","args":{"text":"` + strings.Repeat("x", 1<<20) + `"}}`
	fits := `{"pack_id":"kinds","verb_key":"kinds.show","args":{}}`
	fits += strings.Repeat(" ", 1<<20-len(fits))
	rows := []struct{ line, want string }{
		{`{"pack_id":"kinds","verb_key":"kinds.show","args":{"n":1}}`, "ok"},
		{`not json`, "invalid_envelope"},
		{``, "invalid_envelope"},
		{`[]`, "invalid_envelope"},
		{`{"pack_id":"kinds","verb_key":"kinds.show","args":{"n":2}}` + "\r", "ok"},
		{long, "invalid_envelope"},
		{fits, "ok"},
		{fits + " ", "invalid_envelope"},
		{"{\"pack_id\":\"kinds\",\"verb_key\":\"kinds.show\",\"args\":{\"text\":\"\xff\"}}", "invalid_envelope"},
		{`{"pack_id":"kinds","verb_key":"kinds.show"} {}`, "invalid_envelope"},
		{`{"pack_id":"kinds","verb_key":"deep.down.set","args":{"to":1},"project":"a"}`, "confirm_required"},
		{`{"pack_id":"kinds","verb_key":"deep.down.set","args":{"to":1},"project":"a","confirm":true,"idempotency_key":"k"}`, "ok"},
		{`{"pack_id":"kinds","verb_key":"deep.down.set","args":{"to":1},"project":"a","confirm":true,"idempotency_key":"k"}`, "ok"},
		{`{"pack_id":"mirror","verb_key":"show"}`, "pack_not_activated"},
		{`{"pack_id":"kinds","verb_key":"kinds.show","args":{"n":3}}`, "ok"}, // without an end
	}
	var input []string
	for _, r := range rows {
		input = append(input, r.line)
	}
	for _, jobs := range []string{"1", "4"} {
		if jobs == "4" { // at once, the second of one key may come while the first runs
			rows[12].line = `{"pack_id":"kinds","verb_key":"kinds.show"}`
			input[12] = rows[12].line
		}
		got, code := p.streams(strings.Join(input, "\n"), "--jobs", jobs)
		if len(got) != len(rows) || code != 1 {
			t.Fatalf("jobs %s: %d answers to %d lines, exit %d", jobs, len(got), len(rows), code)
		}
		for i, r := range rows {
			said := "ok"
			if e := got[i].Get("error"); e != nil {
				said = e.Get("code").Text
			}
			if said != r.want {
				t.Errorf("jobs %s, line %d %s: %s, want %s", jobs, i+1, clip(r.line), got[i].Append(nil), r.want)
			}
		}
		if n := got[14].Lookup("/result/n"); n == nil || n.Text != "3" {
			t.Errorf("the last answer is not the last line's: %s", got[14].Append(nil))
		}
	}
}

// §6.8, §6.10: exit 0 when every answer is ok, nothing for nothing; what cannot be a stream is a wrong command line.
func Test_6_8_ExitOfAStream(t *testing.T) {
	p := facePlace(t)
	good := `{"pack_id":"kinds","verb_key":"kinds.show"}` + "\n"
	if got, code := p.streams(good + good); code != 0 || len(got) != 2 {
		t.Errorf("exit %d, %d answers", code, len(got))
	}
	if got, code := p.streams(""); code != 0 || len(got) != 0 {
		t.Errorf("of nothing: exit %d, %d answers", code, len(got))
	}
	if got, code := p.streams(good, "--plan"); code != 0 || len(got) != 1 || got[0].Lookup("/result/confirm") == nil {
		t.Errorf("a plan: exit %d, %v", code, got)
	}
	if got, code := p.streams(good, "--as", "Nobody"); code != 1 || len(got) != 1 || got[0].Lookup("/error/code").Text != "unauthenticated" {
		t.Errorf("nobody: exit %d, %v", code, got)
	}
	for _, line := range []string{"kinds show", "--confirm", "--approval x", "--idempotency-key k", "--envelope -", "--jobs 0", "--jobs 65", "--jobs x", "--bogus"} {
		got, code := p.streams(good, strings.Fields(line)...)
		if code != 64 || len(got) != 1 || got[0].Get("ok") != nil || got[0].Lookup("/error/code").Text != "usage" {
			t.Errorf("%s: exit %d, %v", line, code, got)
		}
	}
	if _, errs := p.run(64, "exec", "--jobs", "2", "kinds", "kinds.show"); !strings.Contains(errs, "--jobs belongs to --stream") {
		t.Error(errs)
	}
}

// pipe is a stream over pipes whose requests are answered by the test.
type pipe struct {
	st      *stream
	in      *io.PipeWriter
	out     *bufio.Reader
	started chan string   // the lines that began
	finish  chan struct{} // lets one end, but none that is "held"
	taken   atomic.Int64  // bytes of stdin that were read
	ended   chan error
}

type countingReader struct {
	r io.Reader
	n *atomic.Int64
}

func (c countingReader) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n.Add(int64(n))
	return n, err
}

func newPipe(t *testing.T, ctx context.Context, jobs int, out io.Writer) *pipe {
	p := &pipe{started: make(chan string, 1000), finish: make(chan struct{}, 1000), ended: make(chan error, 1)}
	env, _, _ := terminalFree(t)
	r, w := io.Pipe()
	p.in = w
	env.In = countingReader{r, &p.taken}
	if out == nil {
		or, ow := io.Pipe()
		p.out, out = bufio.NewReader(or), ow
	}
	env.Out = out
	answer := func(ctx context.Context, line []byte) protocol.Result {
		p.started <- string(line)
		finish := p.finish
		if string(line) == "held" {
			finish = nil
		}
		select {
		case <-finish:
			return protocol.Result{OK: true, PackID: string(line)}
		case <-ctx.Done():
			return protocol.Denied(string(line), "", protocol.Fail(protocol.Canceled, "Cancelled."))
		}
	}
	p.st = &stream{d: newDeps(env), answer: answer, places: make(chan struct{}, jobs), queue: make(chan chan protocol.Result, jobs)}
	go func() { p.ended <- p.st.run(ctx) }()
	return p
}

func (p *pipe) answer(t *testing.T) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// §6.8: a signal cancels what runs, each is answered as canceled, and no further line is begun.
func Test_6_8_ASignalCancelsWhatRuns(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p := newPipe(t, ctx, 3, nil)
	go func() { _, _ = io.WriteString(p.in, "a\nb\nc\nd\n") }()
	for range 3 {
		<-p.started
	}
	cancel()
	for _, want := range []string{"a", "b", "c"} {
		if line := p.answer(t); !strings.Contains(line, `"pack_id":"`+want+`"`) || !strings.Contains(line, `"code":"canceled"`) {
			t.Errorf("%s: %s", want, line)
		}
	}
	if err := <-p.ended; !errors.Is(err, status(1)) {
		t.Errorf("%v", err)
	}
	if len(p.started) > 0 {
		t.Errorf("%s began after the signal", <-p.started)
	}
}

// §6.8: nobody who reads slowly makes the stream hold more than its jobs: neither lines nor answers.
func Test_6_8_ASlowReaderStopsTheReading(t *testing.T) {
	p := newPipe(t, t.Context(), 2, nil)
	line := strings.Repeat("x", 100_000) + "\n"
	var sent sync.WaitGroup
	sent.Go(func() {
		for range 50 {
			_, _ = io.WriteString(p.in, line)
		}
		_ = p.in.Close()
	})
	for range 50 {
		p.finish <- struct{}{} // all end at once; nobody reads them
	}
	for range 2 {
		<-p.started
	}
	for answered := range 48 {
		if held := p.taken.Load() - int64(answered*len(line)); held > int64(4*len(line)) {
			t.Fatalf("%d bytes of unanswered lines were read", held)
		}
		p.answer(t)
		<-p.started
	}
	p.answer(t)
	p.answer(t)
	sent.Wait()
	if err := <-p.ended; err != nil {
		t.Error(err)
	}
}

// leftStdout is a stdout that whoever read it has left.
type leftStdout struct{ why error }

func (c leftStdout) Write([]byte) (int, error) { return 0, c.why }

// §6.8: a stdout that takes nothing ends the stream: what runs is canceled and waited for.
func Test_6_8_AClosedStdoutEndsTheStream(t *testing.T) {
	for _, tt := range []struct {
		why  error
		exit int
	}{{syscall.EPIPE, 1}, {syscall.EIO, 70}} {
		p := newPipe(t, t.Context(), 2, leftStdout{tt.why})
		go func() { _, _ = io.WriteString(p.in, "a\nheld\n") }()
		<-p.started
		<-p.started
		p.finish <- struct{}{}
		if err := <-p.ended; !errors.Is(err, status(tt.exit)) {
			t.Errorf("%v: %v", tt.why, err)
		}
	}
}

// §6.8: of a line of any length there is never more in memory than an envelope may have.
func Test_6_8_ALongLineIsReadPast(t *testing.T) {
	in := bufio.NewReaderSize(io.MultiReader(io.LimitReader(repeating('x'), 64<<20), strings.NewReader("\nshort\n"+strings.Repeat("y", maxEnvelope-1)+"\nend")), 64<<10)
	for i, want := range []int{maxEnvelope, 5, maxEnvelope - 1, 3} {
		line, err := readLine(in)
		if err != nil || len(line) != want || cap(line) > 2*maxEnvelope {
			t.Errorf("line %d: %d bytes of %d, %v", i, len(line), cap(line), err)
		}
	}
	if _, err := readLine(in); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

type repeating byte

func (b repeating) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}

// FuzzStreamLine holds for any input: what is read are its lines, in order, each no longer than a byte over its bound.
func FuzzStreamLine(f *testing.F) {
	f.Add("a\nb\n\nc", 3)
	f.Add("\n\n", 1)
	f.Fuzz(func(t *testing.T, text string, size int) {
		in := bufio.NewReaderSize(strings.NewReader(text), 16+max(size, 0)%1000)
		var got []string
		for {
			line, err := readLine(in)
			if err != nil {
				break
			}
			got = append(got, string(line))
		}
		want := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if text == "" {
			want = nil
		}
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Errorf("%q gives %q", text, got)
		}
	})
}
