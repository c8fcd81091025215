package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hcpx/internal/disk"
	"hcpx/internal/pack"
)

// journal is packs/.meta/<id>.journal: what to do, written when everything is ready on disk. Before it
// the old pack stands, after it the new one; whoever finds a journal under the lock finishes it.
type journal struct {
	Op    string  `json:"op"` // install | rollback | remove
	ID    string  `json:"id"`
	Stage string  `json:"stage"` // name in packs/ of the new files
	Next  *record `json:"next,omitempty"`
}

const journalEnd = ".journal"

// staging begins the names in packs/ of files that are not in their place.
const staging = ".staging-"

func (s *FS) metaDir() string            { return s.path("packs", ".meta") }
func (s *FS) previousDir() string        { return s.path("packs", ".previous") }
func (s *FS) journalOf(id string) string { return filepath.Join(s.metaDir(), id+journalEnd) }

// Install copies, records and swaps (§11.3).
func (s *FS) Install(id string, src fs.FS, meta Meta) error {
	if !plainName(id) {
		return fmt.Errorf("%q cannot name a pack", id)
	}
	return s.change(func() error {
		stage, err := os.MkdirTemp(s.path("packs"), staging)
		if err != nil {
			return err
		}
		if err := s.stage(stage, src, &meta); err != nil {
			return errors.Join(err, removeTree(stage))
		}
		if meta.Sum, err = s.keepCompiled(meta.Compiled); err != nil {
			return errors.Join(err, removeTree(stage))
		}
		next := &record{Meta: meta}
		next.PackID = id
		switch old, err := s.record(id); {
		case err == nil:
			next.Previous = &old.Meta
		case !errors.Is(err, ErrNotInstalled):
			return errors.Join(err, removeTree(stage))
		}
		if err := s.commit(journal{"install", id, filepath.Base(stage), next}); err != nil {
			return err
		}
		s.sweepCompiled()
		return nil
	})
}

func (s *FS) stage(dir string, src fs.FS, meta *Meta) error {
	if err := s.at("stage:copy"); err != nil {
		return err
	}
	if err := copyTree(dir, src); err != nil {
		return err
	}
	if err := s.at("stage:seal"); err != nil {
		return err
	}
	rec, err := pack.Seal(dir, s.o.Now())
	if err != nil {
		return err
	}
	if want := meta.Record.Digest; want != "" && want != rec.Digest {
		return fmt.Errorf("the pack changed while it was installed: %s was checked, %s was copied", want, rec.Digest)
	}
	meta.Record = rec
	return disk.Sync(s.path("packs"))
}

// PreviousDir is packs/.previous/<id>.
func (s *FS) PreviousDir(id string) string { return filepath.Join(s.previousDir(), id) }

// Rollback swaps the installed and the previous version; the journal makes it one act.
func (s *FS) Rollback(id, digest string) error {
	return s.change(func() error {
		now, err := s.record(id)
		if err != nil {
			return err
		}
		if now.Previous == nil || !exists(s.PreviousDir(id)) {
			return ErrNotInstalled
		}
		if digest != "" && digest != now.Previous.Record.Digest {
			return ErrOther
		}
		next := &record{Meta: *now.Previous, Previous: &now.Meta}
		return s.commit(journal{"rollback", id, staging + id, next})
	})
}

// Remove removes pack, record and previous version.
func (s *FS) Remove(id string) error {
	if !plainName(id) {
		return nil
	}
	if _, err := os.Lstat(s.path("packs")); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return s.change(func() error {
		if _, err := os.Lstat(filepath.Join(s.metaDir(), id+".json")); err != nil {
			return ignoreGone(err)
		}
		if err := s.commit(journal{"remove", id, "", nil}); err != nil {
			return err
		}
		s.sweepCompiled()
		return nil
	})
}

// change runs fn under the lock of packs/, after finishing what a crash left. All staging happens under
// it too, so that no clean-up removes what a living process stages.
func (s *FS) change(fn func() error) error {
	if err := s.Ensure(); err != nil {
		return err
	}
	for _, dir := range []string{s.path("packs"), s.metaDir(), s.previousDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return s.locked(s.path("packs", ".lock"), func() error {
		if err := s.finishAll(); err != nil {
			return err
		}
		return fn()
	})
}

func (s *FS) commit(j journal) error {
	text, err := encode(j)
	if err != nil {
		return err
	}
	if err := s.replace(s.metaDir(), j.ID+journalEnd, text); err != nil {
		// Without a journal nothing happened; with one that reached its place the next call finishes it.
		return err
	}
	return s.finish(j)
}

// journals names the files of unfinished changes among entries.
func journals(entries []fs.DirEntry) []string {
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), journalEnd) && e.Name()[0] != '.' {
			names = append(names, e.Name())
		}
	}
	return names
}

