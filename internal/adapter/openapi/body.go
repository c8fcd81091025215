package openapi

import (
	"slices"
	"strings"

	"hcpx/internal/jsondoc"
)

// The kinds of a body.
const (
	bodyJSON      = "json"
	bodyForm      = "form"
	bodyMultipart = "multipart"
	bodyText      = "text"
	bodyBinary    = "binary"
)

// body is how the request's body is made.
type body struct {
	kind, media string
	arg         string // of the whole body, where it is not lifted
	lifted      bool   // its members are arguments of their own
	required    bool
	fields      map[string]field // of form and multipart, where they differ from the default
}

// field is how one member of a form is written.
type field struct {
	style    string // "" = the default
	explode  bool
	reserved bool
	media    string
	file     bool // its value names a file of the land
}

// mediaType is a media type as a header can hold it, "" for none.
func mediaType(s string) string {
	s = strings.TrimSpace(s)
	name, _, _ := strings.Cut(s, ";")
	kind, sub, ok := strings.Cut(strings.TrimSpace(name), "/")
	if !ok || !token(kind) || !token(sub) || strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c >= 0x7f }) {
		return ""
	}
	return s
}

// essence is a media type without its parameters.
func essence(s string) string {
	name, _, _ := strings.Cut(s, ";")
	return strings.ToLower(strings.TrimSpace(name))
}

func isJSON(media string) bool {
	e := essence(media)
	return e == "application/json" || e == "text/json" || strings.HasSuffix(e, "+json")
}

// isText are media types whose content is characters.
func isText(media string) bool {
	e := essence(media)
	return strings.HasPrefix(e, "text/") || strings.HasSuffix(e, "+xml") || strings.HasSuffix(e, "+yaml") ||
		slices.Contains([]string{"application/xml", "application/yaml", "application/x-yaml", "application/javascript", "application/x-ndjson", "application/jsonl",
			"application/sql", "application/graphql", "application/toml", "application/x-www-form-urlencoded"}, e)
}

// kindOf sorts the media type of a body. A range stands for its likeliest member.
func kindOf(media string) (kind, concrete string) {
	switch e := essence(media); {
	case e == "*/*" || e == "application/*":
		return bodyJSON, "application/json"
	case isJSON(media):
		return bodyJSON, media
	case e == "application/x-www-form-urlencoded":
		return bodyForm, media
	case strings.HasPrefix(e, "multipart/"):
		return bodyMultipart, "multipart/form-data"
	case e == "text/*":
		return bodyText, "text/plain"
	case isText(media):
		return bodyText, media
	case strings.Contains(e, "*"):
		return bodyBinary, "application/octet-stream"
	}
	return bodyBinary, media
}

// requestBody reads the body: of several kinds JSON comes before forms, these before text, and those before bytes.
func (r *reading) requestBody() error {
	n, at, err := r.doc.member(r.spot.node, r.spot.pointer, "requestBody")
	if err != nil || n == nil {
		return err
	}
	if r.doc.old && slices.Contains([]string{"GET", "HEAD", "TRACE"}, r.op.method) {
		return nil // the standard tells to ignore it
	}
	content := n.Get("content")
	if content == nil || content.Kind != jsondoc.Object || len(content.Members) == 0 {
		return r.bad(n, at, "A body says by content of which kind it is.")
	}
	order := []string{bodyJSON, bodyForm, bodyMultipart, bodyText, bodyBinary}
	best, chosen := len(order), jsondoc.Member{}
	for _, m := range content.Members {
		if mediaType(m.Key) == "" {
			continue
		}
		kind, _ := kindOf(m.Key)
		if i := slices.Index(order, kind); i < best {
			best, chosen = i, m
		}
	}
	if best == len(order) {
		return r.bad(content, at+"/content", "The body is of no kind that has a name.")
	}
	b := &body{required: isTrue(n.Get("required"))}
	b.kind, b.media = kindOf(mediaType(chosen.Key))
	r.op.body = b
	r.bodySchema(chosen.Value, jsondoc.Below(at+"/content", chosen.Key))
	return nil
}

// bodySchema reads the body's schema: the members that forms write in their own way, and whether they are arguments of
// their own.
func (r *reading) bodySchema(n *jsondoc.Node, at string) {
	b, schema := r.op.body, n.Get("schema")
	if b.kind == bodyForm || b.kind == bodyMultipart {
		b.fields = r.fields(n, schema, at)
	}
	b.arg = "body"
	for slices.ContainsFunc(r.op.params, func(p param) bool { return p.arg == b.arg }) {
		b.arg = "request_" + b.arg
	}
	switch b.kind {
	case bodyText:
		r.schema[" body"] = r.textSchema(schema, at)
	case bodyBinary:
		r.schema[" body"] = fileOrText()
	default:
		r.schema[" body"] = nil
		if lift := r.lift(schema, at+"/schema"); lift != nil {
			b.lifted = true
			r.lifted = lift
			return
		}
		r.schema[" body"] = r.tr.schema(schema, at+"/schema", 0)
		if b.kind != bodyJSON && b.kind != bodyText {
			r.schema[" body"] = jsondoc.Obj(jsondoc.Member{Key: "allOf", Value: jsondoc.Arr(r.schema[" body"])}, jsondoc.Member{Key: "type", Value: jsondoc.Str("object")})
		}
	}
}

