package wrap

import (
	"fmt"
	"slices"
	"strings"

	"hcpx/internal/adapter"
	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// form is what an element of the argv template is (§3.3).
type form uint8

const (
	text   form = iota // a string: one argv element
	group              // an array: kept or dropped as a whole
	branch             // if, then, else
	each               // once per item of an array argument
)

// element is one compiled element of the template.
type element struct {
	form      form
	parts     []part
	arg       string // branch and each
	body      []element
	otherwise []element
}

// part is a piece of a string: a literal, or a placeholder for an argument or for the item of an each.
type part struct {
	literal     string
	placeholder bool
	arg         string // "" = the item
	json        bool
	dash        bool // may begin an element with '-'
}

// scope is what surrounds an element while it is compiled.
type scope struct {
	array   *manifest.Property // the array whose items {} means; nil outside each
	guarded bool               // a literal "--" stands before
	stdin   bool               // no element of argv, so nothing reads it as an option
}

// compiler turns the JSON of a command into a template and collects every issue.
type compiler struct {
	schema *manifest.Schema
	issues []protocol.Issue
}

func (c *compiler) report(at adapter.Place, code protocol.IssueCode, format string, a ...any) {
	c.issues = append(c.issues, at.Issue(code, fmt.Sprintf(format, a...)))
}

// list compiles an array of elements. A literal "--" guards what follows it in the same list, and what is
// nested there.
func (c *compiler) list(at adapter.Place, n *jsondoc.Node, s scope) []element {
	if n == nil || n.Kind != jsondoc.Array {
		c.report(at, "manifest.schema", "An argv template is an array of strings, groups, and objects with if or each.")
		return nil
	}
	out := make([]element, 0, len(n.Items))
	for i, item := range n.Items {
		e := c.element(at.Item(n, i), item, s)
		s.guarded = s.guarded || e.isGuard()
		out = append(out, e)
	}
	return out
}

// isGuard says whether the element is the literal "--", which ends the options of a program.
func (e *element) isGuard() bool {
	return e.form == text && len(e.parts) == 1 && !e.parts[0].placeholder && e.parts[0].literal == "--"
}

func (c *compiler) element(at adapter.Place, n *jsondoc.Node, s scope) element {
	switch {
	case n.Kind == jsondoc.String:
		return element{form: text, parts: c.text(at, n.Text, s)}
	case n.Kind == jsondoc.Array:
		return element{form: group, body: c.list(at, n, s)}
	case n.Has("if") && !n.Has("each"):
		return c.branch(at, n, s)
	case n.Has("each") && !n.Has("if"):
		return c.each(at, n, s)
	}
	c.report(at, "manifest.schema", "An element of an argv template is a string, an array, or an object with either if or each.")
	return element{}
}

func (c *compiler) branch(at adapter.Place, n *jsondoc.Node, s scope) element {
	c.unknown(at, n, "if", "then", "else")
	e := element{form: branch, body: c.list(at.Member(n, "then"), n.Get("then"), s)}
	if otherwise := n.Get("else"); otherwise != nil {
		e.otherwise = c.list(at.Member(n, "else"), otherwise, s)
	}
	e.arg, _ = c.named(at.Member(n, "if"), n.Get("if"))
	return e
}

func (c *compiler) each(at adapter.Place, n *jsondoc.Node, s scope) element {
	c.unknown(at, n, "each", "argv")
	place := at.Member(n, "each")
	name, p := c.named(place, n.Get("each"))
	if p != nil && !only(p.Types, "array") {
		c.report(place, "wrap.placeholder", "each needs an array argument, and %q is not one.", name)
	}
	if p == nil {
		p = &manifest.Property{AllowDash: true} // reported; the body is still read, for its own issues
	}
	s.array = p
	return element{form: each, arg: name, body: c.list(at.Member(n, "argv"), n.Get("argv"), s)}
}

// named reads the name of a declared argument.
func (c *compiler) named(at adapter.Place, n *jsondoc.Node) (string, *manifest.Property) {
	if n.Kind != jsondoc.String {
		c.report(at, "manifest.schema", "The name of an argument is a string.")
		return "", nil
	}
	p := c.schema.Property(n.Text)
	if p == nil {
		c.report(at, "wrap.placeholder", "The command declares no argument %q.", n.Text)
	}
	return n.Text, p
}

// unknown warns of members that an element does not have; must_understand is what makes one count (§13.2).
func (c *compiler) unknown(at adapter.Place, n *jsondoc.Node, known ...string) {
	for _, m := range n.Members {
		if !slices.Contains(known, m.Key) {
			c.report(at.Key(n, m.Key), "manifest.unknown-field", "An element with %q has no member %q, and it is ignored.", known[0], m.Key)
		}
	}
}

// text compiles one string: {name}, {name|json}, {} and {|json} within each, {{ and }} for braces.
func (c *compiler) text(at adapter.Place, s string, sc scope) []part {
	var parts []part
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			parts = append(parts, part{literal: literal.String()})
			literal.Reset()
		}
	}
	if strings.ContainsRune(s, 0) {
		c.report(at, "manifest.schema", "A NUL character can't stand in an argument of a program.")
	}
	for rest := s; rest != ""; {
		i := strings.IndexAny(rest, "{}")
		if i < 0 {
			literal.WriteString(rest)
			break
		}
		literal.WriteString(rest[:i])
		brace := rest[i]
		rest = rest[i+1:]
		if rest != "" && rest[0] == brace {
			literal.WriteByte(brace)
			rest = rest[1:]
			continue
		}
		name, after, closed := strings.Cut(rest, "}")
		if brace == '}' || !closed || strings.Contains(name, "{") {
			c.report(at, "wrap.placeholder", "A brace stands alone; a literal one is written {{ or }}.")
			return nil
		}
		flush()
		parts = append(parts, c.placeholder(at, name, placing{sc, len(parts) == 0}))
		rest = after
	}
	if flush(); parts == nil {
		parts = []part{{}}
	}
	return parts
}

