package jsondoc

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits bound what Parse reads. Zero means the default: 1 MiB (§2.1), 128 levels.
type Limits struct{ Bytes, Depth int }

// The defaults of Limits.
const (
	DefaultBytes = 1 << 20
	DefaultDepth = 128
)

// The codes of a Fault. The first three are also codes of lint.
const (
	Syntax       = "json.syntax"
	DuplicateKey = "json.duplicate-key"
	Encoding     = "json.encoding"
	TooLarge     = "json.too-large"
	TooDeep      = "json.too-deep"
)

// Fault is one reason why a text is not the JSON that is asked for, with its place.
type Fault struct {
	Code    string
	Offset  int    // byte offset
	Pointer string // RFC 6901
	Message string // one sentence for a person
}

// Parse reads one JSON value and nothing after it (§2.1). The Node is nil on every fault but duplicate
// keys: those are all reported, each at its later occurrence, and the last one's value is taken.
func Parse(src []byte, lim Limits) (*Node, []Fault) {
	if lim.Bytes <= 0 {
		lim.Bytes = DefaultBytes
	}
	if lim.Depth <= 0 {
		lim.Depth = DefaultDepth
	}
	if f := unreadable(src, lim); f != nil {
		return nil, []Fault{*f}
	}
	p := parser{
		src: src, text: string(src), depth: lim.Depth,
		dec: jsontext.NewDecoder(bytes.NewBuffer(src), jsontext.AllowDuplicateNames(true)),
		// A value takes some ten bytes of text; what is left over of a slab is small.
		nodes: slab[Node]{next: len(src) / 20}, members: slab[Member]{next: len(src) / 40},
		openItems: make([]*Node, 0, 16), openMembers: make([]Member, 0, 16),
	}
	n, f := p.value(0)
	if f == nil {
		f = p.end()
	}
	if f != nil {
		return nil, append(p.faults, *f)
	}
	return n, p.faults
}

