package sandbox_test

import (
	"testing"

	"hcpx/internal/sandbox"
	"hcpx/internal/sandbox/sandboxtest"
)

// older is this machine's kernel as if its Landlock were an earlier one.
func older(abi int) *sandbox.Kernel {
	k := able()
	k.ABI, k.Errata = abi, 0
	return &k
}

// §10.5: on kernels whose Landlock does not know signals the whole contract holds too.
func Test_10_5_band_keeps_the_contract(t *testing.T) {
	for name, keep := range map[string]int{"one-shot": 0, "reused": 2} {
		t.Run(name, func(t *testing.T) {
			sandboxtest.Run(t, sandboxtest.Kind{Contained: true, Open: func(t *testing.T, scratch string) sandbox.Sandbox {
				return confining(t, sandbox.Options{Scratch: scratch, Keep: keep, Kernel: older(5)})
			}})
		})
	}
}
