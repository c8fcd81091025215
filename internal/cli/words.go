package cli

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// This file is §6.7: words of the command line become arguments. It is pure, and it judges no value: a
// word that does not fit the type it is declared with stays the string that was typed, and the schema
// refuses it at step 5. What can't be said as arguments at all is a violation, and so is JSON behind = where only JSON
// would do, since what is wrong there is the form.
//
// k=v is typed by the first type that the schema lists for the property and that v has the form of:
// integer and number keep their literal, boolean is true or false, null is null, string is v as it
// stands; of an array, v is one item. k:=JSON takes any value. A key given again builds an array.

// typing is a property's schema, and the document that its $ref points into.
type typing struct{ root, node *jsondoc.Node }

// maxRefs bounds what a $ref or a combination of schemas is followed.
const maxRefs = 16

// buildArgs makes the arguments object. schema is the command's args schema, nil when it is not known;
// then every k=v is a string.
func buildArgs(words []string, schema *jsondoc.Node) (*jsondoc.Node, []protocol.Violation) {
	b := builder{typing{schema, schema}, &object{}, nil}
	for _, w := range words {
		b.word(w)
	}
	return b.top.node(), b.bad
}

type builder struct {
	schema typing
	top    *object
	bad    []protocol.Violation
}

// object is an object under construction, in the order of the words.
type object struct {
	keys   []string
	fields map[string]*field
}

// field is one member: values given for it, or members below it.
type field struct {
	values []*jsondoc.Node
	whole  bool // the one value is the member itself, not an item of its array
	below  *object
}

func (o *object) at(key string) *field {
	if f := o.fields[key]; f != nil {
		return f
	}
	if o.fields == nil {
		o.fields = map[string]*field{}
	}
	f := &field{}
	o.fields[key] = f
	o.keys = append(o.keys, key)
	return f
}

func (o *object) node() *jsondoc.Node {
	members := make([]jsondoc.Member, len(o.keys))
	for i, k := range o.keys {
		members[i] = jsondoc.Member{Key: k, Value: o.fields[k].node()}
	}
	return jsondoc.Obj(members...)
}

func (f *field) node() *jsondoc.Node {
	switch {
	case f.below != nil:
		return f.below.node()
	case f.whole && len(f.values) == 1:
		return f.values[0]
	default:
		return jsondoc.Arr(f.values...)
	}
}

// word reads one k=v or k:=JSON.
func (b *builder) word(w string) {
	if !utf8.ValidString(w) {
		b.refuse("", "%q is not valid UTF-8", clip(w))
		return
	}
	key, value, found := strings.Cut(w, "=")
	if !found {
		b.refuse("", "%q is not of the form name=value or name:=JSON", clip(w))
		return
	}
	key, literal := strings.CutSuffix(key, ":")
	if key == "" {
		b.refuse("", "%q names no argument before the =", clip(w))
		return
	}
	path, shape := b.schema.locate(key)
	f := b.place(path)
	if f == nil {
		b.refuse(jsondoc.Pointer(path...), "%q is given both as a value and with members", clip(key))
		return
	}
	if literal {
		b.json(f, path, value)
		return
	}
	node, whole := shape.read(value)
	if shape.wantsJSON(node, value) {
		b.refuse(jsondoc.Pointer(path...), "%s takes JSON, and = gives a text: write %s:=JSON", clip(clean(key)), clip(clean(key)))
	}
	f.add(node, whole)
}

// wantsJSON says whether a value looks like the object or array that the schema asks for, and came as the text that it
// never takes: then the form of the word is wrong and not the value.
func (t typing) wantsJSON(read *jsondoc.Node, v string) bool {
	if read.Kind != jsondoc.String || t.takesText() {
		return false
	}
	text := strings.TrimSpace(v)
	return strings.HasPrefix(text, "{") && (t.takes("object") || t.takes("array")) || strings.HasPrefix(text, "[") && t.takes("array")
}

// takesText says whether a text may be the value, or an item of it (a list of lists takes none from =).
func (t typing) takesText() bool {
	free := func(t typing) bool { return len(t.types()) == 0 || t.takes("string") }
	return free(t) || t.takes("array") && free(t.items())
}

// json reads the value of k:=JSON.
func (b *builder) json(f *field, path []string, text string) {
	node, faults := jsondoc.Parse([]byte(text), jsondoc.Limits{})
	if len(faults) > 0 {
		b.refuse(jsondoc.Pointer(path...), "The text behind := is not one JSON value: %s", strings.TrimSuffix(faults[0].Message, "."))
		node = jsondoc.NullNode()
	}
	f.add(node, true)
}

// add gives the field one more value; from the second on they are items.
func (f *field) add(n *jsondoc.Node, whole bool) {
	f.values = append(f.values, n)
	f.whole = whole && len(f.values) == 1
}

// place finds the field of a path, nil when a value stands where members should or the other way round.
func (b *builder) place(path []string) *field {
	o := b.top
	for _, key := range path[:len(path)-1] {
		f := o.at(key)
		if len(f.values) > 0 {
			return nil
		}
		if f.below == nil {
			f.below = &object{}
		}
		o = f.below
	}
	f := o.at(path[len(path)-1])
	if f.below != nil {
		return nil
	}
	return f
}

