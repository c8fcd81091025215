package imports

import (
	"slices"
	"strings"

	"hcpx/internal/jsondoc"
)

// body is what a request carries.
type body struct {
	required bool
	media    string
	kind     kind
	schema   *jsondoc.Node
	encoding *jsondoc.Node
	text     string
	lifted   bool // its properties are arguments, else it is the argument "body"
}

// kind is how a body is written.
type kind int

const (
	jsonBody kind = iota
	formBody
	multipartBody
	textBody
	binaryBody
)

// rank is how gladly a media type is taken: the lower the better; -1 is none that can be sent.
func rank(media string) (int, kind) {
	base := strings.ToLower(strings.TrimSpace(media))
	base, _, _ = strings.Cut(base, ";")
	base = strings.TrimSpace(base)
	switch {
	case base == "application/json":
		return 0, jsonBody
	case strings.HasSuffix(base, "+json") || base == "text/json":
		return 1, jsonBody
	case base == "*/*" || base == "application/*":
		return 2, jsonBody
	case base == "application/x-www-form-urlencoded":
		return 3, formBody
	case base == "multipart/form-data":
		return 4, multipartBody
	case base == "text/plain":
		return 5, textBody
	case strings.HasPrefix(base, "text/") || strings.HasSuffix(base, "/xml") || strings.HasSuffix(base, "+xml") || strings.HasSuffix(base, "yaml"):
		return 6, textBody
	case base == "application/octet-stream":
		return 7, binaryBody
	case strings.HasPrefix(base, "multipart/") || !strings.Contains(base, "/"):
		return -1, 0
	default:
		return 8, binaryBody
	}
}

// bodyOf chooses the one media type of the request that is easiest to write. false leaves the operation out.
func (b *builder) bodyOf(op *operation) bool {
	declared := op.node.Get("requestBody")
	old := strings.HasPrefix(b.root.Get("openapi").Text, "3.0")
	if declared == nil || old && (op.read() || op.method == "trace") { // the standard tells to ignore it there
		return true
	}
	n := b.follow(declared)
	if n == nil {
		b.leave(op, "its body is not in the document")
		return false
	}
	content := fields(n.Get("content"))
	best := -1
	for _, m := range content {
		r, kind := rank(m.Key)
		if r < 0 || best >= 0 && r >= best {
			continue
		}
		best = r
		op.body = &body{required: yes(n, "required"), media: m.Key, kind: kind, text: text(n, "description"),
			schema: schemaOf(m.Value.Get("schema")), encoding: m.Value.Get("encoding")}
		if strings.Contains(m.Key, "*") { // a range stands for its likeliest member
			op.body.media = [...]string{jsonBody: "application/json", textBody: "text/plain", binaryBody: "application/octet-stream"}[kind]
		}
	}
	if op.body == nil {
		if len(content) == 0 {
			return true
		}
		if yes(n, "required") {
			b.leave(op, "its body is "+jsondoc.Quote(content[0].Key))
			return false
		}
		b.leave(op, "without its body, which is "+jsondoc.Quote(content[0].Key))
		return true
	}
	return b.lift(op)
}

// lift settles whether the body's properties are arguments (§3.6): when it is an object with properties whose names are
// free, and takes no others.
func (b *builder) lift(op *operation) bool {
	names := arguments{}
	for _, p := range op.params {
		names.add(p.arg, b.isBoolean(p.schema))
	}
	f := b.flatten(op.body.schema)
	op.body.lifted = op.body.kind <= multipartBody && len(f.types) == 1 && f.types[0] == "object" && !f.listed && (f.extra == nil || closes(f.extra))
	count := 0
	for _, p := range f.props {
		if b.flatten(p.node).readOnly {
			continue
		}
		count++
		_, clash := names.clash(p.name, b.isBoolean(p.node))
		op.body.lifted = op.body.lifted && clash == ""
		names.add(p.name, b.isBoolean(p.node))
	}
	if op.body.lifted = op.body.lifted && count > 0; op.body.lifted {
		return true
	}
	if slices.ContainsFunc(op.params, func(p *parameter) bool { return slices.Contains(flags(p.arg, b.isBoolean(p.schema)), "body") }) {
		b.leave(op, "its body and its parameter \"body\" have one name")
		return false
	}
	return true
}

// sendsFiles says whether the body is made of files of the land (§3.6): bytes, or a part of a form that is.
func (b *builder) sendsFiles(op *operation) bool {
	switch {
	case op.body == nil:
		return false
	case op.body.kind == multipartBody:
		return slices.ContainsFunc(b.flatten(op.body.schema).props, func(p prop) bool { return b.isFile(p.node) })
	}
	return op.body.kind == binaryBody
}

// isFile says whether a part, or each of its items, is a file: in 3.0 a binary one, since then also what has a media type that is
// no text and is not encoded as one.
func (b *builder) isFile(n *jsondoc.Node) bool {
	f := b.flatten(n)
	if f.item != nil {
		f = b.flatten(f.item)
	}
	said := func(key string) string {
		i := slices.IndexFunc(f.keep, func(m jsondoc.Member) bool { return m.Key == key })
		if i < 0 {
			return ""
		}
		return f.keep[i].Value.Text
	}
	media := said("contentMediaType")
	return said("format") == "binary" || media != "" && !strings.HasPrefix(media, "text/") && said("contentEncoding") == ""
}

// senders are the keys of the commands that send files.
func (b *builder) senders() []string {
	var keys []string
	for _, op := range b.chosen {
		if b.sendsFiles(op) {
			keys = append(keys, op.key)
		}
	}
	return keys
}
