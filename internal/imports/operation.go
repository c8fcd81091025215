package imports

import (
	"fmt"
	"slices"
	"strings"

	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/order"
	"hcpx/internal/protocol"
)

// operation is one operation of the document, and the command that it becomes.
type operation struct {
	path, method string
	item, node   *jsondoc.Node
	id, key      string
	tags         []string
	servers      []server // its own, or its path's
	astray       string   // its own server, where that is none that a pack may have
	base         string   // before its path, behind the server's origin
	params       []*parameter
	body         *body
	security     []*jsondoc.Node // requirements: the one that is met, none for an open operation
	command      command
}

// read says whether the method only looks.
func (op *operation) read() bool { return op.method == "get" || op.method == "head" }

// name is how an operation is named to a person.
func (op *operation) name() string { return strings.ToUpper(op.method) + " " + op.path }

var methods = [...]string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}

// gather lists the operations of the document in its order, each with its key and an operationId of its own.
func (b *builder) gather() {
	taken := map[string]bool{}
	keys := newKeyer(b.id)
	for _, p := range fields(b.root.Get("paths")) {
		item := b.follow(p.Value)
		if !strings.HasPrefix(p.Key, "/") || item == nil {
			continue
		}
		for _, m := range fields(item) {
			if !slices.Contains(methods[:], m.Key) || m.Value.Kind != jsondoc.Object {
				continue
			}
			op := &operation{path: p.Key, method: m.Key, item: item, node: m.Value, id: text(m.Value, "operationId")}
			op.key = keys.key(op.id, op.method, op.path)
			if taken[op.id] || !lineOf(op.id, 1024) {
				op.id = ""
			}
			taken[op.id] = true
			for _, t := range items(op.node.Get("tags")) {
				if t.Kind == jsondoc.String && t.Text != "" {
					op.tags = append(op.tags, t.Text)
				}
			}
			for _, at := range []*jsondoc.Node{op.node, item} {
				if list := items(at.Get("servers")); len(list) > 0 && op.servers == nil && op.astray == "" && !at.Get("servers").Equal(b.root.Get("servers")) {
					if op.servers = serversOf(at.Get("servers"), b.src.URL); len(op.servers) == 0 {
						op.astray = text(list[0], "url")
					}
				}
			}
			b.all = append(b.all, op)
		}
	}
	for _, op := range b.all {
		if op.id == "" {
			for op.id = op.key; taken[op.id]; {
				op.id += "_"
			}
			taken[op.id] = true
		}
	}
}

// lineOf says whether s is one line of 1 to limit bytes.
func lineOf(s string, limit int) bool {
	return strings.TrimSpace(s) != "" && len(s) <= limit && !strings.ContainsFunc(s, func(r rune) bool { return hidden(r) })
}

// parameter is one of an operation, resolved.
type parameter struct {
	name, in string
	arg      string // the argument's name
	required bool
	node     *jsondoc.Node
	schema   *jsondoc.Node
	media    string // of a parameter that is written as a document
}

// parameters reads those of the operation and of its path. false leaves the operation out.
func (b *builder) parameters(op *operation) bool {
	var list []*parameter
	for _, source := range []*jsondoc.Node{op.item, op.node} {
		for _, n := range items(source.Get("parameters")) {
			p := b.parameter(op, n)
			if p == nil {
				b.leave(op, "one of its parameters is not in the document")
				return false
			}
			at := slices.IndexFunc(list, func(o *parameter) bool {
				return o.in == p.in && (o.name == p.name || p.in == "header" && strings.EqualFold(o.name, p.name))
			})
			switch {
			case p.name == "" || b.skipped(op, p):
			case at >= 0:
				list[at] = p
			default:
				list = append(list, p)
			}
		}
	}
	template := templateNames(op.path)
	for _, name := range template {
		if !slices.ContainsFunc(list, func(p *parameter) bool { return p.in == "path" && p.name == name }) {
			schema := object(member("type", jsondoc.Str("string")))
			list = append(list, &parameter{name: name, in: "path", required: true, node: object(), schema: schema})
		}
	}
	list = slices.DeleteFunc(list, func(p *parameter) bool { return p.in == "path" && !slices.Contains(template, p.name) })
	return b.named(op, list)
}

func (b *builder) parameter(op *operation, n *jsondoc.Node) *parameter {
	n = b.follow(n)
	if n == nil || n.Kind != jsondoc.Object {
		return nil
	}
	p := &parameter{name: text(n, "name"), in: text(n, "in"), required: yes(n, "required"), node: n, schema: n.Get("schema")}
	p.required = p.required || p.in == "path"
	if content := fields(n.Get("content")); p.schema == nil && len(content) > 0 {
		p.media, p.schema = content[0].Key, content[0].Value.Get("schema")
	}
	return p
}

