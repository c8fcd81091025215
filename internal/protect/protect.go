// Package protect guards what the host would run later (§10.2): a closed list of names in the root of a
// writable workspace and in its git directories. A Guard looks before a write command starts and again when
// nothing of it is alive. What changed is moved to $HCP_HOME/quarantine/<run>/, what was there before is put
// back with mode, owner and time, and the run says so.
//
// The look before is kept on disk while the command runs, so that a runtime that was killed leaves a Leftover,
// which repair puts back. A link is a link: it is remembered and put back, and never followed. Names are looked up
// one directory at a time beneath a directory that was opened before the run. Whatever cannot be remembered
// (too many files, too large) refuses the run. The whole tree is never walked.
//
// Nouns: Group (a part of the list), Watch (what to guard), Guard (one run's look before), tree (the workspace or
// a git directory elsewhere), node (what was found at a name), view (all nodes of one look), Change.
package protect

import (
	"errors"
	"fmt"
	"time"
)

// Watch is what a run could change.
type Watch struct {
	Home    string   // the store
	Run     string   // the run's id, a plain name
	Command string   // pack/verb, for whoever finds a leftover
	Root    string   // the workspace
	GitDirs []string // its git directories elsewhere
	May     []string // globs of what the command changes by design (§4.7)
	User    string   // the user's home, for git's ~/
	// Patience is how long another write command in the same workspace or git directory is waited for.
	Patience time.Duration
	// Mask takes the run's credential out of names that the run chose, before one is written or told (§8.4); nil when it
	// has none.
	Mask func(string) string
}

// State is what stood at a name.
type State struct {
	Kind   string `json:"kind"` // file | directory | link | other
	Mode   string `json:"mode,omitempty"`
	SHA256 string `json:"sha256,omitempty"` // of the content, or of a link's target
}

// Change is one protected name that a run changed.
type Change struct {
	Path     string `json:"path"`
	Before   *State `json:"before"` // null: there was nothing
	After    *State `json:"after"`
	Kept     string `json:"kept,omitempty"` // where what the run left lies now
	Restored bool   `json:"restored"`
}

// BusyError: another write command holds the workspace or one of its git directories.
type BusyError struct{ Root string }

// Error is a clause.
func (e *BusyError) Error() string { return "another write command is running in " + e.Root }

// TooMuchError: more lies at a protected name than is remembered.
type TooMuchError struct{ Path string } // in the workspace, or absolute

// Error is a clause.
func (e *TooMuchError) Error() string {
	return fmt.Sprintf("%s holds more than %d files or %d MiB", e.Path, maxNodes, maxBytes>>20)
}

// LeftError: the run before was cut off with changes that nobody has judged.
type LeftError struct{ Left Leftover }

// Error is a clause.
func (e *LeftError) Error() string {
	return "the run " + e.Left.Run + " was cut off before its changes to protected names could be looked at"
}

// ErrGone: the workspace of a leftover is not there any more, or is another directory.
var ErrGone = errors.New("the workspace is gone")

// ErrDamaged: the journal of a leftover can't be read, or says what no journal says.
var ErrDamaged = errors.New("the journal is damaged")

// Bounds of what is remembered for one run.
const (
	maxNodes = 4096
	maxBytes = 64 << 20
	maxKept  = 16 << 20 // of a file of git's index
)

// Leftover is the journal of a run that was killed before it could look again.
type Leftover struct {
	Home, Run, Command, Root string
	held                     []place // the workspace and each git directory that the run held
}

// place is a directory as the journal names it.
type place struct {
	Path string `json:"path"`
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
	Born int64  `json:"born,omitempty"` // 0: not known
}
