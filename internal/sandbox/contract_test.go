package sandbox_test

import (
	"runtime"
	"testing"

	"hcpx/internal/sandbox"
	"hcpx/internal/sandbox/sandboxtest"
)

func TestNative(t *testing.T) {
	sandboxtest.Run(t, sandboxtest.Kind{Native: true, Contained: runtime.GOOS == "linux", Open: func(t *testing.T, scratch string) sandbox.Sandbox {
		return sandbox.New(sandbox.Options{Scratch: scratch})
	}})
}
