package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxMessage is the most bytes of one message: an envelope and what is around it, twice where it stands in a string.
const maxMessage = 4 << 20

// Stdio serves one client over a pair of streams until it closes its end or ctx ends. Nothing but the protocol is
// written to out.
func Stdio(ctx context.Context, c Config, in io.Reader, out io.Writer) error {
	v := newServer(ctx, c)
	defer v.close()
	go v.watched()
	w := &writer{w: out}
	r := newLines(in, w, v.modern.Load)
	stop := context.AfterFunc(v.ctx, r.close)
	defer stop()
	err := v.mcp.Run(v.ctx, &pipe{IOTransport: sdk.IOTransport{Reader: r, Writer: w, MaxLineLength: maxMessage + 1}, done: v.ctx.Done()})
	if errors.Is(err, context.Canceled) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// pipe is the SDK's transport over two streams, which answers what was asked before the client closed its end: the SDK
// would drop it. A client may send all that it has in one go.
type pipe struct {
	sdk.IOTransport
	done <-chan struct{}
}

func (p *pipe) Connect(ctx context.Context) (sdk.Connection, error) {
	inner, err := p.IOTransport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &answering{Connection: inner, done: p.done, open: map[jsonrpc.ID]bool{}, idle: make(chan struct{}, 1)}, nil
}

// answering knows which calls have no answer yet.
type answering struct {
	sdk.Connection
	done <-chan struct{}
	mu   sync.Mutex
	open map[jsonrpc.ID]bool
	idle chan struct{} // something was answered
}

func (c *answering) Read(ctx context.Context) (jsonrpc.Message, error) {
	msg, err := c.Connection.Read(ctx)
	if err != nil {
		c.drain(ctx)
		return nil, err
	}
	req, is := msg.(*jsonrpc.Request)
	switch {
	case !is:
	case req.Method == "notifications/cancelled":
		var p struct {
			ID any `json:"requestId"`
		}
		if json.Unmarshal(req.Params, &p) == nil {
			if id, err := jsonrpc.MakeID(p.ID); err == nil {
				c.settle(id)
			}
		}
	case req.IsCall() && req.Method != "subscriptions/listen": // which is never answered
		c.mu.Lock()
		c.open[req.ID] = true
		c.mu.Unlock()
	}
	return msg, nil
}

func (c *answering) Write(ctx context.Context, msg jsonrpc.Message) error {
	err := c.Connection.Write(ctx, msg)
	if res, is := msg.(*jsonrpc.Response); is {
		c.settle(res.ID)
	}
	return err
}

func (c *answering) settle(id jsonrpc.ID) {
	c.mu.Lock()
	delete(c.open, id)
	c.mu.Unlock()
	select {
	case c.idle <- struct{}{}:
	default:
	}
}

// drain waits until everything is answered, for a while.
func (c *answering) drain(ctx context.Context) {
	end := time.NewTimer(drain)
	defer end.Stop()
	for {
		c.mu.Lock()
		left := len(c.open)
		c.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-c.idle:
		case <-end.C:
			return
		case <-ctx.Done():
			return
		case <-c.done:
			return
		}
	}
}

// writer writes whole messages, one at a time.
type writer struct {
	mu sync.Mutex
	w  io.Writer
}

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.w.Write(p)
}

func (w *writer) Close() error { return nil }

// lines hands on the lines that are messages. One that is none is answered with an error, and the connection lives on:
// the SDK would end it.
type lines struct {
	*io.PipeReader
	end *io.PipeWriter
}

func newLines(in io.Reader, out io.Writer, modern func() bool) *lines {
	r, w := io.Pipe()
	l := &lines{r, w}
	go l.copy(in, out, modern)
	return l
}

func (l *lines) close() { l.end.CloseWithError(io.EOF) }

func (l *lines) copy(in io.Reader, out io.Writer, modern func() bool) {
	src := bufio.NewReaderSize(in, 64<<10)
	for {
		line, long, err := readLine(src)
		if answer := faultOf(line, long, modern()); answer != nil {
			if _, err := out.Write(answer); err != nil {
				l.end.CloseWithError(err)
				return
			}
		} else if len(bytes.TrimSpace(line)) > 0 {
			if _, err := l.end.Write(append(line, '\n')); err != nil {
				return // the server has ended
			}
		}
		if err != nil {
			l.end.CloseWithError(err)
			return
		}
	}
}

// readLine is the next line without its end; long says that it was longer than a message may be, and was left out.
func readLine(src *bufio.Reader) (line []byte, long bool, err error) {
	for {
		part, err := src.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxMessage+1; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimRight(line, "\r\n"), long, err
		}
	}
}

// faultOf is the answer to a line that is no message, nil for one that is.
func faultOf(line []byte, long, modern bool) []byte {
	line = bytes.TrimSpace(line)
	switch {
	case long:
		return fault(jsonrpc.CodeInvalidRequest, "The message is longer than 4 MiB.")
	case len(line) == 0:
		return nil
	case !json.Valid(line):
		return fault(jsonrpc.CodeParseError, "The line is not JSON; a message is one line.")
	case line[0] != '[':
		if _, err := jsonrpc.DecodeMessage(line); err != nil {
			return fault(jsonrpc.CodeInvalidRequest, "The line is not a JSON-RPC 2.0 message.")
		}
		return nil
	case modern:
		return fault(jsonrpc.CodeInvalidRequest, "This version of the protocol has no batches; send one message a line.")
	}
	var batch []json.RawMessage
	if err := json.Unmarshal(line, &batch); err != nil || len(batch) == 0 {
		return fault(jsonrpc.CodeInvalidRequest, "A batch holds one message or more.")
	}
	for _, one := range batch {
		if _, err := jsonrpc.DecodeMessage(one); err != nil {
			return fault(jsonrpc.CodeInvalidRequest, "The batch holds something that is not a JSON-RPC 2.0 message.")
		}
	}
	return nil
}

func fault(code int64, message string) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%q}}`+"\n", code, message)
}
