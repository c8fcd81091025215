package sandbox

import (
	"os"
	"syscall"
)

// group is a native run's direct child; Windows has no group that a signal reaches.
type group struct{ process *os.Process }

func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

func newGroup(p *os.Process) group { return group{process: p} }

func (g group) ask() {}

func (g group) kill() int {
	_ = g.process.Kill() // it fails only when the process has ended
	return 0
}

func exitOf(s *os.ProcessState) (int, string) {
	if s == nil {
		return -1, ""
	}
	return s.ExitCode(), ""
}
