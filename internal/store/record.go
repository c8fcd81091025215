package store

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"hcpx/internal/jsondoc"
	"hcpx/internal/pack"
	"hcpx/internal/protocol"
)

// Restamp takes young stamps again (§2.4).
func (s *FS) Restamp(id string) error {
	r, err := s.record(id)
	if err != nil {
		return err
	}
	young := false
	for _, stamps := range []map[string]protocol.FileStamp{r.Record.Stamps, r.Record.Dirs} {
		for _, st := range stamps {
			young = young || st.Young
		}
	}
	if !young {
		return nil
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

func (s *FS) record(id string) (*record, error) {
	if !plainName(id) {
		return nil, ErrNotInstalled
	}
	path := filepath.Join(s.metaDir(), id+".json")
	src, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotInstalled
	}
	if err != nil {
		return nil, err
	}
	var r record
	if err := json.Unmarshal(src, &r); err != nil {
		d := &DamagedError{Path: path, Reason: "is not a pack's record: " + err.Error()}
		d.Line, d.Column = jsondoc.Place(src, jsonOffset(err))
		return nil, d
	}
	return &r, nil
}

func jsonOffset(err error) int {
	var s *json.SyntaxError
	var t *json.UnmarshalTypeError
	switch {
	case errors.As(err, &s):
		return int(s.Offset)
	case errors.As(err, &t):
		return int(t.Offset)
	}
	return 0
}
