package app

import (
	"encoding/json"
	"strings"

	"hcpx/internal/gate"
	"hcpx/internal/grant"
	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
	"hcpx/internal/settings"
)

// narrow puts the hcp.toml of a session's workspace over the settings (§9.3), before anything runs in it. What was
// made under other settings is made again. A file that cannot be used stops whoever would run or change something, as
// any settings do. A process has one session at a time.
func (a *App) narrow(workspace string) {
	if a.wide == nil || workspace == a.workspace {
		return
	}
	a.workspace = workspace
	set, err := a.wide, error(nil)
	if workspace != "" {
		set, err = a.wide.Narrow(workspace)
	}
	if err == nil {
		_, err = denies(set)
	}
	was := a.settings
	a.settings, a.fault = set, nil
	if err != nil {
		a.settings, a.fault = settings.Default(), unusable(err)
	}
	if a.settings != was {
		a.wire()
	}
}

// rules are what the settings take away from what the store gives.
func (a *App) rules() gate.Rules {
	list, err := denies(a.settings)
	if err != nil { // narrow has looked; a deny that cannot be read denies everything
		list = []grant.Grant{denial("hcp.toml")}
	}
	return gate.Rules{Denies: list, NoNative: a.settings.Native == "forbid", NoDangerous: a.settings.Dangerous == "forbid", Endpoints: a.settings.Endpoints}
}

// denial is a deny of every run, on either plane.
func denial(from string) grant.Grant {
	return grant.Grant{
		Principal: "*", Effect: grant.Deny, Capabilities: []protocol.Capability{protocol.VerbExecRead, protocol.VerbExecWrite},
		Planes: []string{grant.PlaneRuntime, grant.PlaneControl}, From: from,
	}
}

// denies are a project's denies, and its packs.allow, as grants. The bootstrap pack manages the runtime itself and
// is no pack of a project.
func denies(s *settings.Settings) ([]grant.Grant, error) {
	var list []grant.Grant
	if s.Packs != nil {
		g := denial("packs.allow of hcp.toml")
		g.Except = append([]string{gate.Bootstrap}, s.Packs...)
		list = append(list, g)
	}
	for _, d := range s.Denies {
		g := denial(d.Where())
		if d.Principal != "" {
			g.Principal = d.Principal
		}
		if len(d.Capabilities) > 0 {
			g.Capabilities = nil
			for _, c := range d.Capabilities {
				g.Capabilities = append(g.Capabilities, protocol.Capability(c))
			}
		}
		g.Packs, g.Verbs, g.Projects = d.Packs, d.Verbs, d.Projects
		for name, values := range d.Args {
			for _, v := range values {
				node, err := jsondoc.FromAny(v)
				if err != nil {
					return nil, d.Wrong("a rule on the argument " + name + " is no JSON value")
				}
				if g.Args == nil {
					g.Args = map[string][]json.RawMessage{}
				}
				g.Args[name] = append(g.Args[name], node.Append(nil))
			}
		}
		if err := g.Check(); err != nil {
			return nil, d.Wrong(strings.TrimRight(err.Error(), "."))
		}
		list = append(list, g)
	}
	return list, nil
}
