//go:build unix

package main

import (
	"os"
	"syscall"
)

// peak is the most memory that a process used, in kB.
func peak(s *os.ProcessState) (int64, bool) {
	usage, ok := s.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0, false
	}
	return int64(usage.Maxrss), true
}
