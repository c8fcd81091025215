package sandbox_test

import (
	"os"
	"testing"

	"hcpx/internal/sandbox/sandboxtest"
)

// TestMain lets the test binary be the program inside the sandbox: the suite's helper, or an attacker.
func TestMain(m *testing.M) {
	sandboxtest.Helper()
	attacker()
	os.Exit(m.Run())
}
