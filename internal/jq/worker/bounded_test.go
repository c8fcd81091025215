//go:build !race

package worker

import (
	"errors"
	"strings"
	"testing"

	"hcpx/internal/protocol"
)

// The race detector has memory and system calls of its own, so a worker under it is not confined.

// §3.5: an expression that takes memory ends its worker, or its second does; this process goes on, and so does the next
// expression.
func Test_3_5_Bombs(t *testing.T) {
	c := client(t)
	for _, expr := range []string{`[range(1e9)]`, `reduce range(60) as $i ("x"; . + .)`, `def f: 1 + f; f`} {
		_, err := eval(t, c, expr)
		if err == nil || errors.As(err, new(*protocol.Error)) {
			t.Errorf("%s: %v", expr, err)
		}
		if got, err := eval(t, c, `1 + 1`); got != "2" {
			t.Errorf("after %s: %v", expr, err)
		}
	}
}

// §3.5: the memory of an evaluation is bounded, however it is taken, and the error says so.
func Test_3_5_Memory(t *testing.T) {
	for _, how := range []string{"memory in parts", "memory at once", "stack"} {
		_, err := eval(t, client(t), probe+how)
		if err == nil || !strings.Contains(err.Error(), "256 MiB of memory") {
			t.Errorf("%s: %v", how, err)
		}
	}
	if got, err := eval(t, client(t), probe+"memory that fits"); err != nil || got != `"fits"` {
		t.Errorf("what fits: %s %v", got, err)
	}
}
