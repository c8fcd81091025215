package sandbox

import (
	"bytes"

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

// said names a limit that no signal tells of, by the words of the failed program itself: a call that is refused for
// too many open files, or for a file's size where the signal is ignored, ends nothing, and the kernel tells nobody
// but the caller. The words are those of the C libraries, at the end of a line. A shell says so of a
// program that it started, too.
func (o *Outcome) said() {
	if o.Limit != "" || o.Exit <= 0 || o.TimedOut || o.Canceled || o.Overflow {
		return
	}
	for line := range bytes.Lines(o.Stderr) {
		line = bytes.TrimRight(line, " \r\n.")
		for words, limit := range map[string]string{"too many open files": "open_files", "no file descriptors available": "open_files", "file too large": "file_size",
			"file size limit exceeded": "file_size", "cpu time limit exceeded": "cpu"} {
			if len(line) >= len(words) && bytes.EqualFold(line[len(line)-len(words):], []byte(words)) {
				o.Limit = limit
			}
		}
	}
}
