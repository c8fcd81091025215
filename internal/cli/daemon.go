package cli

import (
	"context"
	"fmt"
	"path/filepath"

	"hcpx/internal/protocol"
)

// daemon is the program beside this one that stays up or speaks a heavy protocol (§11).
const daemon = "hcpxd"

// Daemon is what hcpxd does itself, of the words that the core hands over to it.
type Daemon struct {
	MCP func(context.Context, MCP) error
}

// daemons says whether a command line is the daemon's: it gets the same argv.
func daemons(args []string) bool {
	switch word, rest := commandWord(args); word {
	case "mcp", "serve", "sense", "push", "pull":
		return true
	case "import":
		what, _ := commandWord(rest)
		return what == "openapi"
	}
	return false
}

// handOver replaces this process by the daemon from this program's own directory, never from PATH. It returns
// only when that cannot be: component_missing (§11).
func (d *deps) handOver(args []string) error {
	word, _ := commandWord(args)
	missing := func(where string) error {
		return protocol.Fail(protocol.ComponentMissing, fmt.Sprintf("hcpx %s is done by %s, which is not %s.", word, daemon, where)).
			With("program", daemon).WithHint("put the " + daemon + " of the same release beside hcpx")
	}
	if d.env.Self == nil || d.env.Become == nil {
		return missing("reachable from here")
	}
	self, err := d.env.Self()
	if err != nil {
		return missing("found, since the place of this program is not known")
	}
	program := filepath.Join(filepath.Dir(self), daemon)
	if err := d.env.Become(program, append([]string{program}, args...)); err != nil {
		return missing("in " + filepath.Dir(self))
	}
	return nil
}
