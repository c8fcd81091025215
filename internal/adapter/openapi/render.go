package openapi

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"hcpx/internal/adapter"
	"hcpx/internal/jsondoc"
	"hcpx/internal/order"
	"hcpx/internal/protocol"
)

// agent is who the server is told that calls.
const agent = "hcpx"

// renderer makes one request.
type renderer struct {
	*command
	args       *jsondoc.Node
	violations []protocol.Violation
	query      []string
	cookies    []string
	header     []adapter.Field
}

// refuse notes that an argument cannot be sent as it is.
func (r *renderer) refuse(arg, format string, a ...any) {
	r.violations = append(r.violations, protocol.Violation{Pointer: jsondoc.Pointer(arg), Message: fmt.Sprintf(format, a...)})
}

// Render makes the request, once (§6.4): everything but the credential.
func (c *command) Render(args *jsondoc.Node) (*adapter.Call, []protocol.Violation) {
	r := &renderer{command: c, args: args}
	path, fixed := r.path()
	if fixed != "" {
		r.query = append(r.query, fixed)
	}
	for i := range c.op.params {
		r.parameter(&c.op.params[i])
	}
	req := &adapter.Request{Method: c.op.method, URL: c.server.origin() + path}
	if len(r.query) > 0 {
		req.URL += "?" + strings.Join(r.query, "&")
	}
	r.body(req)
	if len(r.violations) > 0 {
		return nil, r.violations
	}
	r.field("Accept", c.op.accept)
	r.field("User-Agent", agent)
	if len(r.cookies) > 0 {
		r.field("Cookie", strings.Join(r.cookies, "; "))
	}
	req.Header = sorted(r.header)
	for _, s := range c.places {
		req.Credential = append(req.Credential, s.place())
	}
	return &adapter.Call{Args: args, Request: req}, nil
}

// place is where a scheme puts the credential, in words.
func (s scheme) place() string {
	switch s.kind {
	case bearer, basic:
		return "header Authorization"
	case inHeader:
		return "header " + http.CanonicalHeaderKey(s.name)
	}
	return s.kind + " " + s.name
}

// field sets a header that no argument has set.
func (r *renderer) field(name, value string) {
	name = http.CanonicalHeaderKey(name)
	for i, f := range r.header {
		if f.Name == name && name == "Cookie" {
			r.header[i].Value += "; " + value
		}
		if f.Name == name {
			return
		}
	}
	r.header = append(r.header, adapter.Field{Name: name, Value: value})
}

func sorted(fields []adapter.Field) []adapter.Field {
	order.By(fields, func(a, b adapter.Field) int { return strings.Compare(a.Name, b.Name) })
	return fields
}

// path fills the template. A value stays within its segment: what separates segments is escaped, and what would mean
// another directory, or nothing, is refused, however often a server on the way unescapes it.
func (r *renderer) path() (path, query string) {
	template, _, _ := strings.Cut(r.op.path, "#")
	template, query, _ = strings.Cut(template, "?")
	base := r.server.base
	if r.op.ownBase {
		base = r.op.base
	}
	var last string // the argument that filled the segment, "" for none
	var out, seg strings.Builder
	out.WriteString(base)
	end := func() {
		if s := seg.String(); dots(s) || last != "" && leaves(s) { // values may do together what none does alone
			r.refuse(last, "The value would make the path's segment %s, which means another place.", s)
		}
		seg.Reset()
		last = ""
	}
	for _, p := range pieces(template) {
		if p.name == "" {
			for i, text := range strings.Split(p.text, "/") {
				if i > 0 {
					end()
					out.WriteByte('/')
				}
				out.WriteString(escapeLiteral(text))
				seg.WriteString(escapeLiteral(text))
			}
			continue
		}
		text, arg := r.filled(p.name)
		last = arg
		out.WriteString(text)
		seg.WriteString(text)
	}
	end()
	return out.String(), escapeReservedQuery(query)
}

// escapeReservedQuery is a query that a path of the document brings itself.
func escapeReservedQuery(s string) string { return keepTriples(s, "!$&'()*+,;=:@/?") }

// filled is the text of one path parameter.
func (r *renderer) filled(name string) (text, arg string) {
	i := slices.IndexFunc(r.op.params, func(p param) bool { return p.in == inPath && p.name == name })
	if i < 0 {
		return "", name // the operation was read with it
	}
	p := &r.op.params[i]
	v := r.args.Get(p.arg)
	if v == nil || v.Kind == jsondoc.Null {
		r.refuse(p.arg, "The path needs a value here.")
		return "", p.arg
	}
	for _, part := range flat(v) {
		if leaves(part) {
			r.refuse(p.arg, "The value holds a step to another directory, which a path's value may not.")
			return "x", p.arg
		}
	}
	if p.media != "" {
		text = encode(contentText(p, v), "")
	} else {
		text = segment(p, v)
	}
	if text == "" {
		r.refuse(p.arg, "The value would leave its segment of the path empty.")
	}
	return text, p.arg
}

// leaves says whether a value, unescaped as often as it can be, has a segment that means another directory.
func leaves(value string) bool {
	for range 8 {
		parts := strings.FieldsFunc(value, func(c rune) bool { return c == '/' || c == '\\' })
		if len(parts) > 1 || strings.ContainsAny(value, `/\`) {
			if slices.ContainsFunc(parts, dots) {
				return true
			}
		}
		plain, err := url.PathUnescape(value)
		if err != nil || plain == value {
			return false
		}
		if dots(plain) {
			return true
		}
		value = plain
	}
	return true // nobody means that
}

// parameter writes one parameter of query, header or cookie.
func (r *renderer) parameter(p *param) {
	v := r.args.Get(p.arg)
	if v == nil || v.Kind == jsondoc.Null || p.in == inPath {
		return
	}
	switch p.in {
	case inQuery:
		r.queryParameter(p, v)
	case inHeader:
		text := headerText(p, v)
		if p.media != "" {
			text = contentText(p, v)
		}
		if text = strings.Trim(text, " \t"); !clean(text) {
			r.refuse(p.arg, "A header is one line of characters; the value has one that ends it.")
			return
		}
		r.field(p.name, text)
	case inCookie:
		list := []pair{{name: p.name, values: []string{contentText(p, v)}}}
		if p.media == "" {
			list = pairs(p.name, p.style, p.explode, v)
		}
		for _, one := range list {
			r.cookies = append(r.cookies, one.write(func(s string) string { return encode(s, "") }))
		}
	}
}

func (r *renderer) queryParameter(p *param, v *jsondoc.Node) {
	part := func(s string) string { return encode(s, "") }
	list := []pair{{name: p.name, values: []string{contentText(p, v)}}}
	if p.media == "" {
		list = pairs(p.name, p.style, p.explode, v)
	}
	for _, one := range list {
		if !p.reserved {
			r.query = append(r.query, one.write(part))
			continue
		}
		name := part(one.name)
		one.name = ""
		r.query = append(r.query, name+one.write(escapeReserved))
	}
}

// contentText is a parameter that has a media type in place of a style.
func contentText(p *param, v *jsondoc.Node) string {
	if p.media == "json" {
		return string(v.Append(nil))
	}
	return plain(v)
}
