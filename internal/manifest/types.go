// Package manifest reads surface.json (§3): ids, commands, argument schemas, the blocks of the adapters,
// versions (§13.2). What belongs to one adapter's templates or expressions is read by that adapter from
// Command.Node; this room knows shapes, not meanings. It is pure: bytes in, values and issues out.
package manifest

import (
	"time"

	"hcpx/internal/jsondoc"
)

// File is the manifest's name in a pack.
const File = "surface.json"

// The adapters (§3). SenseOnly has no commands; Builtin is the in-process way of the bootstrap pack.
const (
	Wrap      = "wrap"
	Composite = "composite"
	OpenAPI   = "openapi"
	SenseOnly = "sense_only"
)

// Manifest is surface.json as read. Members that had the wrong form are zero, and an issue says so.
type Manifest struct {
	Root       *jsondoc.Node
	Src        []byte
	HCPVersion string // hcp.version
	ID         string
	Version    string // SemVer 2.0
	Name       string
	Summary    string
	Plane      string // runtime | control
	Family     string
	Adapter    string
	Wrap       *WrapBlock
	OpenAPI    *OpenAPIBlock
	Binding    Binding
	Commands   []*Command // in source order
	Triggers   []*Trigger
	// Unmet are the names in must_understand that this runtime does not know (§2.6): commands are not
	// executable. Names in a command's own must_understand stand in Command.Unmet.
	Unmet []string

	index func() *jsondoc.Places // of Src, made when first asked
}

// Place is the line and column of an offset in surface.json (§14.2).
func (m *Manifest) Place(offset int) (line, column int) { return m.index().Place(offset) }

// WrapBlock is the "wrap" block (§3.3).
type WrapBlock struct {
	Node      *jsondoc.Node
	Bin       string
	Uses      []string
	Reads     []string
	Env       []EnvVar // in source order
	Network   Network
	Workspace string // "" | "read"
	Isolation string // sandbox (default) | native-local
	Probe     []string
	// Legacy pass-through: present when allowedSubcommands or maxArgv stands in the block.
	PassThrough        bool
	AllowedSubcommands []string
	MaxArgv            int
}

// EnvVar is one static environment variable.
type EnvVar struct{ Name, Value string }

// Network is the network a wrap needs: none, full, or hosts.
type Network struct {
	Mode          string // none (default) | full | hosts
	Hosts         []string
	OperatorHosts bool
}

// OpenAPIBlock is the "openapi" block (§3.6).
type OpenAPIBlock struct {
	Node             *jsondoc.Node
	Document, Server string
}

// Binding is the "binding" block (§8). The default is public.
type Binding struct {
	Node   *jsondoc.Node // nil when absent
	Mode   string        // public | user | local | mothership | mock
	Hub    string        // keyring | local-credential | public | none; "" when absent
	Source *jsondoc.Node // nil when absent
	From   *Source       // Source as read; nil when absent, and when anything is wrong with it
	Inject []EnvVar      // inject.env, the value a template of {token}, {username}, {password}
	// InjectFile: the pack also wants the credential as a file, which this build does not make; its commands
	// are not executable, since none runs without what it needs (§8.4).
	InjectFile bool
}

// Command is one entry of "verbs" (§3.2).
type Command struct {
	Key        string
	KeyOffset  int
	Node       *jsondoc.Node // the whole entry, for the adapter: argv, stdin, output, ok_exit, steps, operation_id
	Summary    string
	Timeout    time.Duration // default 60s
	ArgsNode   *jsondoc.Node // nil when absent = no arguments
	ResultNode *jsondoc.Node // nil when absent
	Examples   []*jsondoc.Node
	Unmet      []string
	// Operation is what the document of an openapi pack says of the command (§3.6), read when it is first asked for; its
	// member args is the derived schema. Whoever loads the pack sets it; nil without a document.
	Operation func() *jsondoc.Node
	schemas   schemas
}

// Trigger is one entry of "triggers" (§7.1), as far as §3 and §4 need it.
type Trigger struct {
	Key       string
	KeyOffset int
	Node      *jsondoc.Node
	Summary   string
	Unmet     []string // must_understand names that this runtime does not know and that stand here (§2.6)
}
