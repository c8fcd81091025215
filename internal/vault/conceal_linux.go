package vault

import (
	"golang.org/x/sys/unix"

	"hcpx/internal/protocol"
)

// Conceal makes this process non-dumpable (§8.4): it leaves no core dump, and no other process of its user can trace it
// or read its memory. Whoever comes to hold a secret calls it before. It is for good, as the sandbox's own is: what was cleared
// may have left copies in memory, and to undo it would open what the sandbox has closed. A program that is started from
// here is dumpable again.
func Conceal() *protocol.Error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fail("This process cannot be made non-dumpable, so it takes no credential: " + err.Error() + ".").WithHint("hcpx doctor")
	}
	return nil
}
