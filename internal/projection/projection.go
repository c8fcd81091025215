// Package projection is §12: how packs look on the surfaces of agent hosts. Every projection is a pure function of what
// is offered to one Principal: equal inputs give equal bytes. It reads nothing, and it gives nobody a right: what it shows is
// asked of the gate before, and what is called by it passes the whole pipeline.
//
// Nouns: Pack (what one pack offers, filtered by grants before), Command (one that exec would not refuse), Tool (how a
// host's model sees something that it can call). Text is the two things a model is told at the start: the instructions,
// whose first characters stand alone, and the leads of the packs; Skill is one pack's whole text (§5.3).
//
// No trigger of a pack is ever a tool (§12.5.5), and no mark of a gated write is ever left out (§12.6).
package projection

import (
	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// Pack is what one activated pack offers to a Principal.
type Pack struct {
	ID, Version string
	Lead        string // the skill's lead, which alone stands in a system prompt (§5.3)
	Text        []byte // HARNESS.md
	Commands    []Command
}

// Command is one command that exec would not refuse before it knows the arguments (§11.2).
type Command struct {
	Key, Summary string
	Operation    protocol.Operation
	Land         protocol.Land
	Confirm      bool
	Args         *jsondoc.Node // the schema as it was written; nil: it takes none
	Project      bool          // it needs a project, and the session has none
}

// Marks tell reads from writes at a glance (HCP-12.2-4, HCP-12.6-2): operation, land, and whether a person is asked.
func (c Command) Marks() string {
	marks := "[" + string(c.Operation) + " · " + string(c.Land)
	if c.Confirm {
		marks += " · confirm"
	}
	return marks + "]"
}
