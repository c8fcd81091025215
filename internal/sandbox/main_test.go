package sandbox_test

import (
	"os"
	"testing"

	"hcpx/internal/sandbox"
	"hcpx/internal/sandbox/sandboxtest"
)

// TestMain lets the test binary be the program inside the sandbox: the suite's helper, an attacker, or a runtime.
func TestMain(m *testing.M) {
	if code, ok := sandbox.Inner(os.Args); ok {
		os.Exit(code)
	}
	sandboxtest.Helper()
	attacker()
	leaver()
	glutton()
	host()
	family()
	os.Exit(m.Run())
}
