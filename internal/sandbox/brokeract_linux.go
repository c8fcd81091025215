package sandbox

import (
	"encoding/binary"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// metadata is the service that changes mode, owner, times and attributes for the child, and only beneath the
// trees that it may write (§10.2): Landlock does not guard metadata. It never lets the kernel proceed with a
// call, so what was checked is what is done. It lends nothing: the child could do the same to a file that it owns.
type metadata struct {
	grants []grant
	uid    uint32
	trees  []tree // opened at the first call
	opened bool
}

// tree is a writable tree that the service holds open.
type tree struct {
	fd   int
	id   identity
	real string
	// private trees are emptied and used again: an attribute of their own would outlive the run.
	private bool
}

// metadataCall is one call and the object that it turned out to mean.
type metadataCall struct {
	*call
	*metadata
	kept bool // the object is a private directory itself
}

func (m *metadata) calls() []string {
	var names []string
	for _, r := range syscallTable() {
		if r.verdict == byMetadata {
			names = append(names, r.name)
		}
	}
	return names
}

func (m *metadata) blocks() bool { return false }

func (m *metadata) act(c *call) answer {
	if !m.opened {
		m.trees, m.opened = openTrees(m.grants), true
	}
	return fails((&metadataCall{call: c, metadata: m}).do())
}

func (m *metadata) end() {}

func (m *metadata) close() {
	for _, t := range m.trees {
		_ = unix.Close(t.fd)
	}
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

// do decides and does one call, and answers the error for the child; 0 is success. A call that is not
// known here is refused.
func (c *metadataCall) do() unix.Errno {
	a, name := c.Args, c.name
	switch name {
	case "chmod":
		return c.mode(target{dir: unix.AT_FDCWD, path: a[0], follow: true}, a[1])
	case "fchmod":
		return c.mode(target{dir: int32(a[0]), fd: true}, a[1])
	case "fchmodat":
		return c.mode(target{dir: int32(a[0]), path: a[1], follow: true}, a[2])
	case "fchmodat2":
		return c.flagged(a[0], a[1], a[3], func(t target) unix.Errno { return c.mode(t, a[2]) })
	case "chown", "lchown":
		return c.owner(target{dir: unix.AT_FDCWD, path: a[0], follow: name == "chown"}, a[1], a[2])
	case "fchown":
		return c.owner(target{dir: int32(a[0]), fd: true}, a[1], a[2])
	case "fchownat":
		return c.flagged(a[0], a[1], a[4], func(t target) unix.Errno { return c.owner(t, a[2], a[3]) })
	case "utime":
		return c.times(target{dir: unix.AT_FDCWD, path: a[0], follow: true}, a[1], seconds)
	case "utimes":
		return c.times(target{dir: unix.AT_FDCWD, path: a[0], follow: true}, a[1], micros)
	case "futimesat":
		return c.times(target{dir: int32(a[0]), path: a[1], fd: a[1] == 0, follow: true}, a[2], micros)
	case "utimensat":
		return c.utimensat()
	case "setxattr", "lsetxattr", "fsetxattr":
		return c.setAttr(name[0], a)
	case "removexattr", "lremovexattr", "fremovexattr":
		return c.removeAttr(name[0], a)
	}
	return unix.EPERM
}

// flagged is a call with a directory, a path and AT flags.
func (c *metadataCall) flagged(dir, path, flags uint64, do func(target) unix.Errno) unix.Errno {
	if flags&^(unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH) != 0 {
		return unix.EINVAL
	}
	t := target{dir: int32(dir), path: path, follow: flags&unix.AT_SYMLINK_NOFOLLOW == 0}
	if flags&unix.AT_EMPTY_PATH != 0 {
		first, no := c.bytes(path, 1)
		if no != 0 {
			return no
		}
		t.fd = first[0] == 0
	}
	return do(t)
}

func (c *metadataCall) utimensat() unix.Errno {
	a := c.Args
	if a[1] == 0 { // no path: the descriptor itself
		if a[3] != 0 {
			return unix.EINVAL
		}
		return c.times(target{dir: int32(a[0]), fd: true}, a[2], nanos)
	}
	return c.flagged(a[0], a[1], a[3], func(t target) unix.Errno { return c.times(t, a[2], nanos) })
}

// owned opens an object that the child owns: only its owner may change what is asked for here.
func (c *metadataCall) owned(t target) (int, *unix.Stat_t, unix.Errno) {
	fd, st, no := c.object(t)
	if no == 0 && st.Uid != c.uid {
		_ = unix.Close(fd)
		return -1, nil, unix.EPERM
	}
	return fd, st, no
}

// mode is chmod. Setuid and setgid bits are refused, but for those that a directory has already (§10.2).
func (c *metadataCall) mode(t target, mode uint64) unix.Errno {
	fd, st, no := c.owned(t)
	if no != 0 {
		return no
	}
	defer unix.Close(fd)
	kept := uint32(0)
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		kept = st.Mode & setidBits
	}
	if uint32(mode)&setidBits&^kept != 0 {
		return unix.EPERM
	}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return unix.EOPNOTSUPP
	}
	return number(unix.Chmod(handle(fd), uint32(mode)&0o7777))
}

