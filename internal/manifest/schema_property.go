package manifest

import (
	"strings"

	"hcpx/internal/jsondoc"
)

// Property is what a face needs to know of one argument: flags, completion, typing of k=v (§6.7, §12.1),
// and the argv template (§3.3). References are followed.
type Property struct {
	Name        string
	Node        *jsondoc.Node
	Types       []string // names of JSON Schema types; nil = any
	Required    bool
	Enum        []*jsondoc.Node
	Items       *Property   // of an array; nil when nothing is said
	Props       []*Property // of an object
	AllowDash   bool        // x-hcp-allow-dash (§3.3)
	Secret      bool        // writeOnly, or of format password: not shown in the audit (§15.4)
	Description string
}

// Properties are the arguments that the schema declares, in source order.
func (s *Schema) Properties() []*Property { return properties(s.rule, 0) }

// Property is the argument of that name; nil when the schema declares none.
func (s *Schema) Property(name string) *Property {
	for _, p := range s.rule.declared() {
		if p.name == name {
			return property(p, s.rule.requires(name), 0)
		}
	}
	return nil
}

// deepest is how far nested properties are described; schemas may hold themselves.
const deepest = 8

func properties(r *rule, level int) []*Property {
	var out []*Property
	for _, p := range r.declared() {
		out = append(out, property(p, r.requires(p.name), level))
	}
	return out
}

func property(p namedRule, required bool, level int) *Property {
	r := p.rule
	out := &Property{Name: p.name, Node: r.node, Required: required, Types: r.typeNames(), AllowDash: r.mark("x-hcp-allow-dash")}
	out.Enum = r.choices()
	if d := r.said("description"); d != nil && d.Kind == jsondoc.String {
		out.Description = d.Text
	}
	format := r.said("format")
	out.Secret = r.mark("writeOnly") || format != nil && format.Kind == jsondoc.String && format.Text == "password"
	if level >= deepest {
		return out
	}
	if items := r.itemRule(); items != nil {
		out.Items = property(namedRule{"", items}, false, level+1)
	}
	out.Props = properties(r, level+1)
	return out
}

// chain calls fn for the rule and what its references name, until fn is content.
func (r *rule) chain(fn func(r *rule) bool) {
	for range maxHops {
		if r == nil || fn(r) || r.logic == nil {
			return
		}
		r = r.logic.ref
	}
}

func (r *rule) said(keyword string) (out *jsondoc.Node) {
	r.chain(func(r *rule) bool { out = r.node.Get(keyword); return out != nil })
	return out
}

func (r *rule) mark(keyword string) bool {
	n := r.said(keyword)
	return n != nil && n.Kind == jsondoc.Bool && n.Text == "true"
}

func (r *rule) requires(name string) (required bool) {
	r.chain(func(r *rule) bool {
		if r.object != nil {
			for _, n := range r.object.required {
				required = required || n == name
			}
		}
		if r.logic != nil {
			for _, one := range r.logic.allOf {
				required = required || one.requires(name)
			}
		}
		return required
	})
	return required
}

func (r *rule) itemRule() (out *rule) {
	r.chain(func(r *rule) bool {
		if r.array != nil {
			out = r.array.items
		}
		return out != nil
	})
	return out
}

// choices are the values of an enum or a const.
func (r *rule) choices() (out []*jsondoc.Node) {
	r.chain(func(r *rule) bool {
		if out = r.enum; out == nil && r.constant != nil {
			out = []*jsondoc.Node{r.constant}
		}
		return out != nil
	})
	return out
}

// typeNames are the types that are named, else those of the enum's values, else those of all alternatives.
func (r *rule) typeNames() []string { return r.typeSet(maxHops).names() }

func (r *rule) typeSet(hops int) (out kinds) {
	r.chain(func(r *rule) bool {
		if hops <= 0 {
			return true
		}
		out = r.types
		for _, one := range r.alternatives() {
			set := one.typeSet(hops - 1)
			if set == 0 {
				out = 0
				return false
			}
			out |= set
		}
		return out != 0
	})
	if out != 0 {
		return out
	}
	for _, v := range r.choices() {
		k := kindOfNode(v)
		if k == kindNumber && jsondoc.Integer(v.Text) {
			k = kindInteger
		}
		out |= k
	}
	return out
}

