//go:build amd64 || arm64

package learn

import (
	"encoding/binary"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"hcpx/internal/procs"
)

// kind is what a watched call does.
type kind int

const (
	opens     kind = iota // opens a path, by its flags
	opensHow              // the same, with the flags in memory
	creates               // makes a file, or empties the one that is there
	truncates             // changes a file that is there
	makes                 // makes a path where none is
	makesDir              // the same, of an empty directory
	removes               // removes a file, or by its flags a directory; without flags a directory
	unlinks               // removes a file
	moves                 // removes one path and makes another, or takes its place
	links                 // makes the second path where none is
	starts                // starts a program
	connects              // aims a socket
	hears                 // receives from a socket
	listens               // waits for connections
)

// atCwd stands for a call without a descriptor of a directory.
const atCwd = -1

// call says where the arguments of a watched call stand.
type call struct {
	kind        kind
	path, dir   int // of the path, and of the directory's descriptor
	flags       int
	path2, dir2 int
}

// watchedCalls are the calls that the filter tells of, by number.
func watchedCalls() map[int32]call {
	calls := map[int32]call{
		unix.SYS_OPENAT:    {kind: opens, dir: 0, path: 1, flags: 2},
		unix.SYS_OPENAT2:   {kind: opensHow, dir: 0, path: 1, flags: 2},
		unix.SYS_TRUNCATE:  {kind: truncates, dir: atCwd, path: 0},
		unix.SYS_MKDIRAT:   {kind: makesDir, dir: 0, path: 1},
		unix.SYS_UNLINKAT:  {kind: removes, dir: 0, path: 1, flags: 2},
		unix.SYS_RENAMEAT:  {kind: moves, dir: 0, path: 1, dir2: 2, path2: 3},
		unix.SYS_RENAMEAT2: {kind: moves, dir: 0, path: 1, dir2: 2, path2: 3},
		unix.SYS_LINKAT:    {kind: links, dir: 0, path: 1, dir2: 2, path2: 3},
		unix.SYS_SYMLINKAT: {kind: makes, dir: 1, path: 2},
		unix.SYS_EXECVE:    {kind: starts, dir: atCwd, path: 0, flags: 1},
		unix.SYS_EXECVEAT:  {kind: starts, dir: 0, path: 1, flags: 2},
		unix.SYS_CONNECT:   {kind: connects},
		unix.SYS_RECVFROM:  {kind: hears},
		unix.SYS_RECVMSG:   {kind: hears},
		unix.SYS_LISTEN:    {kind: listens},
	}
	maps.Copy(calls, olderCalls())
	return calls
}

func watchedNumbers() []int32 { return slices.Sorted(maps.Keys(watchedCalls())) }

// caller is a thread that waits for the answer to its call.
type caller struct{ tid int }

// bytes reads the caller's memory, at most n and at least one byte.
func (c caller) bytes(at uint64, n int) []byte {
	buf := make([]byte, n)
	got, err := procs.Read(c.tid, at, buf)
	if err != nil || got <= 0 {
		return nil
	}
	return buf[:got]
}

// longest is how much of one text is read.
const longest = 4096

// text reads a text that ends with a zero, page by page, since the next one may not be there.
func (c caller) text(at uint64) (string, bool) {
	var all []byte
	for page := uint64(os.Getpagesize()); at != 0 && len(all) < longest; {
		part := c.bytes(at, int(page-at%page))
		if part == nil {
			return "", false
		}
		if end := slices.Index(part, 0); end >= 0 {
			return string(append(all, part[:end]...)), true
		}
		all, at = append(all, part...), at+uint64(len(part))
	}
	return "", false
}

// words reads an argv, as much of it as matters.
func (c caller) words(at uint64) []string {
	var list []string
	for ; at != 0 && len(list) < 64; at += 8 {
		raw := c.bytes(at, 8)
		if len(raw) < 8 {
			return list
		}
		word, ok := c.text(binary.NativeEndian.Uint64(raw))
		if !ok {
			return list
		}
		list = append(list, word)
	}
	return list
}

// absolute is a path as the caller means it, "" when that can't be told.
func (c caller) absolute(dir int32, name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	link := "cwd"
	if dir != unix.AT_FDCWD {
		link = "fd/" + strconv.Itoa(int(dir))
	}
	base, err := os.Readlink("/proc/" + strconv.Itoa(c.tid) + "/" + link)
	switch {
	case err != nil || !strings.HasPrefix(base, "/"):
		return ""
	case name == "":
		return base
	}
	return base + "/" + name // not cleaned: .. is followed as the kernel does
}

// socket is a copy of the caller's descriptor, -1 when there is none to be had.
func (c caller) socket(fd int) int {
	handle, err := unix.PidfdOpen(procs.Of(c.tid), 0)
	if err != nil {
		return -1
	}
	defer unix.Close(handle)
	own, err := unix.PidfdGetfd(handle, fd, 0)
	if err != nil {
		return -1
	}
	return own
}

// address reads a socket address: of the network, or the path of a socket of this machine.
func address(raw []byte) (to netip.AddrPort, path string) {
	if len(raw) < 2 {
		return to, ""
	}
	rest := raw[2:]
	switch binary.NativeEndian.Uint16(raw) {
	case unix.AF_INET:
		if len(rest) >= 6 {
			to = netip.AddrPortFrom(netip.AddrFrom4([4]byte(rest[2:6])), binary.BigEndian.Uint16(rest))
		}
	case unix.AF_INET6:
		if len(rest) >= 22 {
			to = netip.AddrPortFrom(netip.AddrFrom16([16]byte(rest[6:22])).Unmap(), binary.BigEndian.Uint16(rest))
		}
	case unix.AF_UNIX:
		if len(rest) > 0 && rest[0] == 0 {
			return to, "@" + string(rest[1:])
		}
		path, _, _ = strings.Cut(string(rest), "\x00")
	}
	return to, path
}

// firstLine is that of a script, "" for any other file.
func firstLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	buf := make([]byte, 256)
	n, _ := f.Read(buf)
	line, _, _ := strings.Cut(string(buf[:n]), "\n")
	if !strings.HasPrefix(line, "#!") {
		return ""
	}
	return line
}
