package openapi

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"hcpx/internal/jsondoc"
)

// Bounds of one derived schema: what lies deeper, or comes after, takes anything.
const (
	maxDepth   = 64
	maxSchemas = 1_500
)

// translator writes schemas of the document as JSON Schema 2020-12. What a reference names becomes a definition of its
// own, once, so that schemas that hold themselves end. A keyword whose value has the wrong form says nothing.
type translator struct {
	doc     *Document
	names   map[string]string // pointer in the document → name among the definitions
	taken   map[string]bool
	defs    []jsondoc.Member
	waiting []waiting
	count   int
	trouble error // the first
}

type waiting struct {
	name, pointer string
	node          *jsondoc.Node
}

func newTranslator(d *Document) *translator {
	return &translator{doc: d, names: map[string]string{}, taken: map[string]bool{}}
}

// finish translates what references named and gives all definitions.
func (t *translator) finish() *jsondoc.Node {
	for len(t.waiting) > 0 {
		w := t.waiting[0]
		t.waiting = t.waiting[1:]
		t.defs = append(t.defs, jsondoc.Member{Key: w.name, Value: t.schema(w.node, w.pointer, 0)})
	}
	return jsondoc.Obj(t.defs...)
}

// name gives the place that a reference names its name among the definitions.
func (t *translator) name(n *jsondoc.Node, pointer string) string {
	if name, ok := t.names[pointer]; ok {
		return name
	}
	tokens, _ := jsondoc.Tokens(pointer)
	name := "schema"
	if len(tokens) > 0 {
		name = strings.Map(plainRune, tokens[len(tokens)-1])
	}
	for base, i := name, 2; t.taken[name]; i++ {
		name = base + "_" + strconv.Itoa(i)
	}
	t.names[pointer], t.taken[name] = name, true
	t.waiting = append(t.waiting, waiting{name, pointer, n})
	return name
}

// plainRune keeps what needs no escape in a reference.
func plainRune(c rune) rune {
	if c < 0x80 && (c == '.' || c == '-' || c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
		return c
	}
	return '_'
}

// schema translates one schema.
func (t *translator) schema(n *jsondoc.Node, pointer string, depth int) *jsondoc.Node {
	if t.count++; n == nil || depth > maxDepth || t.count > maxSchemas || n.Kind != jsondoc.Object {
		return jsondoc.Boolean(n == nil || n.Kind != jsondoc.Bool || n.Text != "false")
	}
	out := jsondoc.Obj()
	if ref := n.Get("$ref"); ref != nil && ref.Kind == jsondoc.String {
		target, to := t.doc.target(ref.Text)
		if target == nil {
			if t.trouble == nil {
				_, _, t.trouble = t.doc.follow(n, pointer)
			}
			return jsondoc.Boolean(true)
		}
		out.Members = append(out.Members, jsondoc.Member{Key: "$ref", Value: jsondoc.Str("#/$defs/" + t.name(target, to))})
		if t.doc.old {
			return out
		}
	}
	for _, m := range n.Members {
		if v := t.keyword(n, m, jsondoc.Below(pointer, m.Key), depth); v != nil {
			out.Members = append(out.Members, jsondoc.Member{Key: m.Key, Value: v})
		}
	}
	if t.doc.old {
		out = bounds(n, out)
	}
	return t.nullable(n, out)
}

// keyword is the value of one keyword in 2020-12; nil drops it.
func (t *translator) keyword(n *jsondoc.Node, m jsondoc.Member, pointer string, depth int) *jsondoc.Node {
	switch m.Key {
	case "title", "description", "format", "contentEncoding", "contentMediaType":
		return ofKind(m.Value, jsondoc.String)
	case "default", "const":
		return m.Value
	case "deprecated", "readOnly", "writeOnly", "uniqueItems", "x-hcp-allow-dash":
		return ofKind(m.Value, jsondoc.Bool)
	case "type":
		return types(m.Value)
	case "enum", "examples":
		if m.Value.Kind == jsondoc.Array && len(m.Value.Items) > 0 {
			return m.Value
		}
	case "pattern":
		if m.Value.Kind == jsondoc.String && re2(m.Value.Text) {
			return m.Value
		}
	case "maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum":
		return ofKind(m.Value, jsondoc.Number)
	case "multipleOf":
		if m.Value.Kind == jsondoc.Number && jsondoc.Compare(m.Value.Text, "0") > 0 {
			return m.Value
		}
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains":
		if m.Value.Kind == jsondoc.Number && jsondoc.Integer(m.Value.Text) && jsondoc.Compare(m.Value.Text, "0") >= 0 {
			return m.Value
		}
	case "required":
		return t.required(n, m.Value)
	case "properties":
		return t.properties(m.Value, pointer, depth)
	default:
		return t.inner(m, pointer, depth)
	}
	return nil
}

