package imports

import (
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"

	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
)

// example is a call that fits the command's own arguments, of the document's examples where they fit; null when none was
// found.
func (b *builder) example(op *operation) *jsondoc.Node {
	schema := argsSchema(op.command.args)
	if schema == nil {
		return jsondoc.NullNode()
	}
	small := jsondoc.Obj()
	if usual := argsSchema(op.command.usual); usual != nil {
		small = usual.Example()
	}
	told := small
	for _, p := range op.params {
		if v := b.exampleOf(p.node, p.schema); v != nil && small.Has(p.arg) {
			told = told.With(p.arg, v)
		}
	}
	for _, e := range []*jsondoc.Node{told, small} {
		if e = mended(schema, e); len(schema.Validate(e)) == 0 && len(e.Append(nil)) < 2000 {
			return e
		}
	}
	return jsondoc.NullNode()
}

// argsSchema compiles arguments as the manifest's reader does; nil when it refuses them.
func argsSchema(args *jsondoc.Node) *manifest.Schema {
	verbs := object(member("x", object(member("summary", jsondoc.Str("x")), member("args", args))))
	m, _ := manifest.Decode(object(member("adapter", jsondoc.Str(manifest.OpenAPI)), member("verbs", verbs)).Append(nil))
	if m == nil || len(m.Commands) != 1 {
		return nil
	}
	schema, err := m.Commands[0].Args()
	if err != nil {
		return nil
	}
	return schema
}

// exampleOf is the example of a parameter, or of its schema.
func (b *builder) exampleOf(nodes ...*jsondoc.Node) *jsondoc.Node {
	for _, n := range nodes {
		n = b.follow(n)
		if v := n.Get("example"); v != nil {
			return v
		}
		for _, m := range fields(n.Get("examples")) {
			if v := b.follow(m.Value).Get("value"); v != nil {
				return v
			}
		}
	}
	return nil
}

// mended puts texts that fit in the place of those that do not.
func mended(schema *manifest.Schema, e *jsondoc.Node) *jsondoc.Node {
	for _, bad := range schema.Validate(e) {
		tokens, ok := jsondoc.Tokens(bad.Pointer)
		at := schema.Node()
		for _, t := range tokens {
			next := at.Get("properties").Get(t)
			if next == nil {
				next = at.Get("items")
			}
			at = next
		}
		if s, found := sampleText(at); ok && found && e.Lookup(bad.Pointer) != nil {
			e = put(e, tokens, jsondoc.Str(s))
		}
	}
	return e
}

// put is the value with another one at a place that it has.
func put(n *jsondoc.Node, tokens []string, v *jsondoc.Node) *jsondoc.Node {
	if len(tokens) == 0 {
		return v
	}
	inner := put(n.Child(tokens[0]), tokens[1:], v)
	if n.Kind == jsondoc.Object {
		return n.With(tokens[0], inner)
	}
	out := jsondoc.Arr(append([]*jsondoc.Node(nil), n.Items...)...)
	out.Items[jsondoc.Index(tokens[0])] = inner
	return out
}

// sampleText is a text that fits pattern and lengths of a schema of texts.
func sampleText(n *jsondoc.Node) (string, bool) {
	if t := n.Get("type"); t == nil || t.Kind == jsondoc.String && t.Text != "string" || n.Has("enum") {
		return "", false
	}
	least, most := bound(n, "minLength", 0), bound(n, "maxLength", 4096)
	pattern := text(n, "pattern")
	if pattern == "" {
		return strings.Repeat("x", min(max(3, least), most, 4096)), least <= most
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", false
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return "", false
	}
	for more := range min(least, 200) + 2 {
		s := spell(tree, more)
		if count := utf8.RuneCountInString(s); count > most {
			break
		} else if count >= least && re.MatchString(s) {
			return s, true
		}
	}
	return "", false
}

func bound(n *jsondoc.Node, key string, otherwise int) int {
	v := n.Get(key)
	if v == nil {
		return otherwise
	}
	i, err := strconv.Atoi(v.Text)
	if err != nil {
		return otherwise
	}
	return i
}

// spell writes a short text of an expression; what may be repeated is, more times than it must.
func spell(re *syntax.Regexp, more int) string {
	times := 1
	switch re.Op {
	case syntax.OpLiteral:
		return string(re.Rune)
	case syntax.OpCharClass:
		return string(plainOf(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return "x"
	case syntax.OpAlternate:
		return spell(re.Sub[0], more)
	case syntax.OpStar:
		times = more
	case syntax.OpPlus:
		times = max(more, 1)
	case syntax.OpQuest:
		times = 0
	case syntax.OpRepeat:
		if times = re.Min + more; re.Max >= 0 {
			times = min(times, re.Max)
		}
	case syntax.OpConcat, syntax.OpCapture:
	default:
		return ""
	}
	var b strings.Builder
	for _, sub := range re.Sub {
		if one := spell(sub, more); len(one)*times <= 8192 {
			b.WriteString(strings.Repeat(one, times))
		}
	}
	return b.String()
}

// plainOf is a character of a class, a plain one where there is one.
func plainOf(ranges []rune) rune {
	for _, want := range "a0Ax1B-_. " {
		for i := 0; i+1 < len(ranges); i += 2 {
			if ranges[i] <= want && want <= ranges[i+1] {
				return want
			}
		}
	}
	if len(ranges) == 0 {
		return 'x'
	}
	return ranges[0]
}
