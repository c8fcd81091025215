package store

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"hcpx/internal/disk"
)

// compiledDir holds what install compiled of packs (§3.6), each text under its own hash, so that the version before keeps its
// own. A record names the hash: another text is never read for it.
func (s *FS) compiledDir() string { return s.path("packs", ".compiled") }

func sumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// keepCompiled writes a text and gives its hash; "" for none.
func (s *FS) keepCompiled(text []byte) (string, error) {
	if len(text) == 0 {
		return "", nil
	}
	if err := os.MkdirAll(s.compiledDir(), 0o700); err != nil {
		return "", err
	}
	sum := sumOf(text)
	return sum, errors.Join(s.replace(s.compiledDir(), sum, text), disk.Sync(s.path("packs")))
}

// Compiled reads it back.
func (s *FS) Compiled(m *Meta) ([]byte, error) {
	if !plainName(m.Sum) {
		return nil, fs.ErrNotExist
	}
	text, err := readFile(filepath.Join(s.compiledDir(), m.Sum))
	if err == nil && sumOf(text) != m.Sum {
		return nil, fmt.Errorf("what was compiled of %s is not what install wrote", m.PackID)
	}
	return text, err
}

// sweepCompiled removes what no record names. The caller holds the lock of packs/; what can't be removed only wastes room.
func (s *FS) sweepCompiled() {
	entries, err := os.ReadDir(s.compiledDir())
	if err != nil {
		return
	}
	ids, _, err := s.listed()
	if err != nil {
		return
	}
	used := map[string]bool{}
	for _, id := range ids {
		r, err := s.record(id)
		if err != nil {
			return // whose text is whose is not known
		}
		used[r.Sum] = true
		if r.Previous != nil {
			used[r.Previous.Sum] = true
		}
	}
	for _, e := range entries {
		if !used[e.Name()] {
			_ = os.Remove(filepath.Join(s.compiledDir(), e.Name()))
		}
	}
}

// Compiled reads what Install kept.
func (m *Memory) Compiled(meta *Meta) ([]byte, error) {
	if len(meta.Compiled) == 0 {
		return nil, fs.ErrNotExist
	}
	return meta.Compiled, nil
}