func (b *builder) refuse(pointer, format string, args ...any) {
	b.bad = append(b.bad, protocol.Violation{Pointer: pointer, Message: stopped(fmt.Sprintf(format, args...))})
}

// clip keeps a message readable when a word is long.
func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// locate splits a key at its dots: the longest declared name wins at each level, so that a property
// called a.b is found before a member b of a (§6.7).
func (t typing) locate(key string) (path []string, at typing) {
	for {
		name, rest := t.split(key)
		path = append(path, name)
		t = t.property(name)
		if rest == "" {
			return path, t
		}
		key = rest
	}
}

// split takes the first name off a key. A key with an empty part has no members: it is one name.
func (t typing) split(key string) (name, rest string) {
	for end := len(key); end > 0; end = strings.LastIndexByte(key[:end], '.') {
		if t.declares(key[:end]) {
			if end == len(key) {
				return key, ""
			}
			if end+1 < len(key) {
				return key[:end], key[end+1:]
			}
		}
	}
	name, rest, _ = strings.Cut(key, ".")
	if name == "" || rest == "" {
		return key, ""
	}
	return name, rest
}

func (t typing) declares(name string) bool { return t.property(name).node != nil }

// property is the schema of a member, with a nil node when none is declared. Combinations are searched
// in their order.
func (t typing) property(name string) typing {
	for _, s := range t.variants() {
		if n := s.Get("properties").Get(name); n != nil {
			return typing{t.root, n}
		}
	}
	return typing{root: t.root}
}

// variants are the schemas that say something of the value: the node, what its $ref names, and the
// branches of allOf, anyOf and oneOf, in the order in which they stand.
func (t typing) variants() []*jsondoc.Node {
	var all []*jsondoc.Node
	queue := []*jsondoc.Node{t.node}
	for len(queue) > 0 && len(all) < maxRefs {
		n := queue[0]
		queue = queue[1:]
		if n == nil || n.Kind != jsondoc.Object {
			continue
		}
		all = append(all, n)
		if ref := n.Get("$ref"); ref != nil && ref.Kind == jsondoc.String {
			if pointer, local := strings.CutPrefix(ref.Text, "#"); local {
				queue = append(queue, t.root.Lookup(pointer))
			}
		}
		for _, word := range []string{"allOf", "anyOf", "oneOf"} {
			if list := n.Get(word); list != nil {
				queue = append(queue, list.Items...)
			}
		}
	}
	return all
}

// read types one value; whole says that it is the member itself and not an item.
func (t typing) read(v string) (n *jsondoc.Node, whole bool) {
	for _, s := range t.variants() {
		for _, name := range typeNames(s) {
			if name == "array" {
				item, _ := typing{t.root, s.Get("items")}.read(v)
				return item, false
			}
			if n := as(name, v); n != nil {
				return n, true
			}
		}
		if n := listed(s, v); n != nil {
			return n, true
		}
	}
	return jsondoc.Str(v), true
}

// typeNames are the types that a schema lists, in its order.
func typeNames(s *jsondoc.Node) []string {
	t := s.Get("type")
	switch {
	case t == nil:
		return nil
	case t.Kind == jsondoc.String:
		return []string{t.Text}
	}
	var names []string
	for _, item := range t.Items {
		names = append(names, item.Text)
	}
	return names
}

// as is v as a value of the type, nil when v has not its form.
func as(name, v string) *jsondoc.Node {
	switch name {
	case "string":
		return jsondoc.Str(v)
	case "integer":
		if number(v) && jsondoc.Integer(v) {
			return jsondoc.Num(v)
		}
	case "number":
		if number(v) {
			return jsondoc.Num(v)
		}
	case "boolean":
		if v == "true" || v == "false" {
			return jsondoc.Boolean(v == "true")
		}
	case "null":
		if v == "null" {
			return jsondoc.NullNode()
		}
	}
	return nil
}

// number says whether v is exactly a JSON number.
func number(v string) bool {
	if v == "" || v[0] != '-' && (v[0] < '0' || v[0] > '9') || strings.TrimRight(v, " \t\r\n") != v {
		return false
	}
	n, faults := jsondoc.Parse([]byte(v), jsondoc.Limits{})
	return len(faults) == 0 && n.Kind == jsondoc.Number
}

// listed is the constant of const or enum that v spells, for schemas that name no type.
func listed(s *jsondoc.Node, v string) *jsondoc.Node {
	if s.Get("type") != nil {
		return nil
	}
	var options []*jsondoc.Node
	if c := s.Get("const"); c != nil {
		options = append(options, c)
	}
	if e := s.Get("enum"); e != nil {
		options = append(options, e.Items...)
	}
	for _, o := range options {
		if o.Kind == jsondoc.String && o.Text == v {
			return o
		}
	}
	for _, o := range options {
		if o.Kind != jsondoc.String && string(o.Append(nil)) == v {
			return o
		}
	}
	return nil
}

// members are the declared arguments of a schema, in source order.
func members(schema *jsondoc.Node) []jsondoc.Member {
	if props := schema.Get("properties"); props != nil {
		return props.Members
	}
	return nil
}