// Packs lists the ids that have a record, sorted, once what a crash left is finished.
func (s *FS) Packs() ([]string, error) {
	ids, unfinished, err := s.listed()
	if err != nil || len(unfinished) == 0 {
		return ids, err
	}
	if err := s.change(func() error { return nil }); err != nil {
		return nil, err
	}
	ids, _, err = s.listed()
	return ids, err
}

// listed are the ids that have a record and the journals that stand beside them.
func (s *FS) listed() (ids, unfinished []string, err error) {
	entries, err := os.ReadDir(s.metaDir())
	if err != nil {
		return nil, nil, ignoreGone(err)
	}
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".json"); ok && plainName(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, journals(entries), nil
}

// finishAll ends every journal, then removes what nothing refers to. The caller holds the lock.
func (s *FS) finishAll() error {
	entries, err := os.ReadDir(s.metaDir())
	if err != nil {
		return err
	}
	for _, name := range journals(entries) {
		src, err := readFile(filepath.Join(s.metaDir(), name))
		if err != nil {
			return err
		}
		var j journal
		if err := json.Unmarshal(src, &j); err != nil {
			return damaged(filepath.Join(s.metaDir(), name), src, err)
		}
		if err := s.finish(j); err != nil {
			return err
		}
	}
	s.sweep(s.path("packs"), staging)
	s.sweep(s.metaDir(), ".")
	return nil
}

// finish does what a journal says, from wherever a crash left it: each move is skipped when its result
// is there. It is the only code that swaps packs, in the ordinary case too.
func (s *FS) finish(j journal) error {
	var err error
	if j.Op == "remove" {
		err = s.finishRemove(j)
	} else {
		err = s.finishSwap(j)
	}
	if err != nil {
		return err
	}
	if err := s.at("journal:remove"); err != nil {
		return err
	}
	if err := os.Remove(s.journalOf(j.ID)); err != nil {
		return err
	}
	return errors.Join(s.at("journal:removed"), disk.Sync(s.metaDir()))
}

func (s *FS) finishRemove(j journal) error {
	if err := s.at("remove:meta"); err != nil {
		return err
	}
	if err := ignoreGone(os.Remove(filepath.Join(s.metaDir(), j.ID+".json"))); err != nil {
		return err
	}
	for _, dir := range []string{s.Dir(j.ID), filepath.Join(s.previousDir(), j.ID)} {
		if err := s.at("remove:tree"); err != nil {
			return err
		}
		if err := removeTree(dir); err != nil {
			return err
		}
	}
	return disk.Sync(s.path("packs"))
}

func (s *FS) finishSwap(j journal) error {
	current, stage := s.Dir(j.ID), s.path("packs", j.Stage)
	previous := filepath.Join(s.previousDir(), j.ID)
	if !s.inPlace(j) {
		if !exists(stage) && (j.Op != "rollback" || !exists(previous)) {
			return nil // the new files are gone: the old pack and record stand
		}
		if j.Op == "rollback" && !exists(stage) {
			if err := s.move(previous, stage); err != nil {
				return err
			}
		}
		if exists(current) {
			if err := s.retire(current, previous, j); err != nil {
				return err
			}
		}
		if err := s.move(stage, current); err != nil {
			return err
		}
	}
	// A rename changes the directory's own ctime: the stamps are taken where the files now lie. Files
	// that are not what the journal says keep the old record, and are found as tampered.
	if rec, err := pack.Seal(current, s.o.Now()); err == nil && rec.Digest == j.Next.Record.Digest {
		j.Next.Record = rec
	}
	if err := errors.Join(disk.Sync(s.previousDir()), disk.Sync(s.path("packs"))); err != nil {
		return err
	}
	text, err := encode(j.Next)
	if err != nil {
		return err
	}
	return s.replace(s.metaDir(), j.ID+".json", text)
}

// inPlace says whether the new files already lie in their place. For an install the staged directory
// tells; a rollback ends with the same names that it began with, so there the content tells.
func (s *FS) inPlace(j journal) bool {
	if exists(s.path("packs", j.Stage)) || !exists(s.Dir(j.ID)) {
		return false
	}
	if j.Op == "install" {
		return true
	}
	rec, err := pack.Seal(s.Dir(j.ID), s.o.Now())
	return err == nil && rec.Digest == j.Next.Record.Digest
}

// retire moves the current files to the previous ones' place, and those away. Files without a record
// are nobody's previous version.
func (s *FS) retire(current, previous string, j journal) error {
	if exists(previous) {
		trash, err := os.MkdirTemp(s.path("packs"), staging+"old-")
		if err != nil {
			return err
		}
		if err := s.move(previous, filepath.Join(trash, "pack")); err != nil {
			return err
		}
	}
	return s.move(current, previous)
}

func (s *FS) move(from, to string) error {
	if err := s.at("move"); err != nil {
		return err
	}
	return os.Rename(from, to)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
