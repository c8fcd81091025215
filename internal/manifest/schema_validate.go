package manifest

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"hcpx/internal/jsondoc"
	"hcpx/internal/order"
	"hcpx/internal/protocol"
)

// maxChecks bounds one validation: alternatives inside alternatives can ask more questions than a value
// has parts. A value that needs more is refused.
const maxChecks = 4_000_000

// check is one run of a schema over a value. It goes on after a violation, so that all are found.
type check struct {
	trail  []step
	found  []protocol.Violation
	checks int
}

// step is one token of the instance pointer; the name, or the index when the name is "".
type step struct {
	name  string
	index int
	array bool
}

// seen is what the schemas at one place have looked at, for the unevaluated keywords. nil = nobody asks.
type seen struct {
	members []bool
	items   []bool
}

func newSeen(v *jsondoc.Node) *seen {
	return &seen{members: make([]bool, len(v.Members)), items: make([]bool, len(v.Items))}
}

func (s *seen) member(i int) {
	if s != nil {
		s.members[i] = true
	}
}

func (s *seen) item(i int) {
	if s != nil {
		s.items[i] = true
	}
}

func (s *seen) merge(o *seen) {
	if s == nil || o == nil {
		return
	}
	for i, b := range o.members {
		s.members[i] = s.members[i] || b
	}
	for i, b := range o.items {
		s.items[i] = s.items[i] || b
	}
}

// validate finds every violation, sorted by pointer and message, each named once.
func validate(r *rule, v *jsondoc.Node) []protocol.Violation {
	c := &check{}
	c.rule(r, v, nil)
	if c.checks > maxChecks {
		return []protocol.Violation{{Message: "The value is too costly to check against the schema."}}
	}
	order.By(c.found, func(a, b protocol.Violation) int {
		return cmp.Or(strings.Compare(a.Pointer, b.Pointer), strings.Compare(a.Message, b.Message))
	})
	return slices.Compact(c.found)
}

func (c *check) say(format string, args ...any) {
	var b strings.Builder
	for _, s := range c.trail {
		name := s.name
		if s.array {
			name = strconv.Itoa(s.index)
		}
		b.WriteString(jsondoc.Pointer(name))
	}
	c.found = append(c.found, protocol.Violation{Pointer: b.String(), Message: fmt.Sprintf(format, args...)})
}

// fits asks whether the value keeps the rule, without a word about why not.
func (c *check) fits(r *rule, v *jsondoc.Node, s *seen) bool {
	before := len(c.found)
	c.rule(r, v, s)
	ok := len(c.found) == before
	c.found = c.found[:before]
	return ok
}

func (c *check) member(r *rule, m *jsondoc.Member) {
	c.trail = append(c.trail, step{name: m.Key})
	c.rule(r, m.Value, nil)
	c.trail = c.trail[:len(c.trail)-1]
}

func (c *check) item(r *rule, v *jsondoc.Node, i int) {
	c.trail = append(c.trail, step{index: i, array: true})
	c.rule(r, v, nil)
	c.trail = c.trail[:len(c.trail)-1]
}

// rule checks one value against one schema.
func (c *check) rule(r *rule, v *jsondoc.Node, s *seen) {
	if c.checks++; c.checks > maxChecks {
		return
	}
	if r.verdict == never {
		c.say("No value is allowed here.")
		return
	}
	if s == nil && (r.array != nil && r.array.unevaluated != nil || r.object != nil && r.object.unevaluated != nil) {
		s = newSeen(v)
	}
	c.value(r, v)
	if r.logic != nil {
		c.logic(r.logic, v, s)
	}
	switch {
	case v.Kind == jsondoc.Number && r.number != nil:
		c.number(r.number, v.Text)
	case v.Kind == jsondoc.String && r.text != nil:
		c.text(r.text, v.Text)
	case v.Kind == jsondoc.Array && r.array != nil:
		c.array(r.array, v, s)
	case v.Kind == jsondoc.Object && r.object != nil:
		c.object(r.object, v, s)
	}
}

// value checks type, enum, const and format.
func (c *check) value(r *rule, v *jsondoc.Node) {
	if r.types != 0 && !r.types.has(v) {
		c.say("The value is %s, not %s.", article(kindOfNode(v).names()[0]), articles(r.types))
		return
	}
	if r.enum != nil && !slices.ContainsFunc(r.enum, v.Equal) {
		c.say("The value is none of %s.", someOf(r.enum))
	}
	if r.constant != nil && !r.constant.Equal(v) {
		c.say("The value is not %s.", excerpt(r.constant))
	}
	if r.format != "" && v.Kind == jsondoc.String && !formatFits(r.format, v.Text) {
		c.say("The text has not the format %s.", jsondoc.Quote(r.format))
	}
}

// has says whether the value is of one of the types; 1.0 is an integer (§3.2).
func (k kinds) has(v *jsondoc.Node) bool {
	if v.Kind == jsondoc.Number {
		return k&kindNumber != 0 || k&kindInteger != 0 && jsondoc.Integer(v.Text)
	}
	return k&kindOfNode(v) != 0
}

func kindOfNode(v *jsondoc.Node) kinds {
	switch v.Kind {
	case jsondoc.Bool:
		return kindBoolean
	case jsondoc.Number:
		return kindNumber
	case jsondoc.String:
		return kindString
	case jsondoc.Array:
		return kindArray
	case jsondoc.Object:
		return kindObject
	default:
		return kindNull
	}
}

