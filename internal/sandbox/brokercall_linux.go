package sandbox

import (
	"bytes"
	"errors"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"hcpx/internal/procs"
)

// call is one call that a service decides.
type call struct {
	procs.Notice
	name   string
	broker *broker
	over   <-chan struct{} // closed when the run is over; a service that blocks returns then
}

// waits says whether the caller still waits for the answer. Only then was what has been read through its number
// read from it, and not from a later process of the same number.
func (c *call) waits() unix.Errno {
	id := c.ID
	return procs.Control(c.broker.listener, notifyValid, unsafe.Pointer(&id))
}

// deny keeps what was refused for the report of the run.
func (c *call) deny(what string) { c.broker.deny(what) }

// file opens a descriptor of the child, or its working directory, as an O_PATH handle.
func (c *call) file(n int32) (int, unix.Errno) {
	link := "/proc/" + strconv.Itoa(int(c.PID)) + "/cwd"
	if n != unix.AT_FDCWD {
		link = "/proc/" + strconv.Itoa(int(c.PID)) + "/fd/" + strconv.Itoa(int(n))
	}
	fd, err := unix.Open(link, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return -1, unix.EBADF
	}
	return fd, number(err)
}

// text reads a string of the child, at most size bytes with its end.
func (c *call) text(address uint64, size int) (string, unix.Errno) {
	const page = 4096
	var text []byte
	for len(text) < size {
		step := min(page-int(address%page), size-len(text))
		chunk, no := c.bytes(address, step)
		if no != 0 {
			return "", no
		}
		if end := bytes.IndexByte(chunk, 0); end >= 0 {
			return string(append(text, chunk[:end]...)), 0
		}
		text = append(text, chunk...)
		address += uint64(step)
	}
	return "", unix.ENAMETOOLONG
}

// bytes reads the child's memory.
func (c *call) bytes(address uint64, size int) ([]byte, unix.Errno) {
	if size == 0 {
		return nil, 0
	}
	if address == 0 {
		return nil, unix.EFAULT
	}
	buf := make([]byte, size)
	n, err := procs.Read(int(c.PID), address, buf)
	if err != nil {
		return nil, number(err)
	}
	if n != size {
		return nil, unix.EFAULT
	}
	return buf, 0
}

// number is the error for the child; what has none is EPERM.
func number(err error) unix.Errno {
	if err == nil {
		return 0
	}
	var no unix.Errno
	if errors.As(err, &no) {
		return no
	}
	return unix.EPERM
}
