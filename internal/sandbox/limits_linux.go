package sandbox

import (
	"golang.org/x/sys/unix"
)

// bound is one limit of a process.
type bound struct {
	resource uintptr
	limit    unix.Rlimit
}

// noCore is a limit on core dumps at which the kernel writes no file and starts no program that would take one; at
// 0 it starts that program.
const noCore = 1

// bounds are the limits that a command is born with, and whatever it starts too (§10.4). None is above what this
// process may have itself: only the privileged could give that.
func (l Limits) bounds() []bound {
	list := []bound{
		{unix.RLIMIT_CORE, unix.Rlimit{Cur: noCore, Max: noCore}},
		{unix.RLIMIT_NOFILE, unix.Rlimit{Cur: l.Files, Max: l.Files}},
		{unix.RLIMIT_FSIZE, unix.Rlimit{Cur: l.FileSize, Max: l.FileSize}},
	}
	if l.CPU > 0 {
		seconds := uint64((l.CPU.Milliseconds() + 999) / 1000)
		list = append(list, bound{unix.RLIMIT_CPU, unix.Rlimit{Cur: seconds, Max: seconds + 1}})
	}
	for i := range list {
		var own unix.Rlimit
		if unix.Getrlimit(int(list[i].resource), &own) == nil {
			list[i].limit.Cur, list[i].limit.Max = min(list[i].limit.Cur, own.Max), min(list[i].limit.Max, own.Max)
		}
	}
	return list
}
