// Package adapter is the contract by which a command reaches the world (§3.3 to §3.6). The pipeline knows
// only this: Compile once, Supported at step 3, Render at step 5 (once), Spec at step 8, Run at step 9.
// Adapters lend no rights: a composite's sub-calls go through the Executor again.
package adapter

import (
	"context"
	"encoding/json"
	"io/fs"

	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
)

// Adapter compiles commands of one kind.
type Adapter interface {
	// Compile reads one command of the manifest. The issues are lint's, with places in surface.json; the
	// Command is nil when one of them is an error.
	Compile(m *manifest.Manifest, c *manifest.Command) (Command, []protocol.Issue)
}

// Command is one compiled command. It holds no state of a run and may be used by several at once.
type Command interface {
	// Supported answers at step 3 whether this build and platform can run it; nil when it can.
	Supported() *protocol.Error
	// Steps lists the calls of a composite; nil for all others.
	Steps() []Step
	// Render makes the call from defaulted, valid arguments, once, at step 5 (§6.4). Violations name the
	// argument by pointer.
	Render(args *jsondoc.Node) (*Call, []protocol.Violation)
	// Spec is the child's world as far as the pack declares it; nil when the command starts no process.
	// Programs are named, not resolved: step 8 resolves them against the allow-list. A nil call (asked by
	// availability) gives the Spec without argv and stdin.
	Spec(call *Call) *Need
	// Run does the work of step 9 and the parsing of step 10. The error's step is filled by the pipeline.
	Run(ctx context.Context, run *Run) (*Output, *protocol.Error)
}

// Foreseer is a Command whose calls can be told before it runs, as far as they follow from its own arguments (§15.2).
type Foreseer interface {
	// Foresee gives the arguments of each of Steps; nil for a call that uses what an earlier step gives.
	Foresee(ctx context.Context, args *jsondoc.Node) []*jsondoc.Node
}

// Documented is an Adapter whose commands are declared in a document of the pack beside surface.json (§3.6). The document
// is read once, at install, into a summary that the store keeps; an exec reads its own command's line of that.
type Documented interface {
	Adapter
	// Summarize reads the document. The issues are lint's, with places in surface.json and in the document; the summary
	// holds what stands in it of every command that has no error.
	Summarize(m *manifest.Manifest, files fs.FS) (summary []byte, issues []protocol.Issue)
	// Adopt gives each command of m its part of the summary; false when this build wrote no such text.
	Adopt(m *manifest.Manifest, summary []byte) bool
}

// Call is what step 5 rendered: it is what confirm, plan and audit show and what runs.
type Call struct {
	Args    *jsondoc.Node // after defaults
	Argv    []string      // wrap: argv[0] is the base name of the declared bin, as the child gets it
	Stdin   []byte        // wrap: nil = empty
	Request *Request      // openapi; nil else
}

// Request is what openapi sends, whole but for the credential, which only the run adds (§3.6).
type Request struct {
	Method string
	URL    string
	Header []Field // in the order of their names
	Body   []byte  // nil = none
	// Credential are the places where the run puts what was minted, as "header Authorization"; none for a request without.
	Credential []string
	// Files are what the body takes from the land. Until Fill has them the body is not whole.
	Files []File
	// Fill makes the body once the contents of all Files are there; nil when there are none.
	Fill func(r *Request)
}

// Field is one header of a request.
type Field struct{ Name, Value string }

// File is a file of the land that a request carries.
type File struct {
	Pointer string // of the argument that names it
	Path    string // as it was named, relative to the land
	Data    []byte
}

// Need is what a wrap declares; step 8 turns it into a sandbox.Spec with resolved programs and the land.
type Need struct {
	Bin           string
	Args          []string // argv[1:]
	Uses          []string
	Reads         []string
	Env           []manifest.EnvVar
	Network       manifest.Network
	WorkspaceRead bool
	NativeLocal   bool
	Stdin         []byte
}

// Step is one call of a composite, known before anything runs. Pack is always set, to the composite's own pack where
// the manifest names none.
type Step struct{ ID, Pack, Verb string }

// Run is what a command gets at step 9.
type Run struct {
	Call *Call
	// Box is wrap's; nil else. What it gives holds no secret any more: the pipeline masks before anything
	// parses it or cuts it to a tail (§8.4).
	Box sandbox.Box
	// Limits are those of the box, for the sentence that says which one ended the run.
	Limits sandbox.Limits
	// Sub runs one sub-call of a composite through the whole pipeline as the same Principal (§3.5).
	Sub func(ctx context.Context, pack, verb string, args json.RawMessage) protocol.Result
	// Credential gives one part of what was minted (token, username, password) to the request that openapi sends, and false
	// where it has no such part (§8.4).
	Credential func(part string) (string, bool)
	// Mask replaces the credential in what came from outside, before anything parses it or cuts it; torn says that the text
	// was cut at its end (§8.4).
	Mask func(text []byte, torn bool) []byte
	// Keep writes what is no text to a file of its own, which lies for a day, and gives its path (§12).
	Keep func(name string, data []byte) (string, error)
}

// Output is what a run gave. Value is nil when the command failed.
type Output struct {
	Value   *jsondoc.Node
	Outcome *sandbox.Outcome // wrap; also set when the run failed, for the audit
	// Replaced counts invalid UTF-8 sequences replaced in text output (§6.5).
	Replaced int
	// Steps are the composite's steps in order, for the audit.
	Steps []StepDone
	// Answer is what the server of an openapi command answered, for the audit; nil when none did.
	Answer *Answer
}

// Answer is how a server answered (§3.6).
type Answer struct {
	Status   int `json:"status"`
	Bytes    int `json:"bytes"`
	Attempts int `json:"attempts"`
}

// StepDone is one finished step of a composite.
type StepDone struct {
	ID      string `json:"id"`
	Pack    string `json:"pack_id,omitempty"`
	Verb    string `json:"verb_key,omitempty"`
	Skipped bool   `json:"skipped,omitempty"`
}
