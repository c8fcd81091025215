package sandbox

import (
	"bytes"
	"time"

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
		seconds := uint64(l.CPU.Truncate(time.Second) / time.Second)
		if l.CPU%time.Second > 0 {
			seconds++ // the kernel counts whole ones
		}
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

// Held are the limits as a command of this process gets them: none is above what this process may have itself.
func (l Limits) Held() Limits {
	for _, b := range l.bounds() {
		switch {
		case b.resource == unix.RLIMIT_NOFILE && l.Files > 0:
			l.Files = b.limit.Cur
		case b.resource == unix.RLIMIT_FSIZE && l.FileSize > 0:
			l.FileSize = b.limit.Cur
		case b.resource == unix.RLIMIT_CPU:
			if held := time.Duration(min(b.limit.Cur, 1<<32)) * time.Second; held < l.CPU {
				l.CPU = held
			}
		}
	}
	return l
}

// said names a limit that no signal tells of, by the words of the failed program itself: a call that is refused for
// too many open files, or for a file's size where the signal is ignored, ends nothing, and the kernel tells nobody
// but the caller. A shell says so of a program that it started, too. Python has the name of the file after the words,
// the loader of the C library only the number.
func (o *Outcome) said() {
	if o.Limit != "" || o.Exit <= 0 || o.TimedOut || o.Canceled || o.Overflow {
		return
	}
	for line := range bytes.Lines(o.Stderr) {
		line = bytes.ToLower(bytes.TrimRight(line, " \r\n."))
		for _, s := range sayings() {
			if at := bytes.LastIndex(line, []byte(s.words)); at >= 0 && (s.anywhere || at+len(s.words) == len(line)) {
				o.Limit = s.limit
			}
		}
	}
}

// saying is how a program tells of a limit, in small letters, at the end of a line or anywhere in it.
type saying struct {
	words    string
	anywhere bool
	limit    string
}

func sayings() []saying {
	return []saying{
		{"too many open files", true, "open_files"}, {"no file descriptors available", true, "open_files"},
		{": error 24", false, "open_files"}, // of the loader
		{"file too large", false, "file_size"}, {"[errno 27] file too large", true, "file_size"}, {"file size limit exceeded", false, "file_size"},
		{"cpu time limit exceeded", false, "cpu"},
	}
}
