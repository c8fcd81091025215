// Package grant decides who may do what (§9.4 to §9.6). It is pure: grants and a request in, a decision
// with its path out. Availability, tool lists, --explain and step 4 ask the same Evaluate.
package grant

import (
	"encoding/json"
	"time"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// Effects of a grant. A deny beats every allow.
const (
	Allow = "allow"
	Deny  = "deny"
)

// Grant is one stored grant (§9.6). Lists hold globs whose only wildcard is * and which cross "/";
// an empty list in the file means ["*"], planes ["runtime"].
type Grant struct {
	Principal    string                       `json:"principal"`
	Effect       string                       `json:"effect"`
	Capabilities []protocol.Capability        `json:"capabilities"`
	Packs        []string                     `json:"packs,omitempty"`
	Verbs        []string                     `json:"verbs,omitempty"`
	Planes       []string                     `json:"planes,omitempty"`
	Projects     []string                     `json:"projects,omitempty"`
	Args         map[string][]json.RawMessage `json:"args,omitempty"`
	SelfConfirm  bool                         `json:"self_confirm,omitempty"`
	Expires      string                       `json:"expires,omitempty"` // RFC 3339
	// Except and From are of denies that stand in a project's file and in no store (§9.3): packs of which it does
	// not speak, and its place.
	Except []string `json:"-"`
	From   string   `json:"-"`
}

// Request is what is asked. Verb and Land are empty for pack.install, pack.connect and sense.enable.
type Request struct {
	Principal       protocol.Principal
	Tenant          string
	Capability      protocol.Capability
	Pack, Verb      string
	Plane           string // runtime | control
	Land            protocol.Land
	Project         string
	Workspace       string
	WorkspaceReason string
	Now             time.Time
	// Scope false leaves project and workspace out, as availability does (§11.2).
	Scope bool
	// Args are the defaulted arguments, for the argument rules at step 5; nil at step 4, where a grant
	// with argument rules may still match.
	Args *jsondoc.Node
}

// Decision is the answer. Err is nil when allowed. Path are sentences in the order of §9.5, for audit and
// --explain; they name no argument value.
type Decision struct {
	Err         *protocol.Error
	Path        []string
	SelfConfirm bool // of an allow that matched
}
