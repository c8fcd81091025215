package jq

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/itchyny/gojq"

	"hcpx/internal/jsondoc"
)

// forbidden says whether a function is closed to expressions (§3.5): it would bring in a clock, the
// machine's time zone, the environment, other input, or end the program. A step computes from args and
// steps alone, so that the same run gives the same value.
func forbidden(name string) bool {
	switch name {
	case "now", "localtime", "strflocaltime", "mktime", "halt", "halt_error", "env", "$ENV", "debug", "stderr",
		"modulemeta", "get_search_list", "$__prog_args":
		return true
	}
	return strings.HasPrefix(name, "input")
}

// inspector walks a parsed expression and keeps the first thing that is not allowed.
type inspector struct{ err error }

// inspect refuses what §3.5 closes, wherever it stands, and a number that jq would round.
func inspect(q *gojq.Query) error {
	var i inspector
	if q.Meta != nil {
		i.refuse("an expression is no module")
	}
	i.query(q)
	return i.err
}

func (i *inspector) refuse(format string, a ...any) {
	if i.err == nil {
		i.err = fmt.Errorf(format, a...)
	}
}

func (i *inspector) query(q *gojq.Query) {
	if q == nil {
		return
	}
	if len(q.Imports) > 0 {
		i.refuse("import and include are not allowed")
	}
	for _, def := range q.FuncDefs {
		i.query(def.Body)
	}
	i.term(q.Term)
	i.query(q.Left)
	i.query(q.Right)
	i.patterns(q.Patterns)
}

func (i *inspector) queries(list ...*gojq.Query) {
	for _, q := range list {
		i.query(q)
	}
}

func (i *inspector) term(t *gojq.Term) {
	if t == nil {
		return
	}
	if t.Type == gojq.TermTypeNumber {
		i.number(t.Number)
	}
	if f := t.Func; f != nil {
		if forbidden(f.Name) {
			i.refuse("%s is not allowed", f.Name)
		}
		i.queries(f.Args...)
	}
	i.index(t.Index)
	i.object(t.Object)
	i.text(t.Str)
	i.control(t)
	if t.Array != nil {
		i.query(t.Array.Query)
	}
	if t.Unary != nil {
		i.term(t.Unary.Term)
	}
	i.query(t.Query)
	for _, s := range t.SuffixList {
		i.index(s.Index)
	}
}

func (i *inspector) control(t *gojq.Term) {
	if c := t.If; c != nil {
		i.queries(c.Cond, c.Then, c.Else)
		for _, elif := range c.Elif {
			i.queries(elif.Cond, elif.Then)
		}
	}
	if c := t.Try; c != nil {
		i.queries(c.Body, c.Catch)
	}
	if c := t.Reduce; c != nil {
		i.queries(c.Query, c.Start, c.Update)
		i.patterns(c.Patterns)
	}
	if c := t.Foreach; c != nil {
		i.queries(c.Query, c.Start, c.Update, c.Extract)
		i.patterns(c.Patterns)
	}
	if c := t.Label; c != nil {
		i.query(c.Body)
	}
}

func (i *inspector) index(x *gojq.Index) {
	if x != nil {
		i.text(x.Str)
		i.queries(x.Start, x.End)
	}
}

func (i *inspector) text(s *gojq.String) {
	if s != nil {
		i.queries(s.Queries...)
	}
}

func (i *inspector) object(o *gojq.Object) {
	if o == nil {
		return
	}
	for _, kv := range o.KeyVals {
		if forbidden(kv.Key) && strings.HasPrefix(kv.Key, "$") {
			i.refuse("%s is not allowed", kv.Key) // {$ENV} is short for {ENV: $ENV}
		}
		i.text(kv.KeyString)
		i.queries(kv.KeyQuery, kv.Val)
	}
}

func (i *inspector) patterns(list []*gojq.Pattern) {
	for _, p := range list {
		i.patterns(p.Array)
		for _, o := range p.Object {
			i.text(o.KeyString)
			i.query(o.KeyQuery)
			if o.Val != nil {
				i.patterns([]*gojq.Pattern{o.Val})
			}
		}
	}
}

// number refuses a decimal that would be silently rounded: jq keeps numbers of any length that it passes
// on, and whole ones that it computes with, but reads a decimal of the expression itself as a double.
func (i *inspector) number(literal string) {
	if strings.HasPrefix(literal, ".") {
		literal = "0" + literal
	}
	literal = strings.Replace(strings.TrimSuffix(literal, "."), ".e", "e", 1)
	literal = strings.Replace(literal, ".E", "e", 1)
	if !strings.ContainsAny(literal, ".eE") {
		return
	}
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil || math.IsInf(f, 0) || jsondoc.Compare(literal, strconv.FormatFloat(f, 'g', -1, 64)) != 0 {
		i.refuse("the number %s would be rounded", literal)
	}
}
