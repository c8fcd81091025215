package imports

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"hcpx/internal/egress"
	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// server is where requests go: an origin and the path before every path.
type server struct{ origin, path string }

func (s server) String() string { return s.origin + s.path }

// usable makes a server of an address, when it is one that a pack may have (§3.6): https, or http to this machine.
func usable(address, base string) (server, bool) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err == nil && base != "" {
		var from *url.URL
		if from, err = url.Parse(base); err == nil {
			u = from.ResolveReference(u)
		}
	}
	if err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.ContainsAny(u.Host+u.Path, "{}") || dotted(u.Path) {
		return server{}, false
	}
	host, port := u.Hostname(), u.Port()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port == "" {
		port = "443"
	}
	if _, err := egress.ParseHost(host + ":" + port); err != nil {
		return server{}, false
	}
	if u.Scheme != "https" && !(u.Scheme == "http" && loopback(u.Hostname())) {
		return server{}, false
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil && egress.Never(addr) {
		return server{}, false
	}
	return server{u.Scheme + "://" + strings.ToLower(u.Host), strings.TrimRight(u.EscapedPath(), "/")}, true
}

// dotted says whether a path has a segment that means another one.
func dotted(path string) bool {
	return slices.ContainsFunc(strings.Split(path, "/"), func(s string) bool { return s == "." || s == ".." })
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// serversOf are the usable ones of a list, each variable having its default.
func serversOf(list *jsondoc.Node, base string) []server {
	var out []server
	for _, n := range items(list) {
		address := text(n, "url")
		for _, v := range fields(n.Get("variables")) {
			value := v.Value.Get("default")
			if value == nil && len(items(v.Value.Get("enum"))) > 0 {
				value = v.Value.Get("enum").Items[0]
			}
			if value != nil && value.Text != "" {
				address = strings.ReplaceAll(address, "{"+v.Key+"}", value.Text)
			}
		}
		if s, ok := usable(address, base); ok {
			out = append(out, s)
		}
	}
	return out
}

// chooseServer is the server of the pack, and the one that the document itself would have.
func (b *builder) chooseServer() *protocol.Error {
	own := serversOf(b.root.Get("servers"), b.src.URL)
	if b.root.Get("servers") == nil && b.src.URL != "" {
		own = serversOf(jsondoc.Arr(object(member("url", jsondoc.Str("/")))), b.src.URL)
	}
	if len(items(b.root.Get("servers"))) == 0 && len(own) == 0 { // each operation has its own, or none
		for i := 0; len(own) == 0 && i < len(b.all); i++ {
			own = b.all[i].servers
		}
		b.strict = true
	}
	if len(own) > 0 {
		b.documents, b.server = own[0], own[0]
	}
	if b.Server != "" {
		asked, ok := usable(b.Server, "")
		if !ok {
			return fail(noServer, fmt.Sprintf("The server %s is no https address, and no http address of this machine.", jsondoc.Quote(b.Server)), "hcpx import openapi --help")
		}
		b.server = asked
		for i := 0; b.documents.origin == "" && i < len(b.all); i++ { // what the operations name is what is replaced
			if len(b.all[i].servers) > 0 {
				b.documents = b.all[i].servers[0]
			}
		}
	}
	if b.server.origin != "" {
		return nil
	}
	var named []string
	for _, n := range items(b.root.Get("servers")) {
		named = append(named, jsondoc.Quote(text(n, "url")))
	}
	said := "names no server"
	if len(named) > 0 {
		said = "names " + strings.Join(named[:min(3, len(named))], ", ") + ", none of which is an https address"
	}
	return fail(noServer, fmt.Sprintf("%s %s.", b.src.Name, said), "hcpx import openapi "+shellWord(b.src.Name)+" --server https://api.example.org")
}

// reach settles where an operation is called. One that is served elsewhere is left out, for a pack has one server; a path
// of its own on the same server goes before its path.
func (b *builder) reach(op *operation) bool {
	op.base = b.server.path
	switch {
	case op.astray != "":
		b.leave(op, "it is served by "+jsondoc.Quote(op.astray))
		return false
	case len(op.servers) == 0 && b.strict && b.Server == "":
		b.leave(op, "it names no server")
		return false
	case len(op.servers) == 0:
		return true
	}
	for _, s := range op.servers {
		if s.origin == b.documents.origin || s.origin == b.server.origin {
			op.base = s.path
			if b.Server != "" && s.path == b.documents.path {
				op.base = b.server.path
			}
			return true
		}
	}
	b.leave(op, "it is served by "+op.servers[0].origin)
	return false
}
