package imports

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"hcpx/internal/jsondoc"
)

// flat is a schema without references, allOf, oneOf and anyOf: what they say together, or something looser. Everything
// that fits the schema fits its flat.
type flat struct {
	types    []string // nil: any
	enum     []*jsondoc.Node
	listed   bool // enum counts
	text     string
	fallback string // the default, as words
	keep     []jsondoc.Member
	props    []prop
	required []string
	item     *jsondoc.Node
	extra    *jsondoc.Node // additionalProperties; nil: nothing said
	readOnly bool
	secret   bool
	orNull   bool // nullable, whatever else says of the type
}

// prop is one property; its schema is not looked at before it is asked for.
type prop struct {
	name string
	node *jsondoc.Node
}

// kept are the keywords that are carried over as they stand, when their value has the right form.
var kept = [...]string{"format", "pattern", "minLength", "maxLength", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
	"multipleOf", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "contentEncoding", "contentMediaType"}

// formats are those that documents mean as the standard has it; any other is a hint at most.
var formats = [...]string{"date-time", "date", "uuid", "email", "uri", "ipv4", "ipv6", "hostname", "password", "binary", "byte"}

// flatten reads a schema. A schema that holds itself in place says nothing there.
func (d *document) flatten(n *jsondoc.Node) *flat {
	if n == nil || n.Kind != jsondoc.Object || d.work > maxWork {
		return &flat{}
	}
	if f, known := d.flats[n]; known {
		return f
	}
	d.flats[n] = &flat{} // while it is open
	own := d.own(n)
	f := own
	if ref := n.Get("$ref"); ref != nil && ref.Kind == jsondoc.String {
		f = both(d.flatten(d.target(ref.Text)), f)
	}
	for _, one := range items(n.Get("allOf")) {
		f = both(f, d.flatten(one))
	}
	for _, key := range [...]string{"oneOf", "anyOf"} {
		if list := items(n.Get(key)); len(list) > 0 {
			f = both(f, d.either(list))
		}
	}
	if own.orNull {
		f = f.withNull()
	}
	d.flats[n] = f
	return f
}

// withNull lets null in too.
func (f *flat) withNull() *flat {
	out := *f
	if len(f.types) > 0 && !slices.Contains(f.types, "null") {
		out.types = append(slices.Clone(f.types), "null")
	}
	if f.listed && !slices.ContainsFunc(f.enum, jsondoc.NullNode().Equal) {
		out.enum = append(slices.Clone(f.enum), jsondoc.NullNode())
	}
	return &out
}

// own is what the schema says beside its references and combinations.
func (d *document) own(n *jsondoc.Node) *flat {
	f := &flat{text: text(n, "description"), readOnly: yes(n, "readOnly"), secret: yes(n, "writeOnly"), orNull: yes(n, "nullable")}
	if f.text == "" {
		f.text = text(n, "title")
	}
	if v := n.Get("default"); v != nil && v.Kind != jsondoc.Null && v.Kind != jsondoc.Object && v.Kind != jsondoc.Array {
		f.fallback = string(v.Append(nil))
	}
	f.types = types(n)
	f.choices(n)
	for _, p := range fields(n.Get("properties")) {
		if p.Key != "" && (p.Value.Kind != jsondoc.Bool || p.Value.Text == "true") {
			f.props = append(f.props, prop{p.Key, p.Value})
		}
	}
	for _, r := range items(n.Get("required")) {
		if r.Kind == jsondoc.String && !slices.Contains(f.required, r.Text) {
			f.required = append(f.required, r.Text)
		}
	}
	if n.Get("prefixItems") == nil {
		f.item = schemaOf(n.Get("items"))
	}
	if n.Get("patternProperties") == nil && n.Get("unevaluatedProperties") == nil {
		f.extra = schemaOf(n.Get("additionalProperties"))
	}
	for _, key := range kept {
		if v := keyword(n, key); v != nil {
			f.keep = append(f.keep, member(key, v))
		}
	}
	return f
}

