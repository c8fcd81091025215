package vault

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/windows"
)

// open cannot be told from a file's mode here: a user's profile is kept by its access list.
func open(fs.FileInfo) bool { return false }

// full says whether a disk is used up.
func full(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}