// textSchema is the schema of a body of characters: what is no scalar there, as an object of XML, is given as its text.
func (r *reading) textSchema(schema *jsondoc.Node, at string) *jsondoc.Node {
	n, _, err := r.doc.follow(orEmpty(schema), at+"/schema")
	if err == nil {
		if typ := n.Get("type"); typ != nil && slices.Contains([]string{"string", "number", "integer", "boolean"}, typ.Text) {
			return r.tr.schema(schema, at+"/schema", 0)
		}
	}
	return jsondoc.Obj(jsondoc.Member{Key: "type", Value: jsondoc.Str("string")})
}

// fileOrText is the schema of bytes: a text is sent as it stands, an object names a file.
func fileOrText() *jsondoc.Node {
	str := jsondoc.Obj(jsondoc.Member{Key: "type", Value: jsondoc.Str("string")})
	return jsondoc.Obj(
		jsondoc.Member{Key: "description", Value: jsondoc.Str(`The content as text, or {"file": "PATH"} for a file of the land.`)},
		jsondoc.Member{Key: "anyOf", Value: jsondoc.Arr(str, jsondoc.Obj(
			jsondoc.Member{Key: "type", Value: jsondoc.Str("object")},
			jsondoc.Member{Key: "properties", Value: jsondoc.Obj(jsondoc.Member{Key: "file", Value: str})},
			jsondoc.Member{Key: "required", Value: jsondoc.Arr(jsondoc.Str("file"))},
			jsondoc.Member{Key: "additionalProperties", Value: jsondoc.Boolean(false)},
		))})
}

func orEmpty(n *jsondoc.Node) *jsondoc.Node {
	if n == nil {
		return jsondoc.Obj()
	}
	return n
}

// fields are the members of a form that have an encoding of their own, or are files.
func (r *reading) fields(n, schema *jsondoc.Node, at string) map[string]field {
	out := map[string]field{}
	encoding := n.Get("encoding")
	if encoding != nil {
		for _, m := range encoding.Members {
			out[m.Key] = encodingOf(m.Value, r.op.body.kind)
		}
	}
	for _, p := range r.members(schema, at+"/schema", 0) {
		if r.op.body.kind == bodyMultipart && r.isFile(p.Value, out[p.Key].media) {
			f := out[p.Key]
			f.file = true
			out[p.Key] = f
		}
	}
	return out
}

func encodingOf(n *jsondoc.Node, kind string) field {
	f := field{explode: true}
	text := func(key string) string {
		if v := n.Get(key); v != nil && v.Kind == jsondoc.String {
			return v.Text
		}
		return ""
	}
	if styled := n.Has("style") || n.Has("explode") || n.Has("allowReserved"); styled && kind == bodyForm {
		if f.style = text("style"); !slices.Contains([]string{"form", "spaceDelimited", "pipeDelimited", "deepObject"}, f.style) {
			f.style = "form"
		}
		f.explode = f.style == "form" || f.style == "deepObject"
		if v := n.Get("explode"); v != nil {
			f.explode = isTrue(v)
		}
		f.reserved = isTrue(n.Get("allowReserved"))
		return f
	}
	first, _, _ := strings.Cut(text("contentType"), ",")
	if f.media = mediaType(first); strings.Contains(f.media, "*") {
		f.media = ""
	}
	return f
}

// isFile says whether a member of a multipart body is bytes: 3.0 says format binary, 3.1 a media type without an encoding,
// or nothing at all beside the kind that the encoding names.
func (r *reading) isFile(schema *jsondoc.Node, media string) bool {
	n, _, err := r.doc.follow(orEmpty(schema), "")
	if err != nil {
		return false
	}
	if items := n.Get("items"); items != nil {
		return r.isFile(items, media)
	}
	format, kind := n.Get("format"), n.Get("contentMediaType")
	switch {
	case format != nil && format.Text == "binary":
		return true
	case n.Has("contentEncoding"):
		return false
	case kind != nil && kind.Kind == jsondoc.String:
		return !isJSON(kind.Text) && !isText(kind.Text)
	}
	return !n.Has("type") && !n.Has("properties") && !n.Has("allOf") && !n.Has("oneOf") && !n.Has("anyOf") && media != "" && !isJSON(media) && !isText(media)
}

// members are the properties of an object through references and allOf, for what forms need to know of them.
func (r *reading) members(schema *jsondoc.Node, at string, depth int) []jsondoc.Member {
	n, to, err := r.doc.follow(orEmpty(schema), at)
	if err != nil || depth > 8 {
		return nil
	}
	var out []jsondoc.Member
	if p := n.Get("properties"); p != nil {
		out = append(out, p.Members...)
	}
	for _, key := range []string{"allOf", "oneOf", "anyOf"} {
		if list := n.Get(key); list != nil {
			for _, item := range list.Items {
				out = append(out, r.members(item, to, depth+1)...)
			}
		}
	}
	return out
}
