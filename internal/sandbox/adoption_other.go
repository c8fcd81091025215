//go:build !linux

package sandbox

import (
	"os"
	"os/exec"
)

// adoption is nothing here: the tree kill of a native run is by process group alone (§10.3).
type adoption struct{}

// nativeTree is the process tree of one native run.
type nativeTree struct{ leader *os.Process }

func (a *adoption) start(cmd *exec.Cmd, _ string) (nativeTree, error) {
	err := cmd.Start()
	return nativeTree{cmd.Process}, err
}

func (t nativeTree) ask() { endGroup(t.leader, false) }

func (t nativeTree) kill(clock) (int, bool) {
	endGroup(t.leader, true)
	return 0, false
}

func (t nativeTree) release() {}
