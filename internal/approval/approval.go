// Package approval keeps what a person decides about a gated command of an agent (§15.2), and what was
// answered under an idempotency key (§15.5). Both are small records on a shelf of the store.
//
// Nouns: Request (what is asked: what it is bound to, and what a person is shown), Approval (a request with
// its state), Book (all of them, each change under one lock), Keys (the runs of idempotency keys), Claim (one
// request under a key).
//
// An approval goes from pending to approved, rejected or withdrawn, and from approved to spent or withdrawn.
// Of two changes that race, the first wins and the second is told what stands. It is spent on disk before the
// intent of its run is in the audit, so that a process killed in between leaves an approval that is spent and
// a run that never was, never two runs. Who may decide is asked elsewhere; nothing here runs anything.
package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"hcpx/internal/protocol"
)

// State is where an approval stands.
type State string

// The states. Expired is none that is written: it is what a pending or approved one becomes by time.
const (
	Pending   State = "pending"
	Approved  State = "approved"
	Rejected  State = "rejected"
	Withdrawn State = "withdrawn"
	Spent     State = "spent"
	Expired   State = "expired"
)

// The times of §15.2.
const (
	Expiry    = 15 * time.Minute // from the ask to the use
	retention = time.Hour        // after expiry, to be looked at

	// Of one Principal, all its labels together (§9.3), so that asking fills no disk and drowns nobody.
	maxOpen  = 256
	maxKept  = 1024
	maxBytes = 32 << 20
)

// Where is the place of a request: where it will run, and where its preview runs.
type Where struct {
	Session   string   `json:"session"`
	Tenant    string   `json:"tenant"`
	Project   string   `json:"project,omitempty"`
	Workspace string   `json:"workspace,omitempty"`
	GitDirs   []string `json:"git_dirs,omitempty"`
	Dir       string   `json:"dir,omitempty"`
}

// Request is one gated command with its arguments, as it would run now.
type Request struct {
	Principal protocol.Principal `json:"principal"` // who asks
	Where     Where              `json:"where"`
	Pack      string             `json:"pack_id"`
	Version   string             `json:"version"`
	Digest    string             `json:"digest"`
	Verb      string             `json:"verb_key"`
	Operation protocol.Operation `json:"operation"`
	Message   string             `json:"message"`
	Args      json.RawMessage    `json:"args"`              // after defaults; secret ones redacted
	Plan      json.RawMessage    `json:"plan"`              // argv and the child's world
	Preview   string             `json:"preview,omitempty"` // the command that shows what would change (§15.3)
	// Canonical is what the approval is bound to: Principal, digest, command, canonical arguments, project and
	// what a person was shown. It holds secret arguments, so only its hash is kept.
	Canonical []byte `json:"-"`
}

// Approval is a request and what became of it.
type Approval struct {
	ID    string `json:"id"`
	State State  `json:"state"`
	Request
	AskedAt   time.Time          `json:"asked_at"`
	ExpiresAt time.Time          `json:"expires_at"`
	By        protocol.Principal `json:"by,omitempty"` // who approved, rejected or withdrew it
	DecidedAt *time.Time         `json:"decided_at,omitempty"`
	Shown     string             `json:"preview_hash,omitempty"` // of the preview that the approver was shown
	Run       string             `json:"run,omitempty"`          // that spent it
	Bound     string             `json:"bound"`                  // hash of the id and what it is bound to
}

// Now is the state at a moment.
func (a *Approval) Now(now time.Time) State {
	if (a.State == Pending || a.State == Approved) && !now.Before(a.ExpiresAt) {
		return Expired
	}
	return a.State
}

// host is the Principal without a label, which an agent may choose itself (§9.3).
func host(p protocol.Principal) string {
	name, _, _ := strings.Cut(string(p), ".")
	return name
}

// binds says whether the approval is for exactly this request.
func (a *Approval) binds(q *Request) bool {
	return a.Principal == q.Principal && a.Bound == bound(a.ID, q.Canonical)
}

// bound is salted by the id, so that equal requests do not show as such.
func bound(id string, canonical []byte) string {
	sum := sha256.Sum256(append([]byte(id+"\n"), canonical...))
	return hex.EncodeToString(sum[:])
}

// Reason is why an id confirms nothing, as details.reason of confirm_required names it.
type Reason string

// The reasons.
const (
	ReasonUnknown   Reason = "unknown" // no such id, or another Principal's
	ReasonPending   Reason = "pending" // nobody has decided yet
	ReasonRejected  Reason = "rejected"
	ReasonWithdrawn Reason = "withdrawn"
	ReasonExpired   Reason = "expired"
	ReasonSpent     Reason = "spent"
	ReasonMismatch  Reason = "mismatch"        // approved was another request
	ReasonApprover  Reason = "approver"        // who approved may not run it himself any more
	ReasonPreview   Reason = "preview_changed" // the preview is not what the approver was shown
	ReasonTooMany   Reason = "too_many"        // of the asker's requests are open
	ReasonBlocked   Reason = "blocked"         // it could not run even if it were approved
)

// usable says why the approval does not confirm the request, "" when it does.
func (a *Approval) usable(q *Request, now time.Time) Reason {
	if a == nil || a.Principal != q.Principal {
		return ReasonUnknown
	}
	if !a.binds(q) {
		return ReasonMismatch
	}
	switch state := a.Now(now); state {
	case Approved:
		return ""
	case Pending, Rejected, Withdrawn, Spent, Expired:
		return Reason(state)
	default:
		return ReasonUnknown
	}
}

// Changed is the refusal of a yes to what is no longer what was shown (§15.2).
func Changed() *protocol.Error {
	e := protocol.Fail(protocol.ConfirmRequired, "What would run is no longer what was shown, so nothing was run.").WithHint("repeat it; you are asked again")
	e.Step = 6
	return e
}

// Decision is what somebody makes of an approval.
type Decision struct {
	To    State // approved, rejected or withdrawn
	By    protocol.Principal
	Shown string // approved: the hash of the preview that was shown
}

// ClosedError: the approval is no longer in the state that the decision needs.
type ClosedError struct {
	ID    string
	State State
	To    State
}

// Error says what stands.
func (e *ClosedError) Error() string {
	return fmt.Sprintf("the approval %s is %s and cannot become %s", e.ID, e.State, e.To)
}

// NotYoursError: the decision is somebody else's to take.
type NotYoursError struct {
	By    protocol.Principal
	Owner string // who may
}

// Error says whose it is.
func (e *NotYoursError) Error() string {
	return fmt.Sprintf("that is an act of %s, and the caller is %s", e.Owner, e.By)
}

// decide is the table of §15.2: another person approves or rejects what is pending, the asker withdraws it, and the
// approver withdraws what is approved and unspent.
func (a *Approval) decide(d Decision, now time.Time) error {
	state := a.Now(now)
	switch {
	case d.To == Approved && state == Pending, d.To == Rejected && state == Pending:
		if !d.By.Human() || d.By == a.Principal {
			return &NotYoursError{d.By, "another, human Principal"}
		}
	case d.To == Withdrawn && state == Pending:
		if d.By != a.Principal {
			return &NotYoursError{d.By, "who asked, " + string(a.Principal)}
		}
	case d.To == Withdrawn && state == Approved:
		if d.By != a.By {
			return &NotYoursError{d.By, "who approved, " + string(a.By)}
		}
	default:
		return &ClosedError{a.ID, state, d.To}
	}
	a.State, a.By, a.DecidedAt, a.Shown = d.To, d.By, &now, d.Shown
	return nil
}
