// Package policy reads policy.json (§4): one entry per command and trigger with operation, land and
// confirm, and the runtime's additions redact, preview and protected. It is pure.
package policy

import (
	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// File is the policy's name in a pack.
const File = "policy.json"

// Policy is policy.json as read.
type Policy struct {
	Root      *jsondoc.Node
	Src       []byte
	SurfaceID string
	Verbs     []*Entry // in source order
	Triggers  []*Entry
	Unmet     []string // must_understand names that this runtime does not know (§2.6)
}

// Entry is one command's or trigger's policy (§4.1). A wrong operation or land is "" here and an issue.
type Entry struct {
	Key       string
	KeyOffset int
	Node      *jsondoc.Node
	Operation protocol.Operation
	Land      protocol.Land
	Confirm   bool
	Message   string   // the sentence template, "" when confirm is true (§4.5)
	Preview   string   // §15.3
	Protected []string // §10.2
	Redact    []string // JSON pointers into the result (§4.6)
	Unmet     []string // must_understand names of this entry that this runtime does not know (§2.6)
}
