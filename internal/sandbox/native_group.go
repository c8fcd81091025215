//go:build unix && !linux

package sandbox

import (
	"os"

	"golang.org/x/sys/unix"
)

// endGroup signals the process group of a native run; one that is gone needs no signal.
func endGroup(leader *os.Process, hard bool) {
	sig := unix.SIGTERM
	if hard {
		sig = unix.SIGKILL
	}
	_ = unix.Kill(-leader.Pid, sig)
}
