package openapi

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"hcpx/internal/adapter"
	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// compileAll reads the operations of all commands (§3.6). What is wrong with the document stands at its place there, what is
// wrong with a command at its operation_id.
func compileAll(m *manifest.Manifest, files fs.FS) (map[string]*operation, []protocol.Issue) {
	block := m.OpenAPI
	if block == nil || block.Document == "" {
		return nil, nil // manifest.adapter-block, manifest.schema
	}
	at := adapter.Place{Manifest: m, Offset: block.Node.Offset, Pointer: "/openapi"}
	srv, err := parseServer(block.Server)
	if err != nil {
		if block.Server == "" || !manifest.SafeURL(block.Server) {
			return nil, nil // the manifest's own finding
		}
		return nil, []protocol.Issue{at.Member(block.Node, "server").Issue("openapi.server", fmt.Sprintf("The server %s.", err))}
	}
	doc, issues, err := Read(files, block.Document)
	if err != nil {
		issues = append(issues, at.Member(block.Node, "document").Issue("openapi.document", fmt.Sprintf("%s %s.", jsondoc.Quote(block.Document), err)))
	}
	if doc == nil {
		return nil, issues
	}
	ops := map[string]*operation{}
	for _, c := range m.Commands {
		op, found := doc.command(m, c, srv)
		issues = append(issues, found...)
		if op != nil {
			ops[c.Key] = op
		}
	}
	protocol.SortIssues(issues)
	return ops, slices.Compact(issues)
}

// command reads the operation of one command.
func (d *Document) command(m *manifest.Manifest, c *manifest.Command, srv server) (*operation, []protocol.Issue) {
	id := c.Node.Get("operation_id")
	at := adapter.CommandPlace(m, c).Member(c.Node, "operation_id")
	if id == nil {
		return nil, []protocol.Issue{at.Issue("openapi.operation", fmt.Sprintf("The command %q names no operation_id.", c.Key))}
	}
	spots := d.spots[id.Text]
	switch {
	case id.Kind != jsondoc.String || len(spots) == 0:
		return nil, []protocol.Issue{at.Issue("openapi.operation", fmt.Sprintf("The document has no operation %s.", jsondoc.Quote(id.Text)))}
	case len(spots) > 1:
		return nil, []protocol.Issue{at.Issue("openapi.operation", fmt.Sprintf("The document has more than one operation %s.", jsondoc.Quote(id.Text)))}
	}
	op, err := d.operation(spots[0], srv)
	var wrong *trouble
	switch {
	case errors.As(err, &wrong) && wrong.code == "openapi.document":
		return nil, []protocol.Issue{d.issue(wrong)}
	case errors.As(err, &wrong): // at the command, and where it comes from
		return nil, []protocol.Issue{at.Issue(wrong.code, fmt.Sprintf("The operation %s cannot be called: %s", jsondoc.Quote(id.Text), wrong.message)), d.issue(wrong)}
	case err != nil:
		return nil, []protocol.Issue{at.Issue("openapi.operation", fmt.Sprintf("The operation %s cannot be read.", jsondoc.Quote(id.Text)))}
	}
	return op, nil
}
