package sandbox

import (
	"os"
	"syscall"
)

func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// endGroup ends the direct child; Windows has no group that a signal reaches, and none to ask with.
func endGroup(leader *os.Process, hard bool) {
	if hard {
		_ = leader.Kill() // it fails only when the process has ended
	}
}

func exitOf(s *os.ProcessState) (int, string) {
	if s == nil {
		return -1, ""
	}
	return s.ExitCode(), ""
}
