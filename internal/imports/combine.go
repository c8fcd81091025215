package imports

import (
	"slices"

	"hcpx/internal/jsondoc"
)

// both is what fits a and b, or more: where the two can't be said as one, b's word counts, since what comes later in a
// document refines what came before.
func both(a, b *flat) *flat {
	out := &flat{text: b.text, fallback: b.fallback, types: meet(a.types, b.types), item: b.item, extra: b.extra,
		readOnly: a.readOnly || b.readOnly, secret: a.secret || b.secret}
	if out.text == "" {
		out.text = a.text
	}
	if out.fallback == "" {
		out.fallback = a.fallback
	}
	if out.item == nil {
		out.item = a.item
	}
	out.enum, out.listed = b.enum, b.listed
	if !b.listed {
		out.enum, out.listed = a.enum, a.listed
	}
	out.keep = slices.Clone(a.keep)
	for _, m := range b.keep {
		if i := slices.IndexFunc(out.keep, func(k jsondoc.Member) bool { return k.Key == m.Key }); i >= 0 {
			out.keep[i] = m
		} else {
			out.keep = append(out.keep, m)
		}
	}
	out.props = slices.Clone(a.props)
	at := index(out.props)
	for _, p := range b.props {
		if i, known := at[p.name]; !known {
			out.props = append(out.props, p)
		} else if says(p.node) {
			out.props[i] = p
		}
	}
	out.required = slices.Clone(a.required)
	for _, r := range b.required {
		if !slices.Contains(out.required, r) {
			out.required = append(out.required, r)
		}
	}
	// Each part closes itself alone: together they close nothing, unless one of them is all there is.
	if len(a.props) > 0 && len(b.props) > 0 && (closes(a.extra) || closes(b.extra)) || closes(out.extra) && len(b.props) < len(out.props) {
		out.extra = nil
	}
	if out.extra == nil && !closes(a.extra) {
		out.extra = a.extra
	}
	return out
}

func index(props []prop) map[string]int {
	at := make(map[string]int, len(props))
	for i, p := range props {
		at[p.name] = i
	}
	return at
}

// says whether a schema says anything of a value's form.
func says(n *jsondoc.Node) bool {
	return slices.ContainsFunc(fields(n), func(m jsondoc.Member) bool {
		return m.Key != "description" && m.Key != "title" && m.Key != "example" && m.Key != "examples"
	})
}

func closes(extra *jsondoc.Node) bool {
	return extra != nil && extra.Kind == jsondoc.Bool && extra.Text == "false"
}

// meet are the types of both; a list that would be empty is a mistake, and b's counts.
func meet(a, b []string) []string {
	if len(a) == 0 {
		return b
	}
	if len(b) == 0 {
		return a
	}
	var out []string
	for _, t := range a {
		if slices.Contains(b, t) || t == "integer" && slices.Contains(b, "number") {
			out = append(out, t)
		} else if t == "number" && slices.Contains(b, "integer") {
			out = append(out, "integer")
		}
	}
	if len(out) == 0 {
		return b
	}
	return out
}

// either is what fits one of the alternatives, or more.
func (d *document) either(list []*jsondoc.Node) *flat {
	var flats []*flat
	null := false
	for _, n := range list {
		f := d.flatten(n)
		if len(f.types) == 1 && f.types[0] == "null" {
			null = true
			continue
		}
		flats = append(flats, f)
	}
	var out *flat
	switch len(flats) {
	case 0:
		out = &flat{types: []string{"null"}}
	case 1:
		one := *flats[0]
		out = &one
	default:
		out = d.widest(flats)
	}
	if null {
		return out.withNull()
	}
	return out
}

// widest takes in every one of several flats.
func (d *document) widest(flats []*flat) *flat {
	out := &flat{types: slices.Clone(flats[0].types), listed: true, required: slices.Clone(flats[0].required)}
	typed, closed, objects := true, true, 0
	var item []*jsondoc.Node
	for _, f := range flats {
		typed = typed && len(f.types) > 0
		out.listed = out.listed && f.listed
		for _, t := range f.types {
			if !slices.Contains(out.types, t) {
				out.types = append(out.types, t)
			}
		}
		for _, v := range f.enum {
			if !slices.ContainsFunc(out.enum, v.Equal) {
				out.enum = append(out.enum, v)
			}
		}
		if out.text == "" {
			out.text = f.text
		}
		if len(f.types) == 0 || slices.Contains(f.types, "object") {
			objects++
			out.required = slices.DeleteFunc(out.required, func(r string) bool { return !slices.Contains(f.required, r) })
			closed = closed && closes(f.extra)
			if f.extra != nil && !closes(f.extra) {
				out.extra = jsondoc.Boolean(true)
			}
		} else {
			out.required = nil
		}
		if f.item != nil {
			item = append(item, f.item)
		}
		out.secret = out.secret || f.secret
	}
	if !typed {
		out.types = nil
	}
	if !out.listed {
		out.enum = nil
	}
	if closed && objects == len(flats) {
		out.extra = jsondoc.Boolean(false)
	}
	if slices.Contains(out.types, "number") {
		out.types = slices.DeleteFunc(out.types, func(t string) bool { return t == "integer" })
	}
	out.item = d.oneOf(item)
	out.props = d.merged(flats)
	return out
}

// merged are the properties of all; one that several have is any of theirs.
func (d *document) merged(flats []*flat) []prop {
	var names []string
	schemas := map[string][]*jsondoc.Node{}
	for _, f := range flats {
		d.work += len(f.props)
		for _, p := range f.props {
			if _, known := schemas[p.name]; !known {
				names = append(names, p.name)
			}
			schemas[p.name] = append(schemas[p.name], p.node)
		}
	}
	out := make([]prop, len(names))
	for i, name := range names {
		out[i] = prop{name, d.oneOf(schemas[name])}
	}
	return out
}

// maxAlternatives is how many a schema may have; with more it takes anything.
const maxAlternatives = 200

// oneOf is a schema for any of several; those that are the same count once, and those that were made here are taken
// apart, so that alternatives of alternatives stay as few as the document has schemas.
func (d *document) oneOf(list []*jsondoc.Node) *jsondoc.Node {
	var out []*jsondoc.Node
	nodes, refs := map[*jsondoc.Node]bool{}, map[string]bool{}
	var add func(n *jsondoc.Node)
	add = func(n *jsondoc.Node) {
		if d.made[n] {
			for _, inner := range n.Get("anyOf").Items {
				add(inner)
			}
			return
		}
		ref := ""
		if n.Kind == jsondoc.Object && len(n.Members) == 1 {
			ref = text(n, "$ref")
		}
		if nodes[n] || ref != "" && refs[ref] {
			return
		}
		nodes[n], refs[ref] = true, true
		out = append(out, n)
	}
	for _, n := range list {
		add(n)
	}
	switch {
	case len(out) == 0:
		return nil
	case len(out) == 1:
		return out[0]
	case len(out) > maxAlternatives:
		return jsondoc.Obj()
	}
	made := object(member("anyOf", jsondoc.Arr(out...)))
	d.made[made] = true
	return made
}
