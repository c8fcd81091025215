package openapi

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"slices"
	"strconv"
	"strings"

	"hcpx/internal/adapter"
	"hcpx/internal/jsondoc"
)

// body makes the request's body of the arguments that are its own.
func (r *renderer) body(req *adapter.Request) {
	b := r.op.body
	if b == nil {
		return
	}
	value, arg := r.content()
	if value == nil {
		if b.required && r.whole {
			r.refuse(b.arg, "The operation needs a body.")
		}
		return
	}
	if (b.kind == bodyForm || b.kind == bodyMultipart) && value.Kind != jsondoc.Object {
		r.refuse(arg, "A form is an object.")
		return
	}
	switch b.kind {
	case bodyJSON:
		req.Body = value.Append(nil)
	case bodyForm:
		req.Body = []byte(strings.Join(r.form(value), "&"))
	case bodyText:
		req.Body = []byte(plain(value))
	case bodyBinary:
		r.binary(req, arg, value)
	case bodyMultipart:
		r.multipart(req, value)
		return
	}
	if req.Body == nil && req.Fill == nil {
		req.Body = []byte{}
	}
	r.field("Content-Type", b.media)
}

// content is the body's value: one argument, or all that are no parameters. nil sends no body.
func (r *renderer) content() (value *jsondoc.Node, arg string) {
	b := r.op.body
	if r.whole {
		return r.args.Get(b.arg), b.arg
	}
	value = jsondoc.Obj()
	for _, m := range r.args.Members {
		if r.param(m.Key) == nil {
			value.Members = append(value.Members, m)
		}
	}
	if len(value.Members) == 0 && !b.required {
		return nil, ""
	}
	return value, ""
}

// form writes a body as a form of a page: spaces as +, each member in its style, with parts as JSON where none is named.
func (r *renderer) form(v *jsondoc.Node) []string {
	part := func(s string) string { return strings.ReplaceAll(encode(s, ""), "%20", "+") }
	var out []string
	for _, m := range v.Members {
		f := r.op.body.fields[m.Key]
		if f.style == "" {
			for _, value := range formValues(m.Value, f.media) {
				out = append(out, part(m.Key)+"="+part(value))
			}
			continue
		}
		for _, one := range pairs(m.Key, f.style, f.explode, m.Value) {
			if !f.reserved {
				out = append(out, one.write(part))
				continue
			}
			name := part(one.name)
			one.name = ""
			out = append(out, name+one.write(func(s string) string { return strings.ReplaceAll(escapeReserved(s), "+", "%2B") }))
		}
	}
	return out
}

// formValues are the values of one member: an array gives one for each item, what has parts becomes JSON.
func formValues(v *jsondoc.Node, media string) []string {
	switch {
	case v.Kind == jsondoc.Null:
		return nil
	case isJSON(media):
		return []string{string(v.Append(nil))}
	case v.Kind != jsondoc.Array:
		return []string{plain(v)}
	}
	var out []string
	for _, item := range v.Items {
		if item.Kind != jsondoc.Null {
			out = append(out, plain(item))
		}
	}
	return out
}

// binary is a body of bytes: a text as it stands, or a file of the land.
func (r *renderer) binary(req *adapter.Request, arg string, v *jsondoc.Node) {
	if v.Kind != jsondoc.Object {
		req.Body = []byte(plain(v))
		return
	}
	name := v.Get("file")
	if name == nil || name.Kind != jsondoc.String || len(v.Members) != 1 {
		r.refuse(arg, "Bytes are a text, or an object with the member file alone.")
		return
	}
	req.Files = []adapter.File{{Pointer: jsondoc.Pointer(arg, "file"), Path: name.Text}}
	req.Fill = func(req *adapter.Request) { req.Body = append([]byte{}, req.Files[0].Data...) }
}

// part is one part of a multipart body.
type part struct {
	name, media, filename string
	data                  []byte
	file                  int // index in the request's Files; -1 = data
}

// multipart makes parts of members: an array gives a part for each item.
func (r *renderer) multipart(req *adapter.Request, v *jsondoc.Node) {
	var parts []part
	for _, m := range v.Members {
		f := r.op.body.fields[m.Key]
		items, pointer := []*jsondoc.Node{m.Value}, func(int) string { return jsondoc.Pointer(m.Key) }
		if m.Value.Kind == jsondoc.Array && !isJSON(f.media) {
			items, pointer = m.Value.Items, func(i int) string { return jsondoc.Pointer(m.Key, strconv.Itoa(i)) }
		}
		for i, item := range items {
			at := pointer(i)
			if r.whole {
				at = jsondoc.Pointer(r.op.body.arg) + at
			}
			if item.Kind == jsondoc.Null {
				continue
			}
			p := part{name: m.Key, media: f.media, file: -1}
			switch {
			case f.file:
				name := fileName(item)
				if name == "" {
					r.refuse(m.Key, "A file is named by its path in the land.")
					continue
				}
				p.file, p.filename = len(req.Files), path.Base(name)
				req.Files = append(req.Files, adapter.File{Pointer: at, Path: name})
				if p.media == "" {
					p.media = "application/octet-stream"
				}
			case item.Kind == jsondoc.Object || item.Kind == jsondoc.Array || isJSON(f.media):
				p.data = item.Append(nil)
				if p.media == "" {
					p.media = "application/json"
				}
			default:
				p.data = []byte(plain(item))
			}
			parts = append(parts, p)
		}
	}
	media := r.op.body.media
	fill := func(req *adapter.Request) {
		boundary := boundaryOf(parts, req.Files)
		req.Body = compose(parts, req.Files, boundary)
		req.Header = sorted(append(slices.DeleteFunc(req.Header, func(f adapter.Field) bool { return f.Name == "Content-Type" }),
			adapter.Field{Name: "Content-Type", Value: media + "; boundary=" + boundary}))
	}
	if len(req.Files) > 0 {
		req.Fill = fill
		return
	}
	whole := &adapter.Request{}
	fill(whole)
	req.Body = whole.Body
	r.header = append(r.header, whole.Header...)
}

// fileName is the path that an argument names: a text, or an object with file.
func fileName(v *jsondoc.Node) string {
	if v.Kind == jsondoc.String {
		return v.Text
	}
	return textOf(v, "file")
}

// boundaryOf is a line that stands in none of the parts: it is made of the hash of them all.
func boundaryOf(parts []part, files []adapter.File) string {
	h := sha256.New()
	for _, p := range parts {
		data := p.data
		if p.file >= 0 {
			data = files[p.file].Data
		}
		for _, piece := range []string{p.name, p.media, p.filename, string(data)} {
			h.Write([]byte(strconv.Itoa(len(piece)) + ":" + piece))
		}
	}
	return "hcpx-" + hex.EncodeToString(h.Sum(nil)[:20])
}

// compose writes the parts (RFC 7578).
func compose(parts []part, files []adapter.File, boundary string) []byte {
	quote := strings.NewReplacer(`"`, "%22", "\r", "%0D", "\n", "%0A")
	var out []byte
	for _, p := range parts {
		data := p.data
		head := "--" + boundary + "\r\nContent-Disposition: form-data; name=\"" + quote.Replace(p.name) + `"`
		if p.file >= 0 {
			data = files[p.file].Data
			head += `; filename="` + quote.Replace(p.filename) + `"`
		}
		if p.media != "" {
			head += "\r\nContent-Type: " + p.media
		}
		out = append(append(append(out, head+"\r\n\r\n"...), data...), "\r\n"...)
	}
	return append(out, "--"+boundary+"--\r\n"...)
}
