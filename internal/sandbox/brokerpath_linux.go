package sandbox

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// target is what a metadata call names: a descriptor of the child, or a path from one of its directories.
type target struct {
	dir    int32  // AT_FDCWD or a descriptor
	path   uint64 // address in the child
	fd     bool   // dir is the object itself
	follow bool
}

// call is one brokered call.
type call struct {
	broker *metadataBroker
	notice *notice
	trees  []tree
	kept   bool // the object is a private directory itself
}

// object opens what the child means, as an O_PATH handle beneath a writable tree. The caller closes it.
func (c *call) object(t target) (int, *unix.Stat_t, unix.Errno) {
	fd, no := c.lookup(t)
	if no != 0 {
		return -1, nil, no
	}
	// The child's memory, directory and descriptors were read through its pid: it must still be the one.
	id := c.notice.id
	if no := c.broker.ioctl(notifyValid, unsafe.Pointer(&id)); no != 0 {
		_ = unix.Close(fd)
		return -1, nil, no
	}
	held, st, no := c.beneath(fd)
	if held != fd {
		_ = unix.Close(fd)
	}
	return held, st, no
}

// lookup resolves as the kernel would have for the child: from its working directory or descriptor, links
// followed or not. Magic links would be those of this process and are refused.
func (c *call) lookup(t target) (int, unix.Errno) {
	if t.fd {
		return c.childFile(t.dir)
	}
	path, no := c.text(t.path, unix.PathMax)
	if no != 0 {
		return -1, no
	}
	if path == "" {
		return -1, unix.ENOENT
	}
	if n, ok := descriptorPath(path); ok && t.follow {
		return c.childFile(n)
	}
	base := unix.AT_FDCWD
	if path[0] != '/' {
		base, no = c.childFile(t.dir)
		if no != 0 {
			return -1, no
		}
		defer unix.Close(base)
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
	if !t.follow {
		how.Flags |= unix.O_NOFOLLOW
	}
	fd, err := unix.Openat2(base, path, &how)
	return fd, number(err)
}

// childFile opens a descriptor of the child, or its working directory.
func (c *call) childFile(n int32) (int, unix.Errno) {
	link := "/proc/" + strconv.Itoa(int(c.notice.pid)) + "/cwd"
	if n != unix.AT_FDCWD {
		link = "/proc/" + strconv.Itoa(int(c.notice.pid)) + "/fd/" + strconv.Itoa(int(n))
	}
	fd, err := unix.Open(link, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return -1, unix.EBADF
	}
	return fd, number(err)
}

// descriptorPath knows the paths by which a program means its own descriptor.
func descriptorPath(path string) (int32, bool) {
	for _, prefix := range []string{"/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/"} {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			n, err := strconv.ParseUint(rest, 10, 31)
			return int32(n), err == nil
		}
	}
	return 0, false
}

// beneath proves that an object lies in a writable tree: it is opened again from the tree, without leaving
// it and without any link, and must be the same file. A file that has no name any more is the child's own.
func (c *call) beneath(fd int) (int, *unix.Stat_t, unix.Errno) {
	id, st, no := stat(fd)
	if no != 0 {
		return -1, nil, no
	}
	if st.Nlink == 0 && st.Mode&unix.S_IFMT == unix.S_IFREG {
		return fd, st, 0
	}
	real, err := realPath(fd)
	if err != nil {
		return -1, nil, unix.EPERM
	}
	for _, t := range c.trees {
		if id == t.id {
			c.kept = t.private
			return fd, st, 0
		}
		rest, ok := strings.CutPrefix(real, t.real+"/")
		if !ok {
			continue
		}
		how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW,
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS}
		held, err := unix.Openat2(t.fd, rest, &how)
		if err != nil {
			continue
		}
		if again, st, no := stat(held); no == 0 && again == id {
			return held, st, 0
		}
		_ = unix.Close(held)
	}
	c.broker.deny(real)
	return -1, nil, unix.EPERM
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
	local := unix.Iovec{Base: &buf[0]}
	local.SetLen(size)
	remote := unix.RemoteIovec{Base: uintptr(address), Len: size}
	n, err := unix.ProcessVMReadv(int(c.notice.pid), []unix.Iovec{local}, []unix.RemoteIovec{remote}, 0)
	if err != nil {
		return nil, number(err)
	}
	if n != size {
		return nil, unix.EFAULT
	}
	return buf, 0
}

func stat(fd int) (identity, *unix.Stat_t, unix.Errno) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return identity{st.Dev, st.Ino}, &st, number(err)
}

// handle is the path of a descriptor of this process.
func handle(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

func realPath(fd int) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlink(handle(fd), buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
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
