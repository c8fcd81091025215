package pipeline

import (
	"context"
	"testing"
	"time"

	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// BenchmarkSteps1To8 is everything before the run, warm, on the store of a real home: admit, confirm, bind and
// enclose, with a sandbox and an audit that cost nothing. The budget is 50 µs and 200 allocations.
func BenchmarkSteps1To8(b *testing.B) {
	r := newRigOn(b, store.OpenFS(b.TempDir(), store.Options{Now: time.Now}))
	time.Sleep(1100 * time.Millisecond) // fresh files prove nothing by stat (§2.4)
	if err := r.store.Restamp("tool"); err != nil {
		b.Fatal(err)
	}
	time.Sleep(1100 * time.Millisecond) // so does a fresh record
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
