package store

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"hcpx/internal/disk"
)

// Shelf keeps small records of one kind by name (§15.2, §15.5). Each is replaced as a whole and on disk when Put
// returns. Whoever decides by what stands there and then changes it does both within Locked.
type Shelf interface {
	// Names lists the records, sorted; none while the shelf was never written.
	Names() ([]string, error)
	// Get reads one record without a lock; fs.ErrNotExist when there is none.
	Get(name string) ([]byte, error)
	// Size is how long a record is, without reading it; fs.ErrNotExist when there is none.
	Size(name string) (int64, error)
	// Locked runs fn while nobody else changes the shelf. It makes the shelf.
	Locked(fn func() error) error
	// Put, Drop and Hold belong into Locked. Drop removes record and hold; no error when there is none.
	Put(name string, data []byte) error
	Drop(name string) error
	// Hold takes what one run alone may have, until it releases it or its process dies; nil where another has it.
	Hold(name string) (release func() error, err error)
}

// heldEnd ends the name of the file whose lock is a Hold.
const heldEnd = ".held"

// shelf is a directory below the store.
type shelf struct {
	s   *FS
	dir string
}

// Shelf is <home>/<kind>.
func (s *FS) Shelf(kind string) Shelf { return shelf{s, s.path(kind)} }

// Names lists the directory.
func (k shelf) Names() ([]string, error) {
	entries, err := os.ReadDir(k.dir)
	if err != nil {
		return nil, ignoreGone(err)
	}
	var names []string
	for _, e := range entries {
		if plainName(e.Name()) && !strings.HasSuffix(e.Name(), heldEnd) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Get reads <kind>/<name>.
func (k shelf) Get(name string) ([]byte, error) {
	if !plainName(name) || strings.HasSuffix(name, heldEnd) {
		return nil, fs.ErrNotExist
	}
	return readFile(filepath.Join(k.dir, name))
}

// Size looks at <kind>/<name>.
func (k shelf) Size(name string) (int64, error) {
	if !plainName(name) || strings.HasSuffix(name, heldEnd) {
		return 0, fs.ErrNotExist
	}
	info, err := os.Lstat(filepath.Join(k.dir, name))
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Locked makes the directory, and sweeps what a crash left in it.
func (k shelf) Locked(fn func() error) error {
	if err := k.s.Ensure(); err != nil {
		return err
	}
	if err := os.Mkdir(k.dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return k.s.locked(k.s.path("."+filepath.Base(k.dir)+".lock"), func() error {
		k.s.sweep(k.dir, ".") // temporary names of a crash; no record begins with a dot
		return fn()
	})
}

// Put writes, syncs, renames.
func (k shelf) Put(name string, data []byte) error {
	if !plainName(name) || strings.HasSuffix(name, heldEnd) {
		return fs.ErrInvalid
	}
	return k.s.replace(k.dir, name, data)
}

// Drop removes the record.
func (k shelf) Drop(name string) error {
	if !plainName(name) {
		return nil
	}
	path := filepath.Join(k.dir, name)
	return errors.Join(ignoreGone(os.Remove(path)), ignoreGone(os.Remove(path+heldEnd)))
}

// Hold locks <kind>/<name>.held, which the kernel frees when the process dies.
func (k shelf) Hold(name string) (func() error, error) {
	if !plainName(name) {
		return nil, fs.ErrInvalid
	}
	f, err := openFile(filepath.Join(k.dir, name+heldEnd), os.O_CREATE|os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	got, err := disk.TryLock(f, false)
	if err != nil || !got {
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil
}

// memoryShelf is the same in memory.
type memoryShelf struct {
	turn    sync.Mutex // Locked
	mu      sync.Mutex
	records map[string][]byte
	held    map[string]bool
}

// Shelf keeps one shelf for each kind.
func (m *Memory) Shelf(kind string) Shelf {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.shelves[kind]
	if k == nil {
		k = &memoryShelf{records: map[string][]byte{}, held: map[string]bool{}}
		m.shelves[kind] = k
	}
	return k
}

// Names are sorted.
func (k *memoryShelf) Names() ([]string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(maps.Keys(k.records)), nil
}

// Get gives a copy.
func (k *memoryShelf) Get(name string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	data, ok := k.records[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return slices.Clone(data), nil
}

// Size is that of what is kept.
func (k *memoryShelf) Size(name string) (int64, error) {
	data, err := k.Get(name)
	return int64(len(data)), err
}

// Locked lets one at a time in.
func (k *memoryShelf) Locked(fn func() error) error {
	k.turn.Lock()
	defer k.turn.Unlock()
	return fn()
}

// Put keeps a copy.
func (k *memoryShelf) Put(name string, data []byte) error {
	if !plainName(name) || strings.HasSuffix(name, heldEnd) {
		return fs.ErrInvalid
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.records[name] = slices.Clone(data)
	return nil
}

// Drop forgets record and hold.
func (k *memoryShelf) Drop(name string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.records, name)
	delete(k.held, name)
	return nil
}

// Hold is nobody else's until it is released.
func (k *memoryShelf) Hold(name string) (func() error, error) {
	if !plainName(name) {
		return nil, fs.ErrInvalid
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.held[name] {
		return nil, nil
	}
	k.held[name] = true
	return func() error {
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.held, name)
		return nil
	}, nil
}
