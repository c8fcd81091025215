package openapi

import (
	"slices"

	"hcpx/internal/jsondoc"
)

// lifting is a body whose members become arguments of their own.
type lifting struct {
	properties []jsondoc.Member
	required   []string
	additional *jsondoc.Node    // what other members may be; nil = anything
	alongside  []jsondoc.Member // keywords that say which members must be there
}

// derive makes the schema of the arguments (§3.6): parameters by name, the body as body, or its members beside them.
func (r *reading) derive() error {
	properties, required := jsondoc.Obj(), []string{}
	add := func(name string, schema *jsondoc.Node) {
		properties.Members = append(properties.Members, jsondoc.Member{Key: name, Value: schema})
	}
	for _, p := range r.op.params {
		add(p.arg, described(r.schema[p.in+" "+p.name], r.notes[p.in+" "+p.name]))
		if p.required {
			required = append(required, p.arg)
		}
	}
	out := jsondoc.Obj(jsondoc.Member{Key: "type", Value: jsondoc.Str("object")}, jsondoc.Member{Key: "properties", Value: properties})
	additional := jsondoc.Boolean(false)
	switch b := r.op.body; {
	case b == nil:
	case !b.lifted:
		add(b.arg, r.schema[" body"])
		if b.required {
			required = append(required, b.arg)
		}
	default:
		properties.Members = append(properties.Members, r.lifted.properties...)
		additional = r.lifted.additional
		out.Members = append(out.Members, r.lifted.alongside...)
		if b.required {
			for _, name := range r.lifted.required {
				if !slices.Contains(required, name) {
					required = append(required, name)
				}
			}
		} else if depend := r.lifted.together(); depend != nil {
			out.Members = append(out.Members, jsondoc.Member{Key: "dependentRequired", Value: depend})
		}
	}
	if len(required) > 0 {
		out.Members = append(out.Members, jsondoc.Member{Key: "required", Value: texts(required)})
	}
	if additional != nil {
		out.Members = append(out.Members, jsondoc.Member{Key: "additionalProperties", Value: additional})
	}
	if defs := r.tr.finish(); len(defs.Members) > 0 {
		out.Members = append(out.Members, jsondoc.Member{Key: "$defs", Value: defs})
	}
	r.op.args = out
	return r.tr.trouble
}

// together says of a body that may be left out: whoever gives one of its members gives those that it requires.
func (l *lifting) together() *jsondoc.Node {
	if len(l.required) == 0 {
		return nil
	}
	out := jsondoc.Obj()
	for _, p := range l.properties {
		out.Members = append(out.Members, jsondoc.Member{Key: p.Key, Value: texts(l.required)})
	}
	return out
}

// described gives a parameter's schema the parameter's description, which says more than that of its type.
func described(schema, note *jsondoc.Node) *jsondoc.Node {
	if note == nil || note.Kind != jsondoc.String || schema.Kind != jsondoc.Object {
		return schema
	}
	return schema.With("description", note)
}

func texts(list []string) *jsondoc.Node {
	out := jsondoc.Arr()
	for _, s := range list {
		out.Items = append(out.Items, jsondoc.Str(s))
	}
	return out
}

// lift takes a body's members out of it, when it is an object that can be told by them: nil when it is none, when its
// alternatives differ, or when a name is taken.
func (r *reading) lift(schema *jsondoc.Node, at string) *lifting {
	l := &lifting{}
	if schema == nil || !r.gather(schema, at, l, 0) || len(l.properties) == 0 {
		return nil
	}
	for _, p := range l.properties {
		if slices.ContainsFunc(r.op.params, func(q param) bool { return q.arg == p.Key }) {
			return nil
		}
	}
	if slices.ContainsFunc(l.properties, func(p jsondoc.Member) bool { return p.Key == r.op.body.arg }) {
		r.op.body.arg = "" // the name is a member's
	}
	return l
}

