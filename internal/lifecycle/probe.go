package lifecycle

import (
	"context"
	"fmt"
	"os"
	"time"

	"hcpx/internal/adapter"
	"hcpx/internal/gate"
	"hcpx/internal/manifest"
	"hcpx/internal/policy"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
)

// probeTimeout bounds one probe: it asks a program whether it starts at all.
const probeTimeout = 10 * time.Second

// probe is a command with the argv of wrap.probe in place of its own. The world that step 8 makes of it
// is the command's, and no credential is minted for it.
type probe struct {
	adapter.Command
	argv []string
}

// Spec implements adapter.Command.
func (p probe) Spec(*adapter.Call) *adapter.Need {
	need := p.Command.Spec(nil)
	if need == nil {
		return nil
	}
	n := *need
	n.Args, n.Stdin = p.argv, nil
	return &n
}

// probed runs the pack's probe in its sandbox; nil when it declares none, when its programs are not
// allowed yet, or when the probe ends well.
func (l *Lifecycle) probed(id string) *protocol.Error {
	loaded, err := l.Gate.Installed(id)
	if err != nil {
		return err
	}
	m := loaded.Manifest
	if id == gate.Bootstrap || m.Wrap == nil || len(m.Wrap.Probe) == 0 || len(m.Commands) == 0 {
		return nil
	}
	st, err := l.state()
	if err != nil {
		return err
	}
	verb, err := l.Gate.Verb(st, "", loaded, m.Commands[0].Key)
	if err != nil {
		return err
	}
	// Land local without a workspace: the probe gets its private directory and nothing of anyone's data.
	v := &gate.Verb{Loaded: loaded, Command: &manifest.Command{Key: "probe", Timeout: probeTimeout},
		Entry: &policy.Entry{Operation: protocol.Read, Land: protocol.Local}, Adapter: probe{verb.Adapter, m.Wrap.Probe}}
	world, err := l.Gate.World(st, protocol.Session{}, v, nil)
	if err != nil || world.Spec == nil {
		return nil //nolint:nilerr // not allowed or not enforceable: availability says so, the probe can't
	}
	dir, fault := os.MkdirTemp("", "hcpx-probe-")
	if fault != nil {
		return storeFault(fault, "The private directory of a probe cannot be made")
	}
	err = l.runProbe(l.probeBox(dir), world, id)
	if fault := os.RemoveAll(dir); fault != nil && err == nil {
		return storeFault(fault, "The private directory of a probe cannot be removed")
	}
	return err
}

// probeBox keeps what a probe needs beside the store: who only looks makes nothing in it (HCP-12.1-9).
func (l *Lifecycle) probeBox(dir string) sandbox.Sandbox {
	if l.Scratch == nil {
		return l.Gate.Sandbox
	}
	return l.Scratch(dir)
}

func (l *Lifecycle) runProbe(s sandbox.Sandbox, world *gate.World, id string) *protocol.Error {
	box, err := s.Prepare(world.Spec)
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	out, err := box.Run(context.Background())
	if fault := box.Close(); fault != nil && err == nil {
		return storeFault(fault, "The private directory of a probe cannot be removed")
	}
	if err != nil {
		return err
	}
	if out.Exit != 0 || out.TimedOut {
		return protocol.Fail(protocol.CommandFailed, fmt.Sprintf("The probe of %s ended with exit code %d.", id, out.Exit)).
			With("exit_code", out.Exit).With("signal", out.Signal).WithHint("hcpx doctor")
	}
	return nil
}
