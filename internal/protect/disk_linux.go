package protect

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

func mtime(st *unix.Stat_t) int64 { return st.Mtim.Nano() }
func ctime(st *unix.Stat_t) int64 { return st.Ctim.Nano() }

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
