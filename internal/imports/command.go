package imports

import (
	"hcpx/internal/jsondoc"
)

// The most bytes that a command's arguments take: in each shape but the last, and in all.
const (
	maxArgs     = 16 << 10
	maxLastArgs = 48 << 10
)

// command is what an operation becomes: its arguments as a model sees them, and the schemas of its parameters and body,
// which are the same.
type command struct {
	args    *jsondoc.Node
	usual   *jsondoc.Node // the arguments of a call that has a body, for the example
	params  []*jsondoc.Node
	body    *jsondoc.Node
	example *jsondoc.Node
	size    int
	shape   int // of shapes
}

// compile writes a command in the first shape from the given one on in which it is small. false: it is in none.
func (b *builder) compile(op *operation, from int) bool {
	for i := from; i < len(shapes); i++ {
		w := b.writer(shapes[i])
		c := b.arguments(w, op)
		limit := maxArgs
		if i == len(shapes)-1 {
			limit = maxLastArgs
		}
		if w.left > 0 && c.size <= limit {
			c.shape, op.command = i, c
			return true
		}
	}
	if op.body == nil || !op.body.lifted {
		return false
	}
	// The names alone are too many: the body is one argument, as the API's own pages have it.
	op.body.lifted, op.body.schema = false, object(member("type", jsondoc.Str("object")))
	return b.compile(op, len(shapes)-1)
}

// arguments writes the parameters and the body.
func (b *builder) arguments(w *writer, op *operation) command {
	var c command
	var props []jsondoc.Member
	var required []string
	var together *jsondoc.Node
	usual := []string{} // of a body that may be left out
	for _, p := range op.params {
		f := *w.flatten(p.schema)
		if said := text(p.node, "description"); said != "" {
			f.text = said
		}
		schema := w.flat(p.schema, &f, 0)
		c.params = append(c.params, schema)
		props = append(props, member(p.arg, schema))
		if p.required {
			required = append(required, p.arg)
		}
	}
	if op.body != nil {
		inner, needed := b.bodyArguments(w, op.body, &c)
		if op.body.lifted && !op.body.required { // it may be left out, whole
			together, usual, needed = dependent(inner, needed), needed, nil
		}
		props, required = append(props, inner...), append(required, needed...)
	}
	c.args = object(member("type", jsondoc.Str("object")))
	if len(props) > 0 {
		c.args.Members = append(c.args.Members, member("properties", jsondoc.Obj(props...)))
	}
	if len(required) > 0 {
		c.args.Members = append(c.args.Members, member("required", wordList(required)))
	}
	if together != nil {
		c.args.Members = append(c.args.Members, member("dependentRequired", together))
	}
	c.args.Members = append(c.args.Members, member("additionalProperties", jsondoc.Boolean(false)))
	c.size = len(c.args.Append(nil))
	if c.usual = c.args; len(usual) > 0 {
		c.usual = c.args.With("required", wordList(append(required, usual...)))
	}
	return c
}

// maxTogether bounds how many names say which members of a body go together; beyond it the API alone says.
const maxTogether = 100

// dependent says of a body that may be left out: whoever gives one of its members gives those that it requires (§3.6). nil: nothing.
func dependent(props []jsondoc.Member, needed []string) *jsondoc.Node {
	if len(needed) == 0 || len(props)*len(needed) > maxTogether {
		return nil
	}
	out := object()
	for _, p := range props {
		if len(needed) > 1 || needed[0] != p.Key {
			out.Members = append(out.Members, member(p.Key, wordList(needed)))
		}
	}
	if len(out.Members) == 0 {
		return nil
	}
	return out
}

// bodyArguments are those of the body: its properties, or the one named body.
func (b *builder) bodyArguments(w *writer, body *body, c *command) (props []jsondoc.Member, required []string) {
	f := *w.flatten(body.schema)
	w.files = body.kind == multipartBody
	if body.lifted {
		props, required = w.properties(&f, -1)
		c.body = object(member("type", jsondoc.Str("object")), member("properties", jsondoc.Obj(props...)), member("required", wordList(required)))
		return props, required
	}
	if f.text == "" {
		f.text = body.text
	}
	switch body.kind {
	case textBody:
		f.types, f.props, f.item, f.extra = []string{"string"}, nil, nil, nil
	case binaryBody:
		f = flat{text: joined(f.text, `The content as text, or {"file": "PATH"} for a file of the land.`), types: []string{"string", "object"},
			props: []prop{{"file", object(member("type", jsondoc.Str("string")))}}}
	}
	schema := w.flat(body.schema, &f, 0)
	c.body = whole(schema)
	if body.required {
		required = []string{"body"}
	}
	return []jsondoc.Member{member("body", schema)}, required
}

// whole is the schema of a body that is one argument: as it stands, but without properties, by which it could be taken
// for one whose properties are arguments (§3.6).
func whole(schema *jsondoc.Node) *jsondoc.Node {
	out := &jsondoc.Node{Kind: jsondoc.Object}
	for _, m := range schema.Members {
		if m.Key != "properties" && m.Key != "required" {
			out.Members = append(out.Members, m)
		}
	}
	return out
}
