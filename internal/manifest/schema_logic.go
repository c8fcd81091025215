package manifest

import (
	"strings"
	"unicode/utf8"

	"hcpx/internal/jsondoc"
)

// same checks another rule on the same value. What a rule that fails has looked at does not count.
func (c *check) same(r *rule, v *jsondoc.Node, s *seen) {
	if s == nil {
		c.rule(r, v, nil)
		return
	}
	before, own := len(c.found), newSeen(v)
	c.rule(r, v, own)
	if len(c.found) == before {
		s.merge(own)
	}
}

// tries asks whether the value keeps the rule, and counts what it has looked at if so.
func (c *check) tries(r *rule, v *jsondoc.Node, s *seen) bool {
	var own *seen
	if s != nil {
		own = newSeen(v)
	}
	if !c.fits(r, v, own) {
		return false
	}
	s.merge(own)
	return true
}

func (c *check) logic(l *logicRule, v *jsondoc.Node, s *seen) {
	if l.ref != nil {
		c.same(l.ref, v, s)
	}
	for _, r := range l.allOf {
		c.same(r, v, s)
	}
	if l.anyOf != nil {
		c.anyOf(l.anyOf, v, s)
	}
	if l.oneOf != nil {
		c.oneOf(l.oneOf, v, s)
	}
	if l.not != nil && c.fits(l.not, v, nil) {
		c.say("The value has the form that is excluded.")
	}
	if l.when == nil {
		return
	}
	branch := l.otherwise
	if c.tries(l.when, v, s) {
		branch = l.then
	}
	if branch != nil {
		c.same(branch, v, s)
	}
}

func (c *check) anyOf(list []*rule, v *jsondoc.Node, s *seen) {
	fits := false
	for _, r := range list {
		if fits && s == nil {
			return
		}
		fits = c.tries(r, v, s) || fits
	}
	if !fits {
		c.say("The value has none of the %d forms that are allowed.", len(list))
	}
}

func (c *check) oneOf(list []*rule, v *jsondoc.Node, s *seen) {
	n := 0
	for _, r := range list {
		if c.tries(r, v, s) {
			n++
		}
	}
	switch {
	case n == 0:
		c.say("The value has none of the %d forms that are allowed.", len(list))
	case n > 1:
		c.say("The value has %d of the forms of which exactly one is allowed.", n)
	}
}

// article puts a or an before the name of a type; null stands alone.
func article(name string) string {
	switch {
	case name == "null":
		return name
	case strings.IndexByte("aeiou", name[0]) >= 0:
		return "an " + name
	default:
		return "a " + name
	}
}

func articles(k kinds) string {
	names := k.names()
	for i := range names {
		names[i] = article(names[i])
	}
	return strings.Join(names, " or ")
}

// excerpt is a value as it stands in a message, cut when it is long.
func excerpt(v *jsondoc.Node) string {
	const longest = 60
	text := string(v.Append(nil))
	if utf8.RuneCountInString(text) > longest {
		text = string([]rune(text)[:longest]) + "…"
	}
	return text
}

// someOf names the values of an enum, cut after some.
func someOf(values []*jsondoc.Node) string {
	const some = 12
	var texts []string
	for i, v := range values {
		if i == some {
			texts = append(texts, "…")
			break
		}
		texts = append(texts, excerpt(v))
	}
	return strings.Join(texts, ", ")
}
