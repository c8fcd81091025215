//go:build amd64 || arm64

package learn

import (
	"os"
	"testing"
)

// TestMain lets the test binary be the stage, and the program that is watched.
func TestMain(m *testing.M) {
	if code, ok := Stage(os.Args); ok {
		os.Exit(code)
	}
	if len(os.Args) > 1 && os.Args[1] == asProgram {
		os.Exit(program(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// asProgram is the first argument of the test binary when it is the program.
const asProgram = "as-program"
