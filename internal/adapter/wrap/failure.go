package wrap

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"hcpx/internal/adapter"
	"hcpx/internal/egress"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
)

// failure is why the run was no success; nil when it was. What a limit ended names the limit and where it is set
// (§10.4).
func (c *command) failure(o *sandbox.Outcome, l sandbox.Limits) *protocol.Error {
	bin := c.block.Bin
	switch {
	case o.Canceled:
		return ended(protocol.Canceled, fmt.Sprintf("The run of %s was cancelled, and everything it started was ended.", bin), o)
	case o.TimedOut:
		return ended(protocol.Timeout, fmt.Sprintf("%s did not end within %s, and everything it started was ended.", bin, c.wall(l)), o).With("limit", "wall")
	case o.Overflow:
		return ended(protocol.OutputTooLarge, fmt.Sprintf("%s wrote more than %s (setting limits.output), and was ended.", bin, size(int64(l.Output))), o).With("limit", "output")
	case o.Limit != "" && o.Signal == "": // it was told, and ended itself
		return ended(protocol.CommandFailed, fmt.Sprintf("%s failed with exit code %d at its limit of %s.", bin, o.Exit, bound(o.Limit, l)), o)
	case o.Limit != "":
		return ended(protocol.CommandFailed, fmt.Sprintf("%s was ended by its limit of %s.", bin, bound(o.Limit, l)), o)
	case o.Signal != "":
		return ended(protocol.CommandFailed, fmt.Sprintf("%s was ended by the signal %s.", bin, o.Signal), o)
	case !slices.Contains(c.okExit, o.Exit):
		return c.letIn(ended(protocol.CommandFailed, fmt.Sprintf("%s failed with exit code %d.", bin, o.Exit), o), o)
	}
	return nil
}

// letIn shows how the first host that was refused is allowed, of those that can be, where the pack takes hosts from its
// operator (§10.2).
func (c *command) letIn(e *protocol.Error, o *sandbox.Outcome) *protocol.Error {
	if !c.block.Network.OperatorHosts {
		return e
	}
	for _, what := range o.Denied {
		if entry := egress.Entry(what); entry != "" {
			return e.WithHint("hcpx allow --host " + c.pack + " " + protocol.Words(entry))
		}
	}
	return e
}

// wall is the time that a run had, and who set it.
func (c *command) wall(l sandbox.Limits) string {
	switch {
	case l.Wall == 0:
		return "its time"
	case l.Wall < c.timeout:
		return l.Wall.String() + " (setting limits.wall_max)"
	}
	return l.Wall.String() + " (the command's timeout)"
}

// bound is a limit of a run, with its setting.
func bound(name string, l sandbox.Limits) string {
	switch name {
	case "cpu":
		return "processor time, " + l.CPU.String() + " (setting limits.cpu)"
	case "file_size":
		return "the size of a file, " + size(int64(l.FileSize)) + " (setting limits.file_size)"
	case "open_files":
		return fmt.Sprintf("open files, %d of each process (setting limits.files)", l.Files)
	case "memory":
		return "memory, " + size(int64(l.Memory)) + " of all processes together (setting limits.memory)"
	case "processes":
		return fmt.Sprintf("processes, %d with their threads (setting limits.processes)", l.Processes)
	}
	return name
}

// size is a number of bytes for a person: exact, in the largest unit that is.
func size(n int64) string {
	for _, unit := range []struct {
		name  string
		bytes int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n > 0 && n%unit.bytes == 0 {
			return fmt.Sprintf("%d %s", n/unit.bytes, unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

// ended makes the error of a run with the details of §6.3: exit code or signal (the other is null), limit,
// what was denied, and the tails.
func ended(code protocol.Code, message string, o *sandbox.Outcome) *protocol.Error {
	e := protocol.Fail(code, message).With("exit_code", nil).With("signal", nil)
	if o.Signal != "" {
		e = e.With("signal", o.Signal)
	} else if o.Exit >= 0 {
		e = e.With("exit_code", o.Exit)
	}
	if o.Limit != "" {
		e = e.With("limit", o.Limit)
	}
	if len(o.Denied) > 0 {
		e = e.With("denied", o.Denied)
	}
	return tails(e, o)
}

// tailBytes is how much of each stream an error shows (§6.5).
const tailBytes = 4 << 10

func tails(e *protocol.Error, o *sandbox.Outcome) *protocol.Error {
	return e.With("stderr_tail", Tail(o.Stderr, tailBytes)).
		With("stdout_tail", Tail(o.Stdout, tailBytes))
}

// Tail is the last n bytes of b at most, as text, cut at a character's border (§6.5).
func Tail(b []byte, n int) string {
	if len(b) > n {
		b = b[len(b)-n:]
		for skip := 0; skip < utf8.UTFMax-1 && len(b) > 0 && !utf8.RuneStart(b[0]); skip++ {
			b = b[1:]
		}
	}
	s, replaced := adapter.Decode(b)
	for replaced > 0 && len(s) > n { // replacements are longer than what they replace
		_, size := utf8.DecodeRuneInString(s)
		s = s[size:]
	}
	return s
}
