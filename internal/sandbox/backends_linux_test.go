package sandbox_test

import (
	"testing"

	"hcpx/internal/sandbox"
	"hcpx/internal/sandbox/sandboxtest"
)

// backend is one way in which a run is confined here; every promise of §10 is tested on each.
type backend struct {
	name string
	open func(testing.TB, sandbox.Options) *sandbox.System
}

// backends are Landlock and both forms of namespaces: with Landlock's execute right, and without any Landlock.
func backends() []backend {
	older := func(abi int) func(testing.TB, sandbox.Options) *sandbox.System {
		return func(t testing.TB, o sandbox.Options) *sandbox.System {
			kernel := able()
			kernel.ABI, kernel.Errata, kernel.Namespaces = abi, 0, true
			o.Kernel = &kernel
			return confining(t, o)
		}
	}
	return []backend{{"landlock", confining}, {"namespace", older(0)}, {"namespace+execute", older(2)}}
}

func TestNamespaceSuite(t *testing.T) {
	for _, b := range backends()[1:] {
		t.Run(b.name, func(t *testing.T) {
			sandboxtest.Run(t, sandboxtest.Kind{Contained: true, Open: func(t *testing.T, scratch string) sandbox.Sandbox {
				return b.open(t, sandbox.Options{Scratch: scratch})
			}})
		})
	}
}
