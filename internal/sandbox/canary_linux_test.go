package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

// proving makes a System with a canary of this test binary, which begins with Inner.
func proving(t testing.TB) *System {
	t.Helper()
	dir := t.TempDir()
	s := New(Options{Scratch: filepath.Join(dir, "run"), Canary: &Canary{Dir: filepath.Join(dir, "canary"), Proof: filepath.Join(dir, "canary", "passed")}})
	if s.Facts().Backend == "" {
		t.Skip("this kernel cannot confine; the refusals are tested with simulated kernels")
	}
	return s
}

// §10.5: here the sandbox holds, and the proof is kept for later processes.
func Test_10_5_canary_proves_the_sandbox(t *testing.T) {
	s := proving(t)
	if err := s.proof.need(); err != nil {
		t.Fatalf("%v %v", err, err.Details)
	}
	if _, err := os.Stat(s.options.Canary.Proof); err != nil {
		t.Error(err)
	}
}
