package lifecycle

import (
	"strings"
	"time"

	"hcpx/internal/binding"
	"hcpx/internal/grant"
	"hcpx/internal/policy"
	"hcpx/internal/protocol"
)

// Change is one thing in which a version differs from another (§13.3).
type Change = policy.Change

// The views are what the operations answer, with stable field names. A view that can change something
// says in "changed" whether it did; lists are never null.

// LintView answers lint (§14.2).
type LintView struct {
	Issues []protocol.Issue `json:"issues"`
}

// InstallView answers install.
type InstallView struct {
	Changed bool            `json:"changed"`
	Packs   []InstalledPack `json:"packs"`
}

// InstalledPack is what became of one source.
type InstalledPack struct {
	PackID   string `json:"pack_id"`
	Version  string `json:"version"`
	Previous string `json:"previous_version,omitempty"` // the version it replaced
	Digest   string `json:"digest"`
	Source   string `json:"source"`
	Changed  bool   `json:"changed"`
	Note     string `json:"note,omitempty"` // whole sentences
	// Activated says that this session has it activated already.
	Activated bool             `json:"activated"`
	Network   []string         `json:"network"`            // none, full, or the hosts (§10.2)
	Changes   []policy.Change  `json:"changes"`            // against the version it replaces (§13.3)
	Loosened  []string         `json:"loosened,omitempty"` // those of them that were accepted because they widen
	Allowed   []string         `json:"allowed"`            // programs and paths that this call allowed
	Needs     []Need           `json:"needs"`              // what is not allowed yet
	Issues    []protocol.Issue `json:"issues"`             // warnings of lint
	Error     *protocol.Error  `json:"error,omitempty"`    // why this one was not installed
}

// say adds a sentence to the note.
func (p *InstalledPack) say(sentence string) {
	p.Note = strings.TrimSpace(p.Note + " " + sentence)
}

// Need is something that the operator has not allowed to the pack yet, with the command that does.
type Need struct {
	Kind   string `json:"kind"` // bin | uses | read | native
	Name   string `json:"name"`
	Reason string `json:"reason,omitempty"` // why allowing it just now did not work
	Hint   string `json:"hint"`
}

// PackChange is what became of one pack in an operation over several.
type PackChange struct {
	PackID  string `json:"pack_id"`
	Changed bool   `json:"changed"`
	Note    string `json:"note,omitempty"`
}

// SessionView answers activate and deactivate.
type SessionView struct {
	Session string       `json:"session"`
	Changed bool         `json:"changed"`
	Packs   []PackChange `json:"packs"`
}

// ConnectView answers connect and disconnect.
type ConnectView struct {
	Session   string `json:"session"`
	PackID    string `json:"pack_id"`
	Mode      string `json:"mode"`
	Connected bool   `json:"connected"`
	Changed   bool   `json:"changed"`
	Source    string `json:"source,omitempty"` // exactly what a mint reads or asks
	Shared    bool   `json:"shared,omitempty"` // a consent that stood already is used
	// What became of a server's tokens when what was kept of them was deleted.
	Revocations []Revocation `json:"revocations,omitempty"`
}

// Revocation is what a server answered when its tokens were given back.
type Revocation = binding.Ended

// UninstallView answers uninstall.
type UninstallView struct {
	PackID   string   `json:"pack_id"`
	Changed  bool     `json:"changed"`
	Sessions []string `json:"sessions"` // in which it was activated or connected
	Purged   bool     `json:"purged"`   // its data were removed too
	Callers  []string `json:"callers"`  // installed packs whose composites call it
	// As in ConnectView.
	Revocations []Revocation `json:"revocations,omitempty"`
}

// RollbackView answers rollback.
type RollbackView struct {
	PackID   string          `json:"pack_id"`
	Version  string          `json:"version"`
	Replaced string          `json:"replaced_version"`
	Changed  bool            `json:"changed"`
	Changes  []policy.Change `json:"changes"` // what going back changes (§13.3)
}

// AddView answers add.
type AddView struct {
	Changed   bool          `json:"changed"`
	Pack      InstalledPack `json:"pack"`
	Activated bool          `json:"activated"`
	Session   string        `json:"session"`
	Consent   *Consent      `json:"consent,omitempty"` // what was consented to
	Connect   string        `json:"connect,omitempty"` // the command that gives it the credential that it needs
}

