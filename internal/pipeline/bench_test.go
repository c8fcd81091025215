package pipeline

import (
	"context"
	"testing"

	"hcpx/internal/protocol"
)

// BenchmarkSteps1To8 is everything before the run, warm: admit, confirm, bind and enclose, with a sandbox
// and an audit that cost nothing. The budget is 50 µs and 200 allocations.
func BenchmarkSteps1To8(b *testing.B) {
	r := newRig(b)
	b.ReportAllocs()
	for b.Loop() {
		run := r.p.newRun(context.Background(), r.s)
		for _, step := range []func() *protocol.Error{
			func() *protocol.Error { return run.admit([]byte(show)) },
			run.confirmed, run.bind, run.enclose,
		} {
			if err := step(); err != nil {
				b.Fatal(err)
			}
		}
		run.release()
		r.box.prepared = r.box.prepared[:0]
	}
}
