// Package composite is §3.5: a command made of steps, each of which computes a value with jq or calls a
// command of this or another pack. It compiles and checks the steps, runs them in order, and says which
// one failed and what was already done.
//
// A composite lends no rights: every call goes through Run.Sub, which is the whole pipeline again, as the
// same Principal. A nested composite is bounded by the pipeline at step 3.
//
// Expressions are text here. Lint has them judged, and the Machine evaluates them: in this process (jq) or, as the core
// does, in another one that is bounded and can be killed (jq/worker).
//
// How this runtime reads what §3.5 leaves open: without output, the result is the object of all steps; when
// is false for null and false; a value step may have when too; args must give an object.
package composite

import (
	"fmt"
	"slices"

	"hcpx/internal/adapter"
	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// maxSteps bounds one composite (§3.5).
const maxSteps = 64

// Adapter compiles composite commands.
type Adapter struct{ machine Machine }

// New makes the adapter over the machine that evaluates. Without one (nil) a command with expressions is refused.
func New(m Machine) *Adapter {
	if m == nil {
		m = nowhere{}
	}
	return &Adapter{m}
}

var (
	_ adapter.Adapter = (*Adapter)(nil)
	_ adapter.Command = (*command)(nil)
	_ adapter.Warmer  = (*command)(nil)
)

// command is one compiled composite; it is not changed after Compile.
type command struct {
	machine  Machine
	steps    []step
	output   string // an expression; "" = the object of all steps
	computes bool   // some part of it is an expression
}

// step is one compiled step: a value, or a call when verb is set. value, args and when are expressions.
type step struct {
	adapter.Step
	value string
	args  string // "" = {}
	when  string // "" = always
}

// Expression is one expression of a pack and where it stands.
type Expression struct {
	Text  string
	place adapter.Place
}

// Issue is what lint says of an expression that its machine refuses with err.
func (e Expression) Issue(err error) protocol.Issue {
	return e.place.Issue("composite.expression", fmt.Sprintf("The expression does not compile: %s.", protocol.Clause(err.Error())))
}

// Expressions are those of all composite commands of m, for the one who has them judged (Machine.Check).
func Expressions(m *manifest.Manifest) []Expression {
	if m.Adapter != manifest.Composite {
		return nil
	}
	var all []Expression
	for _, cmd := range m.Commands {
		_, c := compile(m, cmd)
		all = append(all, c.found...)
	}
	return all
}

// compiler collects the issues and the expressions of one command.
type compiler struct {
	pack   string
	issues []protocol.Issue
	found  []Expression
}

func (c *compiler) report(at adapter.Place, code protocol.IssueCode, format string, a ...any) {
	c.issues = append(c.issues, at.Issue(code, fmt.Sprintf(format, a...)))
}

// Compile reads steps and output of the command (§3.5). Whether the called commands exist is asked by
// Check and by step 3.
func (a *Adapter) Compile(m *manifest.Manifest, cmd *manifest.Command) (adapter.Command, []protocol.Issue) {
	out, c := compile(m, cmd)
	if out == nil || protocol.HasErrors(c.issues) {
		return nil, c.issues
	}
	out.machine, out.computes = a.machine, len(c.found) > 0
	return out, c.issues
}

func compile(m *manifest.Manifest, cmd *manifest.Command) (*command, *compiler) {
	at, c, out := adapter.CommandPlace(m, cmd), &compiler{pack: m.ID}, &command{}
	if cmd.Node == nil || cmd.Node.Kind != jsondoc.Object {
		return nil, c // manifest.schema
	}
	list := cmd.Node.Get("steps")
	place := at.Member(cmd.Node, "steps")
	switch {
	case list == nil || list.Kind != jsondoc.Array || len(list.Items) == 0:
		c.report(place, "manifest.schema", "A composite command needs steps, an array of objects.")
	case len(list.Items) > maxSteps:
		c.report(place, "manifest.schema", "A composite has at most %d steps.", maxSteps)
	default:
		seen := map[string]bool{}
		for i, n := range list.Items {
			s := c.step(place.Item(list, i), n)
			if s.ID != "" && seen[s.ID] {
				c.report(place.Item(list, i).Member(n, "id"), "manifest.schema", "Two steps have the id %q.", s.ID)
			}
			seen[s.ID] = true
			out.steps = append(out.steps, s)
		}
	}
	out.output = c.expression(at, cmd.Node, "output")
	return out, c
}

// step reads one step: id, and either value, or verb with pack and args; both may have when.
func (c *compiler) step(at adapter.Place, n *jsondoc.Node) step {
	var s step
	if n.Kind != jsondoc.Object {
		c.report(at, "manifest.schema", "A step is an object.")
		return s
	}
	if s.ID = c.literal(at, n, "id"); !identifier(s.ID) {
		c.report(at.Member(n, "id"), "manifest.schema", "A step needs an id of letters, digits, _ and -, at most 64, that begins with a letter or _.")
	}
	call := n.Has("verb")
	if call == n.Has("value") {
		c.report(at, "manifest.schema", "A step has either a value or a verb.")
		return s
	}
	known := []string{"id", "when", "value"}
	if call {
		known = []string{"id", "when", "pack", "verb", "args"}
		s.Pack, s.Verb = c.pack, c.literal(at, n, "verb")
		if n.Has("pack") {
			s.Pack = c.literal(at, n, "pack")
		}
		s.args = c.expression(at, n, "args")
	} else {
		s.value = c.expression(at, n, "value")
	}
	s.when = c.expression(at, n, "when")
	c.unknown(at, n, known)
	return s
}

// literal reads a member that is a plain string, never an expression.
func (c *compiler) literal(at adapter.Place, n *jsondoc.Node, key string) string {
	v := n.Get(key)
	if v == nil || v.Kind != jsondoc.String || v.Text == "" {
		c.report(at.Member(n, key), "manifest.schema", "%s of a step is a string.", key)
		return ""
	}
	return v.Text
}

// expression reads a member that is a jq expression; "" when it is absent or wrong.
func (c *compiler) expression(at adapter.Place, n *jsondoc.Node, key string) string {
	v := n.Get(key)
	switch {
	case v == nil:
		return ""
	case v.Kind != jsondoc.String:
		c.report(at.Member(n, key), "manifest.schema", "%s is a jq expression in a string.", key)
		return ""
	case v.Text == "":
		c.report(at.Member(n, key), "composite.expression", "The expression is empty.")
		return ""
	}
	c.found = append(c.found, Expression{v.Text, at.Member(n, key)})
	return v.Text
}

// unknown warns of members that a step does not have; must_understand is what makes one count (§13.2).
func (c *compiler) unknown(at adapter.Place, n *jsondoc.Node, known []string) {
	for _, m := range n.Members {
		if !slices.Contains(known, m.Key) {
			c.report(at.Key(n, m.Key), "manifest.unknown-field", "Such a step has no member %q, and it is ignored.", m.Key)
		}
	}
}

// identifier is the form of a step's id.
func identifier(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i, r := range s {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r != '-' && (r < '0' || r > '9')) {
			return false
		}
	}
	return true
}

// Supported asks only whether there is a machine for its expressions. Whether the steps resolve is asked at step 3 with
// Steps.
func (c *command) Supported() *protocol.Error {
	if !c.computes {
		return nil
	}
	if err := c.machine.Ready(); err != nil {
		return protocol.Fail(protocol.NotExecutable, err.Message).With("reason", "component").With("error", err).WithHint(err.Hint)
	}
	return nil
}

// Warm implements adapter.Warmer.
func (c *command) Warm() {
	if c.computes {
		c.machine.Warm()
	}
}

// Steps lists the calls in order, each with its pack.
func (c *command) Steps() []adapter.Step {
	var out []adapter.Step
	for _, s := range c.steps {
		if s.Verb != "" {
			out = append(out, s.Step)
		}
	}
	return out
}

// Render has nothing to render: the arguments are what the steps see.
func (c *command) Render(args *jsondoc.Node) (*adapter.Call, []protocol.Violation) {
	return &adapter.Call{Args: args}, nil
}

// Spec is always nil: a composite starts no process of its own.
func (c *command) Spec(*adapter.Call) *adapter.Need { return nil }
