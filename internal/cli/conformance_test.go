package cli

import (
	"context"
	"os"
	"testing"
	"time"

	"hcpx/internal/conformance"
)

// Test_14_3_Vectors drives this program's own wiring through every vector.
func Test_14_3_Vectors(t *testing.T) {
	if !sandboxWorks() {
		t.Skip("this machine cannot confine a command")
	}
	env, _, _ := terminalFree(t)
	env.Getenv, env.Now = os.Getenv, time.Now
	vectors, err := conformance.Vectors()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vectors {
		t.Run(v.Name, func(t *testing.T) {
			report, err := conformance.Run(context.Background(), target{env}, conformance.Options{Vectors: []string{v.Name}})
			if err != nil {
				t.Fatal(err)
			}
			for _, out := range report.Vectors {
				if !out.OK {
					t.Errorf("%s: %s", out.Section, out.Detail)
				}
			}
		})
	}
}
