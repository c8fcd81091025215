package manifest

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"hcpx/internal/jsondoc"
)

// badSchema is the code of everything a schema can have wrong (§3.2).
const badSchema = "manifest.args-schema"

// compiler turns a schema's Node into rules and gathers what is wrong with it, with places in the whole
// document: base is the pointer of the schema's root there.
type compiler struct {
	root    *jsondoc.Node
	base    string
	trail   []string // where we are below root
	faults  []jsondoc.Fault
	rules   []*rule
	pending []pendingRef
	at      *resource
	known   []*resource
	byNode  map[*jsondoc.Node]*rule // only once a reference is resolved
}

// pendingRef is a $ref that is looked up when all rules are made.
type pendingRef struct {
	rule    *rule
	ref     string
	offset  int
	pointer string
	at      *resource
}

// compile reads one schema. The rule is nil when there are faults.
func compile(root *jsondoc.Node, base string) (*rule, []jsondoc.Fault) {
	c := &compiler{root: root, base: base, at: &resource{node: root}}
	c.known = append(c.known, c.at)
	r := c.schema(root)
	c.resolve()
	if len(c.faults) == 0 {
		c.circles()
	}
	if len(c.faults) > 0 {
		return nil, c.faults
	}
	return r, nil
}

func (c *compiler) pointer() string { return c.base + jsondoc.Pointer(c.trail...) }

// bad notes a fault at the value where the compiler stands.
func (c *compiler) bad(n *jsondoc.Node, format string, args ...any) {
	c.faults = append(c.faults, jsondoc.Fault{Code: badSchema, Offset: n.Offset, Pointer: c.pointer(), Message: fmt.Sprintf(format, args...)})
}

// below runs fn one step further down.
func (c *compiler) below(token string, fn func()) {
	c.trail = append(c.trail, token)
	fn()
	c.trail = c.trail[:len(c.trail)-1]
}

// schema compiles one schema: true, false, or an object of keywords; unknown keywords are ignored.
func (c *compiler) schema(n *jsondoc.Node) *rule {
	r := &rule{node: n}
	c.rules = append(c.rules, r)
	switch {
	case n.Kind == jsondoc.Bool:
		r.verdict = never
		if n.Text == "true" {
			r.verdict = always
		}
		return r
	case n.Kind != jsondoc.Object:
		c.bad(n, "A schema is an object, true or false.")
		return r
	}
	outer := c.at
	c.enter(n)
	for i := range n.Members {
		m := &n.Members[i]
		c.trail = append(c.trail, m.Key)
		_ = c.core(r, m) || c.valueKeyword(r, m) || c.textKeyword(r, m) || c.arrayKeyword(r, m) || c.objectKeyword(r, m) || c.logicKeyword(r, m)
		c.trail = c.trail[:len(c.trail)-1]
	}
	c.at = outer
	return r
}

// core reads identifiers, references and annotations, as far as their form matters.
func (c *compiler) core(r *rule, m *jsondoc.Member) bool {
	switch m.Key {
	case "$ref":
		if s, ok := c.str(m.Value); ok {
			c.pending = append(c.pending, pendingRef{r, s, m.Value.Offset, c.pointer(), c.at})
		}
	case "$dynamicRef", "$recursiveRef":
		c.bad(m.Value, "%s is not taken here; name the schema with $ref.", m.Key)
	case "$schema":
		if s, ok := c.str(m.Value); ok && strings.TrimSuffix(s, "#") != "https://json-schema.org/draft/2020-12/schema" {
			c.bad(m.Value, "Schemas are JSON Schema 2020-12, not %s.", jsondoc.Quote(s))
		}
	case "$defs", "definitions":
		c.named(m.Value)
	case "$id", "$anchor", "$dynamicAnchor", "$comment", "title", "description", "contentEncoding", "contentMediaType":
		c.str(m.Value)
	case "format":
		r.format, _ = c.str(m.Value)
	case "contentSchema":
		c.schema(m.Value)
	case "deprecated", "readOnly", "writeOnly", "x-hcp-allow-dash":
		if m.Value.Kind != jsondoc.Bool {
			c.bad(m.Value, "%s is true or false.", m.Key)
		}
	case "examples":
		if m.Value.Kind != jsondoc.Array {
			c.bad(m.Value, "%s is an array.", m.Key)
		}
	default:
		return false
	}
	return true
}

