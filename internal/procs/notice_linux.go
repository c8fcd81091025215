package procs

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// Notice is struct seccomp_notif. PID is the thread that called.
type Notice struct {
	ID    uint64
	PID   uint32
	Flags uint32
	NR    int32
	Arch  uint32
	IP    uint64
	Args  [6]uint64
}

// Reply is struct seccomp_notif_resp.
type Reply struct {
	ID    uint64
	Val   int64
	Errno int32
	Flags uint32
}

// Control asks a listener for a notice, answers one, or asks after one.
func Control(listener int, request uintptr, arg unsafe.Pointer) unix.Errno {
	_, _, no := unix.Syscall(unix.SYS_IOCTL, uintptr(listener), request, uintptr(arg))
	return no
}
