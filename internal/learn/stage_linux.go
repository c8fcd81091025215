//go:build amd64 || arm64

package learn

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stageName is argv[0] of this program when it was started to become the program that is watched.
const stageName = "hcpx: learn"

// stageSocket is the descriptor by which the stage hands over its listener.
const stageSocket = 3

// stageFailed is the exit code of a stage that could not become the program; why stands on its stderr.
const stageFailed = 126

// Stage becomes the program that is to be watched, when this program was started for that: whoever learns calls it
// first. Only a process of its own can do it: a thread that waits for its child's start waits for the answer to it.
func Stage(argv []string) (code int, ok bool) {
	if len(argv) < 3 || argv[0] != stageName {
		return 0, false
	}
	runtime.LockOSThread()
	err := becomeWatched(argv[1], argv[2:])
	fmt.Fprintln(os.Stderr, "hcpx:", err)
	return stageFailed, true
}

func becomeWatched(path string, argv []string) error {
	unix.CloseOnExec(stageSocket)
	// The filter may be loaded by anyone who gives up new privileges.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	listener, err := tell(watchFilter())
	if err != nil {
		return err
	}
	if err := unix.Sendmsg(stageSocket, []byte{0}, unix.UnixRights(listener), nil, 0); err != nil {
		return fmt.Errorf("hand over: %w", err)
	}
	unix.CloseOnExec(listener)
	return fmt.Errorf("start %s: %w", path, syscall.Exec(path, argv, os.Environ()))
}

// tell loads the filter on this thread and answers the listener.
func tell(code []unix.SockFilter) (int, error) {
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	fd, _, no := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER,
		uintptr(unsafe.Pointer(&program)))
	if no != 0 {
		return -1, fmt.Errorf("seccomp: %w", no)
	}
	return int(fd), nil
}

// watchFilter tells of the watched calls of this machine and allows everything, calls of another machine's form
// unseen.
func watchFilter() []unix.SockFilter {
	numbers := watchedNumbers()
	const allow, notify = unix.SECCOMP_RET_ALLOW, unix.SECCOMP_RET_USER_NOTIF
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	answer := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	code := []unix.SockFilter{load(4), {Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: 1, K: machine}, answer(allow), load(0)}
	for i, nr := range numbers {
		code = append(code, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jt: uint8(len(numbers) - i), K: uint32(nr)})
	}
	return append(code, answer(allow), answer(notify))
}

// errNoListener is what a stage that ended before it told anything leaves.
var errNoListener = errors.New("the program could not be started under watch")

// takeListener receives the listener of a stage.
func takeListener(socket int) (int, error) {
	space := make([]byte, unix.CmsgSpace(4))
	var one [1]byte
	n, got, _, _, err := unix.Recvmsg(socket, one[:], space, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1, os.NewSyscallError("recvmsg", err)
	}
	messages, err := unix.ParseSocketControlMessage(space[:got])
	if n == 0 || err != nil || len(messages) != 1 {
		return -1, errNoListener
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return -1, errNoListener
	}
	return fds[0], nil
}
