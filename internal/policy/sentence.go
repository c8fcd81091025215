package policy

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"hcpx/internal/jsondoc"
)

// piece is a part of a sentence: literal text, or the name of an argument.
type piece struct {
	text string
	name bool
}

// pieces splits a template at its {name}s; {{ and }} are literal braces. rest is where a brace has no
// partner, "" when all have.
func pieces(template string) (out []piece, rest string) {
	var literal strings.Builder
	for i := 0; i < len(template); {
		switch c := template[i]; {
		case c != '{' && c != '}':
			literal.WriteByte(c)
			i++
		case i+1 < len(template) && template[i+1] == c:
			literal.WriteByte(c)
			i += 2
		default:
			end := strings.IndexByte(template[i:], '}')
			if c == '}' || end < 2 || strings.ContainsAny(template[i+1:i+end], "{") {
				return nil, template[i:]
			}
			out = append(out, piece{text: literal.String()}, piece{text: template[i+1 : i+end], name: true})
			literal.Reset()
			i += end + 1
		}
	}
	return append(out, piece{text: literal.String()}), ""
}

func badTemplate(template string) string {
	_, rest := pieces(template)
	return rest
}

// Placeholders are the arguments that the sentence names, for the check against the command's schema: an
// unknown one is policy.schema (§4.5).
func (e *Entry) Placeholders() []string {
	var names []string
	all, _ := pieces(e.Message)
	for _, p := range all {
		if p.name && !slices.Contains(names, p.text) {
			names = append(names, p.text)
		}
	}
	return names
}

// Sentence is what a person is asked before a gated write (§4.5): the message with the arguments filled
// in, or a plain question when the policy has none. Characters that could redraw a terminal or turn the
// text around stand escaped.
func (e *Entry) Sentence(args *jsondoc.Node) string {
	if e.Message == "" {
		return "Run the write command " + e.Key + "?"
	}
	var b strings.Builder
	all, _ := pieces(e.Message)
	for _, p := range all {
		if p.name {
			b.WriteString(visible(shown(args.Get(p.text))))
		} else {
			b.WriteString(p.text)
		}
	}
	return b.String()
}

// shown is an argument as people read it.
func shown(v *jsondoc.Node) string {
	switch {
	case v == nil:
		return "(not given)"
	case v.Kind == jsondoc.String:
		return v.Text
	case v.Kind == jsondoc.Number:
		return jsondoc.Written(v.Text)
	default:
		return string(v.Append(nil))
	}
}

// visible escapes what a person would not see as text: control, format and separator characters.
func visible(s string) string {
	if !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if hidden(r) {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}
