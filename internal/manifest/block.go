package manifest

import (
	"strconv"
	"strings"

	"hcpx/internal/egress"
	"hcpx/internal/jsondoc"
)

// adapter reads the adapter and its block: exactly the one that it needs, no other (§3).
func (r reader) adapter() {
	m, at := r.m, r.at
	if !at.Required("adapter") {
		return
	}
	m.Adapter = at.Choice("adapter", Wrap, Composite, OpenAPI, SenseOnly)
	if m.Adapter == "" {
		return
	}
	for _, block := range []string{Wrap, OpenAPI} {
		switch has := at.Node.Has(block); {
		case block == m.Adapter && !has:
			at.AtSelf("manifest.adapter-block", "The adapter %s needs the block %s.", m.Adapter, jsondoc.Quote(block))
		case block != m.Adapter && has:
			at.AtKey(block, "manifest.adapter-block", "The adapter %s has no block %s.", m.Adapter, jsondoc.Quote(block))
		}
	}
	if block, ok := at.Object(m.Adapter); ok {
		switch m.Adapter {
		case Wrap:
			m.Wrap = wrapBlock(block)
		case OpenAPI:
			m.OpenAPI = openapiBlock(block)
		}
	}
}

// wrapBlock reads the shape of §3.3; what the programs and paths mean is the adapter's matter.
func wrapBlock(at jsondoc.Cursor) *WrapBlock {
	b := &WrapBlock{Node: at.Node, Uses: at.Strings("uses"), Reads: at.Strings("reads"), Probe: at.Strings("probe")}
	if at.Required("bin") {
		b.Bin = at.Line("bin", 4096)
	}
	b.Env = variables(at, "env")
	b.Network = network(at)
	if at.Node.Has("workspace") {
		b.Workspace = at.Choice("workspace", "read")
	}
	b.Isolation = at.Choice("isolation", "sandbox", "native-local")
	b.PassThrough = at.Node.Has("allowedSubcommands") || at.Node.Has("maxArgv")
	b.AllowedSubcommands = at.Strings("allowedSubcommands")
	if n := at.Node.Get("maxArgv"); n != nil {
		b.MaxArgv = positive(n)
		if b.MaxArgv == 0 {
			at.AtValue("maxArgv", "manifest.schema", "\"maxArgv\" is a whole number of at least 1.")
		}
	}
	at.Close(wrapMembers)
	return b
}

// positive reads a whole number of at least 1 and at most a million; 0 for anything else.
func positive(n *jsondoc.Node) int {
	if n.Kind != jsondoc.Number {
		return 0
	}
	v, err := strconv.Atoi(jsondoc.Plain(n.Text))
	if err != nil || v < 1 || v > 1_000_000 {
		return 0
	}
	return v
}

// variables reads an object of strings, in its order.
func variables(at jsondoc.Cursor, key string) []EnvVar {
	env, ok := at.Object(key)
	if !ok {
		return nil
	}
	var out []EnvVar
	for _, m := range env.Node.Members {
		if m.Value.Kind != jsondoc.String {
			env.AtValue(m.Key, "manifest.schema", "The value of %s is a string.", jsondoc.Quote(m.Key))
			continue
		}
		if strings.Contains(m.Value.Text, "\x00") {
			env.AtValue(m.Key, "manifest.schema", "The value of %s holds a NUL character.", jsondoc.Quote(m.Key))
			continue
		}
		out = append(out, EnvVar{Name: m.Key, Value: m.Value.Text})
	}
	return out
}

// network reads none, full, or an object with hosts (§3.3, §10.2).
func network(at jsondoc.Cursor) Network {
	none := Network{Mode: "none"}
	n := at.Node.Get("network")
	switch {
	case n == nil:
		return none
	case n.Kind == jsondoc.String && (n.Text == "none" || n.Text == "full"):
		return Network{Mode: n.Text}
	case n.Kind != jsondoc.Object:
		at.AtValue("network", "manifest.schema", "\"network\" is none, full, or an object with hosts.")
		return none
	}
	block, _ := at.Object("network")
	block.Close(networkMembers)
	out := Network{Mode: "hosts", OperatorHosts: block.Flag("operator_hosts"), Hosts: block.Strings("hosts")}
	if !out.OperatorHosts {
		block.Required("hosts")
	}
	list := block.Node.Get("hosts")
	if list == nil || list.Kind != jsondoc.Array {
		return out
	}
	for i, item := range list.Items {
		if item.Kind != jsondoc.String {
			continue
		}
		if _, err := egress.ParseHost(item.Text); err != nil {
			at.Shape.Report("manifest.schema", item.Offset, jsondoc.Below(block.Pointer+"/hosts", strconv.Itoa(i)), "%s is no host with a port such as api.example.org:443: %s.", jsondoc.Quote(item.Text), err.Error())
		}
	}
	return out
}

// openapiBlock reads the shape of §3.6; the document itself is the adapter's matter.
func openapiBlock(at jsondoc.Cursor) *OpenAPIBlock {
	b := &OpenAPIBlock{Node: at.Node}
	if at.Required("document") {
		b.Document = at.Line("document", 4096)
	}
	if at.Required("server") {
		b.Server = at.Line("server", 2048)
		if b.Server != "" && !SafeURL(b.Server) {
			at.AtValue("server", "openapi.server", "The server is an https address, or an http address of this machine.")
		}
	}
	at.Close(openapiMembers)
	return b
}
