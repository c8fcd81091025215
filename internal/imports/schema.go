package imports

import (
	"slices"
	"strings"

	"hcpx/internal/jsondoc"
)

// shape is how much of a schema is written for a model.
type shape struct {
	depth int // levels of objects and arrays below an argument
	text  int // characters of an argument's description
	below int // and of what lies below it
	enum  int // values of an enum
	nodes int // schemas in all
}

// shapes are tried from the first on, until the command is small enough.
var shapes = [...]shape{
	{depth: 5, text: 300, below: 160, enum: 100, nodes: 250},
	{depth: 3, text: 200, below: 100, enum: 50, nodes: 250},
	{depth: 2, text: 120, below: 60, enum: 30, nodes: 250},
	{depth: 1, text: 80, enum: 12, nodes: 400},
	{depth: 0, text: 0, enum: 8, nodes: 1500},
}

// writer writes schemas in one shape.
type writer struct {
	*document
	shape
	left  int // schemas that may still be written
	open  []*jsondoc.Node
	files bool // bytes are given as files of the land (§3.6)
}

func (d *document) writer(s shape) *writer { return &writer{document: d, shape: s, left: s.nodes} }

// schema writes the schema of an argument, level 0, or of what lies below it. It has no $ref, no combination of schemas
// and no default: a default here would be sent, and the server's own need not be (§3.2).
func (w *writer) schema(n *jsondoc.Node, level int) *jsondoc.Node {
	return w.flat(n, w.flatten(n), level)
}

func (w *writer) flat(n *jsondoc.Node, f *flat, level int) *jsondoc.Node {
	w.left--
	root := w.follow(n)
	again := root != nil && slices.Contains(w.open, root)
	w.open = append(w.open, root)
	defer func() { w.open = w.open[:len(w.open)-1] }()
	out := &jsondoc.Node{Kind: jsondoc.Object}
	add := func(key string, v *jsondoc.Node) {
		if v != nil {
			out.Members = append(out.Members, member(key, v))
		}
	}
	add("type", typeNode(f.types))
	add("description", word(w.describe(f, level)))
	if f.listed && len(f.enum) <= w.enum {
		add("enum", jsondoc.Arr(f.enum...))
	}
	for _, m := range f.keep {
		add(m.Key, m.Value)
	}
	if f.secret {
		add("writeOnly", jsondoc.Boolean(true))
	}
	if again || level >= w.depth || w.left <= 0 {
		return out
	}
	if may(f, "array") && f.item != nil && f.item.Kind == jsondoc.Object {
		add("items", w.schema(f.item, level+1))
	}
	if may(f, "object") {
		w.object(f, level, add)
	}
	return out
}

// object writes the members of an object.
func (w *writer) object(f *flat, level int, add func(string, *jsondoc.Node)) {
	props, required := w.properties(f, level)
	if len(props) > 0 {
		add("properties", jsondoc.Obj(props...))
		add("required", wordList(required))
	}
	switch {
	case f.extra == nil:
	case f.extra.Kind == jsondoc.Object && len(f.extra.Members) > 0 && len(props) == 0:
		add("additionalProperties", w.schema(f.extra, level+1))
	case closes(f.extra) && len(props) == len(f.props):
		add("additionalProperties", f.extra)
	}
}

// properties are those of an object that a request may have, and which of them it must.
func (w *writer) properties(f *flat, level int) (props []jsondoc.Member, required []string) {
	for _, p := range f.props {
		if w.left <= 0 {
			break
		}
		if inner := w.flatten(p.node); inner.readOnly {
			continue
		}
		props = append(props, member(p.name, w.schema(p.node, level+1)))
		if slices.Contains(f.required, p.name) {
			required = append(required, p.name)
		}
	}
	return props, required
}

// may says whether a value may be of the type.
func may(f *flat, name string) bool { return len(f.types) == 0 || slices.Contains(f.types, name) }

func typeNode(types []string) *jsondoc.Node {
	switch len(types) {
	case 0:
		return nil
	case 1:
		return jsondoc.Str(types[0])
	}
	return wordList(types)
}

// describe is the description, with the server's default and what an enum that is too long begins with.
func (w *writer) describe(f *flat, level int) string {
	limit, file := w.text, ""
	if level > 0 {
		limit = w.below
	}
	if w.files && slices.ContainsFunc(f.keep, func(m jsondoc.Member) bool { return m.Key == "format" && m.Value.Text == "binary" }) {
		file = "A file: its path in the land."
	}
	if limit == 0 {
		return file
	}
	said := oneLine(f.text, limit)
	if f.fallback != "" && len(f.fallback) <= 40 {
		said = joined(said, "Default: "+f.fallback+".")
	}
	if f.listed && len(f.enum) > w.enum {
		var some []string
		for _, v := range f.enum[:min(5, len(f.enum))] {
			some = append(some, string(v.Append(nil)))
		}
		said = joined(said, "One of the API's values, as "+strings.Join(some, ", ")+".")
	}
	return joined(said, file)
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	if !strings.HasSuffix(a, ".") && !strings.HasSuffix(a, "…") {
		a += "."
	}
	return a + " " + b
}
