package openapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"hcpx/internal/jsondoc"
)

// Where a parameter stands.
const (
	inPath   = "path"
	inQuery  = "query"
	inHeader = "header"
	inCookie = "cookie"
)

// operation is what is kept of one operation: all that a request needs.
type operation struct {
	method, path string
	base         string // the path that the operation's own server adds; only when ownBase
	ownBase      bool
	params       []param
	body         *body
	security     [][]scheme // alternatives; each is what it needs together
	accept       string
	json         bool          // its answers are JSON where the server does not say what they are
	args         *jsondoc.Node // the derived schema
}

// param is one parameter and how its value is written.
type param struct {
	arg, name, in string
	style         string
	explode       bool
	reserved      bool // allowReserved
	required      bool
	media         string // of content: "json" or "text"; "" for a style
}

// scheme is where a credential goes: bearer, basic, or a key in header, query or cookie under a name; other for one that
// this runtime does not know.
type scheme struct{ kind, name string }

const (
	bearer = "bearer"
	basic  = "basic"
	other  = "other"
)

// reading reads one operation.
type reading struct {
	doc    *Document
	spot   spot
	server server // the manifest's
	op     operation
	tr     *translator
	schema map[string]*jsondoc.Node // of parameters, by argument
	notes  map[string]*jsondoc.Node // their descriptions
	lifted *lifting                 // the body whose members are arguments
}

// operation reads the operation that a command names.
func (d *Document) operation(at spot, srv server) (*operation, error) {
	r := &reading{doc: d, spot: at, server: srv, tr: newTranslator(d), schema: map[string]*jsondoc.Node{}, notes: map[string]*jsondoc.Node{}}
	r.op.method, r.op.path = at.method, at.path
	for _, part := range []func() error{r.servers, r.security, r.parameters, r.template, r.requestBody, r.answers, r.derive} {
		if err := part(); err != nil {
			return nil, err
		}
	}
	return &r.op, nil
}

// bad is something wrong with the operation, at a place in the document.
func (r *reading) bad(n *jsondoc.Node, pointer, format string, args ...any) error {
	return &trouble{"openapi.operation", n, pointer, fmt.Sprintf(format, args...)}
}

// servers: those of a path or an operation count only within the manifest's origin (§3.6).
func (r *reading) servers() error {
	for _, own := range []struct {
		node    *jsondoc.Node
		pointer string
	}{{r.spot.node, r.spot.pointer}, {r.spot.item, r.spot.itemPointer}} {
		list := own.node.Get("servers")
		if list == nil || list.Kind != jsondoc.Array || len(list.Items) == 0 {
			continue
		}
		for _, s := range list.Items {
			if base, ok := r.server.within(filled(s)); ok {
				r.op.base, r.op.ownBase = base, true
				return nil
			}
		}
		return &trouble{"openapi.server", list, own.pointer + "/servers", "The operation has a server of its own with another origin than the manifest's, which is the only one that is called."}
	}
	return nil
}

// filled is a server's address with the defaults of its variables.
func filled(s *jsondoc.Node) string {
	address := s.Get("url")
	if address == nil {
		return ""
	}
	text := address.Text
	if vars := s.Get("variables"); vars != nil {
		for _, v := range vars.Members {
			if d := v.Value.Get("default"); d != nil {
				text = strings.ReplaceAll(text, "{"+v.Key+"}", d.Text)
			}
		}
	}
	return text
}

// security reads the requirements: those of the operation, else those of the whole document.
func (r *reading) security() error {
	list := r.spot.node.Get("security")
	if list == nil {
		list = r.doc.root.Get("security")
	}
	if list == nil || list.Kind != jsondoc.Array {
		return nil
	}
	for _, need := range list.Items {
		all := []scheme{}
		for _, m := range need.Members {
			all = append(all, r.scheme(m.Key))
		}
		r.op.security = append(r.op.security, all)
	}
	return nil
}

