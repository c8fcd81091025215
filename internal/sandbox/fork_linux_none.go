//go:build linux && !amd64 && !arm64

package sandbox

import "golang.org/x/sys/unix"

// birth begins nothing where there is no table of system calls: every run was refused before (§10.5).
type birth struct{ secret uintptr }

func newBirth(*job, [3]int) (*birth, error) { return &birth{}, nil }

func (*birth) start() (pid, pidfd int, err error) { return 0, -1, unix.ENOSYS }
