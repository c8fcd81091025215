//go:build !unix

package sandbox

import (
	"context"

	"hcpx/internal/protocol"
)

// flight is the live test of a sandbox. There is none on this system, so there is nothing to test.
type flight struct {
	dir, program string
	prepare      func(*Spec) (Box, *protocol.Error)
	apart        bool
}

func (f *flight) fly(context.Context) (findings, *protocol.Error) {
	return findings{}, noProof("This system has no sandbox to test.")
}

func bootID() string { return "" }

func programID(string) string { return "" }

func holdsProof(string, []byte) bool { return false }

func keepProof(string, []byte) {}
