// Package store keeps packs, skills and state (§11.3). The contract below is passed by every kind:
// fs.go (the reference layout under $HCP_HOME) and memory.go (tests); storetest holds the suite.
//
// Promises: an install is staged beside its place, fsynced, then renamed, so that a crash leaves the old
// or the new pack; Update replaces the state under a lock by write-fsync-rename; readers take no lock;
// a damaged state is never overwritten.
package store

import (
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"hcpx/internal/grant"
	"hcpx/internal/pack"
	"hcpx/internal/protocol"
)

// ErrNotInstalled: there is no pack of that id.
var ErrNotInstalled = errors.New("pack is not installed")

// DamagedError: state.json cannot be read. Nothing overwrites it but Repair.
type DamagedError struct {
	Path         string
	Line, Column int
	Reason       string
}

// State is state.json. The top-level Activated and Connected are the default session's.
type State struct {
	Activated []string                   `json:"activated"`
	Connected []string                   `json:"connected"`
	Grants    []grant.Grant              `json:"grants"`
	Bins      []protocol.AllowedBin      `json:"bins"`
	Reads     []protocol.AllowedRead     `json:"reads"`
	Native    []string                   `json:"native"`
	Hosts     []protocol.AllowedHost     `json:"hosts"`
	Sessions  map[string]SessionState    `json:"sessions"`
	Extra     map[string]json.RawMessage `json:"-"` // members of other runtimes, kept
}

// SessionState is the activation and connection of one named session.
type SessionState struct {
	Activated []string `json:"activated"`
	Connected []string `json:"connected"`
}

// Meta is what was recorded at install.
type Meta struct {
	PackID      string      `json:"pack_id"`
	Version     string      `json:"version"`
	Record      pack.Record `json:"record"` // digest and the stamps of all files
	Source      string      `json:"source"`
	InstalledAt time.Time   `json:"installed_at"`
	InstalledBy string      `json:"installed_by"`
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
	// Meta reads one pack's record; ErrNotInstalled when there is none. It checks nothing.
	Meta(id string) (*Meta, error)
	// Dir is where the pack's files lie on disk.
	Dir(id string) string
	// Install copies the files of src (read-only, exact) and records meta; an older version moves to
	// packs/.previous. meta.Record is filled by the store from the copied files.
	Install(id string, src fs.FS, meta Meta) error
	// Previous reads the record of the version that Rollback would bring back; ErrNotInstalled when none.
	Previous(id string) (*Meta, error)
	// Rollback swaps the installed and the previous version.
	Rollback(id string) error
	// Remove removes pack, record and previous version; no error when there is none.
	Remove(id string) error
	// State reads without a lock; *DamagedError when it can't be read.
	State() (*State, error)
	// Update changes the state under the lock; fn's error leaves the old state.
	Update(fn func(*State) error) error
	// PutSkill, DropSkill and Skill keep skills/<pack_id>/SKILL.md.
	PutSkill(id string, text []byte) error
	DropSkill(id string) error
	Skill(id string) ([]byte, error)
	// LandDir is the directory of a land; MakeLand creates it 0700. PurgeLand removes every land
	// directory of a pack in all tenants, principals and projects.
	LandDir(k LandKey) string
	MakeLand(k LandKey) error
	PurgeLand(pack string) error
}
