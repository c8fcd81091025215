package vault

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"hcpx/internal/disk"
	"hcpx/internal/protocol"
)

func (v *vault) path(name string) string { return filepath.Join(v.o.Dir, name) }

func stat(path string) (fs.FileInfo, error) { return os.Lstat(path) }

var (
	errOpen  = errors.New("other users can read it")
	errLarge = errors.New("it is larger than any that was written here")
)

// safe refuses a directory that other users could reach: links and locks in it would be theirs.
func (v *vault) safe() *protocol.Error {
	info, err := stat(v.o.Dir)
	what := "The directory of secrets " + v.o.Dir
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return unreadable(what, err)
	case info.Mode()&fs.ModeSymlink != 0:
		return fail(what + " is a symbolic link, so it is not used.").WithHint("ls -ld " + protocol.Word(v.o.Dir))
	case !info.IsDir():
		return fail(what + " is no directory.").WithHint("ls -ld " + protocol.Word(v.o.Dir))
	case disk.Foreign(info):
		return fail(what + " belongs to another user, so it is not used.").WithHint("ls -ld " + protocol.Word(v.o.Dir))
	case open(info):
		return fail(what + " can be reached by other users, so it is not used.").WithHint("chmod 700 " + protocol.Word(v.o.Dir))
	}
	return nil
}

func (v *vault) makeDir() *protocol.Error {
	if err := os.MkdirAll(v.o.Dir, 0o700); err != nil {
		return unwritten(v.o.Dir, err)
	}
	return v.safe()
}

// openFile opens a regular file. Whatever is neither that nor a link has one name here.
func openFile(path string, flags int) (*os.File, error) {
	f, err := disk.Open(path, flags)
	var odd *disk.OddError
	if errors.As(err, &odd) && odd.What != disk.Link {
		err = &disk.OddError{What: "no regular file"}
	}
	return f, err
}

// readWhole reads a file that is regular and no larger than max.
func readWhole(path string, max int) ([]byte, error) {
	f, err := openFile(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, max)
}

// readPrivate is readWhole of a key: one that others can read, or that is another's, is none.
func readPrivate(path string) ([]byte, error) {
	f, err := openFile(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case disk.Foreign(info):
		return nil, &disk.OddError{What: "another user's"}
	case open(info):
		return nil, errOpen
	}
	return readAll(f, maxKey)
}

// readAll reads into one buffer, so that what is cleared afterwards is all there was.
func readAll(f *os.File, max int) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() > int64(max) {
		return nil, errLarge
	}
	text := make([]byte, info.Size()+1)
	n, err := io.ReadFull(f, text)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return text[:n], nil
	case err == nil:
		err = errLarge // it grew; what is written here is never written to
	}
	clear(text)
	return nil, err
}

// replace writes a file beside its place, durably, and renames it; who dies leaves the old or the new one. It is
// called under the lock of the directory.
func (v *vault) replace(path string, text []byte) *protocol.Error {
	fresh := path + ".new"
	err := os.Remove(fresh) // of one who died
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = v.fill(fresh, text)
	}
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		_ = os.Remove(fresh) // sealed, and the next write removes it too
		return unwritten(path, err)
	}
	if err := v.point(filepath.Base(path) + ":renamed"); err != nil {
		return err
	}
	if err := disk.Sync(filepath.Dir(path)); err != nil {
		return broken(path+" was written, but may not outlast a loss of power", err)
	}
	return nil
}

// fill makes a new file with a text and has it on the disk.
func (v *vault) fill(path string, text []byte) error {
	f, err := openFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY)
	if err != nil {
		return err
	}
	base := filepath.Base(path)
	half := len(text) / 2
	for _, part := range [][]byte{text[:half], text[half:]} {
		if err == nil {
			err = v.dies(base + ":write")
		}
		if err == nil {
			_, err = f.Write(part)
		}
	}
	if err == nil {
		err = errors.Join(f.Sync(), v.dies(base+":synced"))
	}
	return errors.Join(err, f.Close())
}

func (v *vault) dies(point string) error {
	if v.fault == nil {
		return nil
	}
	return v.fault(point)
}

// patience: no act of the room holds the lock nearly as long.
const patience = 30 * time.Second

// Lock is bounded by the context alone: whoever holds it may wait for a server.
func (v *vault) Lock(ctx context.Context, name string) (func(), *protocol.Error) {
	if _, err := v.look(name); err != nil {
		return nil, err
	}
	if err := v.makeDir(); err != nil {
		return nil, err
	}
	if err := os.Mkdir(v.path(lockDir), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, unwritten(v.path(lockDir), err)
	}
	sum := sha256.Sum256([]byte(name))
	return v.lock(ctx, filepath.Join(v.path(lockDir), hex.EncodeToString(sum[:16])), 0)
}

// lock waits for a lock file, which the kernel frees when its holder dies; limit 0 is none.
func (v *vault) lock(ctx context.Context, path string, limit time.Duration) (func(), *protocol.Error) {
	f, err := openFile(path, os.O_CREATE|os.O_RDWR)
	if err != nil {
		return nil, unwritten(path, err)
	}
	err = disk.Lock(f, false, limit, ctx.Done())
	if err == nil {
		return sync.OnceFunc(func() { _ = f.Close() }), nil // closing frees it
	}
	_ = f.Close()
	switch {
	case errors.Is(err, disk.ErrDone):
		return nil, ended(ctx, "the lock "+path)
	case errors.Is(err, disk.ErrLate):
		return nil, fail(fmt.Sprintf("Another process has held the lock %s for %v, and nothing was changed. End that process, or try again once it has ended.", path, limit)).
			WithHint("fuser -v " + protocol.Word(path))
	}
	return nil, unwritten(path, err)
}

// ended says that the caller's context did.
func ended(ctx context.Context, what string) *protocol.Error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return protocol.Fail(protocol.Canceled, "Cancelled while it waited for "+what+".")
	}
	return fail("The time was up while it waited for " + what + ".").WithHint("hcpx doctor")
}

func unreadable(what string, err error) *protocol.Error {
	var odd *disk.OddError
	switch {
	case errors.As(err, &odd):
		return fail(what + " is " + odd.What + ", so it is not used.").WithHint("hcpx doctor")
	case errors.Is(err, errLarge):
		return fail(what + " is larger than any that was written here, so it is not read.").WithHint("hcpx doctor")
	}
	return broken(what+" cannot be read", err)
}

func unwritten(path string, err error) *protocol.Error {
	if full(err) {
		return fail("There is no space to write " + path + "; what was there before is kept.").WithHint("df -h " + protocol.Word(filepath.Dir(path)))
	}
	return broken(path+" could not be written, and what was there before is kept", err)
}

func broken(what string, err error) *protocol.Error {
	return fail(what + ": " + protocol.Clause(reason(err)) + ".").WithHint("hcpx doctor")
}

// reason is the system's word on a file, without the path that the sentence has already.
func reason(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}