// schemaOf is a member that has the form of a schema.
func schemaOf(n *jsondoc.Node) *jsondoc.Node {
	if n == nil || n.Kind != jsondoc.Object && n.Kind != jsondoc.Bool {
		return nil
	}
	return n
}

var typeNames = [...]string{"string", "integer", "number", "boolean", "array", "object", "null"}

// types are those that the schema names, else what its keywords speak of.
func types(n *jsondoc.Node) []string {
	var out []string
	add := func(v *jsondoc.Node) {
		if v.Kind == jsondoc.String && slices.Contains(typeNames[:], v.Text) && !slices.Contains(out, v.Text) {
			out = append(out, v.Text)
		}
	}
	t := n.Get("type")
	if t != nil {
		add(t)
	}
	for _, one := range items(t) {
		add(one)
	}
	if t == nil {
		switch {
		case n.Get("properties") != nil || n.Get("additionalProperties") != nil:
			out = []string{"object"}
		case n.Get("items") != nil:
			out = []string{"array"}
		}
	}
	return out
}

// choices reads enum and const. What the type refuses anyway is left out, and a list of which nothing is left is a
// mistake of the document.
func (f *flat) choices(n *jsondoc.Node) {
	list := n.Get("enum")
	if c := n.Get("const"); c != nil {
		list = jsondoc.Arr(c)
	}
	for _, v := range items(list) {
		if fitsTypes(v, f.types) && !slices.ContainsFunc(f.enum, v.Equal) {
			f.enum = append(f.enum, v)
		}
	}
	f.listed = len(f.enum) > 0
}

func fitsTypes(v *jsondoc.Node, types []string) bool {
	if len(types) == 0 {
		return true
	}
	name := [...]string{jsondoc.Null: "null", jsondoc.Bool: "boolean", jsondoc.Number: "number", jsondoc.String: "string", jsondoc.Array: "array", jsondoc.Object: "object"}[v.Kind]
	return slices.Contains(types, name) || name == "number" && jsondoc.Integer(v.Text) && slices.Contains(types, "integer")
}

// keyword is the value of a keyword that is carried over; nil when it is absent or has no form that counts. The
// booleans that OpenAPI 3.0 has beside a bound become the bound.
func keyword(n *jsondoc.Node, key string) *jsondoc.Node {
	v := n.Get(key)
	switch key {
	case "minimum", "maximum":
		if yes(n, map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}[key]) {
			return nil
		}
	case "exclusiveMinimum", "exclusiveMaximum":
		if yes(n, key) {
			v = n.Get(map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}[key])
		}
	}
	if v == nil {
		return nil
	}
	ok := false
	switch key {
	case "format":
		ok = v.Kind == jsondoc.String && slices.Contains(formats[:], v.Text)
	case "pattern":
		ok = v.Kind == jsondoc.String && goodPattern(v.Text)
	case "contentEncoding", "contentMediaType":
		ok = v.Kind == jsondoc.String && v.Text != ""
	case "uniqueItems":
		ok = v.Kind == jsondoc.Bool && v.Text == "true"
	case "multipleOf":
		ok = v.Kind == jsondoc.Number && jsondoc.Compare(v.Text, "0") > 0
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		ok = v.Kind == jsondoc.Number
	default:
		_, err := strconv.Atoi(v.Text)
		ok = v.Kind == jsondoc.Number && err == nil && v.Text[0] != '-'
	}
	if !ok {
		return nil
	}
	return v
}

// goodPattern takes what Go reads the same way, and nothing that was written with the marks of another language.
func goodPattern(p string) bool {
	if len(p) == 0 || len(p) > 200 || strings.HasPrefix(p, "/") && len(p) > 1 && strings.Contains(p[1:], "/") {
		return false
	}
	_, err := regexp.Compile(p)
	return err == nil
}
