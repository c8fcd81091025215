//go:build unix

package sandbox

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// exitOf is how the direct child ended.
func exitOf(s *os.ProcessState) (int, string) {
	if s == nil {
		return -1, ""
	}
	if status, ok := s.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return -1, unix.SignalName(status.Signal())
	}
	return s.ExitCode(), ""
}
