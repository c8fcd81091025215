//go:build linux && !amd64 && !arm64

package sandbox

import "golang.org/x/sys/unix"

// start begins nothing where there is no table of system calls: every run was refused before (§10.5).
func (*space) start() (pid, pidfd int, err error) { return 0, -1, unix.ENOSYS }
