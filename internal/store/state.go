package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"hcpx/internal/grant"
	"hcpx/internal/jsondoc"
)

// Fresh is the state of a store that nothing was written to: the default grants (§9.6), nothing else.
func Fresh() *State { return &State{Grants: grant.Defaults()} }

// fault is a decoding error with its byte offset.
type fault struct {
	offset int
	reason string
}

func (f *fault) Error() string { return f.reason }

// DecodeState reads state.json (§11.3). A state without grants has the default ones, as the reference
// layout leaves them out; unknown members are kept; anything that is not understood in a known member
// is damage, since to ignore it could loosen a rule. path is only named in errors.
func DecodeState(path string, src []byte) (*State, error) {
	s := &State{}
	grants := false
	err := members(src, 0, func(m member) error {
		grants = grants || m.key == "grants"
		return s.take(m)
	})
	if err != nil {
		return nil, damaged(path, src, err)
	}
	if !grants {
		s.Grants = grant.Defaults()
	}
	return s, nil
}

func damaged(path string, src []byte, err error) error {
	d := &DamagedError{Path: path, Reason: err.Error()}
	var f *fault
	offset := 0
	if errors.As(err, &f) {
		offset = f.offset
	}
	d.Line, d.Column = jsondoc.Place(src, offset)
	return d
}

// member is one member of an object, its value still raw, at its offset in the file.
type member struct {
	key    string
	raw    []byte
	offset int
}

// members walks an object once, checking syntax, UTF-8 and duplicate keys of all that is in it.
func members(src []byte, base int, fn func(member) error) error {
	dec := jsontext.NewDecoder(bytes.NewBuffer(src)) // a Buffer is read in place, without a copy
	syntax := func(err error) error {
		var s *jsontext.SyntacticError
		offset, reason := dec.InputOffset(), "ends too early"
		if errors.As(err, &s) {
			offset, reason = s.ByteOffset, s.Err.Error()
		} else if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			reason = err.Error()
		}
		return &fault{base + int(offset), "is not valid JSON: " + reason}
	}
	if kind := dec.PeekKind(); kind != '{' {
		if _, err := dec.ReadValue(); err != nil {
			return syntax(err)
		}
		return &fault{base, "is not a JSON object"}
	}
	if _, err := dec.ReadToken(); err != nil {
		return syntax(err)
	}
	for dec.PeekKind() == '"' {
		key, err := dec.ReadToken()
		if err != nil {
			return syntax(err)
		}
		name := key.String()
		raw, err := dec.ReadValue()
		if err != nil {
			return syntax(err)
		}
		m := member{name, raw, base + int(dec.InputOffset()) - len(raw)}
		if err := fn(m); err != nil {
			return err
		}
	}
	if _, err := dec.ReadToken(); err != nil {
		return syntax(err)
	}
	if rest := bytes.TrimLeft(src[dec.InputOffset():], " \t\r\n"); len(rest) > 0 {
		return &fault{base + len(src) - len(rest), "has something after the object"}
	}
	return nil
}

func (s *State) take(m member) (err error) {
	switch m.key {
	case "activated":
		s.Activated, err = m.strings()
	case "connected":
		s.Connected, err = m.strings()
	case "native":
		s.Native, err = m.strings()
	case "grants":
		s.Grants, err = m.grants()
	case "bins":
		err = m.strict(&s.Bins)
	case "reads":
		err = m.strict(&s.Reads)
	case "hosts":
		err = m.strict(&s.Hosts)
	case "sessions":
		s.Sessions, err = m.sessions()
	case "bindings":
		err = m.strict(&s.Bindings)
	case "secrets":
		s.Secrets, err = m.strings()
	default:
		s.Extra = m.keep(s.Extra)
	}
	return err
}

func (m member) keep(extra map[string]json.RawMessage) map[string]json.RawMessage {
	if extra == nil {
		extra = map[string]json.RawMessage{}
	}
	extra[m.key] = bytes.Clone(m.raw)
	return extra
}

