package session

import (
	"strings"

	"hcpx/internal/protocol"
)

// Serve makes the Session of a server that an agent host starts (§9.3). It is never a person's: agent:<host> by marks,
// else what the client calls itself, which Client says later, Principal being "" until then. HCP_PRINCIPAL says who the
// person is that started the host, so it names nobody here; --as service:X, the operator's own word, beats all else.
func Serve(in Inputs) (protocol.Session, *protocol.Error) {
	return in.resolve(in.server)
}

func (in Inputs) server() (p protocol.Principal, how string, err *protocol.Error) {
	host, where := in.agentHost()
	p = protocol.Principal(in.Flags.As)
	switch {
	case in.Flags.As == "" && in.Nobody == flagAs:
		return "", string(in.Nobody), nobodyActs(string(in.Nobody))
	case p.Kind() == "service":
		return p, string(flagAs), nil
	case p != "" && p.Valid() && host != "":
		return p, string(flagAs), asAgent(p, string(flagAs), host, where)
	case p != "":
		return p, string(flagAs), protocol.Fail(protocol.Unauthenticated, "hcpx mcp acts for the agent at the other end and never as "+string(p)+"; --as names a service here.").
			WithHint("hcpx mcp --as service:NAME").With("principal", string(p))
	case host != "":
		return protocol.Principal("agent:" + host), where, nil
	}
	return "", "the client's name", nil
}

// Client is the Principal of whoever speaks through a client of that name (§9.3): agent:<name>, lower-case, with what a
// name may not hold as "-"; agent:mcp without one. No name makes a label of another agent.
func Client(name string) protocol.Principal {
	if name = agentName(name); name == "" {
		name = "mcp"
	}
	return protocol.Principal("agent:" + name)
}

// agentName is a name as a host is called: letters, digits and "-", so short that a label still finds room (§9.1).
func agentName(name string) string {
	name = strings.Trim(strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return '-'
	}, strings.ToLower(name)), "-")
	return strings.TrimRight(name[:min(len(name), 40)], "-")
}

// Inside says whether this process was started from within an agent's own shell: an ancestor carries a host's mark. A
// host that starts a server has none itself, whatever it gives its child. A server inside would be asking the agent when
// it asks its client, so there no answer of a client is a person's (§15.2).
func Inside(in Inputs) bool {
	in.Getenv = func(string) string { return "" }
	host, _ := in.agentHost()
	return host != ""
}
