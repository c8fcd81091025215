package lifecycle

import (
	"slices"
	"strings"

	"hcpx/internal/gate"
	"hcpx/internal/grant"
	"hcpx/internal/manifest"
	"hcpx/internal/policy"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// consentPack gathers what a person must know before the pack is let in (§11): programs, paths, network,
// credentials, and what agents may already do with it.
func (l *Lifecycle) consentPack(st *store.State, s protocol.Session, m *manifest.Manifest, p *policy.Policy) ConsentPack {
	c := ConsentPack{
		PackID: m.ID, Version: m.Version, Programs: []ConsentProgram{}, Reads: []string{}, Network: networkOf(m),
		Credential: credentialOf(&m.Binding), Changes: []policy.Change{}, Loosened: []string{}, Commands: []ConsentCommand{}, Agents: l.agents(st, s, m, p),
	}
	if m.Wrap != nil {
		c.Reads = append(c.Reads, m.Wrap.Reads...)
		c.Native = m.Wrap.Isolation == "native-local"
	}
	for _, prog := range programsOf(m) {
		c.Programs = append(c.Programs, l.consentProgram(prog))
	}
	for _, cmd := range m.Commands {
		if e := p.Verb(cmd.Key); e != nil {
			c.Commands = append(c.Commands, ConsentCommand{Verb: cmd.Key, Summary: cmd.Summary, Operation: e.Operation, Land: e.Land, Confirm: e.Confirm})
		}
	}
	return c
}

// consentProgram shows the path that a yes would record, or why there is none.
func (l *Lifecycle) consentProgram(p program) ConsentProgram {
	shown := ConsentProgram{Name: p.name, Uses: p.uses}
	bin, err := l.record(p.name, false)
	switch {
	case err != nil:
		shown.Note = err.Error()
	case p.dangerous(bin.Path):
		shown.Path, shown.Note = bin.Path, "runs whatever it is told; only hcpx allow --dangerous lets it in"
	default:
		shown.Path = bin.Path
		if by := gate.InterpretersOf(bin.Path); len(by) > 0 && !strings.HasSuffix(p.name, "/") {
			shown.Note = "a script that " + strings.Join(by, " and ") + " runs"
		}
	}
	return shown
}

func networkOf(m *manifest.Manifest) []string {
	switch {
	case m.OpenAPI != nil:
		return []string{m.OpenAPI.Server}
	case m.Wrap == nil:
		return []string{"none"}
	}
	net := m.Wrap.Network
	hosts := slices.Clone(net.Hosts)
	if net.OperatorHosts {
		hosts = append(hosts, "and hosts that you name with hcpx allow --host")
	}
	switch {
	case net.Mode == "full":
		return []string{"full"}
	case len(hosts) == 0:
		return []string{"none"}
	}
	return hosts
}

func credentialOf(b *manifest.Binding) string {
	if b.Mode == "" || b.Mode == "public" {
		return "none"
	}
	words := b.Mode
	if b.Hub != "" {
		words += " from " + b.Hub
	}
	if kind := b.Source.Get("kind"); kind != nil {
		words += " (" + kind.Text + ")"
	}
	return words
}

// agents lists, for each grant that names agents, the commands that agents of that name may already run:
// asked of the same rule as exec, for one stand-in of each name.
func (l *Lifecycle) agents(st *store.State, s protocol.Session, m *manifest.Manifest, p *policy.Policy) []AgentRights {
	list := []AgentRights{}
	seen := map[string]bool{}
	for _, g := range st.Grants {
		name := g.Principal
		if name == "*" || strings.HasPrefix(name, "*:") {
			name = "agent:*"
		}
		if g.Effect != grant.Allow || seen[name] || !strings.HasPrefix(name, "agent:") {
			continue
		}
		seen[name] = true
		agent := s
		agent.Principal = protocol.Principal(strings.ReplaceAll(name, "*", "x"))
		rights := AgentRights{Principal: name, Read: []string{}, Write: []string{}}
		for _, cmd := range m.Commands {
			e := p.Verb(cmd.Key)
			if e == nil || grant.Evaluate(st.Grants, l.request(agent, m, cmd, e, "", false)).Err != nil {
				continue
			}
			if e.Operation == protocol.Read {
				rights.Read = append(rights.Read, cmd.Key)
			} else {
				rights.Write = append(rights.Write, cmd.Key)
			}
		}
		if len(rights.Read)+len(rights.Write) > 0 {
			list = append(list, rights)
		}
	}
	return list
}

// request is step 4's request for a command, made by the gate itself.
func (l *Lifecycle) request(s protocol.Session, m *manifest.Manifest, c *manifest.Command, e *policy.Entry, project string, scope bool) grant.Request {
	v := &gate.Verb{Loaded: &gate.Loaded{ID: m.ID, Manifest: m}, Command: c, Entry: e}
	return l.Gate.Ask(s, v, project, scope)
}
