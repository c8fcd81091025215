package protect

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

func mtime(st *unix.Stat_t) int64 { return st.Mtim.Nano() }
func ctime(st *unix.Stat_t) int64 { return st.Ctim.Nano() }

// born is when what stands at a name was made, 0 where the file system doesn't tell. Unlike an inode's number it
// can't be had twice.
func born(dir int, name string) int64 {
	var st unix.Statx_t
	err := unix.Statx(dir, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_BTIME, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return 0
	}
	return st.Btime.Sec*1e9 + int64(st.Btime.Nsec)
}

// reserve makes sure that a file can be written over up to a size.
func reserve(fd int, size int64) error {
	if size == 0 {
		return nil
	}
	err := unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return err
}

// renameNew renames within directories, and never over anything.
func renameNew(from int, old string, to int, name string) error {
	err := unix.Renameat2(from, old, to, name, unix.RENAME_NOREPLACE)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(to, name, &st, unix.AT_SYMLINK_NOFOLLOW); !errors.Is(err, unix.ENOENT) {
		return errors.Join(err, unix.EEXIST)
	}
	return unix.Renameat(from, old, to, name)
}

// accessLists are the attributes that say who may do what beside the mode: with the second, what is made in a
// directory is another's to write.
var accessLists = [...]string{"system.posix_acl_access", "system.posix_acl_default"}

// lists are the access lists of what stands at a name, or of an open one when that is "". Where a file system has none
// there are none.
func lists(dir int, name string, isDir bool) (access, heirs []byte, err error) {
	if access, err = attribute(dir, name, accessLists[0]); err == nil && isDir {
		heirs, err = attribute(dir, name, accessLists[1])
	}
	return access, heirs, err
}

func procName(dir int, name string) string {
	return "/proc/self/fd/" + strconv.Itoa(dir) + "/" + name
}

func attribute(dir int, name, which string) ([]byte, error) {
	buf := make([]byte, 256)
	for {
		var n int
		var err error
		if name == "" {
			n, err = unix.Fgetxattr(dir, which, buf)
		} else {
			n, err = unix.Lgetxattr(procName(dir, name), which, buf)
		}
		switch {
		case err == nil && n == 0, errors.Is(err, unix.ENODATA), errors.Is(err, unix.ENOTSUP):
			return nil, nil
		case errors.Is(err, unix.ERANGE) && len(buf) < 1<<16:
			buf = make([]byte, 1<<16)
		case err != nil:
			return nil, err
		default:
			return buf[:n:n], nil
		}
	}
}

// setLists gives what stands at a name, or an open one, the access lists that it had, or none.
func setLists(dir int, name string, was *node) error {
	var all error
	for i, list := range [...][]byte{was.Access, was.Heirs} {
		which := accessLists[i]
		if i == 1 && was.Kind != kindDir {
			continue
		}
		var err error
		switch {
		case list != nil && name == "":
			err = unix.Fsetxattr(dir, which, list, 0)
		case list != nil:
			err = unix.Lsetxattr(procName(dir, name), which, list, 0)
		case name == "":
			err = unix.Fremovexattr(dir, which)
		default:
			err = unix.Lremovexattr(procName(dir, name), which)
		}
		if list != nil || !errors.Is(err, unix.ENODATA) && !errors.Is(err, unix.ENOTSUP) {
			all = errors.Join(all, err)
		}
	}
	return all
}

// chmodAt sets the mode of a name, not of what a link of that name leads to. Kernels before 6.6 have no call for it.
func chmodAt(dir int, name string, mode uint32) error {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
		err = os.ErrInvalid
	}
	if err == nil {
		err = unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), mode)
	}
	return errors.Join(err, unix.Close(fd))
}
