package lint

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"hcpx/internal/adapter"
	"hcpx/internal/jsondoc"
	"hcpx/internal/yamldoc"
)

// What is read of an OpenAPI document.
const (
	maxDocument = 64 << 20
	maxYAML     = 1 << 20
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
func operationsOfYAML(src []byte) (map[string]bool, error) {
	if len(src) > maxYAML {
		return nil, fmt.Errorf("is YAML of more than %d bytes; give it as JSON", maxYAML)
	}
	root, err := yamldoc.Parse(src, maxYAML)
	if err != nil {
		return nil, err
	}
	if version, ok := yamldoc.Scalar(yamldoc.Member(root, "openapi")); !ok || !supported(version) {
		return nil, errNoOpenAPI
	}
	ids := map[string]bool{}
	for _, p := range yamldoc.Pairs(yamldoc.Member(root, "paths")) {
		for _, method := range methods {
			if id, ok := yamldoc.Scalar(yamldoc.Member(yamldoc.Member(p.Value, method), "operationId")); ok {
				ids[id] = true
			}
		}
	}
	return ids, nil
}
