// Package store keeps packs, skills and state (§11.3). The contract below is passed by every kind:
// fs.go (the reference layout under $HCP_HOME) and memory.go (tests); storetest holds the suite.
//
// Promises: an install is staged beside its place, fsynced, written to a journal, then renamed, so that
// a crash at any moment leaves the old or the new pack; a pack is installed exactly when it has a record
// under packs/.meta. Update replaces the state under a lock by write-fsync-rename; readers take no lock;
// a damaged state is never overwritten. Opening a store creates nothing. A home that other users could
// write is refused, since its grants would be theirs.
//
// Nouns: State (state.json), Meta (what was recorded at install), LandKey (one land directory, §9.2).
// Whether a pack is intact, allowed or runnable is asked elsewhere.
package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"hcpx/internal/grant"
	"hcpx/internal/pack"
	"hcpx/internal/protocol"
)

// ErrNotInstalled: there is no pack of that id.
var ErrNotInstalled = errors.New("pack is not installed")

// ErrOther: the version before is not the one that was judged; another process installed in between.
var ErrOther = errors.New("the version before is another one by now")

// DamagedError: state.json, or a pack's record, cannot be read. Nothing overwrites it but Repair.
type DamagedError struct {
	Path         string
	Line, Column int
	Reason       string
}

// Error names the place, as file:line:column.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.Path, e.Line, e.Column, e.Reason)
}

// UnsafeError: the store's directory belongs to another user or can be written by one.
type UnsafeError struct{ Path, Reason, Hint string }

// Error names the directory and what is wrong with it.
func (e *UnsafeError) Error() string { return fmt.Sprintf("the store %s %s", e.Path, e.Reason) }

// State is state.json. The top-level Activated and Connected are the default session's.
type State struct {
	Activated []string                `json:"activated"`
	Connected []string                `json:"connected"`
	Grants    []grant.Grant           `json:"grants"`
	Bins      []protocol.AllowedBin   `json:"bins"`
	Reads     []protocol.AllowedRead  `json:"reads"`
	Native    []string                `json:"native"`
	Hosts     []protocol.AllowedHost  `json:"hosts"`
	Sessions  map[string]SessionState `json:"sessions"`
	// Bindings says whose binding each connected pack of the default session uses; Secrets are the names under which
	// something is kept, or may be after a crash (§8.5). No secret stands here.
	Bindings map[string]Bound           `json:"bindings"`
	Secrets  []string                   `json:"secrets"`
	Extra    map[string]json.RawMessage `json:"-"` // members of other runtimes, kept
}

// Bound is what connect recorded of a binding with a source (§8.5).
type Bound struct {
	Owner  string `json:"owner"`            // the Principal that ran connect
	Source string `json:"source"`           // what it consented to
	Secret string `json:"secret,omitempty"` // the name of what is kept; "" when nothing is
}

// SessionState is the activation and connection of one named session.
type SessionState struct {
	Activated []string                   `json:"activated"`
	Connected []string                   `json:"connected"`
	Bindings  map[string]Bound           `json:"bindings"`
	Extra     map[string]json.RawMessage `json:"-"` // kept too
}

// Shipped is the Source of a pack that came with the program.
const Shipped = "shipped"

// Meta is what was recorded at install.
type Meta struct {
	PackID      string      `json:"pack_id"`
	Version     string      `json:"version"`
	Record      pack.Record `json:"record"` // digest and the stamps of all files
	Source      string      `json:"source"`
	InstalledAt time.Time   `json:"installed_at"`
	InstalledBy string      `json:"installed_by"`
	// Compiled is what install compiled of the pack's document (§3.6), on the way into the store; Sum is the hash by which the
	// record names it, and Compiled of the store gives it back.
	Compiled []byte `json:"-"`
	Sum      string `json:"compiled,omitempty"`
}

// LandKey names one land directory (§9.2).
type LandKey struct {
	Tenant    string
	Land      protocol.Land // personal | brain
	Principal protocol.Principal
	Project   string
	Pack      string
}

// Store is the contract.
type Store interface {
	// Home is the directory below which everything lies.
	Home() string
	// Packs lists the installed ids, sorted.
	Packs() ([]string, error)
	// Meta reads one pack's record; ErrNotInstalled when there is none. It checks nothing. Who finds the
	// files differ from it reads Meta once more: another process may have installed in between.
	Meta(id string) (*Meta, error)
	// Dir is where the pack's files lie on disk.
	Dir(id string) string
	// Install copies the files of src (read-only, exact) and records meta; an older version becomes the
	// previous one. meta.Record is filled by the store from the copied files; when its Digest is set
	// (what was linted), other files are refused.
	Install(id string, src fs.FS, meta Meta) error
	// Previous reads the record of the version that Rollback would bring back, PreviousDir says where its
	// files lie; ErrNotInstalled when none.
	Previous(id string) (*Meta, error)
	PreviousDir(id string) string
	// Rollback swaps the installed and the previous version, which must be the one of that digest (what was
	// judged); "" takes any.
	Rollback(id, digest string) error
	// Remove removes pack, record and previous version; no error when there is none.
	Remove(id string) error
	// Restamp takes the stamps again when some are young (§2.4) and nothing changed, so that later checks
	// need no hash. Acts that write anyway (activate) call it.
	Restamp(id string) error
	// State reads without a lock; *DamagedError when it can't be read. The State is shared: it is changed by
	// Update alone.
	State() (*State, error)
	// Update changes the state under the lock; fn's error leaves the old state.
	Update(fn func(*State) error) error
	// PutSkill, DropSkill and Skill keep skills/<pack_id>/SKILL.md; Skill answers fs.ErrNotExist. Skills lists
	// the ids that have one, sorted.
	PutSkill(id string, text []byte) error
	DropSkill(id string) error
	Skill(id string) ([]byte, error)
	Skills() ([]string, error)
	// Compiled reads what was compiled of an installed version; fs.ErrNotExist when nothing was. What is not the text of the
	// record is an error, never given: whoever asks compiles anew.
	Compiled(m *Meta) ([]byte, error)
	// KeepResult writes what is too large or no text for a face to data/<tenant>/results/<run>/<name>, for its owner alone, and
	// removes what lies there for over a day (§12).
	KeepResult(tenant, run, name string, data []byte) (path string, err error)
	// SweepResults removes what lies there for over a day, for a server that may keep nothing for long.
	SweepResults()
	// LandDir is the directory of a land, "" for a key without one; MakeLand creates it 0700. PurgeLand
	// removes every land directory of a pack in all tenants, principals and projects; HasLand says whether
	// there is one.
	LandDir(k LandKey) string
	MakeLand(k LandKey) error
	HasLand(pack string) (bool, error)
	PurgeLand(pack string) error
	// Shelf is where small records of a kind are kept: approvals, idempotency keys.
	Shelf(kind string) Shelf
	// Reader is the same store for those who must write nothing (§12.1.9).
	Reader() Reader
}

// Reader shows a store and writes nothing: a change that a crash cut off is shown as it will be once the
// next write, or Repair, has finished it. Its methods mean what those of Store mean.
type Reader interface {
	Store
	// Unfinished names the packs of such changes, sorted. It waits for living processes.
	Unfinished() ([]string, error)
}
