//go:build unix

package gate

import (
	"io/fs"
	"syscall"
)

// owner is whom a file belongs to.
func owner(info fs.FileInfo) (uid, gid uint32, ok bool) {
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return sys.Uid, sys.Gid, true
}
