package order

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The order is that of the standard library, equal elements included.
func TestByIsAStableSort(t *testing.T) {
	type pair struct{ key, at int }
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := range 60 {
		list := make([]pair, n)
		for i := range list {
			list[i] = pair{rnd.IntN(8), i}
		}
		want := slices.Clone(list)
		compare := func(a, b pair) int { return a.key - b.key }
		slices.SortStableFunc(want, compare)
		By(list, compare)
		if !slices.Equal(list, want) {
			t.Fatalf("%v, want %v", list, want)
		}
	}
}
