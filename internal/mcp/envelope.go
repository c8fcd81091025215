package mcp

import (
	"bytes"
	"slices"

	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/projection"
)

// limits of what is read here; the envelope's own are the pipeline's to keep (§6.1).
var limits = jsondoc.Limits{Bytes: maxMessage, Depth: 1000}

// plain reads the arguments of a tool: an object, {} when there are none. An object that a client wrote as a JSON string
// means the same, since no tool takes a string; mended says so. nil: it is neither, or not to be read without doubt.
func plain(args []byte) (n *jsondoc.Node, mended bool) {
	if absent(args) {
		return jsondoc.Obj(), false
	}
	n, faults := jsondoc.Parse(args, limits)
	if n != nil && len(faults) == 0 && n.Kind == jsondoc.String {
		n, mended = within(n), true
	}
	if n == nil || len(faults) > 0 || n.Kind != jsondoc.Object {
		return nil, false
	}
	return n, mended
}

// absent: a client may leave the arguments out, or say null.
func absent(args []byte) bool {
	args = bytes.TrimSpace(args)
	return len(args) == 0 || string(args) == "null"
}

// within is the JSON that stands in a string; nil when there is none.
func within(n *jsondoc.Node) *jsondoc.Node {
	inner, faults := jsondoc.Parse([]byte(n.Text), limits)
	if len(faults) > 0 {
		return nil
	}
	return inner
}

// commandEnvelope is the envelope of a call of a command's own tool. Arguments that cannot be read without doubt go into
// it as they are, so that step 1 refuses them.
func commandEnvelope(pack, verb string, args []byte) []byte {
	env := jsondoc.Obj(jsondoc.Member{Key: "pack_id", Value: jsondoc.Str(pack)}, jsondoc.Member{Key: "verb_key", Value: jsondoc.Str(verb)})
	n, _ := plain(args)
	if n == nil {
		head := env.Append(nil)
		return append(append(append(head[:len(head)-1], `,"args":`...), args...), '}')
	}
	own := jsondoc.Obj()
	for _, m := range n.Members {
		switch m.Key {
		case projection.Confirm:
			env = env.With("confirm", m.Value)
		case projection.Project:
			env = env.With("project", m.Value)
		default:
			own.Members = append(own.Members, m)
		}
	}
	return env.With("args", own).Append(nil)
}

// request is an envelope as a client sent it, and what of it was read in another way than it was written.
type request struct {
	src  []byte
	node *jsondoc.Node // nil: step 1 will refuse src
	read []string      // pointers
}

// requestOf reads the arguments of the one tool. Three things that clients write are read as what alone they can mean:
// the object in a string where an object stands, null for a member that may be left out, and in a string the number,
// boolean, list or object that the schema demands where it takes no string. All else is for the pipeline to judge.
func requestOf(args []byte, schema func(pack, verb string) *manifest.Schema) request {
	n, mended := plain(args)
	if n == nil {
		return request{src: args}
	}
	r := request{src: args, node: n}
	if mended {
		r.read = append(r.read, "")
	}
	if mended || absent(args) {
		r.src = n.Append(nil)
	}
	for _, key := range []string{"args", "confirm", "project"} {
		if m := n.Get(key); m != nil && m.Kind == jsondoc.Null {
			n = n.Without(key)
			r.read = append(r.read, "/"+key)
		}
	}
	if a := n.Get("args"); a != nil && a.Kind == jsondoc.String {
		if inner := within(a); inner != nil && inner.Kind == jsondoc.Object {
			n = n.With("args", inner)
			r.read = append(r.read, "/args")
		}
	}
	n = r.typed(n, schema)
	if len(r.read) > 0 {
		r.node, r.src = n, n.Append(nil)
	}
	return r
}

// typed reads strings as what the schema of the command demands.
func (r *request) typed(n *jsondoc.Node, schema func(pack, verb string) *manifest.Schema) *jsondoc.Node {
	pack, verb, args := n.Get("pack_id"), n.Get("verb_key"), n.Get("args")
	if pack == nil || verb == nil || args == nil || args.Kind != jsondoc.Object || !slices.ContainsFunc(args.Members, func(m jsondoc.Member) bool { return m.Value.Kind == jsondoc.String }) {
		return n
	}
	s := schema(pack.Text, verb.Text)
	if s == nil {
		return n
	}
	for _, m := range args.Members {
		p := s.Property(m.Key)
		if m.Value.Kind != jsondoc.String || p == nil || len(p.Types) == 0 || slices.Contains(p.Types, "string") {
			continue
		}
		if inner := within(m.Value); inner != nil && slices.ContainsFunc(p.Types, func(t string) bool { return isOf(inner, t) }) {
			args = args.With(m.Key, inner)
			r.read = append(r.read, jsondoc.Pointer("args", m.Key))
		}
	}
	return n.With("args", args)
}

// isOf says whether a value has a type of JSON Schema. null is no type that a string stands for.
func isOf(n *jsondoc.Node, typ string) bool {
	switch typ {
	case "integer":
		return n.Kind == jsondoc.Number && jsondoc.Integer(n.Text)
	case "number":
		return n.Kind == jsondoc.Number
	case "boolean":
		return n.Kind == jsondoc.Bool
	case "array":
		return n.Kind == jsondoc.Array
	case "object":
		return n.Kind == jsondoc.Object
	}
	return false
}

// confirmed is the envelope with another confirmation.
func (r request) confirmed(by *jsondoc.Node) []byte { return r.node.With("confirm", by).Append(nil) }

// pack is the pack that is named, "" when that can't be read.
func (r request) pack() string {
	if r.node == nil {
		return ""
	}
	if n := r.node.Get("pack_id"); n != nil && n.Kind == jsondoc.String {
		return n.Text
	}
	return ""
}