func (r *rule) alternatives() []*rule {
	if r.types != 0 || r.logic == nil {
		return nil
	}
	if r.logic.anyOf != nil {
		return r.logic.anyOf
	}
	return r.logic.oneOf
}

// Example is a small value that should fit the schema: required members only, a default, an enum's first
// value or the shortest text for each (§6.3 step 5).
func (s *Schema) Example() *jsondoc.Node { return s.rule.example(0) }

func (r *rule) example(level int) *jsondoc.Node {
	if level > deepest {
		return jsondoc.NullNode()
	}
	for _, keyword := range []string{"default", "const"} {
		if v := r.said(keyword); v != nil {
			return v
		}
	}
	if list := r.choices(); len(list) > 0 {
		return list[0]
	}
	if list := r.said("examples"); list != nil && len(list.Items) > 0 {
		return list.Items[0]
	}
	names := r.typeNames()
	if len(names) == 0 {
		names = []string{"string"}
		if len(r.declared()) > 0 {
			names[0] = "object"
		}
	}
	return r.exampleOf(names[len(names)-1], level)
}

func (r *rule) exampleOf(kind string, level int) *jsondoc.Node {
	switch kind {
	case "null":
		return jsondoc.NullNode()
	case "boolean":
		return jsondoc.Boolean(true)
	case "integer", "number":
		return r.exampleNumber()
	case "array":
		return r.exampleArray(level)
	case "object":
		out := jsondoc.Obj()
		for _, p := range r.declared() {
			if r.requires(p.name) {
				out = out.With(p.name, p.rule.example(level+1))
			}
		}
		return out
	default:
		return jsondoc.Str(r.exampleText())
	}
}

// exampleNumber is 1, or the bound that keeps 1 out.
func (r *rule) exampleNumber() *jsondoc.Node {
	literal := "1"
	r.chain(func(r *rule) bool {
		n := r.number
		switch {
		case n == nil:
			return false
		case n.multipleOf != "":
			literal = n.multipleOf
		case n.minimum != "":
			literal = n.minimum
		case n.maximum != "" && jsondoc.Compare(n.maximum, literal) < 0:
			literal = n.maximum
		case n.exclusiveMinimum == "1":
			literal = "2"
		}
		return true
	})
	return jsondoc.Num(literal)
}

func (r *rule) exampleArray(level int) *jsondoc.Node {
	out, items := jsondoc.Arr(), r.itemRule()
	r.chain(func(r *rule) bool {
		if r.array == nil {
			return false
		}
		for len(out.Items) < min(r.array.min, 4) {
			item := jsondoc.Str("…")
			if i := len(out.Items); i < len(r.array.prefix) {
				item = r.array.prefix[i].example(level + 1)
			} else if items != nil {
				item = items.example(level + 1)
			}
			out.Items = append(out.Items, item)
		}
		return true
	})
	return out
}

func (r *rule) exampleText() string {
	format, shortest := "", 0
	r.chain(func(r *rule) bool {
		if format == "" {
			format = r.format
		}
		if r.text != nil {
			shortest = max(shortest, r.text.min)
		}
		return false
	})
	switch format {
	case "date-time":
		return "2026-01-31T12:00:00Z"
	case "date":
		return "2026-01-31"
	case "time":
		return "12:00:00Z"
	case "duration":
		return "PT1H"
	case "email", "idn-email":
		return "ada@example.org"
	case "hostname", "idn-hostname":
		return "example.org"
	case "ipv4":
		return "192.0.2.1"
	case "ipv6":
		return "2001:db8::1"
	case "uri", "iri", "uri-reference", "iri-reference":
		return "https://example.org/"
	case "uuid":
		return "123e4567-e89b-12d3-a456-426614174000"
	default:
		return strings.Repeat("x", min(max(shortest, 3), 64))
	}
}