func (r *reading) scheme(name string) scheme {
	schemes := r.doc.root.Get("components").Get("securitySchemes")
	n, _, err := r.doc.member(schemes, "/components/securitySchemes", name)
	if err != nil || n == nil {
		return scheme{other, name}
	}
	text := func(key string) string {
		if v := n.Get(key); v != nil && v.Kind == jsondoc.String {
			return v.Text
		}
		return ""
	}
	switch typ, in := text("type"), text("in"); {
	case typ == "oauth2" || typ == "openIdConnect" || typ == "http" && strings.EqualFold(text("scheme"), bearer):
		return scheme{bearer, ""}
	case typ == "http" && strings.EqualFold(text("scheme"), basic):
		return scheme{basic, ""}
	case typ == "apiKey" && (in == inHeader || in == inQuery || in == inCookie) && usableKey(in, text("name")):
		return scheme{in, text("name")}
	}
	return scheme{other, name}
}

// usableKey says whether a key can stand under that name.
func usableKey(in, name string) bool {
	return name != "" && (in == inQuery || token(name) && (in != inHeader || !own(name)))
}

// token says whether s can name a header or a cookie.
func token(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
	})
}

// own are headers that belong to the connection; no document sets them.
func own(name string) bool {
	return slices.Contains([]string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer", "Keep-Alive", "Expect",
		"Proxy-Authorization", "Proxy-Connection", "Accept-Encoding", "Cookie"}, http.CanonicalHeaderKey(name))
}

// parameters reads those of the path item, then those of the operation, which replace them by name and place.
func (r *reading) parameters() error {
	type key struct{ name, in string }
	var order []key
	found := map[key]param{}
	for _, from := range []struct {
		node    *jsondoc.Node
		pointer string
	}{{r.spot.item, r.spot.itemPointer}, {r.spot.node, r.spot.pointer}} {
		list := from.node.Get("parameters")
		if list == nil || list.Kind != jsondoc.Array {
			continue
		}
		for i, item := range list.Items {
			n, at, err := r.doc.follow(item, fmt.Sprintf("%s/parameters/%d", from.pointer, i))
			if err != nil {
				return err
			}
			p, err := r.parameter(n, at)
			if err != nil {
				return err
			}
			k := key{p.name, p.in}
			if p.in == inHeader {
				k.name = strings.ToLower(p.name)
			}
			if p.name == "" {
				continue
			}
			if _, there := found[k]; !there {
				order = append(order, k)
			}
			found[k] = *p
			r.schema[p.in+" "+p.name], r.notes[p.in+" "+p.name] = schemaOf(n, at, r), n.Get("description")
		}
	}
	for _, k := range order {
		r.op.params = append(r.op.params, found[k])
	}
	r.nameArguments()
	return nil
}

// nameArguments names arguments as their parameters; where a name is taken by an earlier place it gets its own with it.
func (r *reading) nameArguments() {
	taken := map[string]bool{}
	for _, in := range []string{inPath, inQuery, inHeader, inCookie} {
		for i := range r.op.params {
			p := &r.op.params[i]
			if p.in != in {
				continue
			}
			p.arg = p.name
			for taken[p.arg] {
				p.arg += "_" + in
			}
			taken[p.arg] = true
		}
	}
}

// parameter reads one; its name is "" when it is none that a caller gives.
func (r *reading) parameter(n *jsondoc.Node, at string) (*param, error) {
	p := &param{explode: false}
	for key, to := range map[string]*string{"name": &p.name, "in": &p.in, "style": &p.style} {
		if v := n.Get(key); v != nil && v.Kind == jsondoc.String {
			*to = v.Text
		}
	}
	p.required, p.reserved = isTrue(n.Get("required")), isTrue(n.Get("allowReserved"))
	switch {
	case p.name == "" || !slices.Contains([]string{inPath, inQuery, inHeader, inCookie}, p.in):
		return nil, r.bad(n, at, "A parameter has a name and stands in path, query, header or cookie.")
	case p.in == inHeader && ignored(p.name) || r.credential(p):
		return &param{}, nil
	case p.in == inHeader && (own(p.name) || !token(p.name)), p.in == inCookie && !token(p.name):
		if p.required {
			return nil, r.bad(n, at, "The %s %s is none that a command may set.", p.in, jsondoc.Quote(p.name))
		}
		return &param{}, nil
	}
	if content := n.Get("content"); content != nil && content.Kind == jsondoc.Object && len(content.Members) > 0 {
		p.style, p.media = "", "text"
		if isJSON(content.Members[0].Key) {
			p.media = "json"
		}
		return p, nil
	}
	return p, r.style(p, n, at)
}

