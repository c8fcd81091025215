package audit

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Read calls fn with each entry from a sequence number on, in the order of the files, and its line. A
// line that is no entry comes with a zero Entry, so that it is seen; one without its end is left out,
// since it may still be in the making. fn's error ends the reading and is returned.
func Read(cfg Config, from uint64, fn func(e Entry, raw []byte) error) error {
	segs, err := listed(cfg)
	if err != nil {
		return err
	}
	for _, s := range segs {
		err := walk(cfg.Dir, s, 0, func(l line) error {
			e, ok := decodeEntry(l)
			if l.torn || ok && e.Seq < from {
				return nil
			}
			return fn(e, l.raw)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// listed are the segments, where an audit that must have some is not gone.
func listed(cfg Config) ([]segment, error) {
	segs, err := segments(cfg.Dir)
	if err == nil && len(segs) == 0 && cfg.lost() {
		err = ErrLost
	}
	return segs, err
}

func decodeEntry(l line) (Entry, bool) {
	var e Entry
	if l.torn || json.Unmarshal(l.raw, &e) != nil {
		return Entry{}, false
	}
	return e, true
}

// Tail gives the last n entries, oldest first. It reads only the segments that hold them.
func Tail(cfg Config, n int) ([]Entry, error) {
	segs, err := listed(cfg)
	if err != nil {
		return nil, err
	}
	var tail []Entry
	for _, s := range slices.Backward(segs) {
		var lines [][]byte
		if err := walk(cfg.Dir, s, 0, func(l line) error {
			if !l.torn {
				lines = append(lines, bytes.Clone(l.raw))
			}
			return nil
		}); err != nil {
			return nil, err
		}
		for _, raw := range slices.Backward(lines) {
			if len(tail) >= n {
				break
			}
			e, _ := decodeEntry(line{raw: raw})
			tail = append(tail, e)
		}
		if len(tail) >= n {
			break
		}
	}
	slices.Reverse(tail)
	return tail, nil
}

// Find gives the entries of a run: its own and those of the runs that it started.
func Find(cfg Config, id string) ([]Entry, error) {
	segs, err := listed(cfg)
	if err != nil || id == "" {
		return nil, err
	}
	quoted, err := json.Marshal(id)
	if err != nil {
		return nil, err
	}
	var found []Entry
	for _, s := range segs {
		err := walk(cfg.Dir, s, 0, func(l line) error {
			if !bytes.Contains(l.raw, quoted) {
				return nil
			}
			if e, ok := decodeEntry(l); ok && (e.ID == id || e.Parent == id) {
				found = append(found, e)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}
