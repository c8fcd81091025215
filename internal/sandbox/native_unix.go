//go:build unix

package sandbox

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// group is a native run's process tree: its session's process group, and what descends from it.
type group struct{ leader int }

func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func newGroup(p *os.Process) group { return group{leader: p.Pid} }

// ask sends SIGTERM to the tree; processes that are gone need none.
func (g group) ask() {
	for _, pid := range descendants(g.leader) {
		_ = unix.Kill(pid, unix.SIGTERM)
	}
	_ = unix.Kill(-g.leader, unix.SIGTERM)
}

// kill ends the tree and counts those beside the direct child.
func (g group) kill() int {
	left := descendants(g.leader)
	for _, pid := range left {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	_ = unix.Kill(-g.leader, unix.SIGKILL)
	return len(left)
}

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
