//go:build linux && race

package sandbox_test

// racing says that the race detector slows every step.
const racing = true
