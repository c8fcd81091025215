package gate

import (
	"slices"

	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// Needs are what the lands of a command ask of the caller's place (§11.2): project for brain, workspace for
// local. A composite needs what its steps need too, as deep as they go; a step that can't be found adds
// nothing, since step 3 refuses the command for it.
func (g *Gate) Needs(l *Loaded, key string) []string {
	needs := []string{}
	seen := map[string]bool{}
	var walk func(l *Loaded, key string, depth int)
	walk = func(l *Loaded, key string, depth int) {
		e := l.Policy.Verb(key)
		if e == nil || seen[l.ID+"/"+key] || depth > maxNesting {
			return
		}
		seen[l.ID+"/"+key] = true
		if need := needOf(e.Land); need != "" && !slices.Contains(needs, need) {
			needs = append(needs, need)
		}
		for id, verbs := range g.calls(l, key) {
			inner, err := g.Installed(id)
			if err != nil {
				continue
			}
			for _, verb := range verbs {
				walk(inner, verb, depth+1)
			}
		}
	}
	walk(l, key, 1)
	slices.Sort(needs)
	return needs
}

func needOf(land protocol.Land) string {
	switch land {
	case protocol.Brain:
		return "project"
	case protocol.Local:
		return "workspace"
	}
	return ""
}

// Calls says whether a command of l calls one of the pack id.
func (g *Gate) Calls(l *Loaded, id string) bool {
	return slices.ContainsFunc(l.Manifest.Commands, func(c *manifest.Command) bool {
		return len(g.calls(l, c.Key)[id]) > 0
	})
}

// calls are the verbs that the steps of a command call, by pack; none for what is no composite or does not
// compile.
func (g *Gate) calls(l *Loaded, key string) map[string][]string {
	if l.Manifest.Adapter != manifest.Composite {
		return nil
	}
	v, err := g.declared(l, key)
	if err != nil {
		return nil
	}
	calls := map[string][]string{}
	for _, step := range v.Adapter.Steps() {
		calls[step.Pack] = append(calls[step.Pack], step.Verb)
	}
	return calls
}
