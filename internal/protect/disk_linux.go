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
