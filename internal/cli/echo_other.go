//go:build !linux && !darwin

package cli

// unseen is left to whoever reads the line here.
func unseen(int) error { return nil }
