package jsondoc

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Str makes a string.
func Str(s string) *Node { return &Node{Kind: String, Text: s} }

// Num makes a number of a literal, which must have the form of a JSON number.
func Num(literal string) *Node { return &Node{Kind: Number, Text: literal} }

// Boolean makes true or false.
func Boolean(b bool) *Node { return &Node{Kind: Bool, Text: strconv.FormatBool(b)} }

// NullNode makes null.
func NullNode() *Node { return &Node{Kind: Null} }

// Arr makes an array.
func Arr(items ...*Node) *Node { return &Node{Kind: Array, Items: items} }

// Obj makes an object; the keys must differ.
func Obj(members ...Member) *Node { return &Node{Kind: Object, Members: members} }

// With is a copy of the object with the member set, at its old place or at the end.
func (n *Node) With(key string, value *Node) *Node {
	out := Node{Kind: Object}
	if n != nil && n.Kind == Object {
		out.Offset = n.Offset
		out.Members = slices.Clone(n.Members)
	}
	for i := range out.Members {
		if out.Members[i].Key == key {
			out.Members[i].Value = value
			return &out
		}
	}
	out.Members = append(out.Members, Member{Key: key, Value: value})
	return &out
}

// Without is a copy of the object that lacks the member.
func (n *Node) Without(key string) *Node {
	out := Obj()
	for _, m := range n.Members {
		if m.Key != key {
			out.Members = append(out.Members, m)
		}
	}
	return out
}

// Any is the value as map[string]any, []any, string, bool, json.Number or nil.
func (n *Node) Any() any {
	switch n.kind() {
	case Bool:
		return n.Text == "true"
	case Number:
		return json.Number(n.Text)
	case String:
		return n.Text
	case Array:
		out := make([]any, len(n.Items))
		for i, item := range n.Items {
			out[i] = item.Any()
		}
		return out
	case Object:
		out := make(map[string]any, len(n.Members))
		for _, m := range n.Members {
			out[m.Key] = m.Value.Any()
		}
		return out
	default:
		return nil
	}
}

// FromAny makes a Node of the types of Any and of Go's integers, finite floats and big integers. Members
// are sorted by key. Any other type is an error.
func FromAny(v any) (*Node, error) {
	switch v := v.(type) {
	case nil:
		return NullNode(), nil
	case *Node:
		return v, nil
	case bool:
		return Boolean(v), nil
	case string:
		return Str(strings.ToValidUTF8(v, "\uFFFD")), nil
	case []any:
		return fromSlice(v)
	case map[string]any:
		return fromMap(v)
	default:
		return fromNumber(v)
	}
}

func fromSlice(v []any) (*Node, error) {
	items := make([]*Node, len(v))
	for i := range v {
		var err error
		if items[i], err = FromAny(v[i]); err != nil {
			return nil, err
		}
	}
	return Arr(items...), nil
}

func fromMap(v map[string]any) (*Node, error) {
	members := make([]Member, 0, len(v))
	for _, key := range slices.Sorted(maps.Keys(v)) {
		value, err := FromAny(v[key])
		if err != nil {
			return nil, err
		}
		members = append(members, Member{Key: strings.ToValidUTF8(key, "\uFFFD"), Value: value})
	}
	return Obj(members...), nil
}

func fromNumber(v any) (*Node, error) {
	switch v := v.(type) {
	case int:
		return Num(strconv.Itoa(v)), nil
	case int64:
		return Num(strconv.FormatInt(v, 10)), nil
	case int8, int16, int32, uint, uint8, uint16, uint32, uint64:
		return Num(fmt.Sprint(v)), nil
	case *big.Int:
		if v == nil {
			return NullNode(), nil
		}
		return Num(v.String()), nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("%v is no JSON number", v)
		}
		return Num(jsontext.Float(v).String()), nil
	case json.Number:
		n, faults := Parse([]byte(v), Limits{})
		if len(faults) > 0 || n.Kind != Number || n.Text != string(v) {
			return nil, fmt.Errorf("%q is no JSON number", string(v))
		}
		return n, nil
	default:
		return nil, fmt.Errorf("a value of type %T is no JSON value", v)
	}
}