// unreadable checks what can be said without a grammar: size, BOM, UTF-8.
func unreadable(src []byte, lim Limits) *Fault {
	if len(src) > lim.Bytes {
		return &Fault{Code: TooLarge, Offset: lim.Bytes, Message: "The text is longer than is read."}
	}
	if bytes.HasPrefix(src, []byte("\xef\xbb\xbf")) {
		return &Fault{Code: Encoding, Message: "The text starts with a byte order mark; save it as UTF-8 without one."}
	}
	if utf8.Valid(src) {
		return nil
	}
	at := 0
	for at < len(src) {
		r, size := utf8.DecodeRune(src[at:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		at += size
	}
	return &Fault{Code: Encoding, Offset: at, Message: "The text is not valid UTF-8 here."}
}

// parser makes Nodes from tokens. Nodes, items and members come from slabs, so that a small document
// costs a handful of allocations.
type parser struct {
	src    []byte
	text   string // src once more: strings and numbers are cut from it without a copy
	dec    *jsontext.Decoder
	depth  int
	faults []Fault

	nodes   slab[Node]
	items   slab[*Node]
	members slab[Member]
	// Children wait here until their container is closed and its size is known.
	openItems   []*Node
	openMembers []Member
}

// slab hands out short slices of a longer one.
type slab[T any] struct {
	free []T
	next int
}

func (s *slab[T]) take(n int) []T {
	if n > len(s.free) {
		s.next = min(max(8, 2*s.next), 512)
		s.free = make([]T, max(n, s.next))
	}
	out := s.free[:n:n]
	s.free = s.free[n:]
	return out
}

// token reads one token and its place in the text.
func (p *parser) token() (kind jsontext.Kind, start, end int, f *Fault) {
	from := int(p.dec.InputOffset())
	tok, err := p.dec.ReadToken()
	if err != nil {
		return 0, 0, 0, p.fault(err)
	}
	end = int(p.dec.InputOffset())
	for start = from; start < end && strings.IndexByte(" \t\r\n,:", p.text[start]) >= 0; start++ {
	}
	return tok.Kind(), start, end, nil
}

// fault says in this room's words what the tokenizer refused.
func (p *parser) fault(err error) *Fault {
	f := &Fault{Code: Syntax, Offset: len(p.src), Message: "The text is not valid JSON here."}
	var s *jsontext.SyntacticError
	switch {
	case errors.As(err, &s):
		f.Offset, f.Pointer = min(int(s.ByteOffset), len(p.src)), string(s.JSONPointer)
		if errors.Is(s.Err, io.ErrUnexpectedEOF) {
			f.Message = "The text ends before the JSON value does."
		} else if s.Err != nil {
			f.Message = "The text is not valid JSON here: " + s.Err.Error() + "."
		}
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		f.Message = "The text ends before the JSON value does."
	}
	return f
}

// end sees to it that nothing follows the value (§2.1).
func (p *parser) end() *Fault {
	_, start, _, f := p.token()
	switch {
	case f == nil:
		return &Fault{Code: Syntax, Offset: start, Message: "Something follows the JSON value."}
	case strings.TrimLeft(p.text[p.dec.InputOffset():], " \t\r\n") == "":
		return nil
	default:
		f.Message = "Something follows the JSON value."
		f.Pointer = ""
		return f
	}
}

func (p *parser) value(level int) (*Node, *Fault) {
	kind, start, end, f := p.token()
	if f != nil {
		return nil, f
	}
	return p.finish(kind, start, end, level)
}

// finish makes the value whose first token was read.
func (p *parser) finish(kind jsontext.Kind, start, end, level int) (*Node, *Fault) {
	n := &p.nodes.take(1)[0]
	n.Offset = start
	switch kind {
	case '{', '[':
		if level >= p.depth {
			return nil, &Fault{Code: TooDeep, Offset: start, Pointer: string(p.dec.StackPointer()), Message: "The value is nested deeper than is read."}
		}
		if kind == '{' {
			return n, p.object(n, level+1)
		}
		return n, p.array(n, level+1)
	case '"':
		n.Kind, n.Text = String, p.unquote(start, end)
	case '0':
		n.Kind, n.Text = Number, p.text[start:end]
	case 't', 'f':
		n.Kind, n.Text = Bool, p.text[start:end]
	case 'n':
		n.Kind = Null
	default:
		return nil, &Fault{Code: Syntax, Offset: start, Message: "The text is not valid JSON here."}
	}
	return n, nil
}

func (p *parser) unquote(start, end int) string {
	raw := p.text[start+1 : end-1]
	if strings.IndexByte(raw, '\\') < 0 {
		return raw
	}
	// The tokenizer accepted the string, so that unquoting it again cannot fail.
	b, err := jsontext.AppendUnquote(nil, p.src[start:end])
	if err != nil {
		return raw
	}
	return string(b)
}

func (p *parser) array(n *Node, level int) *Fault {
	n.Kind = Array
	mark := len(p.openItems)
	for {
		kind, start, end, f := p.token()
		if f != nil {
			return f
		}
		if kind == ']' {
			break
		}
		item, f := p.finish(kind, start, end, level)
		if f != nil {
			return f
		}
		p.openItems = append(p.openItems, item)
	}
	n.Items = p.items.take(len(p.openItems) - mark)
	copy(n.Items, p.openItems[mark:])
	p.openItems = p.openItems[:mark]
	return nil
}

func (p *parser) object(n *Node, level int) *Fault {
	n.Kind = Object
	mark := len(p.openMembers)
	var seen map[string]int // only for objects that are long to search
	for {
		kind, start, end, f := p.token()
		if f != nil {
			return f
		}
		if kind == '}' {
			break
		}
		m := Member{Key: p.unquote(start, end), Offset: start}
		at := p.find(m.Key, mark, &seen)
		if at >= 0 {
			p.faults = append(p.faults, Fault{Code: DuplicateKey, Offset: start, Pointer: string(p.dec.StackPointer()),
				Message: "The object already has a member named " + Quote(m.Key) + "."})
		}
		if m.Value, f = p.value(level); f != nil {
			return f
		}
		if at >= 0 {
			p.openMembers[at] = m
			continue
		}
		p.openMembers = append(p.openMembers, m)
	}
	n.Members = p.members.take(len(p.openMembers) - mark)
	copy(n.Members, p.openMembers[mark:])
	p.openMembers = p.openMembers[:mark]
	return nil
}

// find looks for a key among the open object's members, by a map once there are many.
func (p *parser) find(key string, mark int, seen *map[string]int) int {
	const many = 16
	count := len(p.openMembers) - mark
	if count < many {
		for i := mark; i < len(p.openMembers); i++ {
			if p.openMembers[i].Key == key {
				return i
			}
		}
		return -1
	}
	if *seen == nil {
		*seen = make(map[string]int, 2*many)
		for i := mark; i < len(p.openMembers); i++ {
			(*seen)[p.openMembers[i].Key] = i
		}
	}
	at, ok := (*seen)[key]
	if !ok {
		(*seen)[key] = len(p.openMembers)
		return -1
	}
	return at
}

// Place turns a byte offset into line and column, both from 1, the column in code points (§14.2).
func Place(src []byte, offset int) (line, column int) {
	before := src[:min(max(offset, 0), len(src))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return 1 + bytes.Count(before, []byte{'\n'}), 1 + utf8.RuneCount(before[start:])
}