// valueKeyword reads what applies to all values, and the bounds of numbers.
func (c *compiler) valueKeyword(r *rule, m *jsondoc.Member) bool {
	switch m.Key {
	case "type":
		r.types = c.types(m.Value)
	case "enum":
		if m.Value.Kind != jsondoc.Array {
			c.bad(m.Value, "enum is an array of values.")
		} else if r.enum = m.Value.Items; len(r.enum) == 0 {
			r.verdict = never
		}
	case "const":
		r.constant = m.Value
	case "multipleOf":
		if r.numbers().multipleOf = c.num(m.Value); r.number.multipleOf != "" && jsondoc.Compare(r.number.multipleOf, "0") <= 0 {
			c.bad(m.Value, "multipleOf is above zero.")
		}
	case "maximum":
		r.numbers().maximum = c.num(m.Value)
	case "exclusiveMaximum":
		r.numbers().exclusiveMaximum = c.num(m.Value)
	case "minimum":
		r.numbers().minimum = c.num(m.Value)
	case "exclusiveMinimum":
		r.numbers().exclusiveMinimum = c.num(m.Value)
	default:
		return false
	}
	return true
}

func (c *compiler) textKeyword(r *rule, m *jsondoc.Member) bool {
	switch m.Key {
	case "minLength":
		r.texts().min = c.count(m.Value)
	case "maxLength":
		r.texts().max = c.count(m.Value)
	case "pattern":
		if s, ok := c.str(m.Value); ok {
			r.texts().pattern = c.pattern(m.Value, s)
		}
	default:
		return false
	}
	return true
}

func (c *compiler) arrayKeyword(r *rule, m *jsondoc.Member) bool {
	switch m.Key {
	case "minItems":
		r.arrays().min = c.count(m.Value)
	case "maxItems":
		r.arrays().max = c.count(m.Value)
	case "minContains":
		r.arrays().minContains = c.count(m.Value)
	case "maxContains":
		r.arrays().maxContains = c.count(m.Value)
	case "uniqueItems":
		if m.Value.Kind != jsondoc.Bool {
			c.bad(m.Value, "uniqueItems is true or false.")
		}
		r.arrays().unique = m.Value.Text == "true"
	case "prefixItems":
		r.arrays().prefix = c.list(m.Value)
	case "items":
		if m.Value.Kind == jsondoc.Array {
			c.bad(m.Value, "items is one schema; a schema for each place stands in prefixItems.")
			break
		}
		r.arrays().items = c.schema(m.Value)
	case "contains":
		r.arrays().contains = c.schema(m.Value)
	case "unevaluatedItems":
		r.arrays().unevaluated = c.schema(m.Value)
	default:
		return false
	}
	return true
}

func (c *compiler) objectKeyword(r *rule, m *jsondoc.Member) bool {
	switch m.Key {
	case "minProperties":
		r.objects().min = c.count(m.Value)
	case "maxProperties":
		r.objects().max = c.count(m.Value)
	case "required":
		r.objects().required = c.strings(m.Value)
	case "properties":
		r.objects().properties = c.named(m.Value)
	case "patternProperties":
		for _, p := range c.named(m.Value) {
			c.below(p.name, func() {
				r.objects().patterns = append(r.objects().patterns, patternRule{c.pattern(p.rule.node, p.name), p.rule})
			})
		}
	case "additionalProperties":
		r.objects().additional = c.schema(m.Value)
	case "propertyNames":
		r.objects().names = c.schema(m.Value)
	case "unevaluatedProperties":
		r.objects().unevaluated = c.schema(m.Value)
	case "dependentSchemas":
		r.objects().dependentSchemas = c.named(m.Value)
	case "dependentRequired":
		if m.Value.Kind != jsondoc.Object {
			c.bad(m.Value, "dependentRequired is an object of arrays of names.")
			break
		}
		for _, d := range m.Value.Members {
			c.below(d.Key, func() {
				r.objects().dependentRequired = append(r.objects().dependentRequired, dependency{d.Key, c.strings(d.Value)})
			})
		}
	default:
		return false
	}
	return true
}