// ListView answers list.
type ListView struct {
	Packs []ListedPack `json:"packs"`
}

// ListedPack is one installed pack.
type ListedPack struct {
	PackID      string    `json:"pack_id"`
	Version     string    `json:"version"`
	Name        string    `json:"name"`
	Summary     string    `json:"summary"`
	Digest      string    `json:"digest"`
	Source      string    `json:"source"`
	InstalledAt time.Time `json:"installed_at"`
	InstalledBy string    `json:"installed_by"`
	Activated   bool      `json:"activated"`
	Connected   bool      `json:"connected"`
	Previous    string    `json:"previous_version,omitempty"`
	Problem     string    `json:"problem,omitempty"` // a code when the pack can't be used
}

// AvailabilityView answers availability (§11.2).
type AvailabilityView struct {
	Packs []PackAvailability `json:"packs"`
}

// PackAvailability is one pack with its four flags.
type PackAvailability struct {
	PackID     string                         `json:"pack_id"`
	Version    string                         `json:"version"`
	Status     string                         `json:"status"`
	Reason     string                         `json:"reason,omitempty"` // with unavailable
	Installed  bool                           `json:"installed"`
	Activated  bool                           `json:"activated"`
	Connected  bool                           `json:"connected"`
	Executable bool                           `json:"executable"`
	Commands   map[string]CommandAvailability `json:"commands"`
	Sense      map[string]SenseAvailability   `json:"sense"`
}

// CommandAvailability is one command; Reason is the code that exec would refuse with.
type CommandAvailability struct {
	Executable bool               `json:"executable"`
	Reason     protocol.Code      `json:"reason,omitempty"`
	Operation  protocol.Operation `json:"operation"`
	Land       protocol.Land      `json:"land"`
	Confirm    bool               `json:"confirm"`
	Needs      []string           `json:"needs"`            // project, workspace
	Native     bool               `json:"native,omitempty"` // runs outside the sandbox (§10.3)
	Network    string             `json:"network,omitempty"`
}

// SenseAvailability is one trigger, reported apart from Execute (HCP-11.2-3).
type SenseAvailability struct {
	Enabled bool `json:"enabled"`
}

// AllowView answers allow.
type AllowView struct {
	Changed bool                   `json:"changed"`
	Bins    []protocol.AllowedBin  `json:"bins"`
	Reads   []protocol.AllowedRead `json:"reads"`
	Native  []string               `json:"native"`
	Hosts   []protocol.AllowedHost `json:"hosts"`
	Removed bool                   `json:"removed,omitempty"` // the lists hold what was taken back
	Notes   []string               `json:"notes"`
}

// GrantView answers grant and revoke.
type GrantView struct {
	Changed bool          `json:"changed"`
	Added   []grant.Grant `json:"added"`
	Removed []grant.Grant `json:"removed"`
	Note    string        `json:"note,omitempty"`
}

// GrantsView answers grants.
type GrantsView struct {
	Grants []grant.Grant `json:"grants"`
}

// ExplainView answers grants --explain: the decision path of step 4, before arguments are known.
type ExplainView struct {
	Principal  protocol.Principal  `json:"principal"`
	PackID     string              `json:"pack_id"`
	VerbKey    string              `json:"verb_key"`
	Project    string              `json:"project,omitempty"`
	Capability protocol.Capability `json:"capability,omitempty"`
	Allowed    bool                `json:"allowed"`
	Path       []string            `json:"path"`
	Rules      []string            `json:"argument_rules"` // arguments that a matching grant has rules for
	Confirm    bool                `json:"confirm"`        // step 6 asks for a confirmation
	OwnConfirm bool                `json:"own_confirm"`    // and the principal's own counts: a person's, or by self_confirm
	Error      *protocol.Error     `json:"error,omitempty"`
}

// WhoamiView answers whoami (§9.3).
type WhoamiView struct {
	Principal protocol.Principal `json:"principal"`
	Kind      string             `json:"kind"`
	Tenant    string             `json:"tenant"`
	Session   string             `json:"session"`
	Project   string             `json:"project"`
	Workspace string             `json:"workspace"`
	How       string             `json:"how"`
}

