package store

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"hcpx/internal/pack"
)

// Memory is a store for tests and conformance: records, skills and state live in memory, only the files
// of packs and lands lie below a scratch directory. It is safe for several goroutines.
type Memory struct {
	scratch string
	mu      sync.Mutex
	packs   map[string][]placed // installed first, then the previous version
	skills  map[string][]byte
	shelves map[string]*memoryShelf
	state   []byte // encoded, so that nobody shares a slice with it; nil when fresh
	count   int
}

type placed struct {
	meta Meta
	dir  string
}

var _ Reader = (*Memory)(nil)

// NewMemory makes an empty store.
func NewMemory(scratch string) *Memory {
	return &Memory{scratch: scratch, packs: map[string][]placed{}, skills: map[string][]byte{}, shelves: map[string]*memoryShelf{}}
}

// Home is the scratch directory.
func (m *Memory) Home() string { return m.scratch }

// Packs lists the installed ids, sorted.
func (m *Memory) Packs() ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ids []string
	for id := range m.packs {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids, nil
}

func (m *Memory) version(id string, n int) (*Meta, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n >= len(m.packs[id]) {
		return nil, ErrNotInstalled
	}
	meta := m.packs[id][n].meta
	return &meta, nil
}

// Meta reads the record of the installed version.
func (m *Memory) Meta(id string) (*Meta, error) { return m.version(id, 0) }

// Previous reads the record of the version before.
func (m *Memory) Previous(id string) (*Meta, error) { return m.version(id, 1) }

// Dir is where the installed version lies; a place without files when there is none.
func (m *Memory) Dir(id string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.packs[id]) == 0 {
		return filepath.Join(m.scratch, "packs", id)
	}
	return m.packs[id][0].dir
}

// Install copies the files to a directory of their own.
func (m *Memory) Install(id string, src fs.FS, meta Meta) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !plainName(id) {
		return errors.New("not the name of a pack")
	}
	m.count++
	dir := filepath.Join(m.scratch, "packs", strconv.Itoa(m.count), id)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := copyTree(dir, src); err != nil {
		return err
	}
	rec, err := pack.Seal(dir, meta.InstalledAt)
	if err != nil {
		return err
	}
	if want := meta.Record.Digest; want != "" && want != rec.Digest {
		return errors.Join(errors.New("the pack changed while it was installed"), removeTree(dir))
	}
	meta.PackID, meta.Record = id, rec
	if len(meta.Compiled) > 0 {
		meta.Sum = sumOf(meta.Compiled)
	}
	versions := append([]placed{{meta, dir}}, m.packs[id]...)
	m.packs[id] = versions[:min(2, len(versions))]
	return nil
}

// PreviousDir is where the version before lies.
func (m *Memory) PreviousDir(id string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.packs[id]) < 2 {
		return filepath.Join(m.scratch, "packs", ".previous", id)
	}
	return m.packs[id][1].dir
}

// Rollback swaps the two versions.
func (m *Memory) Rollback(id, digest string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	v := m.packs[id]
	if len(v) < 2 {
		return ErrNotInstalled
	}
	if digest != "" && digest != v[1].meta.Record.Digest {
		return ErrOther
	}
	m.packs[id] = []placed{v[1], v[0]}
	return nil
}

// Remove forgets all versions.
func (m *Memory) Remove(id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, v := range m.packs[id] {
		errs = append(errs, removeTree(v.dir))
	}
	delete(m.packs, id)
	return errors.Join(errs...)
}

// Restamp leaves young stamps as they are: they are hashed each time, which only costs time.
func (m *Memory) Restamp(id string) error {
	_, err := m.Meta(id)
	return err
}

// State decodes a copy.
func (m *Memory) State() (*State, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.read()
}

func (m *Memory) read() (*State, error) {
	if m.state == nil {
		return Fresh(), nil
	}
	return DecodeState("state.json", m.state)
}

// Update changes the state while nobody else does.
func (m *Memory) Update(fn func(*State) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	state, err := m.read()
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
	if _, err := DecodeState("state.json", text); err != nil {
		return err
	}
	m.state = text
	return nil
}

// PutSkill keeps a copy of the text.
func (m *Memory) PutSkill(id string, text []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.skills[id] = slices.Clone(text)
	return nil
}

// DropSkill forgets it.
func (m *Memory) DropSkill(id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.skills, id)
	return nil
}

// Skill gives a copy; fs.ErrNotExist when there is none.
func (m *Memory) Skill(id string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	text, ok := m.skills[id]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return slices.Clone(text), nil
}

// Skills lists the ids that have one.
func (m *Memory) Skills() ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.skills)), nil
}

// Reader is the store itself: reading it writes nothing.
func (m *Memory) Reader() Reader { return m }

// Unfinished is empty: no change is cut off.
func (m *Memory) Unfinished() ([]string, error) { return nil, nil }

// LandDir, MakeLand, HasLand and PurgeLand use the same layout as the store on disk.
func (m *Memory) LandDir(k LandKey) string { return landDir(m.scratch, k) }

// MakeLand creates the directory, 0700.
func (m *Memory) MakeLand(k LandKey) error {
	dir := m.LandDir(k)
	if dir == "" {
		return errNoLand
	}
	return os.MkdirAll(dir, 0o700)
}

// HasLand says whether the pack has data anywhere.
func (m *Memory) HasLand(pack string) (bool, error) { return hasLand(m.scratch, pack) }

// PurgeLand removes the pack's data everywhere.
func (m *Memory) PurgeLand(pack string) error { return purgeLand(m.scratch, pack) }
