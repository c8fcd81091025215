//go:build unix

package grant

import (
	"encoding/json"
	"strconv"
	"syscall"
	"testing"

	"hcpx/internal/jsondoc"
)

// BenchmarkGrowth shows how a decision grows with the grants of a store: those that speak of other packs, others of other branches,
// as a store has them, and the worst case, in which every one speaks of the request and its rule must be read. It reports the
// processor's time too, which other load on the machine changes little.
func BenchmarkGrowth(b *testing.B) {
	r := transfer()
	r.Args = jsondoc.Obj(jsondoc.Member{Key: "branch", Value: jsondoc.Str("main")})
	rule := map[string][]json.RawMessage{"branch": {json.RawMessage(`"agent/*"`)}}
	for _, kind := range []struct {
		name string
		edit func(i int, g *Grant)
	}{
		{"other-packs", func(i int, g *Grant) { g.Packs = []string{"pack-" + strconv.Itoa(i)} }},
		{"rules-of-others", func(i int, g *Grant) { g.Packs, g.Args = []string{"pack-" + strconv.Itoa(i)}, rule }},
		{"all-rules", func(_ int, g *Grant) { g.Args = rule }},
	} {
		for _, n := range []int{10, 100, 1000, 10000} {
			grants := make([]Grant, 0, n)
			for i := range n {
				grants = append(grants, allow("agent:*", func(g *Grant) { kind.edit(i, g) }))
			}
			set := NewSet(grants)
			b.Run(kind.name+"/"+strconv.Itoa(n), func(b *testing.B) {
				before := used(b)
				for b.Loop() {
					set.Evaluate(r)
				}
				b.ReportMetric(float64(used(b)-before)/1e3/float64(b.N), "cpu-µs/op")
			})
		}
	}
}

// used is the processor's time of this process so far, in nanoseconds.
func used(b *testing.B) int64 {
	b.Helper()
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return use.Utime.Nano() + use.Stime.Nano()
}
