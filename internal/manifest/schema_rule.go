package manifest

import (
	"regexp"

	"hcpx/internal/jsondoc"
)

// rule is one compiled schema (§3.2): JSON Schema 2020-12 over jsondoc, so that numbers stay exact and
// every violation has its place. What applies to one kind of value only hangs in a part of its own; most
// rules have one or two parts.
type rule struct {
	node     *jsondoc.Node
	verdict  verdict
	types    kinds // 0 = any
	enum     []*jsondoc.Node
	constant *jsondoc.Node
	format   string
	number   *numberRule
	text     *textRule
	array    *arrayRule
	object   *objectRule
	logic    *logicRule
}

// verdict is the answer of a schema that is true or false.
type verdict uint8

const (
	ask verdict = iota
	always
	never
)

// kinds is a set of JSON Schema types.
type kinds uint8

const (
	kindNull kinds = 1 << iota
	kindBoolean
	kindInteger
	kindNumber
	kindString
	kindArray
	kindObject
)

// typeNames are the names of the kinds, in the order of their bits.
var typeNames = [...]string{"null", "boolean", "integer", "number", "string", "array", "object"}

func kindOf(name string) kinds {
	for i, n := range typeNames {
		if n == name {
			return 1 << i
		}
	}
	return 0
}

func (k kinds) names() []string {
	var out []string
	for i, n := range typeNames {
		if k&(1<<i) != 0 {
			out = append(out, n)
		}
	}
	return out
}

// numberRule holds the bounds as literals: they are compared exactly.
type numberRule struct{ multipleOf, maximum, exclusiveMaximum, minimum, exclusiveMinimum string }

type textRule struct {
	min, max int // max -1 = none
	pattern  *regexp.Regexp
}

type arrayRule struct {
	min, max                 int
	minContains, maxContains int
	unique                   bool
	prefix                   []*rule
	items, contains          *rule
	unevaluated              *rule
}

type objectRule struct {
	min, max          int
	required          []string
	properties        []namedRule
	patterns          []patternRule
	additional        *rule
	names             *rule
	unevaluated       *rule
	dependentRequired []dependency
	dependentSchemas  []namedRule
}

type namedRule struct {
	name string
	rule *rule
}

type patternRule struct {
	pattern *regexp.Regexp
	rule    *rule
}

type dependency struct {
	name  string
	needs []string
}

// logicRule holds what applies to the same value again.
type logicRule struct {
	ref                        *rule
	allOf, anyOf, oneOf        []*rule
	not, when, then, otherwise *rule
}

// inPlace lists the rules that apply to the same value as r.
func (r *rule) inPlace() []*rule {
	var out []*rule
	if l := r.logic; l != nil {
		for _, one := range []*rule{l.ref, l.not, l.when, l.then, l.otherwise} {
			if one != nil {
				out = append(out, one)
			}
		}
		out = append(append(append(out, l.allOf...), l.anyOf...), l.oneOf...)
	}
	if r.object != nil {
		for _, d := range r.object.dependentSchemas {
			out = append(out, d.rule)
		}
	}
	return out
}

func (r *rule) numbers() *numberRule {
	if r.number == nil {
		r.number = &numberRule{}
	}
	return r.number
}

func (r *rule) texts() *textRule {
	if r.text == nil {
		r.text = &textRule{max: -1}
	}
	return r.text
}

func (r *rule) arrays() *arrayRule {
	if r.array == nil {
		r.array = &arrayRule{max: -1, minContains: 1, maxContains: -1}
	}
	return r.array
}

func (r *rule) objects() *objectRule {
	if r.object == nil {
		r.object = &objectRule{max: -1}
	}
	return r.object
}

func (r *rule) logics() *logicRule {
	if r.logic == nil {
		r.logic = &logicRule{}
	}
	return r.logic
}