// skipped says whether a parameter is no argument: the headers that others write, and where the credential goes.
func (b *builder) skipped(op *operation, p *parameter) bool {
	switch p.in {
	case "path", "query", "cookie":
	case "header":
		if low := strings.ToLower(p.name); low == "accept" || low == "content-type" || low == "authorization" || connection(low) {
			return true
		}
	default:
		return true
	}
	alternatives, _ := b.requirements(op) // no caller gives a key, also where the pack has another credential
	for _, requirement := range alternatives {
		for _, m := range requirement.Members {
			if s := b.scheme(m.Key); text(s, "type") == "apiKey" && text(s, "in") == p.in && strings.EqualFold(text(s, "name"), p.name) {
				return true
			}
		}
	}
	return false
}

// templateNames are the {names} of a path.
func templateNames(path string) []string {
	var out []string
	for {
		i := strings.IndexByte(path, '{')
		if i < 0 {
			return out
		}
		end := strings.IndexByte(path[i:], '}')
		if end < 0 {
			return out
		}
		if name := path[i+1 : i+end]; name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
		path = path[i+end+1:]
	}
}

// named gives the parameters their names as arguments (§3.6): their own, and where one of another place has it, with the
// place behind it. Each needs a flag of its own too (§12.1): of two that clash the one that is needed stays; when both
// are, the operation is left out.
func (b *builder) named(op *operation, list []*parameter) bool {
	order.By(list, func(x, y *parameter) int { return place(x) - place(y) })
	for len(list) > 0 {
		bad, other, clash := b.clash(list)
		switch {
		case bad == nil:
			order.By(list, func(x, y *parameter) int { return need(x) - need(y) })
			op.params = list
			return true
		case bad.required && (other == nil || other.required):
			b.leave(op, fmt.Sprintf("its parameter %s in the %s %s", jsondoc.Quote(bad.name), bad.in, clash))
			return false
		case bad.required:
			bad = other
		}
		b.leave(op, fmt.Sprintf("without the parameter %s in the %s, which %s", jsondoc.Quote(bad.name), bad.in, clash))
		list = slices.DeleteFunc(list, func(p *parameter) bool { return p == bad })
	}
	return true
}

// clash names the parameters, and finds the first that can't be an argument, with the one that is in its way.
func (b *builder) clash(list []*parameter) (bad, other *parameter, why string) {
	names := arguments{}
	by := map[string]*parameter{}
	for _, p := range list {
		for p.arg = p.name; by[p.arg] != nil; {
			p.arg += "_" + p.in
		}
		boolean := b.isBoolean(p.schema)
		if with, why := names.clash(p.arg, boolean); why != "" {
			return p, by[with], why
		}
		if p.in == "header" && !headerName(p.name) || p.in == "cookie" && !token(p.name) {
			return p, nil, "is none that a command may set"
		}
		names.add(p.arg, boolean)
		by[p.arg] = p
	}
	return nil, nil, ""
}

// place is the order in which parameters take their names.
func place(p *parameter) int {
	return slices.Index([]string{"path", "query", "header", "cookie"}, p.in)
}

// need is the order in which they are shown: what must be given comes first.
func need(p *parameter) int {
	switch {
	case p.in == "path":
		return 0
	case p.required:
		return 1
	}
	return 2
}

// token says whether s can name a header or a cookie.
func token(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c) })
}

// headerName says whether a command may set a header of that name.
func headerName(s string) bool { return token(s) && !connection(strings.ToLower(s)) }

// connection are the headers that belong to the connection.
func connection(low string) bool {
	return strings.Contains(" host content-length transfer-encoding connection upgrade te trailer keep-alive expect proxy-authorization proxy-connection accept-encoding ", " "+low+" ")
}

func (b *builder) isBoolean(schema *jsondoc.Node) bool {
	f := b.flatten(schema)
	return len(f.types) == 1 && f.types[0] == "boolean"
}

// arguments are the names of a command's arguments, and the flags that they become: who has each.
type arguments map[string]string

// clash says why a name can't be an argument beside those that are there, and which of them is in its way; "" when it can.
func (a arguments) clash(name string, boolean bool) (with, why string) {
	if strings.HasPrefix(name, "hcp_") {
		return "", "has a name that begins with hcp_"
	}
	if !lineOf(name, 200) {
		return "", "has a name that is no line of text"
	}
	for _, flag := range flags(name, boolean) {
		if other, taken := a[flag]; taken {
			return other, "clashes with " + jsondoc.Quote(other)
		}
	}
	return "", ""
}

func (a arguments) add(name string, boolean bool) {
	for _, flag := range flags(name, boolean) {
		a[flag] = name
	}
}

// flags are those of an argument; a boolean has a second one that says no (§12.1).
func flags(name string, boolean bool) []string {
	flag := manifest.FlagName(name)
	if boolean {
		return []string{flag, "no-" + flag}
	}
	return []string{flag}
}

// leave notes what stands in no command.
func (b *builder) leave(op *operation, why string) {
	b.left = append(b.left, op.name()+": "+why)
}

// settle gives every chosen operation what its request needs; those that can't have it are left out.
func (b *builder) settle() *protocol.Error {
	kept := b.chosen[:0:0]
	for _, op := range b.chosen {
		if b.parameters(op) && b.bodyOf(op) {
			kept = append(kept, op)
		}
	}
	b.chosen = kept
	return b.some()
}
