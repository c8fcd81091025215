package sandbox

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// script is what the first process of a run does, in order, until it has built the jail and given up its rights. It
// is a list of system calls, because that process is a fork: it may neither allocate nor lock (§10.5). Everything
// that the calls point at is made here. A call that fails ends the process, and with it everything.
type script struct {
	steps  []step
	slots  []uintptr // results that later steps use
	stat   unix.Stat_t
	pinned []any // what is pointed at by number
	err    error // of making the script
}

// step is one system call.
type step struct {
	nr   uintptr
	args [6]uintptr
	from [6]int    // arguments that are earlier results: the slot and 1
	into int       // the slot of the result, -1 = none
	lent *int32    // where else the result goes
	id   *identity // what stat must have found
	may  bool      // it may fail
	what string    // for the person who reads of its failure
}

// here is AT_FDCWD.
const here = ^uintptr(99)

// call appends a step. The answer is valid until the next one.
func (p *script) call(what string, nr uintptr, args ...uintptr) *step {
	s := step{nr: nr, what: what, into: -1}
	copy(s.args[:], args)
	p.steps = append(p.steps, s)
	return &p.steps[len(p.steps)-1]
}

// with makes an argument the result of an earlier step.
func (s *step) with(arg, slot int) *step { s.from[arg] = slot + 1; return s }

// save keeps the result of the step that was appended last, and answers its slot.
func (p *script) save() int {
	p.slots = append(p.slots, 0)
	p.steps[len(p.steps)-1].into = len(p.slots) - 1
	return len(p.slots) - 1
}

func (p *script) text(s string) uintptr {
	b, err := unix.BytePtrFromString(s)
	p.err = errors.Join(p.err, err)
	return pin(p, b)
}

// pin keeps what a step points at by number.
func pin[T any](p *script, at *T) uintptr {
	p.pinned = append(p.pinned, at)
	return uintptr(unsafe.Pointer(at))
}

// put writes a text to a file of the process's own /proc.
func (p *script) put(file, text string) {
	b := []byte(text)
	p.call(file, unix.SYS_OPENAT, here, p.text(file), unix.O_WRONLY|unix.O_CLOEXEC)
	fd := p.save()
	p.call(file, unix.SYS_WRITE, 0, pin(p, &b[0]), uintptr(len(b))).with(0, fd)
	p.close(fd)
}

func (p *script) close(slot int) { p.call("close", unix.SYS_CLOSE).with(0, slot) }

// The descriptors of the first process beside the standard files of the command.
const (
	fdControl = 3
	fdRules   = 4
)

// files puts the descriptors in their places and closes all others: a fork has everything that the runtime has.
// None of the given ones is below 10.
func (p *script) files(std [3]int, control, rules int) {
	for to, from := range std {
		p.call("dup3", unix.SYS_DUP3, uintptr(from), uintptr(to))
	}
	p.call("dup3", unix.SYS_DUP3, uintptr(control), fdControl, unix.O_CLOEXEC)
	first := uintptr(fdRules)
	if rules >= 0 {
		p.call("dup3", unix.SYS_DUP3, uintptr(rules), fdRules, unix.O_CLOEXEC)
		first++
	}
	p.call("close_range", unix.SYS_CLOSE_RANGE, first, 1<<32-1)
}

// own maps the user and the group of the runtime to themselves: files keep their owners, and what root may do
// beyond that ends at the namespace. The files for it are the process's own only while it can be looked into, which
// a runtime that has hidden itself cannot, and so its fork.
func (p *script) own(uid, gid string) {
	p.call("dumpable", unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1)
	p.put("/proc/self/setgroups", "deny")
	p.put("/proc/self/gid_map", gid+" "+gid+" 1")
	p.put("/proc/self/uid_map", uid+" "+uid+" 1")
}

// root builds the layout on a new file system of nothing, mounted on the directory at, and makes it the root of
// the process; nothing else of the machine is left.
func (p *script) root(l *layout, at string, abi int) {
	p.call("mount / private", unix.SYS_MOUNT, 0, p.text("/"), 0, unix.MS_REC|unix.MS_PRIVATE, 0)
	mounts := make([]int, len(l.ordered))
	for i, s := range l.ordered {
		mounts[i] = p.source(s, abi)
	}
	none := p.text("none")
	const empty = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	p.call("mount tmpfs", unix.SYS_MOUNT, none, p.text(at), p.text("tmpfs"), empty, p.text("mode=0755,size=4m"))
	p.call("chdir "+at, unix.SYS_CHDIR, p.text(at))
	for _, dir := range l.dirs {
		p.call("mkdir "+dir, unix.SYS_MKDIRAT, here, p.text(dir[1:]), 0o700)
	}
	for _, file := range l.files {
		p.call("mknod "+file, unix.SYS_MKNODAT, here, p.text(file[1:]), unix.S_IFREG|0o400, 0)
	}
	for link, target := range l.links {
		p.call("symlink "+link, unix.SYS_SYMLINKAT, p.text(target), here, p.text(link[1:]))
	}
	for i, s := range l.ordered {
		p.attach(s, mounts[i], l.above(s.path) != nil)
	}
	// Own processes only, and of them what is theirs; not the first one either, which hidepid=invisible would show to
	// root's group. A machine whose /proc is masked gives none: then there is none.
	p.call("mkdir /proc", unix.SYS_MKDIRAT, here, p.text("proc"), 0o555)
	p.call("mount /proc", unix.SYS_MOUNT, none, p.text("proc"), p.text("proc"), empty|unix.MS_RDONLY,
		p.text("hidepid=ptraceable,subset=pid")).may = true
	for _, dir := range append(l.dirs, "/.") {
		if l.spots[dir] == nil {
			p.call("chmod "+dir, unix.SYS_FCHMODAT, here, p.text(dir[1:]), 0o111)
		}
	}
	dot := p.text(".")
	p.call("remount /", unix.SYS_MOUNT, 0, dot, 0, unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|empty, 0)
	p.call("pivot_root", unix.SYS_PIVOT_ROOT, dot, dot)
	p.call("umount the machine", unix.SYS_UMOUNT2, dot, unix.MNT_DETACH)
	p.call("chdir /", unix.SYS_CHDIR, p.text("/"))
}