// number compares by value, exactly.
func (c *check) number(r *numberRule, literal string) {
	if r.minimum != "" && jsondoc.Compare(literal, r.minimum) < 0 {
		c.say("The number is below %s.", r.minimum)
	}
	if r.exclusiveMinimum != "" && jsondoc.Compare(literal, r.exclusiveMinimum) <= 0 {
		c.say("The number is not above %s.", r.exclusiveMinimum)
	}
	if r.maximum != "" && jsondoc.Compare(literal, r.maximum) > 0 {
		c.say("The number is above %s.", r.maximum)
	}
	if r.exclusiveMaximum != "" && jsondoc.Compare(literal, r.exclusiveMaximum) >= 0 {
		c.say("The number is not below %s.", r.exclusiveMaximum)
	}
	if r.multipleOf != "" && !jsondoc.MultipleOf(literal, r.multipleOf) {
		c.say("The number is no multiple of %s.", r.multipleOf)
	}
}

func (c *check) text(r *textRule, s string) {
	if r.min > 0 || r.max >= 0 {
		n := utf8.RuneCountInString(s)
		if n < r.min {
			c.say("The text has %d characters; at least %d are needed.", n, r.min)
		}
		if r.max >= 0 && n > r.max {
			c.say("The text has %d characters; at most %d are allowed.", n, r.max)
		}
	}
	if r.pattern != nil && !r.pattern.MatchString(s) {
		c.say("The text does not match the pattern %s.", jsondoc.Quote(r.pattern.String()))
	}
}

func (c *check) array(r *arrayRule, v *jsondoc.Node, s *seen) {
	if n := len(v.Items); n < r.min {
		c.say("The array has %d items; at least %d are needed.", n, r.min)
	} else if r.max >= 0 && n > r.max {
		c.say("The array has %d items; at most %d are allowed.", n, r.max)
	}
	if r.unique && !unique(v.Items) {
		c.say("The items of the array differ from each other.")
	}
	for i, item := range v.Items {
		switch {
		case i < len(r.prefix):
			c.item(r.prefix[i], item, i)
		case r.items != nil:
			c.item(r.items, item, i)
		default:
			continue
		}
		s.item(i)
	}
	if r.contains != nil {
		c.contains(r, v, s)
	}
	if r.unevaluated != nil {
		for i, item := range v.Items {
			if !s.items[i] {
				c.item(r.unevaluated, item, i)
				s.item(i)
			}
		}
	}
}

func (c *check) contains(r *arrayRule, v *jsondoc.Node, s *seen) {
	n := 0
	for i, item := range v.Items {
		if c.fits(r.contains, item, nil) {
			n++
			s.item(i)
		}
	}
	if n < r.minContains {
		c.say("The array has %d of the items it must contain; at least %d are needed.", n, r.minContains)
	}
	if r.maxContains >= 0 && n > r.maxContains {
		c.say("The array has %d of the items it may contain; at most %d are allowed.", n, r.maxContains)
	}
}

func unique(items []*jsondoc.Node) bool {
	const few = 8
	if len(items) <= few {
		for i := range items {
			if slices.ContainsFunc(items[:i], items[i].Equal) {
				return false
			}
		}
		return true
	}
	texts := make(map[string]bool, len(items))
	for _, item := range items {
		text := string(item.Canonical(nil))
		if texts[text] {
			return false
		}
		texts[text] = true
	}
	return true
}

func (c *check) object(r *objectRule, v *jsondoc.Node, s *seen) {
	if n := len(v.Members); n < r.min {
		c.say("The object has %d members; at least %d are needed.", n, r.min)
	} else if r.max >= 0 && n > r.max {
		c.say("The object has %d members; at most %d are allowed.", n, r.max)
	}
	for _, name := range r.required {
		if !v.Has(name) {
			c.say("The member %s is missing.", jsondoc.Quote(name))
		}
	}
	for _, d := range r.dependentRequired {
		for _, name := range d.needs {
			if v.Has(d.name) && !v.Has(name) {
				c.say("The member %s needs the member %s.", jsondoc.Quote(d.name), jsondoc.Quote(name))
			}
		}
	}
	for i := range v.Members {
		c.property(r, &v.Members[i], i, s)
	}
	for _, d := range r.dependentSchemas {
		if v.Has(d.name) {
			c.same(d.rule, v, s)
		}
	}
	if r.unevaluated != nil {
		for i := range v.Members {
			if !s.members[i] {
				c.extra(r.unevaluated, &v.Members[i])
				s.member(i)
			}
		}
	}
}

// property checks one member: by its name, by the patterns that match it, else as an additional one.
func (c *check) property(r *objectRule, m *jsondoc.Member, i int, s *seen) {
	if r.names != nil && !c.fits(r.names, jsondoc.Str(m.Key), nil) {
		c.trail = append(c.trail, step{name: m.Key})
		c.say("The name of the member is not allowed.")
		c.trail = c.trail[:len(c.trail)-1]
	}
	declared := false
	for _, p := range r.properties {
		if p.name == m.Key {
			c.member(p.rule, m)
			declared = true
			break
		}
	}
	for _, p := range r.patterns {
		if p.pattern.MatchString(m.Key) {
			c.member(p.rule, m)
			declared = true
		}
	}
	if !declared && r.additional != nil {
		c.extra(r.additional, m)
		declared = true
	}
	if declared {
		s.member(i)
	}
}

// extra checks a member that nothing declares; where none may be, it says so.
func (c *check) extra(r *rule, m *jsondoc.Member) {
	if r.verdict != never {
		c.member(r, m)
		return
	}
	c.trail = append(c.trail, step{name: m.Key})
	c.say("The member %s is not known.", jsondoc.Quote(m.Key))
	c.trail = c.trail[:len(c.trail)-1]
}
