package imports

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// maxTold is how many of what was left out are told.
const maxTold = 50

// File is one file of the pack.
type File struct {
	Name string
	Text []byte
}

// Made is a pack in memory.
type Made struct {
	Files  []File
	Report Report
}

// builder is one document on its way to a pack.
type builder struct {
	*document
	Options
	src Source
	id  string

	all, chosen []*operation
	documents   server // the document's own
	server      server
	strict      bool     // the document has no server: an operation needs its own
	kind        string   // of the credential; "" for none
	schemes     []string // that an operation takes alone, the commonest first
	several     []string // keys of commands that take more than one at once
	left        []string
	derived     bool // the manifest leaves the arguments to the document
	report      Report
}

// Build makes the files of a pack of a document. It is pure: nothing is read or written.
func Build(src Source, o Options) (*Made, *protocol.Error) {
	root, err := parse(src)
	if err != nil {
		return nil, err
	}
	b := &builder{document: newDocument(root), Options: o, src: src}
	if err := b.name(); err != nil {
		return nil, err
	}
	b.gather()
	for _, step := range []func() *protocol.Error{b.chooseServer, b.choose, b.secure, b.settle, b.sameServer} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return b.files()
}

// name settles the pack's id and where it goes.
func (b *builder) name() *protocol.Error {
	if b.ID != "" && (!manifest.ValidID(b.ID) || manifest.Reserved(b.ID)) {
		why := "has not the form of a pack's id: words of a-z and 0-9 joined by dashes, 64 characters at most"
		if manifest.Reserved(b.ID) {
			why = "is reserved for the runtime"
		}
		return protocol.Fail(protocol.UsageError, fmt.Sprintf("The id %s %s.", jsondoc.Quote(b.ID), why)).WithHint("hcpx import openapi " + shellWord(b.src.Name) + " --id my-api")
	}
	host := ""
	for _, n := range items(b.root.Get("servers")) {
		if u, err := url.Parse(text(n, "url")); err == nil && host == "" {
			host = u.Hostname()
		}
	}
	b.id = packID(b.ID, text(b.root.Get("info"), "title"), host)
	b.report.ID, b.report.Dir = b.id, b.Out
	if b.Out == "" {
		b.report.Dir = "." + string(filepath.Separator) + b.id
	}
	return nil
}

func (b *builder) secure() *protocol.Error {
	b.credential()
	return b.some()
}

// some says that operations are left, or which ones were left out.
func (b *builder) some() *protocol.Error {
	if len(b.chosen) > 0 {
		return nil
	}
	return fail(noOperations, fmt.Sprintf("%s has no operation that a command could call.", b.src.Name), "hcpx import openapi --help").
		With("left_out", b.left[:min(len(b.left), maxTold)])
}

// sameServer gives the manifest one server for all: where a path has a server of its own, what the servers share, and the
// rest goes before the paths.
func (b *builder) sameServer() *protocol.Error {
	for _, op := range b.chosen {
		if op.base != b.server.path {
			b.server.path = ""
			break
		}
	}
	b.report.Server = b.server.String()
	return nil
}

// route is an operation's path behind the manifest's server.
func (b *builder) route(op *operation) string {
	return strings.TrimPrefix(op.base, b.server.path) + op.path
}

// files compiles the commands, in the largest shape in which all fit into a manifest, and writes everything.
func (b *builder) files() (*Made, *protocol.Error) {
	b.derived = true
	if least, err := b.surface(); err != nil {
		return nil, err
	} else if len(least) > maxFile {
		return nil, b.many("manifest")
	}
	for from := range len(shapes) + 1 {
		b.derived = from == len(shapes)
		kept := b.chosen[:0:0]
		for _, op := range b.chosen {
			if op.command.args != nil && (b.derived || op.command.shape >= from) || b.compile(op, min(from, len(shapes)-1)) {
				kept = append(kept, op)
			} else {
				b.leave(op, "its arguments are too many")
			}
		}
		b.chosen = kept
		if err := b.some(); err != nil {
			return nil, err
		}
		surface, err := b.surface()
		if err != nil {
			return nil, err
		}
		if len(surface) > maxFile {
			continue
		}
		return b.assemble(surface)
	}
	return nil, b.many("manifest")
}

// many is the refusal of more operations than a file of a pack can hold.
func (b *builder) many(what string) *protocol.Error {
	e := fail(tooMany, fmt.Sprintf("%s has %d operations; their commands do not fit into a %s of %d bytes.", b.src.Name, len(b.chosen), what, maxFile),
		"choose some of them with --include, as --include 'path:/users*'")
	if tags := b.tags(); len(tags) > 0 {
		e.With("tags", tags[:min(len(tags), 100)]).WithHint("choose some of them, as --include " + tagChoice(tags))
	}
	return e
}

// assemble adds the other files to the manifest.
func (b *builder) assemble(surface []byte) (*Made, *protocol.Error) {
	for _, op := range b.chosen {
		if op.read() {
			b.report.Read++
		} else {
			b.report.Write++
		}
	}
	b.report.Left = b.left
	b.report.Decide = b.decide()
	rules, copied := b.policy(), b.copy()
	skill := b.skill()
	switch {
	case len(rules) > maxFile:
		return nil, b.many("policy")
	case len(skill) > maxFile:
		return nil, b.many("skill")
	}
	if len(copied) > maxDocument-4*maxFile {
		return nil, fail(tooLarge, "What the commands need of the document is larger than a pack may be.", "choose fewer operations with --include")
	}
	return &Made{Files: []File{{"surface.json", surface}, {"policy.json", rules}, {"HARNESS.md", skill}, {"openapi.json", copied}}, Report: b.report}, nil
}
