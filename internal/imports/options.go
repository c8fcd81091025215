package imports

import (
	"context"

	"hcpx/internal/protocol"
)

// Options are what is asked for. Everything but Source may be empty.
type Options struct {
	Source   string // a file, or an address that begins with https:// or http://
	Out      string // directory of the pack; "" = ./<id>
	ID       string // pack_id; "" = of the title
	Server   string // "" = the document's first that a pack may have
	ClientID string // of an oauth2 client that was registered; "" = a token is asked for
	Include  []string
	Exclude  []string
	Force    bool // replace a pack that import wrote
}

// Report is what became of a document.
type Report struct {
	ID         string
	Version    string
	Dir        string
	Server     string
	Credential string // the kind of the binding's source; "public" for none
	Read       int    // commands
	Write      int
	Left       []string // operations and parameters that stand in no command, each with its reason
	Decide     []string // what a person must still decide
}

// reason is why a document did not become a pack; it stands in the error's details.
type reason string

const (
	badSyntax    reason = "syntax"
	notOpenAPI   reason = "not-openapi"
	swagger2     reason = "swagger-2"
	tooLarge     reason = "too-large"
	unreachable  reason = "unreachable"
	noOperations reason = "no-operations"
	noServer     reason = "no-server"
	tooMany      reason = "too-many"
	exists       reason = "exists"
	unwritable   reason = "unwritable"
)

// fail is the refusal of a document, with the next command.
func fail(why reason, message, hint string) *protocol.Error {
	return protocol.Fail(protocol.ImportFailed, message).With("reason", string(why)).WithHint(hint)
}

// OpenAPI makes a pack of a document and writes it (§15.6).
func OpenAPI(ctx context.Context, o Options) (Report, *protocol.Error) {
	src, err := Open(ctx, o.Source)
	if err != nil {
		return Report{}, err
	}
	made, err := Build(src, o)
	if err != nil {
		return Report{}, err
	}
	return made.Report, write(made, o.Force)
}
