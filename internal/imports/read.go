package imports

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// The bounds of a document: of its text, and of how deep it nests.
const (
	maxDocument = 64 << 20
	maxDepth    = 500
)

// Source is a document as it was found.
type Source struct {
	Name string // as it is shown: the path, or the address without its query
	URL  string // "" for a file: what a relative server is relative to
	Text []byte
}

// Open reads a file, or fetches an address.
func Open(ctx context.Context, source string) (Source, *protocol.Error) {
	if strings.HasPrefix(source, "https://") || strings.HasPrefix(source, "http://") {
		return fetch(ctx, source)
	}
	f, err := os.Open(source)
	if err != nil {
		return Source{}, fileError(source, err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return Source{}, protocol.Fail(protocol.NotFound, fmt.Sprintf("%s is no file.", source)).WithHint("hcpx import openapi --help")
	}
	text, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	if err != nil {
		return Source{}, fileError(source, err)
	}
	if len(text) > maxDocument {
		return Source{}, large(source)
	}
	return Source{Name: source, Text: text}, nil
}

func fileError(source string, err error) *protocol.Error {
	said := "cannot be read"
	switch {
	case errors.Is(err, fs.ErrNotExist):
		said = "does not exist"
	case errors.Is(err, fs.ErrPermission):
		said = "may not be read"
	}
	return protocol.Fail(protocol.NotFound, fmt.Sprintf("The document %s %s.", source, said)).WithHint("hcpx import openapi --help")
}

func large(name string) *protocol.Error {
	return fail(tooLarge, fmt.Sprintf("The document %s is larger than %d bytes.", name, maxDocument), "give a document with fewer operations")
}

// parse reads the text as JSON when it begins like JSON, else as YAML.
func parse(src Source) (*jsondoc.Node, *protocol.Error) {
	text := bytes.TrimPrefix(src.Text, []byte("\xef\xbb\xbf"))
	body := bytes.TrimLeft(text, " \t\r\n")
	if len(body) == 0 {
		return nil, fail(badSyntax, fmt.Sprintf("The document %s is empty.", src.Name), "hcpx import openapi --help")
	}
	var root *jsondoc.Node
	if body[0] == '{' || body[0] == '[' {
		var faults []jsondoc.Fault
		if root, faults = jsondoc.Parse(text, jsondoc.Limits{Bytes: maxDocument, Depth: maxDepth}); len(faults) > 0 {
			line, column := jsondoc.Place(text, faults[0].Offset)
			return nil, fail(badSyntax, fmt.Sprintf("%s:%d:%d: %s", src.Name, line, column, faults[0].Message), "correct the document there")
		}
	} else {
		var err *yamlError
		if root, err = readYAML(text); err != nil {
			return nil, fail(badSyntax, fmt.Sprintf("%s:%d:%d: %s", src.Name, err.line, err.column, err.message), "correct the document there")
		}
	}
	return root, accepted(src, root)
}

// accepted says whether the document is one that is read: OpenAPI 3.0 or 3.1.
func accepted(src Source, root *jsondoc.Node) *protocol.Error {
	version, old := root.Get("openapi"), root.Get("swagger")
	switch {
	case root.Kind == jsondoc.Object && version == nil && old != nil:
		return fail(swagger2, fmt.Sprintf("%s is Swagger %s; OpenAPI 3.0 and 3.1 are read.", src.Name, jsondoc.Quote(old.Text)),
			"convert it to OpenAPI 3, then import that")
	case version == nil || version.Kind != jsondoc.String && version.Kind != jsondoc.Number:
		return fail(notOpenAPI, fmt.Sprintf("%s is no OpenAPI document: it has no member \"openapi\".", src.Name), "hcpx import openapi --help")
	case !supported(version.Text):
		return fail(notOpenAPI, fmt.Sprintf("%s is OpenAPI %s; 3.0 and 3.1 are read.", src.Name, jsondoc.Quote(version.Text)), "hcpx import openapi --help")
	}
	return nil
}

func supported(version string) bool {
	return version == "3.0" || version == "3.1" || strings.HasPrefix(version, "3.0.") || strings.HasPrefix(version, "3.1.")
}
