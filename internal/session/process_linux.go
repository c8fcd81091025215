package session

import (
	"slices"
	"syscall"
)

// readProcess appends a file of proc(5) to buf, as far as it can be read and is not too long. It asks the kernel
// itself: the runtime's files cost three times as much, for each ancestor of each command.
func readProcess(path string, buf []byte) []byte {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return buf
	}
	defer syscall.Close(fd)
	for len(buf) < maxEnviron {
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, len(buf)+4096)
		}
		n, err := syscall.Read(fd, buf[len(buf):cap(buf)])
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			break
		}
		if buf = buf[:len(buf)+n]; len(buf) < cap(buf) {
			break // these files end where a read falls short
		}
	}
	return buf
}
