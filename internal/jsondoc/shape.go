package jsondoc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"hcpx/internal/order"
)

// Shape reads an object whose members are known and gathers everything that is wrong with it. Codes are
// the caller's: Form for a member that is missing or has the wrong form, Unknown for one nobody knows.
type Shape struct {
	Form, Unknown string
	Faults        []Fault
}

// Scope holds the member names that must be understood in a part of the document (§2.6). An unknown
// member that a scope around it names is Unmet there instead of merely ignored.
type Scope struct {
	Must, Unmet []string
	Outer       *Scope
	met         []string
}

// Cursor stands on one object of the document.
type Cursor struct {
	Node    *Node
	Pointer string
	Scope   *Scope
	Shape   *Shape
}

// Report notes a fault at a value or key.
func (s *Shape) Report(code string, offset int, pointer, format string, args ...any) {
	s.Faults = append(s.Faults, Fault{Code: code, Offset: offset, Pointer: pointer, Message: fmt.Sprintf(format, args...)})
}

// AtSelf notes a fault at the object itself, as for a member that it lacks.
func (c Cursor) AtSelf(code, format string, args ...any) {
	c.Shape.Report(code, c.Node.Offset, c.Pointer, format, args...)
}

// AtValue notes a fault at a member's value.
func (c Cursor) AtValue(key, code, format string, args ...any) {
	offset := c.Node.Offset
	if v := c.Node.Get(key); v != nil {
		offset = v.Offset
	}
	c.Shape.Report(code, offset, Below(c.Pointer, key), format, args...)
}

// AtKey notes a fault at a member's name.
func (c Cursor) AtKey(key, code, format string, args ...any) {
	offset := c.Node.Offset
	for _, m := range c.Node.Members {
		if m.Key == key {
			offset = m.Offset
		}
	}
	c.Shape.Report(code, offset, Below(c.Pointer, key), format, args...)
}

// Object moves to a member that is an object; false when it is absent or, with a fault, anything else.
func (c Cursor) Object(key string) (Cursor, bool) {
	v := c.Node.Get(key)
	if v == nil {
		return Cursor{}, false
	}
	if v.Kind != Object {
		c.AtValue(key, c.Shape.Form, "%s is an object.", Quote(key))
		return Cursor{}, false
	}
	return c.child(v, key), true
}

func (c Cursor) child(v *Node, token string) Cursor {
	return Cursor{Node: v, Pointer: Below(c.Pointer, token), Scope: c.Scope, Shape: c.Shape}
}

// Objects moves to each member of the object that is an object itself.
func (c Cursor) Objects(visit func(m Member, at Cursor)) {
	for _, m := range c.Node.Members {
		if m.Value.Kind != Object {
			c.Shape.Report(c.Shape.Form, m.Value.Offset, Below(c.Pointer, m.Key), "%s is an object.", Quote(m.Key))
			continue
		}
		visit(m, c.child(m.Value, m.Key))
	}
}

// Text is a member that is a string; false when it is absent or, with a fault, anything else.
func (c Cursor) Text(key string) (string, bool) {
	v := c.Node.Get(key)
	if v == nil {
		return "", false
	}
	if v.Kind != String {
		c.AtValue(key, c.Shape.Form, "%s is a string.", Quote(key))
		return "", false
	}
	return v.Text, true
}

// Required says whether the member is there, with a fault when it isn't.
func (c Cursor) Required(key string) bool {
	if c.Node.Has(key) {
		return true
	}
	c.AtSelf(c.Shape.Form, "The member %s is missing.", Quote(key))
	return false
}

// Line is a string of one line that is not empty and has at most limit characters.
func (c Cursor) Line(key string, limit int) string {
	s, ok := c.Text(key)
	switch {
	case !ok:
		return ""
	case strings.TrimSpace(s) == "":
		c.AtValue(key, c.Shape.Form, "%s is empty.", Quote(key))
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }):
		c.AtValue(key, c.Shape.Form, "%s is one line without control characters.", Quote(key))
	case utf8.RuneCountInString(s) > limit:
		c.AtValue(key, c.Shape.Form, "%s has at most %d characters.", Quote(key), limit)
	default:
		return s
	}
	return ""
}

