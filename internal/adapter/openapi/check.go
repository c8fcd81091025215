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
	doc, issues, err := Read(files, block.Document)
	if err != nil {
		issues = append(issues, at.Member(block.Node, "document").Issue("openapi.document", fmt.Sprintf("%s %s.", jsondoc.Quote(block.Document), err)))
	}
	srv, wrong := parseServer(block.Server)
	if wrong != nil && block.Server != "" && manifest.SafeURL(block.Server) { // else it is the manifest's own finding
		issues = append(issues, at.Member(block.Node, "server").Issue("openapi.server", fmt.Sprintf("The server %s.", wrong)))
	}
	ops := map[string]*operation{}
	for _, c := range m.Commands {
		if doc == nil {
			break
		}
		where, missing := doc.named(m, c)
		if missing != nil {
			issues = append(issues, *missing)
			continue
		}
		if wrong != nil { // whether an operation can be called there is not known
			continue
		}
		op, found := doc.command(m, c, where, srv)
		issues = append(issues, found...)
		if op != nil {
			ops[c.Key] = op
		}
	}
	protocol.SortIssues(issues)
	return ops, slices.Compact(issues)
}

// named finds the operation that a command names.
func (d *Document) named(m *manifest.Manifest, c *manifest.Command) (found spot, missing *protocol.Issue) {
	id := c.Node.Get("operation_id")
	at := adapter.CommandPlace(m, c).Member(c.Node, "operation_id")
	if id == nil {
		none := at.Issue("openapi.operation", fmt.Sprintf("The command %q names no operation_id.", c.Key))
		return found, &none
	}
	spots := d.spots[id.Text]
	if id.Kind == jsondoc.String && len(spots) == 1 {
		return spots[0], nil
	}
	said := "The document has no operation %s."
	if id.Kind == jsondoc.String && len(spots) > 1 {
		said = "The document has more than one operation %s."
	}
	none := at.Issue("openapi.operation", fmt.Sprintf(said, jsondoc.Quote(id.Text)))
	return found, &none
}

// command reads the operation of one command.
func (d *Document) command(m *manifest.Manifest, c *manifest.Command, where spot, srv server) (*operation, []protocol.Issue) {
	id := c.Node.Get("operation_id")
	at := adapter.CommandPlace(m, c).Member(c.Node, "operation_id")
	op, err := d.operation(where, srv)
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
