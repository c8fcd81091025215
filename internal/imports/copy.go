package imports

import (
	"slices"

	"hcpx/internal/jsondoc"
)

// copy is the pack's own document: OpenAPI 3.1 with the chosen operations and nothing that no request needs. Each has an
// operationId, its parameters and one media type of its body in place, and the one security requirement that the pack
// can meet, so that what a command sends can be read off it.
func (b *builder) copy() []byte {
	paths := &jsondoc.Node{Kind: jsondoc.Object}
	at := map[string]int{}
	for _, op := range b.chosen {
		route := b.route(op)
		i, known := at[route]
		if !known {
			i = len(paths.Members)
			at[route] = i
			paths.Members = append(paths.Members, member(route, &jsondoc.Node{Kind: jsondoc.Object}))
		}
		item := paths.Members[i].Value
		item.Members = append(item.Members, member(op.method, b.operationCopy(op)))
	}
	var components *jsondoc.Node
	if schemes := b.schemesUsed(); schemes != nil {
		components = object(member("securitySchemes", schemes))
	}
	info := b.root.Get("info")
	version := oneLine(text(info, "version"), 80)
	if version == "" {
		version = b.report.Version
	}
	return lay(object(
		member("openapi", jsondoc.Str("3.1.0")),
		member("info", object(member("title", jsondoc.Str(b.title())), member("version", jsondoc.Str(version)))),
		member("servers", jsondoc.Arr(object(member("url", jsondoc.Str(b.server.String()))))),
		member("paths", paths),
		member("components", components),
	))
}

func (b *builder) title() string {
	if title := oneLine(text(b.root.Get("info"), "title"), 80); title != "" {
		return title
	}
	return b.id
}

func (b *builder) operationCopy(op *operation) *jsondoc.Node {
	var params *jsondoc.Node
	for i, p := range op.params {
		if params == nil {
			params = jsondoc.Arr()
		}
		params.Items = append(params.Items, parameterCopy(p, op.command.params[i]))
	}
	out := object(
		member("operationId", jsondoc.Str(op.id)),
		member("summary", jsondoc.Str(b.says(op, 200))),
		member("parameters", params),
	)
	if op.body != nil {
		out.Members = append(out.Members, member("requestBody", op.body.copy(op.command.body)))
	}
	out.Members = append(out.Members, member("responses", b.responses(op)), member("security", jsondoc.Arr(op.security...)))
	return out
}

// styles are those that the standard has for each place.
var styles = map[string][]string{"path": {"simple", "label", "matrix"}, "query": {"form", "spaceDelimited", "pipeDelimited", "deepObject"}, "header": {"simple"}, "cookie": {"form"}}

// parameterCopy keeps what the value's form on the wire depends on.
func parameterCopy(p *parameter, schema *jsondoc.Node) *jsondoc.Node {
	out := object(member("name", jsondoc.Str(p.name)), member("in", jsondoc.Str(p.in)))
	if p.required {
		out.Members = append(out.Members, member("required", jsondoc.Boolean(true)))
	}
	if p.media != "" {
		return out.With("content", object(member(p.media, object(member("schema", schema)))))
	}
	if style := text(p.node, "style"); slices.Contains(styles[p.in], style) {
		out.Members = append(out.Members, member("style", jsondoc.Str(style)))
	}
	for _, key := range [...]string{"explode", "allowReserved"} {
		if v := p.node.Get(key); v != nil && v.Kind == jsondoc.Bool {
			out.Members = append(out.Members, member(key, v))
		}
	}
	return out.With("schema", schema)
}

func (y *body) copy(schema *jsondoc.Node) *jsondoc.Node {
	media := object(member("schema", schema))
	encoding := &jsondoc.Node{Kind: jsondoc.Object}
	for _, e := range fields(y.encoding) {
		kept := &jsondoc.Node{Kind: jsondoc.Object}
		for _, key := range [...]string{"contentType", "style", "explode", "allowReserved"} {
			if v := e.Value.Get(key); v != nil && (v.Kind == jsondoc.String || v.Kind == jsondoc.Bool) {
				kept.Members = append(kept.Members, member(key, v))
			}
		}
		if len(kept.Members) > 0 && schema.Get("properties").Has(e.Key) {
			encoding.Members = append(encoding.Members, member(e.Key, kept))
		}
	}
	if len(encoding.Members) > 0 {
		media.Members = append(media.Members, member("encoding", encoding))
	}
	out := object(member("content", object(member(y.media, media))))
	if y.required {
		out.Members = append(out.Members, member("required", jsondoc.Boolean(true)))
	}
	return out
}

// responses keep what may come back as which kind; what it looks like is not held against a schema.
func (b *builder) responses(op *operation) *jsondoc.Node {
	out := &jsondoc.Node{Kind: jsondoc.Object}
	for _, m := range fields(op.node.Get("responses")) {
		n := b.follow(m.Value)
		if len(m.Key) != 3 && m.Key != "default" {
			continue
		}
		content := &jsondoc.Node{Kind: jsondoc.Object}
		for _, c := range fields(n.Get("content")) {
			content.Members = append(content.Members, member(c.Key, responseMedia(b.flatten(c.Value.Get("schema")))))
		}
		kept := object(member("description", jsondoc.Str(oneLine(text(n, "description"), 80))))
		if len(content.Members) > 0 {
			kept.Members = append(kept.Members, member("content", content))
		}
		out.Members = append(out.Members, member(m.Key, kept))
	}
	if len(out.Members) == 0 {
		out.Members = append(out.Members, member("default", object(member("description", jsondoc.Str("")))))
	}
	return out
}

// responseMedia tells text and bytes from values.
func responseMedia(f *flat) *jsondoc.Node {
	if len(f.types) != 1 || f.types[0] != "string" {
		return jsondoc.Obj()
	}
	schema := object(member("type", jsondoc.Str("string")))
	for _, m := range f.keep {
		if m.Key == "format" {
			schema.Members = append(schema.Members, m)
		}
	}
	return object(member("schema", schema))
}
