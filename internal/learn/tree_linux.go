//go:build amd64 || arm64

package learn

import (
	"os"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"hcpx/internal/procs"
)

// tree is what a watched program started: while it runs, this process adopts whatever loses its parent, so that all
// of it is found again. What was a child before is none of it.
type tree struct {
	was    int32
	before map[int]bool
}

func adopt() (*tree, error) {
	t := &tree{before: map[int]bool{}}
	if err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&t.was)), 0, 0, 0); err != nil {
		return nil, os.NewSyscallError("prctl", err)
	}
	for pid, parent := range parents() {
		if parent == os.Getpid() {
			t.before[pid] = true
		}
	}
	return t, os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
}

func (t *tree) settle() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, uintptr(t.was), 0, 0, 0))
}

// end kills what is left, again and again until nothing is, and counts it.
func (t *tree) end() (count int) {
	seen := map[int]bool{}
	for range patience / time.Millisecond {
		left := t.members()
		if len(left) == 0 {
			break
		}
		for _, pid := range left {
			if !seen[pid] {
				seen[pid] = true
				count++
			}
		}
		t.kill(left)
		time.Sleep(time.Millisecond)
	}
	return count
}

// kill ends members. A number may be another process's by now: a handle is taken, and what it stands for is killed when
// the number is a member's still.
func (t *tree) kill(pids []int) {
	handles := map[int]int{}
	for _, pid := range pids {
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			handles[pid] = fd
		}
	}
	for _, pid := range t.members() {
		if fd, held := handles[pid]; held {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)                     // it may have ended
			_ = unix.Waitid(unix.P_PIDFD, fd, nil, unix.WEXITED|unix.WNOHANG, nil) // only what this process has adopted
		}
	}
	for _, fd := range handles {
		_ = unix.Close(fd)
	}
}

// members are the living descendants of this process that were not there before.
func (t *tree) members() (list []int) {
	all := parents()
	for pid := range all {
		for at, steps := pid, 0; steps < 1000; at, steps = all[at], steps+1 {
			if t.before[at] || at <= 1 {
				break
			}
			if all[at] == os.Getpid() {
				list = append(list, pid)
				break
			}
		}
	}
	return list
}

// parents maps every process to its parent.
func parents() map[int]int {
	all := map[int]int{}
	for _, pid := range procs.All() {
		fields := procs.Stat(pid)
		if fields == nil {
			continue
		}
		if parent, err := strconv.Atoi(string(fields[procs.Parent])); err == nil {
			all[pid] = parent
		}
	}
	return all
}
