// Package wrap is §3.3: a command that is an existing program, started with a rendered argv and never
// through a shell. It reads the argv template of a command and reports what is wrong with it, renders the
// template once at step 5 (§6.4), names the world that the pack declares for step 8, and turns the
// program's output into the result (§6.5).
//
// Nouns: template (the compiled argv), placeholder, group, guard (the rule that a value from outside is
// never read as an option). The package starts nothing itself: a sandbox.Box does.
//
// How this runtime reads what §3.3 leaves open: a placeholder names a declared argument of the top level;
// an absent one drops its string, or the nearest group around it, also out of an if or each in that group;
// null is present and renders as null; stdin is one string, and an absent argument leaves it empty; numbers
// inside |json are written like those outside; an argument longer than Linux takes (128 KiB) is refused at
// step 5 already.
package wrap

import (
	"context"
	"path"
	"slices"
	"strconv"
	"time"

	"hcpx/internal/adapter"
	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// Adapter compiles commands of wrap packs. It holds nothing.
type Adapter struct{}

// New makes the adapter.
func New() *Adapter { return &Adapter{} }

var (
	_ adapter.Adapter = (*Adapter)(nil)
	_ adapter.Command = (*command)(nil)
)

// command is one compiled command; it is not changed after Compile.
type command struct {
	pack        string
	block       *manifest.WrapBlock
	argv        []element
	stdin       []part // nil = empty
	passThrough bool
	output      string
	okExit      []int
	timeout     time.Duration // as declared
}

// Compile reads argv, stdin, output and ok_exit of the command (§3.3). A command whose args are no schema
// has no template; the manifest's own check reports that.
func (a *Adapter) Compile(m *manifest.Manifest, cmd *manifest.Command) (adapter.Command, []protocol.Issue) {
	at := adapter.CommandPlace(m, cmd)
	if m.Wrap == nil || cmd.Node == nil || cmd.Node.Kind != jsondoc.Object {
		return nil, nil // manifest.adapter-block, manifest.schema
	}
	schema, err := cmd.Args()
	if err != nil {
		return nil, nil // manifest.args-schema
	}
	c := &compiler{schema: schema}
	out := &command{pack: m.ID, block: m.Wrap, timeout: cmd.Timeout}
	if argv := cmd.Node.Get("argv"); argv == nil && m.Wrap.PassThrough {
		out.passThrough = true
		c.passThrough(at.Member(cmd.Node, "args"))
	} else if argv == nil {
		c.report(at, "manifest.schema", "A command of a wrap pack needs argv.")
	} else {
		out.argv = c.list(at.Member(cmd.Node, "argv"), argv, scope{})
	}
	out.stdin = c.stdin(at.Member(cmd.Node, "stdin"), cmd.Node.Get("stdin"))
	out.output = c.output(at.Member(cmd.Node, "output"), cmd.Node.Get("output"))
	out.okExit = c.okExit(at.Member(cmd.Node, "ok_exit"), cmd.Node.Get("ok_exit"))
	if protocol.HasErrors(c.issues) {
		return nil, c.issues
	}
	return out, c.issues
}

// passThrough holds the legacy form to its one argument, argv: string[] (§3.3).
func (c *compiler) passThrough(at adapter.Place) {
	p := c.schema.Property("argv")
	if p == nil || len(c.schema.Properties()) != 1 || !p.Required || !only(p.Types, "array") || p.Items == nil || !only(p.Items.Types, "string") {
		c.report(at, "manifest.schema", "A pass-through command takes one required argument, argv, an array of strings.")
	}
}

func (c *compiler) stdin(at adapter.Place, n *jsondoc.Node) []part {
	if n == nil {
		return nil
	}
	if n.Kind != jsondoc.String {
		c.report(at, "manifest.schema", "stdin is a string with placeholders.")
		return nil
	}
	return c.text(at, n.Text, scope{stdin: true})
}

func (c *compiler) output(at adapter.Place, n *jsondoc.Node) string {
	if n == nil {
		return asJSON
	}
	if n.Kind != jsondoc.String || !slices.Contains([]string{asJSON, asNDJSON, asText}, n.Text) {
		c.report(at, "manifest.schema", "output is json, ndjson or text.")
		return ""
	}
	return n.Text
}

func (c *compiler) okExit(at adapter.Place, n *jsondoc.Node) []int {
	if n == nil {
		return []int{0}
	}
	if n.Kind != jsondoc.Array || len(n.Items) == 0 {
		c.report(at, "manifest.schema", "ok_exit is an array of the exit codes that mean success.")
		return nil
	}
	var codes []int
	for i, item := range n.Items {
		code, err := strconv.Atoi(jsondoc.Plain(item.Text))
		if item.Kind != jsondoc.Number || err != nil || code < 0 || code > 255 {
			c.report(at.Item(n, i), "manifest.schema", "An exit code is a whole number from 0 to 255.")
			continue
		}
		codes = append(codes, code)
	}
	return codes
}

// Supported is always nil: what a platform can't confine is a matter of step 8 (§6.3).
func (c *command) Supported() *protocol.Error { return nil }

// Steps is always nil.
func (c *command) Steps() []adapter.Step { return nil }

// Render makes argv and stdin, once (§6.4).
func (c *command) Render(args *jsondoc.Node) (*adapter.Call, []protocol.Violation) {
	r := renderer{args: args, argv: make([]string, 1, len(c.argv)+4)}
	r.argv[0] = path.Base(c.block.Bin) // as the child gets it
	if c.passThrough {
		r.passThrough(c.block)
	} else {
		r.list(c.argv, around{})
	}
	r.whole()
	call := &adapter.Call{Args: args}
	if c.stdin != nil {
		if s, _, ok := r.join(c.stdin, around{}); ok {
			call.Stdin = []byte(s)
		}
	}
	if len(r.violations) > 0 {
		return nil, r.violations
	}
	call.Argv = r.argv
	return call, nil
}

// passThrough takes the caller's argv as it is, within the block's bounds (§3.3).
func (r *renderer) passThrough(block *manifest.WrapBlock) {
	argv := r.args.Get("argv")
	if argv == nil || argv.Kind != jsondoc.Array || len(argv.Items) == 0 {
		r.refuse(jsondoc.Pointer("argv"), "must name a subcommand first")
		return
	}
	if len(argv.Items) > block.MaxArgv {
		r.refuse(jsondoc.Pointer("argv"), "has more than %d elements", block.MaxArgv)
	}
	if first := argv.Items[0]; first.Kind != jsondoc.String || !slices.Contains(block.AllowedSubcommands, first.Text) {
		r.refuse(jsondoc.Pointer("argv", "0"), "is not one of the allowed subcommands")
	}
	element := element{parts: []part{{placeholder: true, dash: true}}}
	w := around{array: "argv"}
	for w.index, w.item = range argv.Items {
		r.text(&element, w)
	}
}

// Spec is what the pack declares for the child (§3.3); a nil call leaves argv and stdin out.
func (c *command) Spec(call *adapter.Call) *adapter.Need {
	need := &adapter.Need{
		Bin: c.block.Bin, Uses: c.block.Uses, Reads: c.block.Reads, Env: c.block.Env, Network: c.block.Network,
		WorkspaceRead: c.block.Workspace == "read", NativeLocal: c.block.Isolation == "native-local",
	}
	if call != nil {
		need.Args, need.Stdin = call.Argv[1:], call.Stdin
	}
	return need
}

// Run starts the prepared box and reads its output (§6.5, §6.9). The Output is there whenever the program
// ran, also when it failed, for the audit.
func (c *command) Run(ctx context.Context, run *adapter.Run) (*adapter.Output, *protocol.Error) {
	if run.Box == nil {
		return nil, protocol.Fail(protocol.InternalError, "No sandbox was prepared for the program.")
	}
	outcome, err := run.Box.Run(ctx)
	if err != nil {
		return nil, err
	}
	out := &adapter.Output{Outcome: outcome}
	if err := c.failure(outcome, run.Limits); err != nil {
		return out, err
	}
	v, replaced, err := parse(c.output, outcome.Stdout)
	if err != nil {
		return out, tails(err, outcome)
	}
	out.Value, out.Replaced = v, replaced
	return out, nil
}
