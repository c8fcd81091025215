package grant

import (
	"encoding/json"
	"strings"

	"hcpx/internal/jsondoc"
)

// rule is the rule on one argument: it fits one of the words, which are globs, or one of the values.
type rule struct {
	name   string
	words  []string
	values []json.RawMessage
}

// sortRules makes the rules of a grant ready for many questions: texts without escapes are taken out of their JSON.
func (g *Grant) sortRules() []rule {
	var rules []rule
	for name, values := range g.Args {
		r := rule{name: name}
		for _, v := range values {
			if word, ok := plain(v); ok {
				r.words = append(r.words, word)
			} else {
				r.values = append(r.values, v)
			}
		}
		rules = append(rules, r)
	}
	return rules
}

// argsFit says whether every named argument is present and fits one of its values (§9.6). A rule that can't be read
// fits nothing. rules are the grant's own, sorted, or nil.
func (g *Grant) argsFit(args *jsondoc.Node, rules []rule) bool {
	for i := range rules {
		if arg := args.Get(rules[i].name); arg == nil || !rules[i].fits(arg) {
			return false
		}
	}
	if rules != nil {
		return true
	}
	for name, values := range g.Args {
		r := rule{values: values}
		if arg := args.Get(name); arg == nil || !r.fits(arg) {
			return false
		}
	}
	return true
}

// fits: an equal JSON value, a glob for strings, or an array whose every item fits (§9.6).
func (r *rule) fits(arg *jsondoc.Node) bool {
	if arg.Kind == jsondoc.String && oneOf(r.words, arg.Text) {
		return true
	}
	for _, v := range r.values {
		if valueFits(v, arg) {
			return true
		}
	}
	if arg.Kind != jsondoc.Array {
		return false
	}
	for _, item := range arg.Items {
		if !r.fits(item) {
			return false
		}
	}
	return true
}

func oneOf(words []string, s string) bool {
	for _, w := range words {
		if Glob(w, s) {
			return true
		}
	}
	return false
}

func valueFits(raw json.RawMessage, arg *jsondoc.Node) bool {
	if word, ok := plain(raw); ok {
		return arg.Kind == jsondoc.String && Glob(word, arg.Text)
	}
	rule, faults := jsondoc.Parse(raw, jsondoc.Limits{})
	if rule == nil || len(faults) > 0 {
		return false
	}
	if rule.Kind == jsondoc.String && arg.Kind == jsondoc.String {
		return Glob(rule.Text, arg.Text)
	}
	return rule.Equal(arg)
}

// plain is a rule that is a text without escapes, as nearly all are: it needs no parser.
func plain(raw json.RawMessage) (string, bool) {
	n := len(raw)
	if n < 2 || raw[0] != '"' || raw[n-1] != '"' {
		return "", false
	}
	for _, c := range raw[1 : n-1] {
		if c < ' ' || c >= 0x80 || c == '"' || c == '\\' {
			return "", false
		}
	}
	return string(raw[1 : n-1]), true
}

// ArgValue reads the V of --arg K=V: JSON when it is true, false, null or a number, else a glob (§9.6).
func ArgValue(s string) json.RawMessage {
	node, faults := jsondoc.Parse([]byte(s), jsondoc.Limits{})
	if node != nil && len(faults) == 0 && strings.TrimSpace(s) == s {
		switch node.Kind {
		case jsondoc.Null, jsondoc.Bool, jsondoc.Number:
			return json.RawMessage(s)
		}
	}
	return jsondoc.Str(s).Append(nil)
}