// Choice is a string out of a closed list; the first of it when absent, "" with a fault when it is another.
func (c Cursor) Choice(key string, options ...string) string {
	if !c.Node.Has(key) {
		return options[0]
	}
	s, ok := c.Text(key)
	if ok && !slices.Contains(options, s) {
		c.AtValue(key, c.Shape.Form, "%s is one of %s.", Quote(key), strings.Join(options, ", "))
		return ""
	}
	return s
}

// Flag is a member that is true or false; false when absent.
func (c Cursor) Flag(key string) bool {
	v := c.Node.Get(key)
	if v != nil && v.Kind != Bool {
		c.AtValue(key, c.Shape.Form, "%s is true or false.", Quote(key))
	}
	return v != nil && v.Kind == Bool && v.Text == "true"
}

// Strings is a member that is an array of strings; an item of another type is a fault and left out.
func (c Cursor) Strings(key string) []string {
	v := c.Node.Get(key)
	if v == nil {
		return nil
	}
	if v.Kind != Array {
		c.AtValue(key, c.Shape.Form, "%s is an array of strings.", Quote(key))
		return nil
	}
	out := make([]string, 0, len(v.Items))
	for i, item := range v.Items {
		if item.Kind != String {
			c.Shape.Report(c.Shape.Form, item.Offset, Below(Below(c.Pointer, key), strconv.Itoa(i)), "An item of %s is a string.", Quote(key))
			continue
		}
		out = append(out, item.Text)
	}
	return out
}

// Close notes every member that is not known (§13.2).
func (c Cursor) Close(known ...[]string) {
	for _, m := range c.Node.Members {
		if slices.ContainsFunc(known, func(list []string) bool { return slices.Contains(list, m.Key) }) || c.Scope.demands(m.Key) {
			continue
		}
		c.Shape.Report(c.Shape.Unknown, m.Offset, Below(c.Pointer, m.Key), "The member %s is not known and is ignored.", Quote(m.Key))
	}
}

// demands says whether a scope names the unknown member; it is Unmet in the innermost scope then.
func (s *Scope) demands(name string) bool {
	for at := s; at != nil; at = at.Outer {
		if slices.Contains(at.Must, name) {
			at.met = append(at.met, name)
			if !slices.Contains(s.Unmet, name) {
				s.Unmet = append(s.Unmet, name)
			}
			return true
		}
	}
	return false
}

// Settle closes a scope: a name that stands nowhere and is no known member is Unmet too.
func (s *Scope) Settle(known func(name string) bool) {
	for _, name := range s.Must {
		if !slices.Contains(s.met, name) && !slices.Contains(s.Unmet, name) && !known(name) {
			s.Unmet = append(s.Unmet, name)
		}
	}
}

// Quote puts a name into a message, cut when it is long.
func Quote(s string) string {
	const longest = 60
	if utf8.RuneCountInString(s) > longest {
		s = string([]rune(s)[:longest]) + "…"
	}
	return strconv.Quote(s)
}

// Spot is a line and a column, both from 1.
type Spot struct{ Line, Column int }

// Spots places many offsets in one pass over the source, so that a long list of faults stays cheap.
func Spots(src []byte, faults []Fault) []Spot {
	places := make([]int, len(faults))
	for i := range places {
		places[i] = i
	}
	order.By(places, func(a, b int) int { return faults[a].Offset - faults[b].Offset })
	out := make([]Spot, len(faults))
	at, offset := Spot{1, 1}, 0
	for _, i := range places {
		for offset < min(faults[i].Offset, len(src)) {
			r, size := utf8.DecodeRune(src[offset:])
			if offset += size; r == '\n' {
				at = Spot{at.Line + 1, 1}
			} else {
				at.Column++
			}
		}
		out[i] = at
	}
	return out
}
