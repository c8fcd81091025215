package store

import (
	"sync"
	"time"

	"hcpx/internal/protocol"
	"hcpx/internal/stamp"
)

// memory keeps what files said while their stat proves that they say it still, as §2.4 does for packs: a process that
// runs many commands parses state and records once. What it gives is shared, and nobody changes it.
type memory[T any] struct {
	mu sync.Mutex
	by map[string]remembered[T]
}

type remembered[T any] struct {
	id    protocol.FileStamp
	value T
}

// read gives what the file says, parsed now or before. A file that changed within the last second is parsed each
// time: a second change in the same tick of the clock would not show.
func (m *memory[T]) read(path string, now time.Time, parse func(path string, src []byte) (T, error)) (T, error) {
	before, ok := stamp.Look(path)
	if ok {
		m.mu.Lock()
		known, found := m.by[path]
		m.mu.Unlock()
		if found && known.id == before {
			return known.value, nil
		}
	}
	src, err := readFile(path)
	if err != nil {
		var none T
		return none, err
	}
	value, err := parse(path, src)
	after, still := stamp.Look(path)
	if err == nil && ok && still && before == after && max(after.MtimeNS, after.CtimeNS) < now.Add(-time.Second).UnixNano() {
		m.mu.Lock()
		if m.by == nil {
			m.by = map[string]remembered[T]{}
		}
		m.by[path] = remembered[T]{after, value}
		m.mu.Unlock()
	}
	return value, err
}
