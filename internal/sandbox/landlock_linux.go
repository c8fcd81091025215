package sandbox

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights of the jail's parts. Devices and their ioctls, character and block nodes are never among them.
const (
	rightsRead    = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	rightsProgram = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_EXECUTE
	rightsExec    = rightsRead | unix.LANDLOCK_ACCESS_FS_EXECUTE
	rightsWrite   = rightsRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_REFER
	// rightsFile are those that a rule on a single file can hold.
	rightsFile = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// handledRights are all file rights that the ABI knows: what is handled and not granted is refused.
func handledRights(abi int) uint64 {
	highest := uint64(unix.LANDLOCK_ACCESS_FS_MAKE_SYM)
	switch {
	case abi >= 5:
		highest = unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	case abi >= 3:
		highest = unix.LANDLOCK_ACCESS_FS_TRUNCATE
	case abi == 2:
		highest = unix.LANDLOCK_ACCESS_FS_REFER
	}
	return highest<<1 - 1
}

// ruleset is a Landlock policy that no thread has entered yet.
type ruleset struct {
	fd      int
	handled uint64 // rights that the kernel does not know can be in no rule
	// scoped says that signals are confined by it; only then may its domain be killed as a whole.
	scoped bool
}

// newRuleset builds the policy: every right handled, signals and abstract sockets scoped, TCP handled too
// when the network is none. The first rule that fails fails the whole.
func newRuleset(k Kernel, mode string, parts ...[]grant) (ruleset, error) {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: handledRights(k.ABI)}
	if mode != "full" && k.ABI >= 4 {
		attr.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	size := unsafe.Offsetof(attr.Scoped)
	if k.ABI >= abiScope {
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
		size = unsafe.Offsetof(attr.Quiet_access_fs)
	} else if k.ABI < 4 {
		size = unsafe.Offsetof(attr.Handled_access_net)
	}
	fd, _, no := unix.RawSyscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if no != 0 {
		return ruleset{}, fmt.Errorf("landlock_create_ruleset: %w", no)
	}
	r := ruleset{fd: int(fd), handled: attr.Handled_access_fs, scoped: attr.Scoped&unix.LANDLOCK_SCOPE_SIGNAL != 0}
	for _, part := range parts {
		for _, g := range part {
			if err := r.allow(g); err != nil {
				return ruleset{}, fmt.Errorf("%s: %w", g.path, closing(r.fd, err))
			}
		}
	}
	return r, nil
}

// allow adds one rule. A file that is not held open must still be the one that was looked at.
func (r ruleset) allow(g grant) error {
	if g.fd != 0 {
		return r.add(g.fd, g.rights)
	}
	fd, err := unix.Open(g.path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	id, _, no := stat(fd)
	switch {
	case no != 0:
		return closing(fd, no)
	case id != g.id:
		return closing(fd, errors.New("it was replaced while the jail was built"))
	}
	if err := r.add(fd, g.rights); err != nil {
		return closing(fd, err)
	}
	return unix.Close(fd)
}

func (r ruleset) add(fd int, rights uint64) error {
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights & r.handled, Parent_fd: int32(fd)}
	_, _, no := unix.RawSyscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r.fd), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if no != 0 {
		return fmt.Errorf("landlock_add_rule: %w", no)
	}
	return nil
}

// closing closes a descriptor on the way out of a failure, which stays the one that is told.
func closing(fd int, err error) error {
	if again := unix.Close(fd); again != nil {
		return fmt.Errorf("%w (and close: %v)", err, again)
	}
	return err
}
