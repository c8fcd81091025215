package composite

import (
	"fmt"

	"hcpx/internal/adapter"
	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/policy"
	"hcpx/internal/protocol"
)

// Lookup finds a pack that is known: one of the same lint, or an installed one. Both are nil for any
// other, which is then not judged here but at step 3.
type Lookup func(pack string) (*manifest.Manifest, *policy.Policy)

// verb names a command among packs.
type verb struct{ pack, key string }

// graph is the calls among the commands of known packs, seen from the pack that is checked.
type graph struct {
	home   *manifest.Manifest
	lookup Lookup
}

// Check is lint's look at all composites of m with the packs around it (§3.5): steps that call nothing,
// circles, writes below a read, and confirmations that the composite hides. lookup is also asked for m's
// own policy.
func Check(m *manifest.Manifest, lookup func(pack string) (*manifest.Manifest, *policy.Policy)) []protocol.Issue {
	if m.Adapter != manifest.Composite {
		return nil
	}
	g := &graph{home: m, lookup: lookup}
	var issues []protocol.Issue
	for _, cmd := range m.Commands {
		list := cmd.Node.Get("steps")
		at := adapter.CommandPlace(m, cmd).Member(cmd.Node, "steps")
		for _, c := range calls(m, cmd) {
			place := at.Item(list, c.index).Member(list.Items[c.index], "verb")
			issues = append(issues, g.judge(place, verb{m.ID, cmd.Key}, c.verb)...)
		}
	}
	return issues
}

// call is one call step with its place in steps.
type call struct {
	verb
	index int
}

// calls are the call steps of a composite command, whatever else is wrong with it.
func calls(m *manifest.Manifest, cmd *manifest.Command) []call {
	list := cmd.Node.Get("steps")
	if m.Adapter != manifest.Composite || list == nil || list.Kind != jsondoc.Array {
		return nil
	}
	var out []call
	for i, n := range list.Items {
		key, pack := n.Get("verb"), n.Get("pack")
		if key == nil || key.Kind != jsondoc.String || (pack != nil && pack.Kind != jsondoc.String) {
			continue
		}
		c := call{verb{m.ID, key.Text}, i}
		if pack != nil {
			c.pack = pack.Text
		}
		out = append(out, c)
	}
	return out
}

// judge reports what is wrong with one call of the composite from.
func (g *graph) judge(at adapter.Place, from, to verb) []protocol.Issue {
	m, _ := g.pack(to.pack)
	if m == nil {
		return nil
	}
	if m.Command(to.key) == nil {
		return []protocol.Issue{at.Issue("composite.unknown-step", fmt.Sprintf("Pack %q declares no command %q.", to.pack, to.key))}
	}
	reached := g.reach(to)
	var issues []protocol.Issue
	own := g.entry(from)
	for _, v := range reached {
		if v == from {
			issues = append(issues, at.Issue("composite.cycle", fmt.Sprintf("The step leads back to %q.", from.key)))
			break
		}
	}
	if own == nil {
		return issues // policy.missing-entry
	}
	for _, v := range reached {
		if e := g.entry(v); e != nil && e.Operation == protocol.Write && own.Operation == protocol.Read {
			issues = append(issues, at.Issue("composite.escalation", fmt.Sprintf("%q is a read, but the step leads to the write %s/%s.", from.key, v.pack, v.key)))
			break
		}
	}
	for _, v := range reached {
		if e := g.entry(v); e != nil && e.Confirm && !own.Confirm {
			issues = append(issues, at.Issue("composite.confirm", fmt.Sprintf("The step needs the confirmation of %s/%s, so %q must declare confirm.", v.pack, v.key, from.key)))
			break
		}
	}
	return issues
}

// reach is to and every command that it leads to, each once, nearest first.
func (g *graph) reach(to verb) []verb {
	order, seen := []verb{to}, map[verb]bool{to: true}
	for i := 0; i < len(order); i++ {
		m, _ := g.pack(order[i].pack)
		if m == nil {
			continue
		}
		cmd := m.Command(order[i].key)
		if cmd == nil {
			continue
		}
		for _, c := range calls(m, cmd) {
			if !seen[c.verb] {
				seen[c.verb] = true
				order = append(order, c.verb)
			}
		}
	}
	return order
}

func (g *graph) pack(id string) (*manifest.Manifest, *policy.Policy) {
	m, p := g.lookup(id)
	if id == g.home.ID {
		return g.home, p
	}
	return m, p
}

func (g *graph) entry(v verb) *policy.Entry {
	_, p := g.pack(v.pack)
	if p == nil {
		return nil
	}
	return p.Verb(v.key)
}