// strings cuts a valid JSON array of plain strings without decoding: every cold exec reads these lists,
// and they may hold ten thousand ids. Anything unusual goes the slow way.
func (m member) strings() ([]string, error) {
	text := string(m.raw)
	if text == "null" {
		return nil, nil
	}
	if strings.IndexByte(text, '\\') >= 0 {
		var list []string
		return list, m.strict(&list)
	}
	list := make([]string, 0, strings.Count(text, `"`)/2)
	for rest := text; ; {
		open := strings.IndexByte(rest, '"')
		gap := rest
		if open >= 0 {
			gap = rest[:open]
		}
		if !blank(gap) {
			return nil, &fault{m.offset, m.key + " is not a list of strings"}
		}
		if open < 0 {
			break
		}
		rest = rest[open+1:]
		end := strings.IndexByte(rest, '"')
		list = append(list, rest[:end])
		rest = rest[end+1:]
	}
	// A scalar string, or a list in a list, passes the cutter; the brackets tell.
	if text[0] != '[' || strings.Count(text, "[") != 1 && nested(text) {
		return nil, &fault{m.offset, m.key + " is not a list of strings"}
	}
	return list, nil
}

// blank says whether there is nothing but punctuation of a list between two strings.
func blank(gap string) bool {
	for _, c := range []byte(gap) {
		switch c {
		case '[', ']', ',', ' ', '\t', '\r', '\n':
		default:
			return false
		}
	}
	return true
}

// nested says whether an array of plain strings has brackets outside its strings.
func nested(text string) bool {
	depth, quoted := 0, false
	for _, c := range []byte(text) {
		switch {
		case c == '"':
			quoted = !quoted
		case c == '[' && !quoted:
			depth++
		}
	}
	return depth > 1
}

// strict decodes into v and refuses members that v does not have.
func (m member) strict(v any) error {
	dec := json.NewDecoder(bytes.NewReader(m.raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return &fault{m.offset, fmt.Sprintf("%s: %s", m.key, strings.TrimPrefix(err.Error(), "json: "))}
	}
	return nil
}

func (m member) grants() ([]grant.Grant, error) {
	if string(m.raw) == "null" {
		return grant.Defaults(), nil
	}
	var list []grant.Grant
	if err := m.strict(&list); err != nil {
		return nil, err
	}
	for i, g := range list {
		if err := g.Check(); err != nil {
			return nil, &fault{m.offset, fmt.Sprintf("grants, entry %d: %v", i+1, err)}
		}
	}
	return list, nil
}

func (m member) sessions() (map[string]SessionState, error) {
	if string(m.raw) == "null" {
		return nil, nil
	}
	all := map[string]SessionState{}
	err := members(m.raw, m.offset, func(one member) error {
		var st SessionState
		err := members(one.raw, one.offset, func(m member) (err error) {
			switch m.key {
			case "activated":
				st.Activated, err = m.strings()
			case "connected":
				st.Connected, err = m.strings()
			case "bindings":
				err = m.strict(&st.Bindings)
			default:
				st.Extra = m.keep(st.Extra)
			}
			return err
		})
		all[one.key] = st
		return err
	})
	return all, err
}

// EncodeState writes state.json: known members first, in the order of §11, then the kept ones by name.
func EncodeState(s *State) ([]byte, error) {
	sessions := map[string]any{}
	for id, st := range s.Sessions {
		fields := []field{{"activated", list(st.Activated)}, {"connected", list(st.Connected)}}
		sessions[id] = object{st.Extra, bound(fields, st.Bindings)}
	}
	fields := []field{
		{"activated", list(s.Activated)}, {"connected", list(s.Connected)}, {"grants", list(s.Grants)},
		{"bins", list(s.Bins)}, {"reads", list(s.Reads)}, {"native", list(s.Native)}, {"hosts", list(s.Hosts)},
		{"sessions", sessions},
	}
	fields = bound(fields, s.Bindings)
	if len(s.Secrets) > 0 {
		fields = append(fields, field{"secrets", s.Secrets})
	}
	return encode(object{s.Extra, fields})
}

// bound adds the bindings, where there are any: a state without one is as the reference layout has it.
func bound(fields []field, bindings map[string]Bound) []field {
	if len(bindings) == 0 {
		return fields
	}
	return append(fields, field{"bindings", bindings})
}

// encode is indented JSON without HTML escapes, for files that people read.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

type field struct {
	name  string
	value any
}

// object marshals fields in order, then the kept members.
type object struct {
	extra  map[string]json.RawMessage
	fields []field
}

func (o object) MarshalJSON() ([]byte, error) {
	fields := slices.Clone(o.fields)
	for _, name := range slices.Sorted(maps.Keys(o.extra)) {
		fields = append(fields, field{name, o.extra[name]})
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for i, f := range fields {
		b.WriteByte("{,"[min(i, 1)])
		if err := enc.Encode(f.name); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := enc.Encode(f.value); err != nil {
			return nil, err
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
