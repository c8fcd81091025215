package sandbox_test

import (
	"testing"

	"hcpx/internal/sandbox"
	"hcpx/internal/sandbox/sandboxtest"
)

// confining makes a sandbox that confines on this machine, in the posture that the test's name has, or skips.
func confining(t testing.TB, o sandbox.Options) *sandbox.System {
	t.Helper()
	if o.Kernel == nil {
		o.Kernel = postureOf(t).options.Kernel
	}
	if o.Kernel != nil && o.Kernel.Namespaces && o.Accept == nil {
		o.Accept = sandbox.Accepted() // else nothing runs without any Landlock
	}
	s := sandbox.New(o)
	if s.Facts().Backend == "" {
		t.Skip("this kernel cannot confine; the refusals are tested with simulated kernels")
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestConfined(t *testing.T) {
	for name, keep := range map[string]int{"one-shot": 0, "reused": 2} {
		t.Run(name, func(t *testing.T) {
			sandboxtest.Run(t, sandboxtest.Kind{Contained: true, Open: func(t *testing.T, scratch string) sandbox.Sandbox {
				return confining(t, sandbox.Options{Scratch: scratch, Keep: keep})
			}})
		})
	}
}
