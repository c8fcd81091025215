package store

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"hcpx/internal/pack"
	"hcpx/internal/protocol"
)

// record is packs/.meta/<id>.json. The previous version stands in the same file, so that one rename
// changes both.
type record struct {
	Meta
	Previous *Meta
}

// version is one version on disk, with the names of §11.
type version struct {
	PackID      string    `json:"pack_id"`
	Version     string    `json:"version"`
	Digest      string    `json:"digest"`
	Stats       stats     `json:"stats"`
	Source      string    `json:"source"`
	InstalledAt time.Time `json:"installed_at"`
	InstalledBy string    `json:"installed_by"`
	Compiled    string    `json:"compiled,omitempty"`
	Previous    *version  `json:"previous,omitempty"`
}

type stats struct {
	Files map[string]protocol.FileStamp `json:"files"`
	Links map[string]string             `json:"links,omitempty"`
	Dirs  map[string]protocol.FileStamp `json:"dirs,omitempty"`
}

func onDisk(m Meta) *version {
	r := m.Record
	return &version{m.PackID, m.Version, r.Digest, stats{r.Stamps, r.Links, r.Dirs}, m.Source, m.InstalledAt, m.InstalledBy, m.Sum, nil}
}

// MarshalJSON writes the form on disk.
func (r record) MarshalJSON() ([]byte, error) {
	v := onDisk(r.Meta)
	if r.Previous != nil {
		v.Previous = onDisk(*r.Previous)
	}
	return json.Marshal(v)
}

// UnmarshalJSON reads it, as part of a journal.
func (r *record) UnmarshalJSON(src []byte) error {
	read, err := decodeRecord("", src)
	if err != nil {
		return err
	}
	*r = *read
	return nil
}

// Restamp takes the stamps again (§2.4).
func (s *FS) Restamp(id string) error {
	if _, err := s.record(id); err != nil {
		return err
	}
	return s.change(func() error {
		r, err := s.record(id)
		if err != nil {
			return err
		}
		rec, err := pack.Seal(s.Dir(id), s.o.Now())
		if err != nil || rec.Digest != r.Record.Digest {
			return err // changed files keep the old record, and are refused at exec
		}
		r.Record = rec
		text, err := encode(r)
		if err != nil {
			return err
		}
		return s.replace(s.metaDir(), id+".json", text)
	})
}

// Meta reads packs/.meta/<id>.json.
func (s *FS) Meta(id string) (*Meta, error) {
	r, err := s.settled(id)
	if err != nil {
		return nil, err
	}
	return &r.Meta, nil
}

// Previous reads the record of the version that Rollback would bring back.
func (s *FS) Previous(id string) (*Meta, error) {
	r, err := s.settled(id)
	if err != nil {
		return nil, err
	}
	if r.Previous == nil {
		return nil, ErrNotInstalled
	}
	return r.Previous, nil
}

// settled is the record once no journal stands: one that a crash left is finished, one of a living
// process is waited for. Without a journal it takes no lock.
func (s *FS) settled(id string) (*record, error) {
	if plainName(id) && exists(s.journalOf(id)) {
		if err := s.change(func() error { return nil }); err != nil {
			return nil, err
		}
	}
	return s.record(id)
}

// record reads packs/.meta/<id>.json; ErrNotInstalled when there is none.
func (s *FS) record(id string) (*record, error) {
	if !plainName(id) {
		return nil, ErrNotInstalled
	}
	path := filepath.Join(s.metaDir(), id+".json")
	r, err := s.records.read(path, s.o.Now(), decodeRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotInstalled
	}
	if err != nil {
		return nil, err
	}
	own := *r // who changes a record changes a copy; its maps are only ever replaced
	return &own, nil
}