// style fills in the standard's defaults, and refuses a style that its place does not have.
func (r *reading) style(p *param, n *jsondoc.Node, at string) error {
	allowed := map[string][]string{inPath: {"simple", "label", "matrix"}, inQuery: {"form", "spaceDelimited", "pipeDelimited", "deepObject"},
		inHeader: {"simple"}, inCookie: {"form"}}[p.in]
	if p.style == "" {
		p.style = allowed[0]
	}
	if !slices.Contains(allowed, p.style) {
		return r.bad(n, at, "A parameter in %s has no style %s.", p.in, jsondoc.Quote(p.style))
	}
	p.explode = p.style == "form" || p.style == "deepObject"
	if v := n.Get("explode"); v != nil && v.Kind == jsondoc.Bool {
		p.explode = isTrue(v)
	}
	return nil
}

// ignored are headers whose parameters the standard tells to ignore: the body, the answers and the security say them.
func ignored(name string) bool {
	return strings.EqualFold(name, "Accept") || strings.EqualFold(name, "Content-Type") || strings.EqualFold(name, "Authorization")
}

// credential says whether the parameter is the place where the credential goes: nobody gives that as an argument.
func (r *reading) credential(p *param) bool {
	for _, all := range r.op.security {
		for _, s := range all {
			if s.kind == p.in && (s.name == p.name || p.in == inHeader && strings.EqualFold(s.name, p.name)) {
				return true
			}
		}
	}
	return false
}

// schemaOf is the schema of a parameter, translated.
func schemaOf(n *jsondoc.Node, at string, r *reading) *jsondoc.Node {
	if content := n.Get("content"); content != nil && len(content.Members) > 0 {
		m := content.Members[0]
		return r.tr.schema(m.Value.Get("schema"), jsondoc.Below(at+"/content", m.Key)+"/schema", 0)
	}
	return r.tr.schema(n.Get("schema"), at+"/schema", 0)
}

// template: each {name} of the path has its parameter, which is then required; one that the path lacks has no use.
func (r *reading) template() error {
	names := map[string]bool{}
	for _, piece := range pieces(r.op.path) {
		if piece.name == "" {
			continue
		}
		names[piece.name] = true
		if !slices.ContainsFunc(r.op.params, func(p param) bool { return p.in == inPath && p.name == piece.name }) {
			return r.bad(r.spot.node, r.spot.pointer, "The path names {%s}, and no parameter in path has that name.", piece.name)
		}
	}
	r.op.params = slices.DeleteFunc(r.op.params, func(p param) bool { return p.in == inPath && !names[p.name] })
	for i := range r.op.params {
		r.op.params[i].required = r.op.params[i].required || r.op.params[i].in == inPath
	}
	if !strings.HasPrefix(r.op.path, "/") {
		return r.bad(r.spot.node, r.spot.pointer, "A path begins with a slash.")
	}
	return nil
}

// piece is a part of a path template: text as it stands, or the name of a parameter.
type piece struct{ text, name string }

func pieces(template string) []piece {
	var out []piece
	for template != "" {
		open := strings.IndexByte(template, '{')
		end := -1
		if open >= 0 {
			end = strings.IndexByte(template[open:], '}')
		}
		if end < 0 {
			return append(out, piece{text: template})
		}
		if open > 0 {
			out = append(out, piece{text: template[:open]})
		}
		out = append(out, piece{name: template[open+1 : open+end]})
		template = template[open+end+1:]
	}
	return out
}

// answers: what the operation's answers are says the Accept header.
func (r *reading) answers() error {
	responses := r.spot.node.Get("responses")
	var kinds []string
	if responses != nil {
		for _, m := range responses.Members {
			n, _, err := r.doc.follow(m.Value, "")
			if err != nil || !strings.HasPrefix(m.Key, "2") && m.Key != "default" {
				continue
			}
			if content := n.Get("content"); content != nil {
				for _, c := range content.Members {
					if kind := mediaType(c.Key); kind != "" && !slices.Contains(kinds, kind) && len(kinds) < 8 {
						kinds = append(kinds, kind)
					}
					r.op.json = r.op.json || isJSON(c.Key)
				}
			}
		}
	}
	if len(kinds) == 0 {
		kinds, r.op.json = []string{"application/json", "*/*"}, true
	}
	r.op.accept = strings.Join(kinds, ", ")
	return nil
}
