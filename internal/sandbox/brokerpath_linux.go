package sandbox

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// target is what a metadata call names: a descriptor of the child, or a path from one of its directories.
type target struct {
	dir    int32  // AT_FDCWD or a descriptor
	path   uint64 // address in the child
	fd     bool   // dir is the object itself
	follow bool
}

// object opens what the child means, as an O_PATH handle beneath a writable tree. The caller closes it.
func (c *metadataCall) object(t target) (int, *unix.Stat_t, unix.Errno) {
	fd, no := c.lookup(t)
	if no != 0 {
		return -1, nil, no
	}
	// The child's memory, directory and descriptors were read through its pid: it must still be the one.
	if no := c.waits(); no != 0 {
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
func (c *metadataCall) lookup(t target) (int, unix.Errno) {
	if t.fd {
		return c.file(t.dir)
	}
	path, no := c.text(t.path, unix.PathMax)
	if no != 0 {
		return -1, no
	}
	if path == "" {
		return -1, unix.ENOENT
	}
	if n, ok := descriptorPath(path); ok && t.follow {
		return c.file(n)
	}
	base := unix.AT_FDCWD
	if path[0] != '/' {
		base, no = c.file(t.dir)
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
func (c *metadataCall) beneath(fd int) (int, *unix.Stat_t, unix.Errno) {
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
	c.deny("metadata of " + real)
	return -1, nil, unix.EPERM
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
