package lint

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"hcpx/internal/adapter"
	"hcpx/internal/jsondoc"
)

// What is read of an OpenAPI document; how deep YAML may nest stands against documents that cost hours.
const (
	maxDocument = 64 << 20
	maxYAML     = 1 << 20
	maxNesting  = 1000
)

// methods are the members of a path that are operations.
var methods = [...]string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}

// openapi holds the pack to its document (§3.6): it is there, it is OpenAPI 3.0 or 3.1, and it has the
// operation of each command. The server is the manifest's own matter.
func (j *judge) openapi() {
	block := j.Manifest.OpenAPI
	if block == nil || block.Document == "" {
		return // manifest.adapter-block, manifest.schema
	}
	ids, err := j.operations(block.Document)
	if err != nil {
		at := adapter.Place{Manifest: j.Manifest, Offset: block.Node.Offset, Pointer: "/openapi"}.Member(block.Node, "document")
		j.add(at.Issue("openapi.document", fmt.Sprintf("%s %s.", jsondoc.Quote(block.Document), err)))
		return
	}
	for _, c := range j.Manifest.Commands {
		id := c.Node.Get("operation_id")
		at := adapter.CommandPlace(j.Manifest, c).Member(c.Node, "operation_id")
		switch {
		case id == nil:
			j.add(at.Issue("openapi.operation", fmt.Sprintf("The command %q names no operation_id.", c.Key)))
		case id.Kind != jsondoc.String || !ids[id.Text]:
			j.add(at.Issue("openapi.operation", fmt.Sprintf("The document has no operation %s.", jsondoc.Quote(id.Text))))
		}
	}
}

// operations are the operationIds of the document.
func (j *judge) operations(name string) (map[string]bool, error) {
	file := path.Clean(name)
	info, err := fs.Stat(j.FS, file)
	switch {
	case err != nil || !info.Mode().IsRegular():
		return nil, errors.New("is no file of the pack")
	case info.Size() > maxDocument:
		return nil, fmt.Errorf("is larger than %d bytes", maxDocument)
	}
	src, err := fs.ReadFile(j.FS, file)
	if err != nil {
		return nil, errors.New("changes while it is read")
	}
	switch path.Ext(file) {
	case ".json":
		return operationsOfJSON(src)
	case ".yaml", ".yml":
		return operationsOfYAML(src)
	}
	return nil, errors.New("is neither a .json nor a .yaml file")
}

func operationsOfJSON(src []byte) (map[string]bool, error) {
	root, faults := jsondoc.Parse(src, jsondoc.Limits{Bytes: maxDocument})
	if len(faults) > 0 || root.Kind != jsondoc.Object {
		return nil, errors.New("is not one JSON object")
	}
	version := root.Get("openapi")
	if version == nil || version.Kind != jsondoc.String || !supported(version.Text) {
		return nil, errNoOpenAPI
	}
	ids := map[string]bool{}
	if paths := root.Get("paths"); paths != nil {
		for _, p := range paths.Members {
			for _, method := range methods {
				if id := p.Value.Get(method).Get("operationId"); id != nil && id.Kind == jsondoc.String {
					ids[id.Text] = true
				}
			}
		}
	}
	return ids, nil
}

var errNoOpenAPI = errors.New("is not OpenAPI 3.0 or 3.1")

func supported(version string) bool {
	return version == "3.0" || version == "3.1" || strings.HasPrefix(version, "3.0.") || strings.HasPrefix(version, "3.1.")
}

// operationsOfYAML walks the syntax tree: no alias is expanded, so no document grows while it is read.
func operationsOfYAML(src []byte) (ids map[string]bool, err error) {
	if len(src) > maxYAML {
		return nil, fmt.Errorf("is YAML of more than %d bytes; give it as JSON", maxYAML)
	}
	if tooDeep(string(src)) {
		return nil, fmt.Errorf("nests deeper than %d", maxNesting)
	}
	// Lint answers whatever it is given (§14.2); the library is not known to.
	defer func() {
		if recover() != nil {
			ids, err = nil, errors.New("is not YAML that can be read")
		}
	}()
	file, fault := parser.ParseBytes(src, 0)
	if fault != nil || len(file.Docs) != 1 {
		return nil, errors.New("is not one YAML document")
	}
	root := file.Docs[0].Body
	if version, ok := scalar(member(root, "openapi")); !ok || !supported(version) {
		return nil, errNoOpenAPI
	}
	ids = map[string]bool{}
	for _, p := range pairs(member(root, "paths")) {
		for _, method := range methods {
			if id, ok := scalar(member(member(p.Value, method), "operationId")); ok {
				ids[id] = true
			}
		}
	}
	return ids, nil
}

// tooDeep bounds what makes the parser slow: brackets within brackets, and sequences begun on one line.
func tooDeep(src string) bool {
	depth := 0
	for line := range strings.Lines(src) {
		if strings.Count(line, "- ")+strings.Count(line, "? ") > maxNesting {
			return true
		}
		depth += strings.Count(line, "[") + strings.Count(line, "{")
		if depth > maxNesting {
			return true
		}
		depth = max(depth-strings.Count(line, "]")-strings.Count(line, "}"), 0)
	}
	return false
}

func pairs(n ast.Node) []*ast.MappingValueNode {
	switch m := n.(type) {
	case *ast.MappingNode:
		return m.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{m}
	case *ast.AnchorNode:
		return pairs(m.Value)
	}
	return nil
}

func member(n ast.Node, key string) ast.Node {
	for _, p := range pairs(n) {
		if name, ok := scalar(p.Key); ok && name == key {
			return p.Value
		}
	}
	return nil
}

// scalar is the text of a string; a version written as a number (3.1) is read as one too.
func scalar(n ast.Node) (string, bool) {
	switch s := n.(type) {
	case *ast.StringNode:
		return s.Value, true
	case *ast.LiteralNode:
		return s.Value.Value, true
	case *ast.FloatNode:
		return s.GetToken().Value, true
	}
	return "", false
}
