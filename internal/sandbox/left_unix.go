//go:build unix

package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// nativeMark begins the name of a private directory that is no slot.
const nativeMark = "run-"

// ownRoot makes a private directory that is held by a lock on itself for as long as this process lives, so that one whose
// runtime was killed can be told.
func ownRoot(scratch string) (root string, lock *os.File, err error) {
	for range maxRoots {
		root, err := os.MkdirTemp(scratch, nativeMark)
		if err != nil {
			return "", nil, err
		}
		lock, err := os.Open(root)
		if errors.Is(err, os.ErrNotExist) {
			continue // somebody who sweeps took it for a dead one
		}
		if err != nil {
			return "", nil, err
		}
		if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && still(root, lock) {
			return root, lock, nil
		}
		if err := lock.Close(); err != nil {
			return "", nil, err
		}
	}
	return "", nil, errors.New("no private directory could be held")
}

// maxRoots is how often a directory that was swept away at its birth is made again.
const maxRoots = 16

// still says whether a path is the directory that was opened.
func still(root string, f *os.File) bool {
	named, err := os.Lstat(root)
	if err != nil {
		return false
	}
	held, err := f.Stat()
	return err == nil && os.SameFile(named, held)
}

// sweep removes the private directories of runtimes that were killed, all but own, so that what was given to one of their runs
// outlasts the next run of any command by nothing (§8.4). What resists is tried again by the next.
func sweep(scratch, own string) {
	entries, err := os.ReadDir(scratch)
	if err != nil {
		return // a run that cannot have a directory is refused by itself
	}
	for _, e := range entries {
		at := filepath.Join(scratch, e.Name())
		switch {
		case at == own:
		case strings.HasPrefix(e.Name(), nativeMark):
			sweepRoot(at)
		default:
			sweepSlot(at, e)
		}
	}
}

// sweepRoot removes a directory of ownRoot that nobody holds.
func sweepRoot(root string) {
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), root)
	defer f.Close()
	if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil && still(root, f) {
		_ = removeAll(root)
	}
}
