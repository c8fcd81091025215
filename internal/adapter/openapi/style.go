package openapi

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"hcpx/internal/jsondoc"
)

// The characters that stand in a part of a URL as they are (RFC 3986).
const unreserved = "-._~"

// encode writes a text for a URL: what is not unreserved, and none of keep, becomes %XX.
func encode(s, keep string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte(unreserved, c) >= 0 || strings.IndexByte(keep, c) >= 0:
			b.WriteByte(c)
		default:
			const hex = "0123456789ABCDEF"
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
	}
	return b.String()
}

// escapeLiteral writes what a document or manifest says of a path: its own escapes stay.
func escapeLiteral(s string) string { return keepTriples(s, "!$&'()*+,;=:@/") }

// escapeReserved writes a value where reserved characters may stand (RFC 6570 3.2.3): all but those that would end the
// query or begin another parameter.
func escapeReserved(s string) string { return keepTriples(s, "!$'()*+,;=:@/?") }

// keepTriples encodes what is outside of %XX.
func keepTriples(s, keep string) string {
	var b strings.Builder
	for s != "" {
		i := strings.IndexByte(s, '%')
		if i < 0 {
			i = len(s)
		}
		b.WriteString(encode(s[:i], keep))
		if s = s[i:]; s == "" {
			break
		}
		if len(s) > 2 && isHex(s[1]) && isHex(s[2]) {
			b.WriteString(s[:3])
			s = s[3:]
			continue
		}
		b.WriteString("%25")
		s = s[1:]
	}
	return b.String()
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// plain is a value as one text: a text as it is, numbers with their digits (§3.2), anything with parts as JSON.
func plain(v *jsondoc.Node) string {
	switch v.Kind {
	case jsondoc.String:
		return v.Text
	case jsondoc.Number:
		return jsondoc.Written(v.Text)
	case jsondoc.Bool:
		return v.Text
	case jsondoc.Null:
		return ""
	}
	return string(v.Append(nil))
}

// pair is a name with its value, as a query, a form or cookies have them; both are as given, not yet encoded. lists are
// values that a delimiter joins.
type pair struct {
	name   string
	values []string
	delim  string // as it is written, already encoded
}

// flat is the row of a value's parts: a primitive alone, items, or names and values in turn. null sends nothing.
func flat(v *jsondoc.Node) []string {
	switch v.Kind {
	case jsondoc.Null:
		return nil
	case jsondoc.Array:
		var out []string
		for _, item := range v.Items {
			if item.Kind != jsondoc.Null {
				out = append(out, plain(item))
			}
		}
		return out
	case jsondoc.Object:
		var out []string
		for _, m := range v.Members {
			if m.Value.Kind != jsondoc.Null {
				out = append(out, m.Key, plain(m.Value))
			}
		}
		return out
	}
	return []string{plain(v)}
}

// pairs is a value in the styles that query, forms and cookies have: form, spaceDelimited, pipeDelimited, deepObject.
func pairs(name, style string, explode bool, v *jsondoc.Node) []pair {
	if style == "deepObject" && (v.Kind == jsondoc.Object || v.Kind == jsondoc.Array) {
		return brackets(name, v)
	}
	values := flat(v)
	if len(values) == 0 {
		return nil
	}
	if !explode || v.Kind != jsondoc.Array && v.Kind != jsondoc.Object {
		return []pair{{name, values, map[string]string{"spaceDelimited": "%20", "pipeDelimited": "%7C"}[style]}}
	}
	var out []pair
	if v.Kind == jsondoc.Object {
		for i := 0; i < len(values); i += 2 {
			out = append(out, pair{values[i], values[i+1 : i+2], ""})
		}
		return out
	}
	for _, value := range values {
		out = append(out, pair{name, []string{value}, ""})
	}
	return out
}

// brackets is deepObject: name[key]=value, and as deep as the value goes.
func brackets(name string, v *jsondoc.Node) []pair {
	var out []pair
	switch v.Kind {
	case jsondoc.Object:
		for _, m := range v.Members {
			out = append(out, brackets(name+"["+m.Key+"]", m.Value)...)
		}
	case jsondoc.Array:
		for i, item := range v.Items {
			out = append(out, brackets(name+"["+strconv.Itoa(i)+"]", item)...)
		}
	case jsondoc.Null:
	default:
		out = append(out, pair{name, []string{plain(v)}, ""})
	}
	return out
}

// write joins a pair, each part encoded by itself.
func (p pair) write(part func(string) string) string {
	delim := p.delim
	if delim == "" {
		delim = ","
	}
	all := make([]string, len(p.values))
	for i, v := range p.values {
		all[i] = part(v)
	}
	return part(p.name) + "=" + strings.Join(all, delim)
}

// segment is a value in the styles that a path has: simple, label, matrix.
func segment(p *param, v *jsondoc.Node) string {
	part := func(s string) string { return encode(s, "") }
	values := flat(v)
	for i := range values {
		values[i] = part(values[i])
	}
	pairwise := p.explode && v.Kind == jsondoc.Object
	if pairwise {
		values = equals(values)
	}
	switch {
	case p.style == "label" && p.explode:
		return "." + strings.Join(values, ".")
	case p.style == "label":
		return "." + strings.Join(values, ",")
	case p.style == "matrix" && pairwise:
		return prefixed(";", values)
	case p.style == "matrix" && p.explode:
		for i := range values {
			values[i] = part(p.name) + "=" + values[i]
		}
		return prefixed(";", values)
	case p.style == "matrix" && strings.Join(values, "") == "":
		return ";" + part(p.name)
	case p.style == "matrix":
		return ";" + part(p.name) + "=" + strings.Join(values, ",")
	}
	return strings.Join(values, ",")
}

// equals makes name=value of names and values in turn.
func equals(values []string) []string {
	var out []string
	for i := 0; i+1 < len(values); i += 2 {
		out = append(out, values[i]+"="+values[i+1])
	}
	return out
}

func prefixed(mark string, values []string) string {
	out := ""
	for _, v := range values {
		out += mark + strings.TrimSuffix(v, "=")
	}
	return out
}

// headerText is a value as a header has it (simple), which nothing encodes.
func headerText(p *param, v *jsondoc.Node) string {
	values := flat(v)
	if p.explode && v.Kind == jsondoc.Object {
		values = equals(values)
	}
	return strings.Join(values, ",")
}

// clean says whether a text can be a header's value: one line of characters.
func clean(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f })
}
