//go:build !linux && !darwin

package sandbox

import (
	"runtime"

	"hcpx/internal/protocol"
)

// probe finds nothing that confines on this system: only native commands run here (§10.5).
func probe() Kernel { return Kernel{System: runtime.GOOS + "/" + runtime.GOARCH} }

// confiner refuses whatever it is asked.
type confiner struct{ system *System }

type world struct{}

func (c *confiner) init(s *System) { c.system = s }

func (c *confiner) warm() {}

func (c *confiner) delegated() string { return "" }

func (c *confiner) check(spec *Spec) (*world, *protocol.Error) {
	if err := c.system.confinable(spec); err != nil {
		return nil, err
	}
	return nil, unavailable("system-calls", "This build has no sandbox for "+runtime.GOOS+".")
}

func (c *confiner) prepare(spec *Spec) (Box, *protocol.Error) {
	_, err := c.check(spec)
	return nil, err
}

func (c *confiner) jail(*Spec, string) Jail { return Jail{} }

func (c *confiner) close() error { return nil }
