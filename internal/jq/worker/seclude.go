//go:build !race

package worker

import (
	"hcpx/internal/adapter/composite"
	"hcpx/internal/sandbox"
)

func seclude() error { return sandbox.Seclude(composite.MaxMemory) }
