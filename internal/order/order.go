// Package order sorts for every room (§6.3 runs in a program whose size is a budget, docs/decisions/0003). The generic
// sort of the standard library is compiled anew for each type of element, about 20 kB a time; here the algorithm stands
// once.
package order

import "sort"

// By sorts a list by what compare says of two elements: below zero when a goes first. Equal elements keep their order.
func By[T any](list []T, compare func(a, b T) int) {
	sort.Stable(sorted[T]{list, compare})
}

type sorted[T any] struct {
	list    []T
	compare func(a, b T) int
}

func (s sorted[T]) Len() int           { return len(s.list) }
func (s sorted[T]) Less(i, j int) bool { return s.compare(s.list[i], s.list[j]) < 0 }
func (s sorted[T]) Swap(i, j int)      { s.list[i], s.list[j] = s.list[j], s.list[i] }
