//go:build !linux

package sandbox

// Given are the paths that every command may read beside its Spec (§10.2): on this system nothing tells.
func Given() []string { return nil }
