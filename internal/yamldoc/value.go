package yamldoc

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"

	"hcpx/internal/jsondoc"
)

// maxValues bounds a document with what its aliases stand for, counted as often as they do: a short one could mean
// billions of values.
const maxValues = 2_000_000

// Value is the document as the JSON that it means, with places in src (§3.6). Keys are texts, as JSON has them; scalars
// are read by YAML 1.2's JSON schema, so yes is a text. An alias is the value that its anchor has, and the merge key << puts
// in what is not there yet. The error is the end of a sentence that begins with the document's name.
func Value(root Node, src []byte) (*jsondoc.Node, error) {
	v := valuer{src: string(src), anchors: map[string]*anchored{}, lines: []int{0}}
	for i, c := range v.src {
		if c == '\n' {
			v.lines = append(v.lines, i+1)
		}
	}
	n := v.value(root, 0)
	if v.fault != nil {
		return nil, v.fault
	}
	return n, nil
}

// anchored is a value that aliases may stand for; nil while it is being read.
type anchored struct {
	value *jsondoc.Node
	size  int
}

type valuer struct {
	src     string
	lines   []int // where each begins
	anchors map[string]*anchored
	count   int
	fault   error
}

func (v *valuer) fail(n Node, format string, args ...any) *jsondoc.Node {
	if v.fault == nil {
		line := 1
		if t := n.GetToken(); t != nil && t.Position != nil {
			line = t.Position.Line
		}
		v.fault = fmt.Errorf("is not taken at line %d: %s", line, fmt.Sprintf(format, args...))
	}
	return jsondoc.NullNode()
}

// value reads one node.
func (v *valuer) value(n Node, level int) *jsondoc.Node {
	if v.count++; v.count > maxValues || level > maxNesting {
		if v.fault == nil {
			v.fault = errors.New("means more than is read")
		}
	}
	if v.fault != nil || n == nil {
		return jsondoc.NullNode()
	}
	out := v.bare(n, level)
	if out.Offset == 0 {
		out.Offset = v.offset(n)
	}
	return out
}

func (v *valuer) bare(n Node, level int) *jsondoc.Node {
	switch s := n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return v.mapping(n, level)
	case *ast.SequenceNode:
		items := make([]*jsondoc.Node, len(s.Values))
		for i, item := range s.Values {
			items[i] = v.value(item, level+1)
		}
		return jsondoc.Arr(items...)
	case *ast.AnchorNode:
		return v.anchor(s, level)
	case *ast.AliasNode:
		return v.alias(s)
	case *ast.TagNode:
		return v.tagged(s, level)
	case *ast.NullNode:
		return jsondoc.NullNode()
	case *ast.BoolNode:
		return jsondoc.Boolean(s.Value)
	case *ast.IntegerNode, *ast.FloatNode:
		return numeral(n.GetToken().Value)
	case *ast.StringNode:
		return jsondoc.Str(s.Value)
	case *ast.LiteralNode:
		return jsondoc.Str(s.Value.Value)
	}
	if t := n.GetToken(); t != nil { // .inf and the like, which JSON does not have
		return jsondoc.Str(t.Value)
	}
	return v.fail(n, "it is nothing that JSON has")
}

// tagged: of the tags only !!str changes anything here.
func (v *valuer) tagged(n *ast.TagNode, level int) *jsondoc.Node {
	out := v.value(n.Value, level)
	if n.Start != nil && n.Start.Value == "!!str" && (out.Kind == jsondoc.Number || out.Kind == jsondoc.Bool) {
		return jsondoc.Str(out.Text)
	}
	return out
}

func (v *valuer) anchor(n *ast.AnchorNode, level int) *jsondoc.Node {
	name := ""
	if t := n.Name.GetToken(); t != nil {
		name = t.Value
	}
	v.anchors[name] = nil
	before := v.count
	out := v.value(n.Value, level)
	v.anchors[name] = &anchored{out, v.count - before}
	return out
}

func (v *valuer) alias(n *ast.AliasNode) *jsondoc.Node {
	name := ""
	if t := n.Value.GetToken(); t != nil {
		name = t.Value
	}
	a := v.anchors[name]
	if a == nil {
		return v.fail(n, "*%s stands for nothing that has ended before it", name)
	}
	if v.count += a.size; v.count > maxValues {
		return v.fail(n, "its aliases mean more than is read")
	}
	shared := *a.value
	return &shared
}

// mapping reads the pairs; a key that stands there twice is refused, as in JSON.
func (v *valuer) mapping(n Node, level int) *jsondoc.Node {
	out := jsondoc.Obj()
	have := map[string]bool{}
	var merged []*jsondoc.Node
	for _, p := range Pairs(n) {
		if _, merge := p.Key.(*ast.MergeKeyNode); merge {
			merged = append(merged, v.value(p.Value, level+1))
			continue
		}
		key, ok := Scalar(p.Key)
		switch {
		case !ok && Null(p.Key):
			key = "null"
		case !ok:
			return v.fail(p.Key, "a key is a text")
		}
		if have[key] {
			return v.fail(p.Key, "the key %s stands there twice", strconv.Quote(key))
		}
		have[key] = true
		out.Members = append(out.Members, jsondoc.Member{Key: key, Offset: v.offset(p.Key), Value: v.value(p.Value, level+1)})
	}
	for len(merged) > 0 {
		from := merged[0]
		merged = append(merged[1:], from.Items...)
		for _, m := range from.Members {
			if !have[m.Key] {
				have[m.Key] = true
				out.Members = append(out.Members, m)
			}
		}
	}
	return out
}

// offset is where a node begins in src.
func (v *valuer) offset(n Node) int {
	if pairs := Pairs(n); len(pairs) > 0 {
		if m, ok := n.(*ast.MappingNode); !ok || !m.IsFlowStyle {
			n = pairs[0].Key
		}
	}
	t := n.GetToken()
	if t == nil || t.Position == nil || t.Position.Line < 1 || t.Position.Line > len(v.lines) {
		return 0
	}
	at := v.lines[t.Position.Line-1]
	for range t.Position.Column - 1 {
		if at >= len(v.src) || v.src[at] == '\n' {
			break
		}
		_, size := utf8.DecodeRuneInString(v.src[at:])
		at += size
	}
	return at
}

// numeral is a number as JSON writes it, with its exact digits; what JSON cannot write is a text.
func numeral(text string) *jsondoc.Node {
	plain := strings.TrimPrefix(strings.ReplaceAll(text, "_", ""), "+")
	if jsonNumber(plain) {
		return jsondoc.Num(plain)
	}
	if n, err := strconv.ParseInt(plain, 0, 64); err == nil {
		return jsondoc.Num(strconv.FormatInt(n, 10))
	}
	for _, mended := range []string{"0" + plain, plain + "0", strings.TrimSuffix(plain, "."), strings.Replace(plain, "-.", "-0.", 1)} {
		if jsonNumber(mended) {
			return jsondoc.Num(mended)
		}
	}
	return jsondoc.Str(text)
}

func jsonNumber(s string) bool {
	n, faults := jsondoc.Parse([]byte(s), jsondoc.Limits{})
	return len(faults) == 0 && n.Kind == jsondoc.Number && s == n.Text
}
