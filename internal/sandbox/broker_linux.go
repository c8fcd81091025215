package sandbox

import (
	"errors"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// notifyValid asks whether a notification's process still waits (SECCOMP_IOCTL_NOTIF_ID_VALID).
const notifyValid = 0x40082102

// maxDenied bounds how many refused paths a run reports.
const maxDenied = 8

// notice is struct seccomp_notif.
type notice struct {
	id    uint64
	pid   uint32
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

// reply is struct seccomp_notif_resp.
type reply struct {
	id    uint64
	val   int64
	errno int32
	flags uint32
}

// metadataBroker changes mode, owner, times and attributes for the child, and only beneath the trees that it
// may write (§10.2): Landlock does not guard metadata. It never lets the kernel continue a call, so what was
// checked is what is done. It lends nothing: the child could do the same to a file that it owns.
type metadataBroker struct {
	listener int
	trees    []grant
	uid      uint32

	mu     sync.Mutex
	begun  bool
	denied []string
}

func (b *metadataBroker) serving() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.begun
}

// serve answers from an own goroutine, begun at the first call, until no process has the filter any more.
func (b *metadataBroker) serve() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.begun {
		b.begun = true
		go b.answer()
	}
}

// release closes the listener of a launcher whose thread ends; a broker at work does it itself.
func (b *metadataBroker) release() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.begun {
		return nil
	}
	b.begun = true
	return unix.Close(b.listener)
}

func (b *metadataBroker) deny(path string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.denied) < maxDenied {
		b.denied = append(b.denied, "metadata of "+path)
	}
}

func (b *metadataBroker) takeDenied() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.denied
	b.denied = nil
	return taken
}

func (b *metadataBroker) answer() {
	names := brokered()
	trees := openTrees(b.trees)
	defer func() {
		for _, t := range trees {
			_ = unix.Close(t.fd)
		}
		_ = unix.Close(b.listener)
	}()
	poll := []unix.PollFd{{Fd: int32(b.listener), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(poll, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		if poll[0].Revents&unix.POLLIN == 0 {
			if poll[0].Revents != 0 {
				return // the last process is gone
			}
			continue
		}
		var n notice
		if b.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)) != 0 {
			continue // it was killed meanwhile
		}
		c := call{broker: b, notice: &n, trees: trees}
		r := reply{id: n.id, errno: -int32(c.act(names[n.nr]))}
		_ = b.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r)) // fails only when the caller is dead
	}
}

func (b *metadataBroker) ioctl(request uintptr, arg unsafe.Pointer) unix.Errno {
	_, _, no := unix.Syscall(unix.SYS_IOCTL, uintptr(b.listener), request, uintptr(arg))
	return no
}

// brokered maps the numbers of this machine to the calls of the table that end here.
func brokered() map[int32]string {
	names := map[int32]string{}
	machine, ok := hostArch()
	for _, r := range syscallTable() {
		if n := r.number(machine); ok && r.verdict == broker && n >= 0 {
			names[int32(n)] = r.name
		}
	}
	return names
}

// tree is a writable tree that the broker holds open.
type tree struct {
	fd   int
	id   identity
	real string
	// private trees are emptied and used again: an attribute of their own would outlive the run.
	private bool
}

// openTrees opens the trees. One that is no longer what the rule was made for is left out: nothing is
// granted in it.
func openTrees(grants []grant) []tree {
	var trees []tree
	for _, g := range grants {
		fd, err := unix.Open(g.path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		id, _, no := stat(fd)
		real, err := realPath(fd)
		if no != 0 || err != nil || id != g.id {
			_ = unix.Close(fd)
			continue
		}
		trees = append(trees, tree{fd: fd, id: id, real: real, private: g.private})
	}
	return trees
}