// gather reads one schema of an object through references and allOf; false when it says what no list of members does.
func (r *reading) gather(schema *jsondoc.Node, at string, l *lifting, depth int) bool {
	n, to, err := r.doc.follow(schema, at)
	if err != nil || depth > 8 || n.Kind != jsondoc.Object || !r.doc.old && n.Has("$ref") || isTrue(n.Get("nullable")) {
		return false
	}
	for _, m := range n.Members {
		pointer := jsondoc.Below(to, m.Key)
		switch m.Key {
		case "type":
			if m.Value.Kind != jsondoc.String || m.Value.Text != "object" {
				return false
			}
		case "properties":
			if !r.gatherProperties(m.Value, pointer, l) {
				return false
			}
		case "required":
			if list := r.tr.required(n, m.Value); list != nil {
				for _, name := range list.Items {
					if !slices.Contains(l.required, name.Text) {
						l.required = append(l.required, name.Text)
					}
				}
			}
		case "allOf":
			if m.Value.Kind != jsondoc.Array {
				return false
			}
			for _, item := range m.Value.Items {
				if !r.gather(item, pointer, l, depth+1) {
					return false
				}
			}
		case "additionalProperties":
			if depth > 0 && !isTrue(m.Value) {
				return false
			}
			if !isTrue(m.Value) {
				l.additional = r.tr.schema(m.Value, pointer, 0)
			}
		case "anyOf", "oneOf":
			if !onlyRequired(m.Value) || depth > 0 {
				return false
			}
			l.alongside = append(l.alongside, jsondoc.Member{Key: m.Key, Value: m.Value})
		case "minProperties", "maxProperties", "patternProperties", "propertyNames", "dependentSchemas", "dependentRequired", "unevaluatedProperties", "not", "if", "then", "else", "enum", "const":
			return false
		}
	}
	return true
}

// onlyRequired are alternatives that say which members must be there, and nothing else.
func onlyRequired(list *jsondoc.Node) bool {
	if list.Kind != jsondoc.Array || len(list.Items) == 0 {
		return false
	}
	for _, item := range list.Items {
		names := item.Get("required")
		if item.Kind != jsondoc.Object || len(item.Members) != 1 || names == nil || names.Kind != jsondoc.Array {
			return false
		}
		seen := map[string]bool{}
		for _, name := range names.Items {
			if name.Kind != jsondoc.String || seen[name.Text] {
				return false
			}
			seen[name.Text] = true
		}
	}
	return true
}

// gatherProperties adds members; one that several schemas declare must fit all of them.
func (r *reading) gatherProperties(v *jsondoc.Node, at string, l *lifting) bool {
	translated := r.tr.properties(v, at, 0)
	if translated == nil {
		return false
	}
	for _, m := range translated.Members {
		m.Value = r.fileSchema(m.Key, m.Value)
		i := slices.IndexFunc(l.properties, func(p jsondoc.Member) bool { return p.Key == m.Key })
		if i < 0 {
			l.properties = append(l.properties, m)
			continue
		}
		l.properties[i].Value = jsondoc.Obj(jsondoc.Member{Key: "allOf", Value: jsondoc.Arr(l.properties[i].Value, m.Value)})
	}
	return true
}

// fileSchema is the schema of an argument that names a file of the land.
func (r *reading) fileSchema(name string, schema *jsondoc.Node) *jsondoc.Node {
	if !r.op.body.fields[name].file {
		return schema
	}
	note := jsondoc.Str("A file: its path in the land.")
	if d := schema.Get("description"); d != nil {
		note = jsondoc.Str(d.Text + " (a file: its path in the land)")
	}
	one := jsondoc.Obj(jsondoc.Member{Key: "type", Value: jsondoc.Str("string")}, jsondoc.Member{Key: "description", Value: note})
	if typ := schema.Get("type"); typ != nil && typ.Text == "array" {
		return jsondoc.Obj(jsondoc.Member{Key: "type", Value: typ}, jsondoc.Member{Key: "items", Value: one})
	}
	return one
}
