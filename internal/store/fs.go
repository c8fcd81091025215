package store

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hcpx/internal/disk"
)

// Options of a store on disk.
type Options struct {
	Now func() time.Time
	// Done is closed when the caller was cancelled: then no lock is waited for. nil: never.
	Done <-chan struct{}
	// patience is how long a lock is waited for; 0 is the usual time.
	patience time.Duration
	// fault is asked between any two steps of a write; tests kill the process or fail the disk there.
	fault func(point string) error
}

// FS is the reference layout of §11.3 under one directory.
type FS struct {
	home    string
	o       Options
	states  *memory[*State]
	records *memory[*record]
}

var _ Store = (*FS)(nil)

// OpenFS names a store. It reads and creates nothing; the first write makes home.
func OpenFS(home string, o Options) *FS {
	return &FS{home: home, o: o, states: &memory[*State]{}, records: &memory[*record]{}}
}

// Home is the store's directory.
func (s *FS) Home() string { return s.home }

func (s *FS) path(elem ...string) string {
	return filepath.Join(append([]string{s.home}, elem...)...)
}

// Dir is packs/<id>.
func (s *FS) Dir(id string) string { return s.path("packs", id) }

func (s *FS) at(point string) error {
	if s.o.fault == nil {
		return nil
	}
	return s.o.fault(point)
}

// Ensure makes home with mode 0700 and refuses one that is not safe (§11.3).
func (s *FS) Ensure() error {
	if err := os.MkdirAll(s.home, 0o700); err != nil {
		return err
	}
	return s.Safe()
}

// Safe refuses a home that another user owns or that others can write: who writes state.json grants
// himself what he likes. A home that does not exist is safe.
func (s *FS) Safe() error {
	info, err := os.Stat(s.home)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	switch {
	case !info.IsDir():
		return &UnsafeError{s.home, "is not a directory", ""}
	case disk.Foreign(info):
		return &UnsafeError{s.home, "belongs to another user", "chown it to yourself, or name another with --home"}
	case info.Mode().Perm()&0o022 != 0:
		return &UnsafeError{s.home, "can be written by other users", "chmod 700 " + s.home}
	}
	return nil
}

// State reads state.json without a lock: it is only ever replaced as a whole (§11.3).
func (s *FS) State() (*State, error) {
	if err := s.Safe(); err != nil {
		return nil, err
	}
	state, err := s.states.read(s.path("state.json"), s.o.Now(), DecodeState)
	if errors.Is(err, fs.ErrNotExist) {
		return Fresh(), nil
	}
	return state, err
}

// read is the state to change, which is nobody else's.
func (s *FS) read() (*State, []byte, error) {
	path := s.path("state.json")
	src, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Fresh(), nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	state, err := DecodeState(path, src)
	return state, src, err
}

// Update changes the state under the lock (§11.3): no update of another process is lost, a damaged
// state is refused, an error leaves the old one.
func (s *FS) Update(fn func(*State) error) error {
	if err := s.Ensure(); err != nil {
		return err
	}
	s.tidy()
	return s.locked(s.path(".state.lock"), func() error {
		state, old, err := s.read()
		if err != nil {
			return err
		}
		if err := fn(state); err != nil {
			return err
		}
		text, err := EncodeState(state)
		if err != nil {
			return err
		}
		// What was written must be readable again, or the next start would call it damaged.
		if _, err := DecodeState("state.json", text); err != nil {
			return fmt.Errorf("the change is refused: %v", err)
		}
		if bytes.Equal(text, old) {
			return nil
		}
		s.sweep(s.home, ".state.json-")
		return s.replace(s.home, "state.json", text)
	})
}

// tidy finishes what a crash left in packs/, unless a living process works there. What fails is the business of
// the next change of packs.
func (s *FS) tidy() {
	entries, err := os.ReadDir(s.path("packs"))
	if err != nil || !slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), staging) }) {
		return
	}
	hasty := *s
	hasty.o.patience = time.Nanosecond
	_ = hasty.change(func() error { return nil })
}

// replace writes a file by write, fsync, rename under a unique temporary name (§11.3). Whatever fails,
// the old file stands.
func (s *FS) replace(dir, name string, data []byte) (err error) {
	if err := s.at(name + ":create"); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+name+"-*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreGone(os.Remove(f.Name())))
		}
	}()
	err = errors.Join(s.write(f, name, data), f.Close())
	if err != nil {
		return err
	}
	if err := s.at(name + ":rename"); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), filepath.Join(dir, name)); err != nil {
		return err
	}
	return errors.Join(s.at(name+":renamed"), disk.Sync(dir))
}

// write puts the data in two halves, so that tests can fail between them as a full disk does.
func (s *FS) write(f *os.File, name string, data []byte) error {
	half := len(data) / 2
	if _, err := f.Write(data[:half]); err != nil {
		return err
	}
	if err := s.at(name + ":write"); err != nil {
		return err
	}
	if _, err := f.Write(data[half:]); err != nil {
		return err
	}
	if err := s.at(name + ":sync"); err != nil {
		return err
	}
	return f.Sync()
}

// sweep removes temporary files that a crash left; the caller holds the lock under which they are made.
// What can't be removed only wastes room, so it is left.
func (s *FS) sweep(dir, prefix string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			_ = removeTree(filepath.Join(dir, e.Name()))
		}
	}
}

// PutSkill writes skills/<id>/SKILL.md (§5.4).
func (s *FS) PutSkill(id string, text []byte) error {
	if !plainName(id) {
		return ErrNotInstalled
	}
	if err := s.Ensure(); err != nil {
		return err
	}
	if old, err := s.Skill(id); err == nil && bytes.Equal(old, text) {
		return nil
	}
	dir := s.path("skills", id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return s.replace(dir, "SKILL.md", text)
}

// DropSkill removes skills/<id>; no error when there is none.
func (s *FS) DropSkill(id string) error {
	if !plainName(id) {
		return nil
	}
	return os.RemoveAll(s.path("skills", id))
}

// Skill reads skills/<id>/SKILL.md; fs.ErrNotExist when there is none.
func (s *FS) Skill(id string) ([]byte, error) {
	if !plainName(id) {
		return nil, fs.ErrNotExist
	}
	return readFile(s.path("skills", id, "SKILL.md"))
}

// Skills lists skills/.
func (s *FS) Skills() ([]string, error) {
	entries, err := os.ReadDir(s.path("skills"))
	if err != nil {
		return nil, ignoreGone(err)
	}
	var ids []string
	for _, e := range entries {
		if plainName(e.Name()) {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// LandDir is data/<tenant>/<land>/<owner>/<pack> (§9.2).
func (s *FS) LandDir(k LandKey) string { return landDir(s.home, k) }

// MakeLand creates a land directory, 0700, with what is above it.
func (s *FS) MakeLand(k LandKey) error {
	dir := s.LandDir(k)
	if dir == "" {
		return errNoLand
	}
	if err := s.Ensure(); err != nil {
		return err
	}
	return os.MkdirAll(dir, 0o700)
}

// HasLand says whether some land of the pack has a directory.
func (s *FS) HasLand(pack string) (bool, error) { return hasLand(s.home, pack) }

// PurgeLand removes the pack's data of all tenants, principals and projects.
func (s *FS) PurgeLand(pack string) error { return purgeLand(s.home, pack) }