// owner is chown: to the same owner, and to a group that the child is in.
func (c *metadataCall) owner(t target, uid, gid uint64) unix.Errno {
	fd, st, no := c.owned(t)
	if no != 0 {
		return no
	}
	defer unix.Close(fd)
	const keep = ^uint32(0)
	user, group := uint32(uid), uint32(gid)
	if user != keep && user != st.Uid {
		return unix.EPERM
	}
	if group != keep && group != st.Gid && !inGroup(group) {
		return unix.EPERM
	}
	return number(unix.Fchownat(fd, "", int(int32(user)), int(int32(group)), unix.AT_EMPTY_PATH))
}

func inGroup(gid uint32) bool {
	groups, err := unix.Getgroups()
	return gid == uint32(unix.Getegid()) || err == nil && slices.Contains(groups, int(gid))
}

// timeUnit is how the second half of a time is counted; zero has no second half.
type timeUnit int64

const (
	seconds timeUnit = 0
	micros  timeUnit = 1000
	nanos   timeUnit = 1
)

// times is utime and its kin; no times given means now.
func (c *metadataCall) times(t target, address uint64, unit timeUnit) unix.Errno {
	var when *[2]unix.Timespec
	if address != 0 {
		var no unix.Errno
		if when, no = c.timespecs(address, unit); no != 0 {
			return no
		}
	}
	fd, _, no := c.owned(t)
	if no != 0 {
		return no
	}
	defer unix.Close(fd)
	if when == nil {
		return number(unix.UtimesNanoAt(fd, "", []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}, unix.AT_EMPTY_PATH))
	}
	return number(unix.UtimesNanoAt(fd, "", when[:], unix.AT_EMPTY_PATH))
}

func (c *metadataCall) timespecs(address uint64, unit timeUnit) (*[2]unix.Timespec, unix.Errno) {
	size := 32
	if unit == seconds {
		size = 16
	}
	raw, no := c.bytes(address, size)
	if no != 0 {
		return nil, no
	}
	word := func(i int) int64 { return int64(binary.NativeEndian.Uint64(raw[8*i:])) }
	if unit == seconds {
		return &[2]unix.Timespec{{Sec: word(0)}, {Sec: word(1)}}, 0
	}
	if unit == micros && (uint64(word(1)) >= 1e6 || uint64(word(3)) >= 1e6) {
		return nil, unix.EINVAL
	}
	return &[2]unix.Timespec{{Sec: word(0), Nsec: word(1) * int64(unit)}, {Sec: word(2), Nsec: word(3) * int64(unit)}}, 0
}

// attr is the object and the name of an attribute call. Only user attributes exist for the child: the
// others belong to the system, and programs take EOPNOTSUPP for a file system without them.
func (c *metadataCall) attr(kind byte, a [6]uint64) (int, string, unix.Errno) {
	name, no := c.text(a[1], 256)
	if no != 0 {
		return -1, "", no
	}
	if !strings.HasPrefix(name, "user.") {
		return -1, "", unix.EOPNOTSUPP
	}
	t := target{dir: unix.AT_FDCWD, path: a[0], follow: kind != 'l'}
	if kind == 'f' {
		t = target{dir: int32(a[0]), fd: true}
	}
	fd, st, no := c.owned(t)
	if no == 0 && (c.kept || st.Mode&unix.S_IFMT == unix.S_IFLNK) {
		_ = unix.Close(fd)
		return -1, "", unix.EPERM
	}
	return fd, name, no
}

func (c *metadataCall) setAttr(kind byte, a [6]uint64) unix.Errno {
	const largest = 64 << 10
	if a[3] > largest {
		return unix.E2BIG
	}
	value, no := c.bytes(a[2], int(a[3]))
	if no != 0 {
		return no
	}
	fd, name, no := c.attr(kind, a)
	if no != 0 {
		return no
	}
	defer unix.Close(fd)
	return number(unix.Setxattr(handle(fd), name, value, int(int32(a[4]))))
}

func (c *metadataCall) removeAttr(kind byte, a [6]uint64) unix.Errno {
	fd, name, no := c.attr(kind, a)
	if no != 0 {
		return no
	}
	defer unix.Close(fd)
	return number(unix.Removexattr(handle(fd), name))
}
