package imports

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"hcpx/internal/jsondoc"
)

// maxAliased bounds what aliases may add to a document.
const maxAliased = 300_000

// yamlError is why a text is no YAML document that is read, with its place.
type yamlError struct {
	line, column int
	message      string
}

// readYAML reads one document as JSON values. Aliases are followed, within a bound; a key that stands twice is refused,
// since nobody can say which one counts.
func readYAML(text []byte) (root *jsondoc.Node, bad *yamlError) {
	if !nestable(text) {
		return nil, &yamlError{1, 1, fmt.Sprintf("The document nests deeper than %d.", maxDepth)}
	}
	defer func() {
		if recover() != nil { // the library is not known to, whatever it is given
			root, bad = nil, &yamlError{1, 1, "The text is not YAML that can be read."}
		}
	}()
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, notYAML(err)
	}
	r := &yamlReader{left: maxAliased}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, &yamlError{1, 1, "The document is empty."}
	}
	root = r.value(doc.Content[0], 0)
	return root, r.bad
}

// nestable bounds brackets within brackets and sequences begun on one line, which cost the parser most.
func nestable(text []byte) bool {
	depth := 0
	for line := range strings.Lines(string(text)) {
		if strings.Count(line, "- ")+strings.Count(line, "? ") > maxDepth && !strings.ContainsAny(line, `"'`) {
			return false
		}
		depth = max(depth+strings.Count(line, "[")+strings.Count(line, "{")-strings.Count(line, "]")-strings.Count(line, "}"), 0)
		if depth > 20*maxDepth {
			return false
		}
	}
	return true
}

// notYAML says what the library found, at its place when it knows one.
func notYAML(err error) *yamlError {
	out := &yamlError{1, 1, "The text is not YAML here."}
	var many *yaml.LoadErrors
	if errors.As(err, &many) && len(many.Errors) > 0 {
		err = many.Errors[0]
	}
	var at *yaml.LoadError
	if errors.As(err, &at) {
		out.line, out.column = max(at.Mark.Line, 1), max(at.Mark.Column, 1)
	}
	return out
}

// yamlReader turns nodes into values.
type yamlReader struct {
	aliases int // that are open
	left    int // values that aliases may still add
	bad     *yamlError
}

func (r *yamlReader) refuse(n *yaml.Node, format string, args ...any) *jsondoc.Node {
	if r.bad == nil {
		r.bad = &yamlError{max(n.Line, 1), max(n.Column, 1), fmt.Sprintf(format, args...)}
	}
	return jsondoc.NullNode()
}

func (r *yamlReader) value(n *yaml.Node, level int) *jsondoc.Node {
	if r.aliases > 0 {
		r.left--
	}
	switch {
	case r.bad != nil:
		return jsondoc.NullNode()
	case level > maxDepth:
		return r.refuse(n, "The document nests deeper than %d.", maxDepth)
	case r.left < 0:
		return r.refuse(n, "The document's aliases make more than %d values.", maxAliased)
	}
	switch n.Kind {
	case yaml.AliasNode:
		r.aliases++
		v := r.value(n.Alias, level+1)
		r.aliases--
		return v
	case yaml.SequenceNode:
		items := make([]*jsondoc.Node, len(n.Content))
		for i, item := range n.Content {
			items[i] = r.value(item, level+1)
		}
		return jsondoc.Arr(items...)
	case yaml.MappingNode:
		return r.mapping(n, level)
	case yaml.ScalarNode:
		return scalar(n)
	}
	return r.refuse(n, "This is no value.")
}

func (r *yamlReader) mapping(n *yaml.Node, level int) *jsondoc.Node {
	out := &jsondoc.Node{Kind: jsondoc.Object}
	seen := map[string]bool{}
	var merged []jsondoc.Member
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Kind != yaml.ScalarNode {
			return r.refuse(key, "A key is a text.")
		}
		v := r.value(value, level+1)
		if key.ShortTag() == "!!merge" {
			merged = append(merged, members(v)...)
			continue
		}
		if seen[key.Value] {
			return r.refuse(key, "The mapping already has a member named %s.", jsondoc.Quote(key.Value))
		}
		seen[key.Value] = true
		out.Members = append(out.Members, jsondoc.Member{Key: key.Value, Value: v})
	}
	for _, m := range merged {
		if !seen[m.Key] {
			seen[m.Key] = true
			out.Members = append(out.Members, m)
		}
	}
	return out
}

// members are those of a mapping, or of each mapping in a list, as a merge key takes them.
func members(v *jsondoc.Node) []jsondoc.Member {
	if v.Kind != jsondoc.Array {
		return v.Members
	}
	var out []jsondoc.Member
	for _, item := range v.Items {
		out = append(out, item.Members...)
	}
	return out
}

// scalar is a value of JSON; what JSON has no form for, such as a date or .inf, stays the text that was written.
func scalar(n *yaml.Node) *jsondoc.Node {
	switch n.ShortTag() {
	case "!!null":
		return jsondoc.NullNode()
	case "!!bool":
		switch strings.ToLower(n.Value) {
		case "true", "false":
			return jsondoc.Boolean(strings.EqualFold(n.Value, "true"))
		}
	case "!!int", "!!float":
		if v, faults := jsondoc.Parse([]byte(n.Value), jsondoc.Limits{}); len(faults) == 0 && v.Kind == jsondoc.Number && v.Text == n.Value {
			return v
		}
		if whole, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 0, 64); err == nil {
			return jsondoc.Num(strconv.FormatInt(whole, 10))
		}
	}
	return jsondoc.Str(strings.ToValidUTF8(n.Value, "\uFFFD"))
}
