package store

import (
	"errors"
	"os"
	"path/filepath"
	"time"
)

// resultAge is how long a kept result lies (§12).
const resultAge = 24 * time.Hour

var errResultName = errors.New("a result is kept under plain names")

// KeepResult writes data/<tenant>/results/<run>/<name>.
func (s *FS) KeepResult(tenant, run, name string, data []byte) (string, error) {
	if err := s.Ensure(); err != nil {
		return "", err
	}
	s.SweepResults()
	return keepResult(s.home, []string{tenant, run, name}, data)
}

// KeepResult writes to the same place below the scratch directory.
func (m *Memory) KeepResult(tenant, run, name string, data []byte) (string, error) {
	return keepResult(m.scratch, []string{tenant, run, name}, data)
}

// SweepResults has nothing to remove: what is kept goes with the scratch directory.
func (m *Memory) SweepResults() {}

func keepResult(home string, names []string, data []byte) (string, error) {
	for _, name := range names {
		if !plainName(name) {
			return "", errResultName
		}
	}
	dir := filepath.Join(home, "data", names[0], "results", names[1])
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, names[2])
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	return path, errors.Join(err, f.Close())
}

// SweepResults removes what lies for over a day, in all tenants. What can't be removed is tried again the next time.
func (s *FS) SweepResults() {
	found, err := filepath.Glob(filepath.Join(s.home, "data", "*", "results", "*"))
	if err != nil {
		return
	}
	for _, dir := range found {
		if info, err := os.Lstat(dir); err == nil && s.o.Now().Sub(info.ModTime()) > resultAge {
			_ = removeTree(dir)
		}
	}
}