// placing is where a placeholder stands: its scope, and whether it begins the string.
type placing struct {
	scope
	first bool
}

func (c *compiler) placeholder(at adapter.Place, inner string, w placing) part {
	name, filter, filtered := strings.Cut(inner, "|")
	out := part{placeholder: true, arg: name, json: filter == "json"}
	if filtered && !out.json {
		c.report(at, "wrap.placeholder", "A placeholder knows the form {name|json}, and no %q.", filter)
		return out
	}
	p := c.meant(at, name, w)
	if p == nil {
		return out
	}
	out.dash = p.AllowDash || only(p.Types, "number", "integer")
	if name == "" {
		out.dash = out.dash || w.array.AllowDash
	}
	if !out.json && (slices.Contains(p.Types, "object") || slices.Contains(p.Types, "array")) {
		c.report(at, "wrap.placeholder", "{%s} may be an object or an array; write {%s|json}.", name, name)
	}
	if w.first && !w.stdin && !w.guarded && !out.dash && !out.json && free(p) {
		i := at.Issue("wrap.no-option-guard", fmt.Sprintf("{%s} begins an element before any \"--\"; a value that begins with a dash is refused.", name))
		i.Hint = fmt.Sprintf(`put "--" before it, or bind it as "--option={%s}"`, name)
		c.issues = append(c.issues, i)
	}
	return out
}

// meant is the argument, or the item, that a placeholder names. An argument is a declared one of the top
// level: {a.b} is the argument "a.b", not a member of a.
func (c *compiler) meant(at adapter.Place, name string, w placing) *manifest.Property {
	if name != "" {
		p := c.schema.Property(name)
		if p == nil {
			c.report(at, "wrap.placeholder", "The command declares no argument %q.", name)
		}
		return p
	}
	if w.array == nil {
		c.report(at, "wrap.placeholder", "{} is the item of an each, and there is none around it.")
		return nil
	}
	if w.array.Items == nil {
		return &manifest.Property{}
	}
	return w.array.Items
}

// free says whether the argument may be any string.
func free(p *manifest.Property) bool {
	if len(p.Enum) > 0 || (len(p.Types) > 0 && !slices.Contains(p.Types, "string")) {
		return false
	}
	return !p.Node.Has("const") && !p.Node.Has("pattern") && !p.Node.Has("format")
}

// only says whether types are known and none is outside names.
func only(types []string, names ...string) bool {
	for _, t := range types {
		if !slices.Contains(names, t) {
			return false
		}
	}
	return len(types) > 0
}
