package store

import (
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"
)

// view is the store on disk for those who must write nothing (§12.1.9). A journal that a crash left is
// read for what it will do; one of a living process is waited for.
type view struct{ *FS }

// Reader shows the store and finishes nothing.
func (s *FS) Reader() Reader { return view{s} }

// Unfinished names the packs whose journals nobody works on.
func (v view) Unfinished() ([]string, error) {
	_, names, err := v.listed()
	if err != nil || len(names) == 0 {
		return nil, err
	}
	if err := v.wait(); err != nil {
		return nil, err
	}
	_, names, err = v.listed()
	for i := range names {
		names[i] = strings.TrimSuffix(names[i], journalEnd)
	}
	return names, err
}

// wait returns when no living process is within a change. The lock's file is there, for whoever wrote the
// journal held it.
func (v view) wait() error {
	err := v.lockedToRead(v.path("packs", ".lock"), func() error { return nil })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Packs lists the ids that are installed, or will be.
func (v view) Packs() ([]string, error) {
	ids, unfinished, err := v.listed()
	if err != nil || len(unfinished) == 0 {
		return ids, err
	}
	pending, err := v.Unfinished()
	if err != nil {
		return nil, err
	}
	if ids, _, err = v.listed(); err != nil {
		return nil, err
	}
	ids = slices.Compact(slices.Sorted(slices.Values(append(ids, pending...))))
	return slices.DeleteFunc(ids, func(id string) bool {
		_, err := v.Meta(id)
		return errors.Is(err, ErrNotInstalled)
	}), nil
}

// Meta reads the record that stands or will stand.
func (v view) Meta(id string) (*Meta, error) {
	r, _, err := v.pending(id)
	if err != nil {
		return nil, err
	}
	return &r.Meta, nil
}

// Previous reads the record of the version before.
func (v view) Previous(id string) (*Meta, error) {
	r, _, err := v.pending(id)
	if err != nil {
		return nil, err
	}
	if r.Previous == nil {
		return nil, ErrNotInstalled
	}
	return r.Previous, nil
}

// Dir is where the files of that record lie now.
func (v view) Dir(id string) string {
	if _, dir, err := v.pending(id); err == nil {
		return dir
	}
	return v.FS.Dir(id)
}

// pending is the pack as finish will leave it, and where its files lie until then.
func (v view) pending(id string) (*record, string, error) {
	if !plainName(id) || !exists(v.journalOf(id)) {
		r, err := v.record(id)
		return r, v.FS.Dir(id), err
	}
	if err := v.wait(); err != nil {
		return nil, "", err
	}
	src, err := readFile(v.journalOf(id))
	if errors.Is(err, fs.ErrNotExist) {
		r, err := v.record(id)
		return r, v.FS.Dir(id), err
	}
	if err != nil {
		return nil, "", err
	}
	var j journal
	if err := json.Unmarshal(src, &j); err != nil {
		return nil, "", damaged(v.journalOf(id), src, err)
	}
	if j.Op == "remove" {
		return nil, "", ErrNotInstalled
	}
	for _, dir := range v.places(j) {
		if exists(dir) {
			return j.Next, dir, nil
		}
	}
	r, err := v.record(id) // the new files are gone: the old pack and record stand
	return r, v.FS.Dir(id), err
}

// places are where the files of a swap may lie, the likeliest first.
func (v view) places(j journal) []string {
	switch {
	case v.inPlace(j):
		return []string{v.FS.Dir(j.ID)}
	case j.Op == "rollback":
		return []string{v.path("packs", j.Stage), v.PreviousDir(j.ID)}
	}
	return []string{v.path("packs", j.Stage)}
}
