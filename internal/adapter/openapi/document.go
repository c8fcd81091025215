package openapi

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"
	"sync"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
	"hcpx/internal/yamldoc"
)

// What is read of a document. YAML is slow to read, and the slower the longer it is.
const (
	maxDocument = 64 << 20
	maxYAML     = 4 << 20
)

// maxHops is how many references in a row are followed.
const maxHops = 32

// Document is an OpenAPI document as read.
type Document struct {
	file   string
	root   *jsondoc.Node
	old    bool // 3.0, whose schemas are not yet JSON Schema
	places func() *jsondoc.Places
	spots  map[string][]spot // by operationId
}

// spot is where an operation stands.
type spot struct {
	path, method string
	item, node   *jsondoc.Node
	pointer      string // of node
	itemPointer  string
}

// trouble is something wrong in the document, with its place there; node nil is the document as a whole.
type trouble struct {
	code    protocol.IssueCode
	node    *jsondoc.Node
	pointer string
	message string
}

func (t *trouble) Error() string { return t.message }

// issue is the trouble as lint shows it.
func (d *Document) issue(t *trouble) protocol.Issue {
	i := protocol.NewIssue(t.code, d.file, t.message)
	i.Pointer = t.pointer
	if t.node != nil {
		i.Line, i.Column = d.places().Place(t.node.Offset)
	}
	return i
}

// methods are the members of a path that are operations.
func methods() []string {
	return []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}
}

// Read reads the document of that name (§3.6). What is wrong inside of it is issues with their places there; err is the end
// of a sentence that begins with the document's name, for what is no place in it.
func Read(files fs.FS, name string) (doc *Document, issues []protocol.Issue, err error) {
	file := path.Clean(name)
	src, err := load(files, file)
	if err != nil {
		return nil, nil, err
	}
	d := &Document{file: file, places: sync.OnceValue(func() *jsondoc.Places { return jsondoc.NewPlaces(src) })}
	switch path.Ext(file) {
	case ".json":
		issues = d.readJSON(src)
	case ".yaml", ".yml":
		err = d.readYAML(src)
	default:
		err = errors.New("is neither a .json nor a .yaml file")
	}
	if err != nil || len(issues) > 0 {
		return nil, issues, err
	}
	if d.root.Kind != jsondoc.Object {
		return nil, nil, errors.New("is not one object")
	}
	version := d.root.Get("openapi")
	if version == nil || version.Kind != jsondoc.String && version.Kind != jsondoc.Number || !supported(version.Text) {
		return nil, nil, errors.New("is not OpenAPI 3.0 or 3.1")
	}
	d.old = strings.HasPrefix(version.Text, "3.0")
	d.index()
	return d, nil, nil
}

func load(files fs.FS, file string) ([]byte, error) {
	info, err := fs.Stat(files, file)
	switch {
	case err != nil || !info.Mode().IsRegular():
		return nil, errors.New("is no file of the pack")
	case info.Size() > maxDocument:
		return nil, fmt.Errorf("is larger than %d bytes", maxDocument)
	}
	src, err := fs.ReadFile(files, file)
	if err != nil {
		return nil, errors.New("changes while it is read")
	}
	return src, nil
}

func (d *Document) readJSON(src []byte) (issues []protocol.Issue) {
	root, faults := jsondoc.Parse(src, jsondoc.Limits{Bytes: maxDocument})
	for _, f := range faults {
		i := protocol.NewIssue("openapi.document", d.file, f.Message)
		i.Line, i.Column = d.places().Place(f.Offset)
		i.Pointer = f.Pointer
		issues = append(issues, i)
	}
	d.root = root
	return issues
}

func (d *Document) readYAML(src []byte) error {
	if len(src) > maxYAML {
		return fmt.Errorf("is YAML of more than %d bytes; give it as JSON", maxYAML)
	}
	root, err := yamldoc.Parse(src, maxYAML)
	if err == nil {
		d.root, err = yamldoc.Value(root, src)
	}
	return err
}

func supported(version string) bool {
	return version == "3.0" || version == "3.1" || strings.HasPrefix(version, "3.0.") || strings.HasPrefix(version, "3.1.")
}

// index finds the operations by their ids.
func (d *Document) index() {
	d.spots = map[string][]spot{}
	paths := d.root.Get("paths")
	if paths == nil {
		return
	}
	for _, p := range paths.Members {
		item, at, err := d.follow(p.Value, jsondoc.Pointer("paths", p.Key))
		if err != nil || item.Kind != jsondoc.Object || strings.HasPrefix(p.Key, "x-") {
			continue // nothing there can be named
		}
		for _, method := range methods() {
			node := item.Get(method)
			id := node.Get("operationId")
			if id == nil || id.Kind != jsondoc.String {
				continue
			}
			d.spots[id.Text] = append(d.spots[id.Text], spot{path: p.Key, method: strings.ToUpper(method), item: item, node: node,
				pointer: jsondoc.Below(at, method), itemPointer: at})
		}
	}
}

// follow gives what a reference names, or the value itself; the pointer is where it stands.
func (d *Document) follow(n *jsondoc.Node, pointer string) (*jsondoc.Node, string, error) {
	from, at := n, pointer
	for range maxHops {
		ref := n.Get("$ref")
		if ref == nil || ref.Kind != jsondoc.String {
			return n, pointer, nil
		}
		target, to := d.target(ref.Text)
		if target == nil {
			return nil, "", &trouble{"openapi.document", ref, pointer + "/$ref", fmt.Sprintf("The reference %s names nothing in the document; only places inside it may be named.", jsondoc.Quote(ref.Text))}
		}
		n, pointer = target, to
	}
	return nil, "", &trouble{"openapi.document", from, at, "The reference leads to itself."}
}

// target is the place that a reference names: a JSON pointer into the document.
func (d *Document) target(ref string) (*jsondoc.Node, string) {
	fragment, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, ""
	}
	fragment, err := url.PathUnescape(fragment)
	if err != nil {
		return nil, ""
	}
	n := d.root.Lookup(fragment)
	return n, fragment
}

// member follows a member of an object; nil without a fault when it is absent.
func (d *Document) member(n *jsondoc.Node, pointer, key string) (*jsondoc.Node, string, error) {
	v := n.Get(key)
	if v == nil {
		return nil, "", nil
	}
	return d.follow(v, jsondoc.Below(pointer, key))
}
