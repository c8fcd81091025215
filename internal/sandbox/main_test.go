package sandbox

import (
	"os"
	"testing"

	"hcpx/internal/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	sandboxtest.Helper()
	os.Exit(m.Run())
}
