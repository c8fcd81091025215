package settings

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2/unstable"

	"hcpx/internal/protocol"
)

// The kinds of a value.
const (
	other = iota
	text
	number
	boolean
	list
)

type value struct {
	kind int
	text string // decoded, or the literal of a number
	list []value
}

// texts are the values of a list of filled texts.
func (v value) texts() ([]string, bool) {
	out := make([]string, 0, len(v.list))
	for _, one := range v.list {
		if one.kind != text || one.text == "" {
			return nil, false
		}
		out = append(out, one.text)
	}
	return out, v.kind == list
}

// reading is one file on its way into Settings. It takes the expressions of the TOML parser one by one,
// which keeps every place and needs no reflection.
type reading struct {
	s          *Settings
	file, name string
	parser     unstable.Parser
	keys       map[string]key
	seen       map[string]bool
	problems   []Problem
	deny       int // how many [[deny]] were begun, in a project's file
}

// apply puts a file's values into s and lists what is wrong with it.
func (s *Settings) apply(path, name string, src []byte) []Problem {
	r := &reading{s: s, file: path, name: name, keys: map[string]key{}, seen: map[string]bool{}}
	for _, k := range keys() {
		if k.may(name) {
			r.keys[k.name] = k
		}
	}
	if i := invalid(src); i >= 0 {
		r.complain(src, i, "the file is not UTF-8", "")
		return r.problems
	}
	r.parser.Reset(src)
	table := ""
	for r.parser.NextExpression() {
		switch node := r.parser.Expression(); node.Kind {
		case unstable.Table:
			name, at := dotted(node.Key())
			table = name + "."
			if r.denies(table) {
				continue
			}
			r.once("["+name+"]", at)
			if !r.prefix(table) {
				r.unknown(name, at)
			}
		case unstable.KeyValue:
			r.pair(table, node)
		case unstable.ArrayTable:
			name, at := dotted(node.Key())
			table = name + "."
			if r.name == project && table == denyTable {
				r.begin(at)
				continue
			}
			r.unknown(name, at)
		}
	}
	var bad *unstable.ParserError
	if err := r.parser.Error(); errors.As(err, &bad) {
		r.complain(src, cap(src)-cap(bad.Highlight), "this is not TOML: "+bad.Message, "")
	} else if err != nil {
		r.complain(src, 0, "this is not TOML: "+err.Error(), "")
	}
	return r.problems
}

func invalid(src []byte) int {
	for i := 0; i < len(src); {
		c, n := utf8.DecodeRune(src[i:])
		if c == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// dotted is a dotted key and the place of its first part.
func dotted(it unstable.Iterator) (string, unstable.Range) {
	var parts []string
	var at unstable.Range
	for it.Next() {
		if len(parts) == 0 {
			at = it.Node().Raw
		}
		parts = append(parts, string(it.Node().Data))
	}
	return strings.Join(parts, "."), at
}

func (r *reading) prefix(table string) bool {
	for name := range r.keys {
		if strings.HasPrefix(name, table) {
			return true
		}
	}
	return false
}

// once complains about a key or table that stands twice.
func (r *reading) once(name string, at unstable.Range) bool {
	if r.seen[name] {
		r.wrong(at, name+" stands here a second time", "")
		return false
	}
	r.seen[name] = true
	return true
}

func (r *reading) pair(table string, node *unstable.Node) {
	name, at := dotted(node.Key())
	name = table + name
	v := node.Value()
	if r.denies(name) {
		r.denyPair(name, at, v)
		return
	}
	k, ok := r.keys[name]
	if !ok && v.Kind == unstable.InlineTable && r.prefix(name+".") {
		if r.once("["+name+"]", at) {
			for it := v.Children(); it.Next(); {
				r.pair(name+".", it.Node())
			}
		}
		return
	}
	if !ok {
		// Below an unknown table only the table is worth a word.
		if table == "" || r.prefix(table) {
			r.unknown(name, at)
		}
		return
	}
	if !r.once(name, at) {
		return
	}
	if v.Raw.Length > 0 {
		at = v.Raw
	}
	read, wrong := k.read(valueOf(v))
	if wrong != "" {
		r.wrong(at, wrong, "")
		return
	}
	if r.name == project && !k.narrows(r.s, read) {
		r.wrong(at, name+" gives more here than what is in force, "+k.written(r.s)+"; a project may only narrow", "")
		return
	}
	k.set(r.s, read)
	r.s.from[name] = r.name
}

func valueOf(n *unstable.Node) value {
	switch n.Kind {
	case unstable.String:
		return value{kind: text, text: string(n.Data)}
	case unstable.Integer:
		return value{kind: number, text: string(n.Data)}
	case unstable.Bool:
		return value{kind: boolean, text: string(n.Data)}
	case unstable.Array:
		v := value{kind: list}
		for it := n.Children(); it.Next(); {
			if it.Node().Kind != unstable.Comment {
				v.list = append(v.list, valueOf(it.Node()))
			}
		}
		return v
	default:
		return value{}
	}
}

func (r *reading) unknown(name string, at unstable.Range) {
	if r.prefix(name + ".") {
		r.wrong(at, name+" is a table of settings, as ["+name+"]", "")
		return
	}
	hint := ""
	if r.name == project && name+"." == denyTable {
		hint = "write it as [[deny]]"
	} else if near := r.nearest(name); near != "" {
		hint = "did you mean " + near + "?"
	}
	for _, k := range keys() {
		if k.name == name || strings.HasPrefix(k.name, name+".") {
			r.wrong(at, name+" may not stand in "+r.name, "")
			return
		}
	}
	r.wrong(at, name+" is no setting of this runtime", hint)
}

// nearest is the known key, or table, that is at most two edits away.
func (r *reading) nearest(name string) string {
	var known []string
	for _, k := range r.keys {
		table, _, _ := strings.Cut(k.name, ".")
		known = append(known, k.name, table)
	}
	slices.Sort(known)
	return protocol.Nearest(name, known)
}

func (r *reading) wrong(at unstable.Range, message, hint string) {
	r.complain(r.parser.Data(), int(at.Offset), message, hint)
}

func (r *reading) complain(src []byte, offset int, message, hint string) {
	line, column := placeOf(src, offset)
	r.problems = append(r.problems, Problem{File: r.file, Line: line, Column: column, Message: message, Hint: hint})
}

// placeOf is the line and the column, in code points, of a place in src.
func placeOf(src []byte, offset int) (line, column int) {
	before := src[:min(max(offset, 0), len(src))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte{'\n'}) + 1, utf8.RuneCount(before[start:]) + 1
}
