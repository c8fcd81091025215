// Package worker runs the jq expressions of composites (§3.5) in a process of its own, so that the core neither links
// jq nor shares its memory with a stranger's expression. Client is the machine of the core: it starts the program
// beside this one with Word, one process for each evaluation that goes on at once, and reuses it. Stage is that
// process: it takes from itself all but its three streams and a bounded memory before it reads a request, and ends with
// its input, its parent, an expression that did not end, or its memory.
//
// On the streams go frames: four bytes of length, then JSON. A request is {"check": EXPR} or {"eval": EXPR, "input": …}.
// The answer is {"value": …}, null of a check, or {"fault": CLAUSE}; "last": true says that no more will be answered.
// Whatever else comes, or nothing in time, ends the process and fails the expression.
package worker

import (
	"encoding/binary"
	"errors"
	"io"

	"hcpx/internal/adapter/composite"
	"hcpx/internal/jsondoc"
)

// Word is the argument with which the worker is started; no command is called so. Its number is that of the frames.
const Word = "[expressions/1]"

// The largest frames. What an expression sees has its arguments and the results of all steps; with more than this it
// could not be held in the memory that it has.
const (
	maxRequest = 64 << 20
	maxReply   = composite.MaxValue + 64<<10
	maxNesting = 4 * composite.MaxDepth
)

var errTooLarge = errors.New("the frame is too large")

// send writes one frame.
func send(w io.Writer, n *jsondoc.Node, limit int) error {
	text := n.Append(make([]byte, 4, 1024))
	if len(text)-4 > limit {
		return errTooLarge
	}
	binary.BigEndian.PutUint32(text, uint32(len(text)-4))
	_, err := w.Write(text)
	return err
}

// receive reads one frame, which must be an object. It takes no more memory than the bytes that came.
func receive(r io.Reader, limit int) (*jsondoc.Node, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := int64(binary.BigEndian.Uint32(head[:]))
	if size > int64(limit) {
		return nil, errTooLarge
	}
	text, err := io.ReadAll(io.LimitReader(r, size))
	switch {
	case err != nil:
		return nil, err
	case int64(len(text)) < size:
		return nil, io.ErrUnexpectedEOF
	}
	n, faults := jsondoc.Parse(text, jsondoc.Limits{Bytes: limit, Depth: maxNesting})
	if n == nil || len(faults) > 0 || n.Kind != jsondoc.Object {
		return nil, errors.New("the frame is no JSON object")
	}
	return n, nil
}