// source makes a mount of what is to be mounted, which is nowhere yet. It is what its name means now, so it is held
// to what that meant when it was looked at.
func (p *script) source(s *spot, abi int) int {
	nothing := p.text("")
	p.call("open "+s.path, unix.SYS_OPEN_TREE, here, p.text(s.path),
		unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW)
	mount := p.save()
	p.call("check "+s.path, unix.SYS_FSTAT, 0, uintptr(unsafe.Pointer(&p.stat))).with(0, mount).id = &s.id
	attr := pin(p, &unix.MountAttr{Attr_set: s.attributes(abi)})
	p.call("mount_setattr "+s.path, unix.SYS_MOUNT_SETATTR, 0, nothing, unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attr,
		unsafe.Sizeof(unix.MountAttr{})).with(0, mount)
	return mount
}

// attach puts a mount in its place beneath the new root. Where that lies in a mounted tree, which others may write,
// no link is followed to it.
func (p *script) attach(s *spot, mount int, nested bool) {
	nothing := p.text("")
	if !nested {
		p.call("mount "+s.path, unix.SYS_MOVE_MOUNT, 0, nothing, here, p.text(s.path[1:]), unix.MOVE_MOUNT_F_EMPTY_PATH).with(0, mount)
		p.close(mount)
		return
	}
	how := pin(p, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_BENEATH})
	p.call("open the place of "+s.path, unix.SYS_OPENAT2, here, p.text(s.path[1:]), how, unix.SizeofOpenHow)
	to := p.save()
	p.call("mount "+s.path, unix.SYS_MOVE_MOUNT, 0, nothing, 0, nothing,
		unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH).with(0, mount).with(2, to)
	p.close(to)
	p.close(mount)
}

// strip gives up everything that building took, and more: new privileges, capabilities, being looked into. rules
// says that there is a Landlock ruleset to enter. The answer is the slot of the filter's listener.
func (p *script) strip(f filter, rules bool) {
	p.call("no_new_privs", unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1)
	for capability := range uintptr(64) {
		p.call("bounding set", unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, capability).may = capability > unix.CAP_AUDIT_READ
	}
	header := pin(p, &unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3})
	p.call("capset", unix.SYS_CAPSET, header, pin(p, &[2]unix.CapUserData{}))
	p.call("dumpable", unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0)
	if rules {
		p.call("landlock_restrict_self", unix.SYS_LANDLOCK_RESTRICT_SELF, fdRules, 0)
		p.call("close", unix.SYS_CLOSE, fdRules)
	}
	code := f.with(launcherValues{markThread: 1, markProcess: 1})
	program := &unix.SockFprog{Len: uint16(len(code)), Filter: (*unix.SockFilter)(unsafe.Pointer(&code[0]))}
	p.call("seccomp", unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, f.flags(), pin(p, program))
}

// hand sends the descriptor that the last step made over the control socket, with one byte.
func (p *script) hand() {
	control := unix.UnixRights(0)
	p.pinned = append(p.pinned, control)
	data := &[1]byte{1}
	iov := &unix.Iovec{Base: &data[0], Len: 1}
	message := &unix.Msghdr{Iov: iov, Iovlen: 1, Control: &control[0]}
	message.SetControllen(len(control))
	p.steps[len(p.steps)-1].lent = (*int32)(unsafe.Pointer(&control[unix.SizeofCmsghdr]))
	p.call("hand over the listener", unix.SYS_SENDMSG, fdControl, pin(p, message), 0)
}

// failure tells which step did not work.
func (p *script) failure(at uint32, no unix.Errno) error {
	switch {
	case at >= uint32(len(p.steps)):
		return no
	case no == 0:
		return errors.New(p.steps[at].what + ": it was replaced while the jail was built")
	}
	return fmt.Errorf("%s: %w", p.steps[at].what, no)
}