func (c *compiler) logicKeyword(r *rule, m *jsondoc.Member) bool {
	switch m.Key {
	case "allOf":
		r.logics().allOf = c.list(m.Value)
	case "anyOf":
		r.logics().anyOf = c.list(m.Value)
	case "oneOf":
		r.logics().oneOf = c.list(m.Value)
	case "not":
		r.logics().not = c.schema(m.Value)
	case "if":
		r.logics().when = c.schema(m.Value)
	case "then":
		r.logics().then = c.schema(m.Value)
	case "else":
		r.logics().otherwise = c.schema(m.Value)
	default:
		return false
	}
	return true
}

func (c *compiler) types(n *jsondoc.Node) kinds {
	names := []*jsondoc.Node{n}
	if n.Kind == jsondoc.Array {
		names = n.Items
	}
	var out kinds
	for i, name := range names {
		k := kinds(0)
		if name.Kind == jsondoc.String {
			k = kindOf(name.Text)
		}
		token := ""
		if n.Kind == jsondoc.Array {
			token = strconv.Itoa(i)
		}
		switch {
		case k == 0:
			c.badItem(name, token, "A type is one of %s.", strings.Join(typeNames[:], ", "))
		case out&k != 0:
			c.badItem(name, token, "The type %s is named twice.", name.Text)
		}
		out |= k
	}
	if n.Kind == jsondoc.Array && len(names) == 0 {
		c.bad(n, "type names at least one type.")
	}
	return out
}

func (c *compiler) badItem(n *jsondoc.Node, token, format string, args ...any) {
	if token == "" {
		c.bad(n, format, args...)
		return
	}
	c.below(token, func() { c.bad(n, format, args...) })
}

// str, num, count and strings read a keyword's value of one form.
func (c *compiler) str(n *jsondoc.Node) (string, bool) {
	if n.Kind != jsondoc.String {
		c.bad(n, "%s is a string.", c.keyword())
		return "", false
	}
	return n.Text, true
}

func (c *compiler) num(n *jsondoc.Node) string {
	if n.Kind != jsondoc.Number {
		c.bad(n, "%s is a number.", c.keyword())
		return ""
	}
	return n.Text
}

func (c *compiler) count(n *jsondoc.Node) int {
	if n.Kind != jsondoc.Number || !jsondoc.Integer(n.Text) || jsondoc.Compare(n.Text, "0") < 0 {
		c.bad(n, "%s is a whole number that is not negative.", c.keyword())
		return 0
	}
	v, err := strconv.Atoi(jsondoc.Plain(n.Text))
	if err != nil {
		return math.MaxInt
	}
	return v
}

func (c *compiler) strings(n *jsondoc.Node) []string {
	if n.Kind != jsondoc.Array {
		c.bad(n, "%s is an array of names.", c.keyword())
		return nil
	}
	out := make([]string, 0, len(n.Items))
	for i, item := range n.Items {
		switch {
		case item.Kind != jsondoc.String:
			c.badItem(item, strconv.Itoa(i), "A name is a string.")
		case slices.Contains(out, item.Text):
			c.badItem(item, strconv.Itoa(i), "The name %s stands there twice.", jsondoc.Quote(item.Text))
		default:
			out = append(out, item.Text)
		}
	}
	return out
}

func (c *compiler) keyword() string { return c.trail[len(c.trail)-1] }

// list compiles an array of schemas that is not empty.
func (c *compiler) list(n *jsondoc.Node) []*rule {
	if n.Kind != jsondoc.Array || len(n.Items) == 0 {
		c.bad(n, "%s is an array of at least one schema.", c.keyword())
		return nil
	}
	out := make([]*rule, len(n.Items))
	for i, item := range n.Items {
		c.below(strconv.Itoa(i), func() { out[i] = c.schema(item) })
	}
	return out
}

// named compiles an object of schemas.
func (c *compiler) named(n *jsondoc.Node) []namedRule {
	if n.Kind != jsondoc.Object {
		c.bad(n, "%s is an object of schemas.", c.keyword())
		return nil
	}
	out := make([]namedRule, len(n.Members))
	for i, m := range n.Members {
		c.below(m.Key, func() { out[i] = namedRule{m.Key, c.schema(m.Value)} })
	}
	return out
}

// pattern compiles a regular expression, which must be RE2 (§3.2).
func (c *compiler) pattern(n *jsondoc.Node, text string) *regexp.Regexp {
	re, err := regexp.Compile(text)
	if err != nil {
		c.bad(n, "The pattern %s is not RE2.", jsondoc.Quote(text))
	}
	return re
}
