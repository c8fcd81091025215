// Package audit keeps the hash-chained record of §15.4: append-only NDJSON segments, each entry with the
// hash of the one before and a MAC of its own, and a head kept apart: under a MAC at every entry, signed
// when it is synced and when it is shown. A run has two entries, intent and outcome, linked by id; a denial
// one; a state-changing command one; reading ones none.
//
// Nouns: Entry, Head (the end of the chain), Segment (one file), Report (what Verify found).
// Order of an append, under the lock of audit/head: one write(2) of the entry, fsync if durable, the head
// over it. So a crash leaves at most entries beyond the head, or a torn last line: the first are taken in
// by the next append, if their MACs are right, and it says so; after the second a new segment begins with a
// break entry that names it. Whatever else does not fit the head is never covered up: a break entry says
// so for good.
//
// The chain shows what was changed, removed, reordered or cut off; who can read the key can forge it all,
// so only a head kept elsewhere stops the owner of the files.
package audit

import "encoding/json"

// The kinds of an entry.
const (
	Intent  = "intent"  // written before step 9; if it can't be, nothing runs
	Outcome = "outcome" // what the run gave
	Denial  = "denial"  // refused at steps 1 to 8
	Change  = "change"  // a state-changing command: install, grant, allow, …
	Break   = "break"   // written by Append itself where it found something that does not fit the head
)

// Entry is one audit entry. Seq, Time, Prev, Adopted and MAC are filled by Append; Args are redacted by whoever
// makes the entry.
type Entry struct {
	Seq        uint64          `json:"seq"`
	Time       string          `json:"time"` // RFC 3339 UTC, nanoseconds
	Kind       string          `json:"kind"`
	ID         string          `json:"id"`               // of the run (ULID)
	Parent     string          `json:"parent,omitempty"` // run id of the composite above
	Principal  string          `json:"principal"`
	Tenant     string          `json:"tenant,omitempty"`
	Session    string          `json:"session,omitempty"`
	Project    string          `json:"project,omitempty"`
	Pack       string          `json:"pack_id,omitempty"`
	Digest     string          `json:"digest,omitempty"` // of the pack
	Verb       string          `json:"verb_key,omitempty"`
	Operation  string          `json:"operation,omitempty"`
	Args       json.RawMessage `json:"args,omitempty"`
	Grant      []string        `json:"grant,omitempty"` // decision path
	PlanHash   string          `json:"plan_hash,omitempty"`
	Confirm    string          `json:"confirm,omitempty"` // who confirmed: envelope, grant, composite
	Code       string          `json:"code,omitempty"`    // error code of a denial or failed outcome
	Step       int             `json:"step,omitempty"`
	Message    string          `json:"message,omitempty"`
	Exit       *int            `json:"exit,omitempty"`
	DurationMS float64         `json:"duration_ms,omitempty"`
	Sandbox    json.RawMessage `json:"sandbox,omitempty"` // the sandbox report of the run
	Act        string          `json:"act,omitempty"`     // Change: the command, e.g. "grant"
	Detail     json.RawMessage `json:"detail,omitempty"`  // Change: what changed; Outcome: steps, replaced
	Adopted    uint64          `json:"adopted,omitempty"` // entries before this one that a crash left beyond the head
	Prev       string          `json:"prev"`              // hex SHA-256 of the entry before, as its line's bytes without LF
	MAC        string          `json:"mac"`               // base64 HMAC-SHA256 of the line's bytes before this member
}

// Log is what the pipeline and lifecycle need of the audit.
type Log interface {
	// Append writes one entry and moves the head. Durable entries are on disk when it returns; others
	// are synced in batches. An error means that nothing may run.
	Append(e Entry, durable bool) error
}
