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
	"hcpx/internal/grant"
)

// Repaired says what Repair did. Kept and Lost name members of state.json; Copy is where the damaged
// file lies, "" when the state was sound.
type Repaired struct {
	Copy string   `json:"copy,omitempty"`
	Kept []string `json:"kept,omitempty"`
	Lost []string `json:"lost,omitempty"`
	// Journals are unfinished changes of packs that could not be read, and locks that nobody can hold, set aside.
	Journals []string `json:"journals,omitempty"`
}

// Repair finishes what a crash left and rebuilds a damaged state.json (§11.3): the damaged file is kept
// as state.json.damaged-<time>, each member that can still be read is kept, and activations that are
// lost come back from skills/ for packs that are installed. Grants that can't be read could have been
// denials, so with them the allows of everyone but people are left out.
func (s *FS) Repair() (Repaired, error) {
	var done Repaired
	if err := s.Ensure(); err != nil {
		return done, err
	}
	if err := s.setAside(&done); err != nil {
		return done, err
	}
	installed, err := s.Packs()
	if err != nil {
		return done, err
	}
	err = s.locked(s.path(".state.lock"), func() error {
		s.sweep(s.home, ".state.json-")
		_, src, err := s.read()
		var d *DamagedError
		if !errors.As(err, &d) {
			return err
		}
		if done.Copy, err = s.keepDamaged(src); err != nil {
			return err
		}
		state := salvage(src, &done)
		if slices.Contains(done.Lost, "activated") {
			for _, id := range installed {
				if exists(s.path("skills", id, "SKILL.md")) {
					state.Activated = append(state.Activated, id)
				}
			}
		}
		text, err := EncodeState(state)
		if err != nil {
			return err
		}
		return s.replace(s.home, "state.json", text)
	})
	return done, err
}

// keepDamaged copies rather than renames: a crash must not leave a store without a state, which would
// be a fresh one with default grants.
func (s *FS) keepDamaged(src []byte) (string, error) {
	base := s.path("state.json.damaged-" + s.o.Now().UTC().Format("20060102T150405Z"))
	for n := 1; ; n++ {
		path := base
		if n > 1 {
			path = fmt.Sprintf("%s-%d", base, n)
		}
		if src == nil { // a link, a fifo or the like, which is kept as what it is
			err := os.Link(s.path("state.json"), path)
			if !errors.Is(err, fs.ErrExist) {
				return path, err
			}
			continue
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(src)
		return path, errors.Join(err, f.Sync(), f.Close(), disk.Sync(s.home))
	}
}

// setAside puts away what stands in the place of a lock and no process can hold, and journals that cannot be read.
func (s *FS) setAside(done *Repaired) error {
	for _, lock := range []string{s.path(".state.lock"), s.path("packs", ".lock")} {
		f, err := openFile(lock, os.O_RDONLY)
		if err == nil {
			err = f.Close()
		} else if d := (*DamagedError)(nil); errors.As(err, &d) {
			err = os.Rename(lock, lock+"-damaged")
			done.Journals = append(done.Journals, filepath.Base(lock)+"-damaged")
		}
		if ignoreGone(err) != nil {
			return err
		}
	}
	err := s.change(func() error { return nil })
	var d *DamagedError
	for errors.As(err, &d) && strings.HasSuffix(d.Path, journalEnd) {
		aside := d.Path + "-damaged"
		if err := os.Rename(d.Path, aside); err != nil {
			return err
		}
		done.Journals = append(done.Journals, filepath.Base(aside))
		err = s.change(func() error { return nil })
	}
	return err
}

// known are the members of state.json, as EncodeState orders them.
var known = [...]string{"activated", "connected", "grants", "bins", "reads", "native", "hosts", "sessions", "bindings", "secrets"}

// salvage keeps every member that can be read: those before a syntax error in order, those after it by
// the line that EncodeState begins them with.
func salvage(src []byte, done *Repaired) *State {
	state := &State{}
	seen := map[string]bool{}
	keep := func(m member) error {
		if !seen[m.key] && state.take(m) == nil {
			seen[m.key] = true
		}
		return nil
	}
	_ = members(src, 0, keep) // its error is why we are here
	for _, name := range known {
		if begin := "\n  \"" + name + "\": "; !seen[name] {
			if i := strings.LastIndex(string(src), begin); i >= 0 {
				tail := append([]byte(`{"`+name+`": `), src[i+len(begin):]...)
				_ = members(tail, 0, keep)
			}
		}
		switch {
		case seen[name]:
			done.Kept = append(done.Kept, name)
		case (name == "bindings" || name == "secrets") && !strings.Contains(string(src), `"`+name+`"`): // stand only where there are some
		default:
			done.Lost = append(done.Lost, name)
		}
	}
	if !seen["grants"] {
		state.Grants = salvageGrants(src)
	}
	return state
}

// salvageGrants keeps the denials and people's allows that stand alone as valid entries, else what a
// fresh store grants to people.
func salvageGrants(src []byte) []grant.Grant {
	var list []grant.Grant
	_ = members(src, 0, func(m member) error {
		if m.key == "grants" {
			list = grantsOneByOne(m)
		}
		return nil
	})
	if !slices.ContainsFunc(list, func(g grant.Grant) bool { return g.Effect == grant.Allow }) {
		list = append(list, grant.Defaults()...)
	}
	return slices.DeleteFunc(list, func(g grant.Grant) bool {
		return g.Effect != grant.Deny && !strings.HasPrefix(g.Principal, "human:")
	})
}

func grantsOneByOne(m member) []grant.Grant {
	var raw []json.RawMessage
	if m.strict(&raw) != nil {
		return nil
	}
	var list []grant.Grant
	for _, one := range raw {
		var g grant.Grant
		if (member{m.key, one, m.offset}).strict(&g) == nil && g.Check() == nil {
			list = append(list, g)
		}
	}
	return list
}
