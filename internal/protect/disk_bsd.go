//go:build unix && !linux

package protect

import (
	"errors"

	"golang.org/x/sys/unix"
)

func mtime(st *unix.Stat_t) int64 { return st.Mtim.Nano() }
func ctime(st *unix.Stat_t) int64 { return st.Ctim.Nano() }

// born is not asked for here: device and inode alone tell directories apart after a kill.
func born(int, string) int64 { return 0 }

// reserve can't be asked for here.
func reserve(int, int64) error { return nil }

// renameNew renames within directories, and over nothing that was there when it looked.
func renameNew(from int, old string, to int, name string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(to, name, &st, unix.AT_SYMLINK_NOFOLLOW); !errors.Is(err, unix.ENOENT) {
		return errors.Join(err, unix.EEXIST)
	}
	return unix.Renameat(from, old, to, name)
}

// chmodAt sets the mode of a name, not of what a link of that name leads to.
func chmodAt(dir int, name string, mode uint32) error {
	return unix.Fchmodat(dir, name, mode, unix.AT_SYMLINK_NOFOLLOW)
}

// lists are not asked for here.
func lists(int, string, bool) (access, heirs []byte, err error) { return nil, nil, nil }

// setLists has none to set here.
func setLists(int, string, *node) error { return nil }
