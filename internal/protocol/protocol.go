// Package protocol holds the words of HCP/1.1 (§1, §6.1, §6.2): what travels between a face and
// the runtime. It decides nothing and reads nothing; every other room speaks these types.
//
// Nouns: Envelope (an exec request), Result (the one answer, for success and denial alike), Error
// (why not, at which step), Session (who acts, where), Executor (the one verb of every face), Issue
// (one finding of lint, with its place).
package protocol

import (
	"context"
	"encoding/json"
	"strings"
)

// Operation is the side-effect class of a command (§4.2).
type Operation string

// The two operations.
const (
	Read  Operation = "read"
	Write Operation = "write"
)

// Land is the privacy scope of a command (§4.3). It is never a tenant.
type Land string

// The three lands.
const (
	Personal Land = "personal"
	Brain    Land = "brain"
	Local    Land = "local"
)

// Capability is one of the five grant axes (§9.4).
type Capability string

// The five capabilities. There is no other, and no flag that stands for all of them.
const (
	PackInstall   Capability = "pack.install"
	PackConnect   Capability = "pack.connect"
	VerbExecRead  Capability = "verb.exec.read"
	VerbExecWrite Capability = "verb.exec.write"
	SenseEnable   Capability = "sense.enable"
)

// Capabilities lists the five in the order of the specification.
var Capabilities = []Capability{PackInstall, PackConnect, VerbExecRead, VerbExecWrite, SenseEnable}

// ExecCapability is the capability that a command of the operation needs (§9.5).
func ExecCapability(op Operation) Capability {
	if op == Read {
		return VerbExecRead
	}
	return VerbExecWrite
}

// Principal is the acting identity, as "kind:name" (§9.1). It is never a member of a pack or an envelope.
type Principal string

// Valid says whether p has the form of §9.1: a kind, a colon, and 1 to 64 of a-z, 0-9, dot, underscore, at and
// dash, the first a letter or digit.
func (p Principal) Valid() bool {
	kind, name, _ := strings.Cut(string(p), ":")
	switch kind {
	case "human", "service", "agent", "mothership":
	default:
		return false
	}
	for i := range len(name) {
		c := name[i]
		word := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !word && (i == 0 || !strings.ContainsRune("._@-", rune(c))) {
			return false
		}
	}
	return name != "" && len(name) <= 64
}

// Kind is human, service, agent or mothership; "" for an invalid Principal.
func (p Principal) Kind() string {
	kind, _, _ := strings.Cut(string(p), ":")
	if !p.Valid() {
		return ""
	}
	return kind
}

// Human says whether p is a person, as operator acts demand (§9.6).
func (p Principal) Human() bool { return p.Kind() == "human" }

// Agent says whether p is an agent.
func (p Principal) Agent() bool { return p.Kind() == "agent" }

// Project says whether p has the form of a project (§6.1): 1 to 64 of a-z, 0-9, dot, underscore and dash, the first
// a letter or digit, without "..".
func Project(p string) bool {
	for i := range len(p) {
		c := p[i]
		word := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !word && (i == 0 || !strings.ContainsRune("._-", rune(c))) {
			return false
		}
	}
	return p != "" && len(p) <= 64 && !strings.Contains(p, "..")
}

// Session is who acts and where (§9.3). A face makes it in one place and passes it as a parameter;
// no envelope, context value or log carries it.
type Session struct {
	ID        string    // activation and connection belong to it; "default" when unnamed
	Principal Principal // who acts
	Tenant    string    // "local" on one machine
	Project   string    // "" = none; an envelope's own project beats it
	Workspace string    // absolute path of the land local, "" = none
	// WorkspaceReason says why Workspace is empty (§9.2), for the message of workspace_required.
	WorkspaceReason string
	GitDirs         []string // git directories of the workspace that lie outside it (a linked worktree), verified
	Dir             string   // the caller's working directory, absolute
	How             string   // how the Principal was found, for whoami
	// Parent is the run of the composite above; the pipeline sets it for sub-calls (§3.5).
	Parent string
	// Confirmed says that the composite above carries a confirmation that covers this step (§3.5).
	Confirmed bool
	// Shown says that a person approved the composite above: that covers the steps whose arguments he was shown (§15.2).
	Shown bool
	// Seen is what exactly a person saw of this step, as a hash (§15.2); "" where nothing was shown.
	Seen string
}

// Envelope is an exec request (§6.1). Faces build one and hand its JSON to the Executor, so that every
// face passes the same strict decoder.
type Envelope struct {
	PackID         string          `json:"pack_id"`
	VerbKey        string          `json:"verb_key"`
	Args           json.RawMessage `json:"args,omitempty"`
	Confirm        any             `json:"confirm,omitempty"` // true, or an approval id
	Project        string          `json:"project,omitempty"`
	IdempotencyKey string          `json:"idempotency_key,omitempty"`
}

// Result is the one answer to an envelope (§6.2): exactly these members, in this order.
type Result struct {
	OK      bool            `json:"ok"`
	PackID  string          `json:"pack_id"`
	VerbKey string          `json:"verb_key"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
	// Notes are for a person at a face, never part of the envelope: what was done to an output (§6.5).
	Notes []string `json:"-"`
	// Said is the envelope as it was answered before (§15.5): the other members mean the same, and AppendJSON gives it.
	Said []byte `json:"-"`
	// Exact is, of a plan of a gated write, the hash of what would run: a face that shows it and asks compares it before the
	// run (§15.2).
	Exact string `json:"-"`
}

// Error says why something was refused or failed (§6.2). Message is one sentence for a person, Hint the
// next command to type. Step is the pipeline's step 1 to 10, 0 outside exec.
type Error struct {
	Code    Code           `json:"code"`
	Message string         `json:"message"`
	Step    int            `json:"step,omitempty"`
	Hint    string         `json:"hint,omitempty"`
	Details map[string]any `json:"details,omitempty"`
}

// Error makes *Error a Go error.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Fail makes an Error; the step is filled by the pipeline.
func Fail(code Code, message string) *Error { return &Error{Code: code, Message: message} }

// WithHint returns e with the next command to type.
func (e *Error) WithHint(hint string) *Error { e.Hint = hint; return e }

// With returns e with one more detail.
func (e *Error) With(key string, value any) *Error {
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details[key] = value
	return e
}

// Denied makes the Result of a refusal or failure (§9.7): ids that could not be read are "".
func Denied(packID, verbKey string, e *Error) Result {
	return Result{PackID: packID, VerbKey: verbKey, Error: e}
}

// Executor is the one verb that every face speaks (§6.6): CLI, stream, composite steps, vectors.
// Both methods take the envelope's bytes, decode them at step 1, and answer one Result whatever
// happened; there is no Go error for a face to forget.
type Executor interface {
	Exec(ctx context.Context, s Session, envelope []byte) Result
	Plan(ctx context.Context, s Session, envelope []byte) Result
}

// Redacted stands where a value stood that must not be shown (§4.6, §8.4, §15.4).
const Redacted = "[redacted]"

// Violation is one way in which arguments miss their schema (§6.3 step 5).
type Violation struct {
	Pointer string `json:"pointer"`
	Message string `json:"message"`
}
