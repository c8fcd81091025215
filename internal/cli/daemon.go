package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"hcpx/internal/adapter/composite"
	"hcpx/internal/jq/worker"
	"hcpx/internal/protocol"
)

// daemon is the program beside this one that stays up or speaks a heavy protocol (§11).
const daemon = "hcpxd"

// Daemon is what hcpxd does itself, of the words that the core hands over to it. The tree, with help, completion and the
// reading of the command line, is the same in both.
type Daemon struct {
	Demo          func(context.Context, *deps) error                                         // its git server needs what a cold exec has no use for
	ImportOpenAPI func(ctx context.Context, o ImportOptions) (ImportReport, *protocol.Error) // §15.6
	MCP           func(context.Context, MCP) error                                           // §12.2
}

// beside is a program in the directory of this one, never one from PATH.
func (d *deps) beside(name string) (string, error) {
	if d.env.Self == nil {
		return "", errors.New("this program has no place")
	}
	self, err := d.env.Self()
	if err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(self), name), nil
}

// machine evaluates the expressions of composites (§3.5): in hcpxd, unless this process has a machine itself.
func (d *deps) machine() composite.Machine {
	if d.env.Machine != nil {
		return d.env.Machine
	}
	d.worker = worker.New(func() (string, error) { return d.beside(daemon) })
	return d.worker
}

// daemons says whether a command line is the daemon's: it gets the same argv.
func daemons(args []string) bool {
	switch word, rest := commandWord(args); word {
	case "demo", "mcp":
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
	missing := func(where string) error { return componentMissing(word, where) }
	program, err := d.beside(daemon)
	switch {
	case d.env.Become == nil:
		return missing("reachable from here")
	case err != nil:
		return missing("found, since the place of this program is not known")
	}
	if err := d.env.Become(program, append([]string{program}, args...)); err != nil {
		return missing("in " + filepath.Dir(program))
	}
	return nil
}

// unbuilt answers a word that is kept for hcpx itself and is none of its commands (§2.2): no pack has that name, so it is
// none that is missing. What hcpxd will do is component_missing as long as it doesn't (§11).
func unbuilt(word string) error {
	switch word {
	case "serve", "sense", "push", "pull":
		return protocol.Fail(protocol.ComponentMissing, fmt.Sprintf("hcpx %s is hcpx's own and not built yet, neither here nor in %s.", word, daemon)).WithHint("hcpx help")
	case "pack", "search", "sync", "check", "init", "dev", "generate", "adopt", "export":
		return usage("", "hcpx %s is hcpx's own and not built yet; no pack has that name", word)
	}
	return usage("", "%s is a word that hcpx keeps for itself: it is no command, and no pack has that name", word)
}

// componentMissing is the answer to a word whose program is not there.
func componentMissing(word, where string) error {
	return protocol.Fail(protocol.ComponentMissing, fmt.Sprintf("hcpx %s is done by %s, which is not %s.", word, daemon, where)).
		With("program", daemon).WithHint("put the " + daemon + " of the same release beside hcpx")
}
