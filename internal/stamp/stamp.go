// Package stamp says cheaply whether a file is still the one that was recorded (§2.4): by stat first, by
// hash only when the stat differs. It serves the files of installed packs and the programs of the
// allow-list (§10.2).
//
// A file that had changed within a second of recording is Young: a second change in the same tick of the
// clock could leave its stat as it is, so it is hashed each time. A path that is a symbolic link, or
// anything but a regular file, has no stamp; callers resolve links before they ask.
package stamp

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"hcpx/internal/protocol"
)

// ErrNotRegular: the path is a link, a directory, a device or the like.
var ErrNotRegular = errors.New("not a regular file")

// ErrChanging: the file was written while it was read.
var ErrChanging = errors.New("the file changes while it is read")

// young is how far a change must lie back for stat alone to prove something.
const young = time.Second

// Of records a regular file: stat, hash, stat again, until both stats agree.
func Of(path string, now time.Time) (protocol.FileStamp, error) {
	for range 3 {
		s, err := once(path)
		if errors.Is(err, ErrChanging) {
			continue
		}
		if err != nil {
			return protocol.FileStamp{}, err
		}
		limit := now.Add(-young).UnixNano()
		s.Young = !exactTimes || s.MtimeNS > limit || s.CtimeNS > limit
		return s, nil
	}
	return protocol.FileStamp{}, fmt.Errorf("%s: %w", path, ErrChanging)
}

// Same says whether the file is the one of the stamp (§2.4). A missing file and one that is not regular
// are not; an error means that nobody can say, and the caller must refuse.
func Same(path string, s protocol.FileStamp) (bool, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if info.Size() != s.Size {
		return false, nil
	}
	if !s.Young && exactTimes && sameStat(statOf(info), s) {
		return true, nil
	}
	now, err := once(path)
	if err != nil {
		return false, err
	}
	return now.SHA256 == s.SHA256 && effect(now.Mode) == effect(s.Mode), nil
}

// Look is the stat of a regular file without its hash, and whether it can show on this system that the file is
// still the same.
func Look(path string) (s protocol.FileStamp, proves bool) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return protocol.FileStamp{}, false
	}
	return statOf(info), exactTimes
}

// OfDir records a directory by stat alone.
func OfDir(path string) (protocol.FileStamp, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return protocol.FileStamp{}, err
	}
	if !info.IsDir() {
		return protocol.FileStamp{}, fmt.Errorf("%s: not a directory", path)
	}
	return statOf(info), nil
}

// once is one round of stat, hash, stat.
func once(path string) (protocol.FileStamp, error) {
	var none protocol.FileStamp
	before, err := os.Lstat(path)
	if err != nil {
		return none, err
	}
	if !before.Mode().IsRegular() {
		return none, fmt.Errorf("%s: %w", path, ErrNotRegular)
	}
	// Without O_NONBLOCK a fifo put in the file's place just now would hold us up.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return none, err
	}
	defer f.Close()
	opened, err := f.Stat()
	if err != nil {
		return none, err
	}
	if !os.SameFile(before, opened) {
		return none, fmt.Errorf("%s: %w", path, ErrChanging)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return none, err
	}
	after, err := f.Stat()
	if err != nil {
		return none, err
	}
	s := statOf(before)
	if !sameStat(s, statOf(after)) {
		return none, fmt.Errorf("%s: %w", path, ErrChanging)
	}
	s.SHA256 = hex.EncodeToString(sum.Sum(nil))
	return s, nil
}

func sameStat(a, b protocol.FileStamp) bool {
	return a.Dev == b.Dev && a.Ino == b.Ino && a.Size == b.Size && a.Mode == b.Mode && a.MtimeNS == b.MtimeNS && a.CtimeNS == b.CtimeNS
}

// effect is what of a mode changes what the file can do: executable or not, and the set-id bits.
func effect(mode uint32) fs.FileMode {
	m := fs.FileMode(mode)
	out := m & (fs.ModeSetuid | fs.ModeSetgid)
	if m&0o111 != 0 {
		out |= 0o111
	}
	return out
}
