package openapi

import (
	"bytes"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// form is the first line of a summary: another one is not read, and the document is.
const form = "hcpx openapi summary 1\n"

// Summarize implements adapter.Documented: a line of each command, with its key before the JSON of its operation, so that
// an exec finds and parses its own alone.
func (a *Adapter) Summarize(m *manifest.Manifest, files fs.FS) ([]byte, []protocol.Issue) {
	out := []byte(form)
	ops, issues := compileAll(m, files)
	for _, c := range m.Commands {
		if op := ops[c.Key]; op != nil {
			out = append(append(out, c.Key...), ' ')
			out = append(op.node().Append(out), '\n')
		}
	}
	return out, issues
}

// Adopt implements adapter.Documented.
func (a *Adapter) Adopt(m *manifest.Manifest, summary []byte) bool {
	rest, ok := bytes.CutPrefix(summary, []byte(form))
	if !ok {
		return false
	}
	index := sync.OnceValue(func() map[string][]byte { return lines(rest) })
	for _, c := range m.Commands {
		key := c.Key
		c.Operation = sync.OnceValue(func() *jsondoc.Node { return operationOf(index()[key]) })
	}
	return true
}

// lines are the texts of a summary by their commands.
func lines(text []byte) map[string][]byte {
	out := map[string][]byte{}
	for line := range bytes.Lines(text) {
		if key, rest, ok := bytes.Cut(line, []byte(" ")); ok {
			out[string(key)] = rest
		}
	}
	return out
}

// operationOf reads one of them; nil when there is none.
func operationOf(text []byte) *jsondoc.Node {
	n, faults := jsondoc.Parse(text, jsondoc.Limits{Bytes: maxDocument, Depth: 4 * maxDepth})
	if len(text) == 0 || len(faults) > 0 {
		return nil
	}
	return n
}

// maker writes an object without what is empty.
type maker struct{ *jsondoc.Node }

func (m maker) set(key string, v *jsondoc.Node) {
	m.Members = append(m.Members, jsondoc.Member{Key: key, Value: v})
}

func (m maker) text(key, s string) {
	if s != "" {
		m.set(key, jsondoc.Str(s))
	}
}

func (m maker) flag(key string, b bool) {
	if b {
		m.set(key, jsondoc.Boolean(true))
	}
}

// node is the operation as the summary holds it.
func (o *operation) node() *jsondoc.Node {
	m := maker{jsondoc.Obj()}
	m.text("method", o.method)
	m.text("path", o.path)
	if o.ownBase {
		m.set("base", jsondoc.Str(o.base))
	}
	if len(o.params) > 0 {
		list := jsondoc.Arr()
		for _, p := range o.params {
			list.Items = append(list.Items, p.node())
		}
		m.set("params", list)
	}
	if o.body != nil {
		m.set("body", o.body.node())
	}
	if o.security != nil {
		list := jsondoc.Arr()
		for _, all := range o.security {
			need := jsondoc.Arr()
			for _, s := range all {
				need.Items = append(need.Items, texts([]string{s.kind, s.name}))
			}
			list.Items = append(list.Items, need)
		}
		m.set("security", list)
	}
	m.text("accept", o.accept)
	m.flag("json", o.json)
	m.set("args", o.args)
	return m.Node
}

func (p *param) node() *jsondoc.Node {
	m := maker{jsondoc.Obj()}
	m.text("arg", p.arg)
	m.text("name", p.name)
	m.text("in", p.in)
	m.text("style", p.style)
	m.text("media", p.media)
	m.flag("explode", p.explode)
	m.flag("reserved", p.reserved)
	m.flag("required", p.required)
	return m.Node
}

func (b *body) node() *jsondoc.Node {
	m := maker{jsondoc.Obj()}
	m.text("kind", b.kind)
	m.text("media", b.media)
	m.text("arg", b.arg)
	m.flag("lifted", b.lifted)
	m.flag("required", b.required)
	names := []string{}
	for name := range b.fields {
		names = append(names, name)
	}
	slices.Sort(names)
	fields := maker{jsondoc.Obj()}
	for _, name := range names {
		f := b.fields[name]
		one := maker{jsondoc.Obj()}
		one.text("style", f.style)
		one.text("media", f.media)
		one.flag("explode", f.explode)
		one.flag("reserved", f.reserved)
		one.flag("file", f.file)
		fields.set(name, one.Node)
	}
	if len(names) > 0 {
		m.set("fields", fields.Node)
	}
	return m.Node
}

func textOf(n *jsondoc.Node, key string) string {
	if v := n.Get(key); v != nil && v.Kind == jsondoc.String {
		return v.Text
	}
	return ""
}

// readOperation reads what node wrote; nil when it is nothing of the kind.
func readOperation(n *jsondoc.Node) *operation {
	o := &operation{method: textOf(n, "method"), path: textOf(n, "path"), base: textOf(n, "base"), ownBase: n.Has("base"), accept: textOf(n, "accept"), json: isTrue(n.Get("json")), args: n.Get("args")}
	if !slices.Contains(methods(), strings.ToLower(o.method)) || !strings.HasPrefix(o.path, "/") || o.args == nil {
		return nil
	}
	if list := n.Get("params"); list != nil {
		for _, p := range list.Items {
			o.params = append(o.params, param{arg: textOf(p, "arg"), name: textOf(p, "name"), in: textOf(p, "in"), style: textOf(p, "style"), media: textOf(p, "media"),
				explode: isTrue(p.Get("explode")), reserved: isTrue(p.Get("reserved")), required: isTrue(p.Get("required"))})
		}
	}
	if b := n.Get("body"); b != nil {
		o.body = bodyOf(b)
	}
	if list := n.Get("security"); list != nil {
		o.security = [][]scheme{}
		for _, need := range list.Items {
			all := []scheme{}
			for _, s := range need.Items {
				if len(s.Items) != 2 {
					return nil
				}
				all = append(all, scheme{s.Items[0].Text, s.Items[1].Text})
			}
			o.security = append(o.security, all)
		}
	}
	return o
}

func bodyOf(n *jsondoc.Node) *body {
	b := &body{kind: textOf(n, "kind"), media: textOf(n, "media"), arg: textOf(n, "arg"), lifted: isTrue(n.Get("lifted")), required: isTrue(n.Get("required")), fields: map[string]field{}}
	if fields := n.Get("fields"); fields != nil {
		for _, m := range fields.Members {
			b.fields[m.Key] = field{style: textOf(m.Value, "style"), media: textOf(m.Value, "media"), explode: isTrue(m.Value.Get("explode")),
				reserved: isTrue(m.Value.Get("reserved")), file: isTrue(m.Value.Get("file"))}
		}
	}
	return b
}
