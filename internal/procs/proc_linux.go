package procs

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// All are the numbers of the machine's processes.
func All() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	var list []int
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			list = append(list, n)
		}
	}
	return list
}

// The fields of Stat, counted from the state. The last one is the 20th.
const (
	State   = 0
	Parent  = 1
	Group   = 2
	Session = 3
	Threads = 17
	Start   = 19
	fields  = 20
)

// Stat are the fields of /proc/PID/stat after the name, which may hold anything but ends with the last ")"; nil when
// there is no such process.
func Stat(pid int) [][]byte {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	list := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(list) < fields {
		return nil
	}
	return list
}

// Of is the process that a thread belongs to, 0 when there is none.
func Of(tid int) int { return int(Field("/proc/"+strconv.Itoa(tid)+"/status", "\nTgid:")) }

// Field is the number behind a name in a file of /proc, 0 when it is not there.
func Field(path, name string) int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	return Number(text, name)
}

// Number is the first number behind a name, on its line, 0 when there is none.
func Number(text []byte, name string) int64 {
	_, after, _ := bytes.Cut(text, []byte(name))
	line, _, _ := bytes.Cut(after, []byte("\n"))
	words := bytes.Fields(line)
	if len(words) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(string(words[0]), 10, 64)
	return n
}

// Read reads the memory of a thread's process at an address, as much of it as is there.
func Read(tid int, address uint64, into []byte) (int, error) {
	local := []unix.Iovec{{Base: &into[0]}}
	local[0].SetLen(len(into))
	return unix.ProcessVMReadv(tid, local, []unix.RemoteIovec{{Base: uintptr(address), Len: len(into)}}, 0)
}
