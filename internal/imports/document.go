package imports

import (
	"net/url"
	"strings"

	"hcpx/internal/jsondoc"
)

// document is the text as values, with its references.
type document struct {
	root  *jsondoc.Node
	refs  map[string]*jsondoc.Node // what each $ref names; nil for nothing
	flats map[*jsondoc.Node]*flat
	made  map[*jsondoc.Node]bool // alternatives that no one wrote as such
	work  int                    // properties that were brought together
}

// maxWork bounds what is brought together: what a document has beyond it takes anything.
const maxWork = 20_000_000

func newDocument(root *jsondoc.Node) *document {
	return &document{root: root, refs: map[string]*jsondoc.Node{}, flats: map[*jsondoc.Node]*flat{}, made: map[*jsondoc.Node]bool{}}
}

// maxHops is how many references in a row are followed.
const maxHops = 32

// follow is the value itself, or what its $ref names; nil when that is nothing in this document.
func (d *document) follow(n *jsondoc.Node) *jsondoc.Node {
	for range maxHops {
		ref := n.Get("$ref")
		if ref == nil || ref.Kind != jsondoc.String {
			return n
		}
		n = d.target(ref.Text)
	}
	return nil
}

// target is the value at a reference within the document; nil for anything else.
func (d *document) target(ref string) *jsondoc.Node {
	if n, known := d.refs[ref]; known {
		return n
	}
	var n *jsondoc.Node
	if fragment, inside := strings.CutPrefix(ref, "#"); inside {
		if plain, err := url.PathUnescape(fragment); err == nil {
			n = d.root.Lookup(plain)
		}
		if n == nil {
			n = d.root.Lookup(fragment)
		}
	}
	d.refs[ref] = n
	return n
}

// text is a member that is a string; "" otherwise.
func text(n *jsondoc.Node, key string) string {
	if v := n.Get(key); v != nil && v.Kind == jsondoc.String {
		return v.Text
	}
	return ""
}

// yes says whether a member is true.
func yes(n *jsondoc.Node, key string) bool {
	v := n.Get(key)
	return v != nil && v.Kind == jsondoc.Bool && v.Text == "true"
}

// items are those of an array; none for anything else.
func items(n *jsondoc.Node) []*jsondoc.Node {
	if n == nil || n.Kind != jsondoc.Array {
		return nil
	}
	return n.Items
}

// fields are the members of an object; none for anything else.
func fields(n *jsondoc.Node) []jsondoc.Member {
	if n == nil || n.Kind != jsondoc.Object {
		return nil
	}
	return n.Members
}

// object makes an object of those members that are there.
func object(members ...jsondoc.Member) *jsondoc.Node {
	out := &jsondoc.Node{Kind: jsondoc.Object}
	for _, m := range members {
		if m.Value != nil {
			out.Members = append(out.Members, m)
		}
	}
	return out
}

func member(key string, value *jsondoc.Node) jsondoc.Member {
	return jsondoc.Member{Key: key, Value: value}
}

// word is a string, or nothing when it is empty.
func word(s string) *jsondoc.Node {
	if s == "" {
		return nil
	}
	return jsondoc.Str(s)
}

// wordList is an array of strings, or nothing when it is empty.
func wordList(list []string) *jsondoc.Node {
	if len(list) == 0 {
		return nil
	}
	out := jsondoc.Arr()
	for _, s := range list {
		out.Items = append(out.Items, jsondoc.Str(s))
	}
	return out
}
