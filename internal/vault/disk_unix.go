//go:build unix

package vault

import (
	"errors"
	"io/fs"
	"syscall"
)

// open says whether group or others have any right to it.
func open(info fs.FileInfo) bool { return info.Mode().Perm()&0o077 != 0 }

// full says whether a disk, or what a user may have of it, is used up.
func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
