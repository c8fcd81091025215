package jq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"time"
	"unicode/utf8"

	"github.com/itchyny/gojq"

	"hcpx/internal/adapter/composite"
	"hcpx/internal/jsondoc"
)

// bounds hold one expression (§3.5).
type bounds struct {
	time  time.Duration
	bytes int // of its value as JSON
	depth int
}

// limits are the bounds of §3.5.
func limits() bounds {
	return bounds{time: composite.MaxTime, bytes: composite.MaxValue, depth: composite.MaxDepth}
}

// expression is one compiled jq expression; it may run several times at once.
type expression struct{ code *gojq.Code }

// compile reads an expression. The error is a clause for a person, with the place inside the text where
// the parser knows it.
func compile(src string) (*expression, error) {
	if len(src) > composite.MaxLength {
		return nil, fmt.Errorf("it is longer than %d bytes", composite.MaxLength)
	}
	query, err := gojq.Parse(src)
	if err != nil {
		var at *gojq.ParseError
		if errors.As(err, &at) {
			return nil, fmt.Errorf("%s at character %d", at.Error(), utf8.RuneCountInString(src[:min(max(at.Offset-len(at.Token), 0), len(src))])+1)
		}
		return nil, err
	}
	if err := inspect(query); err != nil {
		return nil, err
	}
	code, err := gojq.Compile(query)
	if err != nil {
		return nil, err
	}
	return &expression{code: code}, nil
}

// run gives the one value of the expression, within its bounds. One call inside jq can't be interrupted,
// so the value is made beside the caller, who leaves when the time is over.
func (e *expression) run(ctx context.Context, input any, b bounds) (*jsondoc.Node, error) {
	ctx, cancel := context.WithTimeout(ctx, b.time)
	defer cancel()
	type answer struct {
		value *jsondoc.Node
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		defer func() {
			if fault := recover(); fault != nil {
				done <- answer{err: errors.New("it broke the jq machine")}
			}
		}()
		value, err := e.single(ctx, input, b)
		done <- answer{value, err}
	}()
	select {
	case a := <-done:
		if errors.Is(a.err, context.DeadlineExceeded) {
			return nil, composite.ErrTime
		}
		return a.value, a.err
	case <-ctx.Done():
		return nil, composite.ErrTime
	}
}

// single holds the expression to exactly one value.
func (e *expression) single(ctx context.Context, input any, b bounds) (*jsondoc.Node, error) {
	it := e.code.RunWithContext(ctx, input)
	v, ok := it.Next()
	if !ok {
		return nil, errors.New("it yields no value, and exactly one is needed")
	}
	if err, failed := v.(error); failed {
		return nil, short(err)
	}
	second, more := it.Next()
	if err, failed := second.(error); more && failed {
		return nil, short(err)
	}
	if more {
		return nil, errors.New("it yields more than one value, and exactly one is needed")
	}
	left := b.bytes
	if err := measure(v, &left, b.depth); err != nil {
		return nil, err
	}
	node, err := jsondoc.FromAny(v)
	if err != nil {
		return nil, errors.New("its value holds a number that JSON can't write")
	}
	if len(node.Append(nil)) > b.bytes {
		return nil, errSize
	}
	return node, nil
}

// short keeps the message of a failing expression to one line of sane length.
func short(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return err
	}
	const longest = 300
	message := []rune(err.Error())
	if len(message) > longest {
		message = append(message[:longest], '…')
	}
	return errors.New(string(message))
}

var errSize = errors.New("its value is larger than 1 MiB")

// measure stops at the size bound before the value is written: a value may share parts of itself and be
// far larger than the memory it takes. It counts no more than what will be written.
func measure(v any, left *int, depth int) error {
	if depth < 0 {
		return errors.New("its value nests too deep")
	}
	switch v := v.(type) {
	case string:
		*left -= len(v) + 2
	case json.Number:
		*left -= len(v)
	case *big.Int:
		*left -= v.BitLen()/4 + 1
	case []any:
		for _, item := range v {
			if *left--; *left < 0 {
				break
			}
			if err := measure(item, left, depth-1); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, item := range v {
			if *left -= len(key) + 4; *left < 0 {
				break
			}
			if err := measure(item, left, depth-1); err != nil {
				return err
			}
		}
	default:
		*left--
	}
	if *left < 0 {
		return errSize
	}
	return nil
}
