package audit

import (
	"slices"
	"sync"
)

// Memory is a Log for tests and conformance. It keeps what was appended; Fail, when set, is what Append
// answers instead.
type Memory struct {
	mu      sync.Mutex
	entries []Entry
	Fail    error
}

var _ Log = (*Memory)(nil)

// Append numbers and keeps the entry.
func (m *Memory) Append(e Entry, _ bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Fail != nil {
		return m.Fail
	}
	e.Seq = uint64(len(m.entries)) + 1
	m.entries = append(m.entries, e)
	return nil
}

// Entries is what was appended so far.
func (m *Memory) Entries() []Entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.entries)
}
