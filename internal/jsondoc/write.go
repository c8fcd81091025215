package jsondoc

import (
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Append writes the value as compact JSON: members in their order, numbers by their literal (§6.5),
// valid UTF-8, no escapes but the needed ones. A nil Node is null.
func (n *Node) Append(dst []byte) []byte {
	return n.write(dst, func(dst []byte, literal string) []byte { return append(dst, literal...) }, false)
}

// Canonical writes the one text that all equal values share: members sorted by code point, numbers as
// exact plain decimals. Two values have the same Canonical when they are Equal, and only then.
func (n *Node) Canonical(dst []byte) []byte {
	return n.write(dst, func(dst []byte, literal string) []byte {
		if simpleInteger(literal) {
			return append(dst, literal...)
		}
		return decimalOf(literal).append(dst)
	}, true)
}

func (n *Node) write(dst []byte, number func([]byte, string) []byte, sorted bool) []byte {
	if n == nil {
		return append(dst, "null"...)
	}
	switch n.Kind {
	case Bool:
		return append(dst, n.Text...)
	case Number:
		return number(dst, n.Text)
	case String:
		return appendQuoted(dst, n.Text)
	case Array:
		dst = append(dst, '[')
		for i, item := range n.Items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.write(dst, number, sorted)
		}
		return append(dst, ']')
	case Object:
		members := n.Members
		if sorted && !slices.IsSortedFunc(members, byKey) {
			members = slices.SortedStableFunc(slices.Values(members), byKey)
		}
		dst = append(dst, '{')
		for i, m := range members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendQuoted(dst, m.Key), ':')
			dst = m.Value.write(dst, number, sorted)
		}
		return append(dst, '}')
	default:
		return append(dst, "null"...)
	}
}

// byKey orders by bytes, which for UTF-8 is the order of code points.
func byKey(a, b Member) int { return strings.Compare(a.Key, b.Key) }

func appendQuoted(dst []byte, s string) []byte {
	// The only error is invalid UTF-8, and the text written then has U+FFFD in its place.
	out, err := jsontext.AppendQuote(dst, s)
	if err != nil {
		out, _ = jsontext.AppendQuote(dst, strings.ToValidUTF8(s, "\uFFFD"))
	}
	return out
}

// Equal says whether two values are the same JSON value: numbers by value, members in any order.
func (n *Node) Equal(o *Node) bool {
	if n.kind() != o.kind() {
		return false
	}
	switch n.kind() {
	case Null:
		return true
	case Number:
		return n.Text == o.Text || decimalOf(n.Text).equal(decimalOf(o.Text))
	case Array:
		return slices.EqualFunc(n.Items, o.Items, (*Node).Equal)
	case Object:
		if len(n.Members) != len(o.Members) {
			return false
		}
		for _, m := range n.Members {
			if other := o.Get(m.Key); other == nil || !m.Value.Equal(other) {
				return false
			}
		}
		return true
	default:
		return n.Text == o.Text
	}
}

func (n *Node) kind() Kind {
	if n == nil {
		return Null
	}
	return n.Kind
}