// The levels of a Finding.
const (
	LevelOK      = "ok"
	LevelWarning = "warning"
	LevelFailure = "failure"
)

// Finding is one fact that was examined, with its fix when it is not well.
type Finding struct {
	Area    string `json:"area"` // store | state | audit | pack | program | sandbox | identity | keyring | hosts
	Subject string `json:"subject"`
	Level   string `json:"level"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

// HealthView answers status and doctor. Exit is 0 healthy, 2 on a warning, 1 on a failure (HCP-12.1-7).
type HealthView struct {
	Level    string        `json:"level"`
	Exit     int           `json:"exit"`
	Home     string        `json:"home"`
	Session  string        `json:"session"`
	Packs    int           `json:"packs"`
	Active   []string      `json:"activated"`
	Findings []Finding     `json:"findings"`
	Rules    []SandboxRule `json:"rules,omitempty"` // doctor's table of §10.5
}

// SandboxRule is one row of the table: what is promised and what enforces it here.
type SandboxRule struct {
	Rule      string `json:"rule"`
	Mechanism string `json:"mechanism"`
	State     string `json:"state"`
	Detail    string `json:"detail,omitempty"`
}

// RepairView answers repair.
type RepairView struct {
	Changed bool     `json:"changed"`
	Done    []string `json:"done"` // one sentence each
	Kept    []string `json:"kept"` // files that were put aside
	Left    []string `json:"left"` // what only a person can mend
}

// SetupView answers setup status, apply and update (§12.1.8).
type SetupView struct {
	Changed bool        `json:"changed"`
	Packs   []SetupPack `json:"packs"`
}

// SetupPack is one pack: is it there, and is its skill copy current.
type SetupPack struct {
	PackID    string `json:"pack_id"`
	Version   string `json:"version"`
	Installed bool   `json:"installed"`
	Activated bool   `json:"activated"` // in some session
	Skill     string `json:"skill"`     // current | stale | missing | none
	Changed   bool   `json:"changed"`
}

// SkillView answers skill: the copy that activation made (§5.4).
type SkillView struct {
	PackID string `json:"pack_id"`
	Skill  string `json:"skill"`
}

// Consent is what a person is shown before something is let in. Question says what a yes means.
type Consent struct {
	Question string        `json:"question"` // allow | policy | add | uninstall | connect
	Packs    []ConsentPack `json:"packs"`
	Sessions []string      `json:"sessions,omitempty"` // uninstall: others that have the pack activated
}

// ConsentPack is what one pack would get.
type ConsentPack struct {
	PackID     string           `json:"pack_id"`
	Version    string           `json:"version"`
	Source     string           `json:"source"`
	Programs   []ConsentProgram `json:"programs"`
	Reads      []string         `json:"reads"`
	Network    []string         `json:"network"`    // none, full, or the hosts
	Credential string           `json:"credential"` // the binding mode and where it comes from
	Native     bool             `json:"native"`     // asks to run outside the sandbox
	Changes    []policy.Change  `json:"changes"`    // against the version that is installed (§13.3)
	Loosened   []string         `json:"loosened"`   // those of them that widen
	Commands   []ConsentCommand `json:"commands"`
	Agents     []AgentRights    `json:"agents"` // what agents may already do with it
}

// ConsentProgram is a program that the pack starts, with the path it would be allowed by.
type ConsentProgram struct {
	Name string `json:"name"`
	Path string `json:"path"` // "" when it was not found
	Uses bool   `json:"uses"` // started by the program, not as the command itself
	Note string `json:"note,omitempty"`
}

// ConsentCommand is a command that comes with the pack.
type ConsentCommand struct {
	Verb      string             `json:"verb_key"`
	Summary   string             `json:"summary"`
	Operation protocol.Operation `json:"operation"`
	Land      protocol.Land      `json:"land"`
	Confirm   bool               `json:"confirm"`
}

// AgentRights are the commands that grants already give to agents.
type AgentRights struct {
	Principal string   `json:"principal"` // as the grant names it
	Read      []string `json:"read"`
	Write     []string `json:"write"`
}

// Ask puts a Consent before a person and answers whether it was given.
type Ask func(Consent) bool