// inner are the keywords that hold schemas.
func (t *translator) inner(m jsondoc.Member, pointer string, depth int) *jsondoc.Node {
	v := m.Value
	schema := v.Kind == jsondoc.Object || v.Kind == jsondoc.Bool
	switch m.Key {
	case "items", "additionalProperties", "not":
		if schema {
			return t.schema(v, pointer, depth+1)
		}
	case "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "if", "then", "else":
		if schema && !t.doc.old {
			return t.schema(v, pointer, depth+1)
		}
	case "allOf", "anyOf", "oneOf", "prefixItems":
		if v.Kind != jsondoc.Array || len(v.Items) == 0 || m.Key == "prefixItems" && t.doc.old {
			return nil
		}
		items := make([]*jsondoc.Node, len(v.Items))
		for i, item := range v.Items {
			items[i] = t.schema(item, jsondoc.Below(pointer, strconv.Itoa(i)), depth+1)
		}
		return jsondoc.Arr(items...)
	case "patternProperties", "dependentSchemas":
		if v.Kind != jsondoc.Object || t.doc.old {
			return nil
		}
		out := jsondoc.Obj()
		for _, p := range v.Members {
			if m.Key == "dependentSchemas" || re2(p.Key) {
				out.Members = append(out.Members, jsondoc.Member{Key: p.Key, Value: t.schema(p.Value, jsondoc.Below(pointer, p.Key), depth+1)})
			}
		}
		return out
	}
	return nil
}

// properties are those that a request may have: what is readOnly comes from the server alone.
func (t *translator) properties(v *jsondoc.Node, pointer string, depth int) *jsondoc.Node {
	if v.Kind != jsondoc.Object {
		return nil
	}
	out := jsondoc.Obj()
	for _, p := range v.Members {
		if !t.readOnly(p.Value) {
			out.Members = append(out.Members, jsondoc.Member{Key: p.Key, Value: t.schema(p.Value, jsondoc.Below(pointer, p.Key), depth+1)})
		}
	}
	return out
}

func (t *translator) readOnly(n *jsondoc.Node) bool {
	target, _, err := t.doc.follow(n, "")
	return isTrue(n.Get("readOnly")) || err == nil && isTrue(target.Get("readOnly"))
}

// required leaves out what is readOnly.
func (t *translator) required(n, v *jsondoc.Node) *jsondoc.Node {
	if v.Kind != jsondoc.Array {
		return nil
	}
	out := jsondoc.Arr()
	seen := map[string]bool{}
	for _, item := range v.Items {
		p := n.Get("properties").Get(item.Text)
		if item.Kind != jsondoc.String || seen[item.Text] || p != nil && t.readOnly(p) {
			continue
		}
		seen[item.Text] = true
		out.Items = append(out.Items, item)
	}
	return out
}

// types are the names that JSON Schema knows; a document may have others.
func types(v *jsondoc.Node) *jsondoc.Node {
	known := []string{"string", "number", "integer", "boolean", "array", "object", "null"}
	if v.Kind == jsondoc.String && slices.Contains(known, v.Text) {
		return v
	}
	out := jsondoc.Arr()
	seen := map[string]bool{}
	for _, item := range v.Items {
		if item.Kind != jsondoc.String || !slices.Contains(known, item.Text) {
			return nil
		}
		if !seen[item.Text] {
			seen[item.Text] = true
			out.Items = append(out.Items, item)
		}
	}
	if len(out.Items) == 0 {
		return nil
	}
	return out
}

// bounds: in 3.0 exclusiveMinimum says of minimum whether it is itself let in.
func bounds(n, out *jsondoc.Node) *jsondoc.Node {
	for _, pair := range [][2]string{{"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}} {
		if limit := out.Get(pair[0]); limit != nil && isTrue(n.Get(pair[1])) {
			out = out.Without(pair[0]).With(pair[1], limit)
		}
	}
	return out
}

// nullable is 3.0's way to let null in.
func (t *translator) nullable(n, out *jsondoc.Node) *jsondoc.Node {
	if !t.doc.old || !isTrue(n.Get("nullable")) {
		return out
	}
	null := jsondoc.Str("null")
	if typ := out.Get("type"); typ != nil && typ.Kind == jsondoc.String && !out.Has("allOf") && !out.Has("oneOf") && !out.Has("anyOf") && !out.Has("not") {
		out = out.With("type", jsondoc.Arr(typ, null))
		if enum := out.Get("enum"); enum != nil && !slices.ContainsFunc(enum.Items, func(v *jsondoc.Node) bool { return v.Kind == jsondoc.Null }) {
			out = out.With("enum", jsondoc.Arr(append(slices.Clone(enum.Items), jsondoc.NullNode())...))
		}
		return out
	}
	return jsondoc.Obj(jsondoc.Member{Key: "anyOf", Value: jsondoc.Arr(out, jsondoc.Obj(jsondoc.Member{Key: "type", Value: null}))})
}

func ofKind(v *jsondoc.Node, kind jsondoc.Kind) *jsondoc.Node {
	if v.Kind == kind {
		return v
	}
	return nil
}

func isTrue(v *jsondoc.Node) bool { return v != nil && v.Kind == jsondoc.Bool && v.Text == "true" }

func re2(pattern string) bool {
	_, err := regexp.Compile(pattern)
	return err == nil
}
