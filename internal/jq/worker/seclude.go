//go:build !race

package worker

import (
	"hcpx/internal/adapter/composite"
	"hcpx/internal/sandbox"
)

const confines = true

func seclude() error { return sandbox.Seclude(composite.MaxMemory) }
