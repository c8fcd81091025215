package grant

import (
	"encoding/json"
	"slices"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// Selector names the grants that revoke means (§9.6). What is empty selects everything; text is a
// glob over what stands in the grant.
type Selector struct {
	Principal    string
	Capabilities []protocol.Capability
	Pack, Verb   string
	Project      string
	Plane        string
	Args         map[string]json.RawMessage
	SelfConfirm  bool   // only grants that have it
	Effect       string // allow, deny, "" = both
	Expires      string
}

// Fits says whether the selectors named fit the grant (§9.6): every item of a named list, so that
// --pack ledger never removes a grant that speaks of other packs too, and at least one of the named
// capabilities.
func Fits(g Grant, sel Selector) bool {
	return text(sel.Principal, []string{g.Principal}) &&
		(len(sel.Capabilities) == 0 || slices.ContainsFunc(g.Capabilities, sel.names)) &&
		text(sel.Pack, orAll(g.Packs)) && text(sel.Verb, orAll(g.Verbs)) &&
		text(sel.Project, orAll(g.Projects)) && text(sel.Plane, orRuntime(g.Planes)) &&
		sel.argsFit(g) &&
		(!sel.SelfConfirm || g.SelfConfirm) &&
		(sel.Effect == "" || sel.Effect == g.Effect) &&
		(sel.Expires == "" || sel.Expires == g.Expires)
}

// Revoke takes the selected grants out (§9.6). A grant of several capabilities of which only some are
// named keeps the others; what was taken out is answered as grants of its own.
func Revoke(grants []Grant, sel Selector) (kept, removed []Grant) {
	kept = make([]Grant, 0, len(grants))
	for _, g := range grants {
		if !Fits(g, sel) {
			kept = append(kept, g)
			continue
		}
		gone, rest := g, g
		gone.Capabilities, rest.Capabilities = nil, nil
		for _, c := range g.Capabilities {
			if len(sel.Capabilities) == 0 || sel.names(c) {
				gone.Capabilities = append(gone.Capabilities, c)
			} else {
				rest.Capabilities = append(rest.Capabilities, c)
			}
		}
		removed = append(removed, gone)
		if len(rest.Capabilities) > 0 {
			kept = append(kept, rest)
		}
	}
	return kept, removed
}

// Same says whether two grants mean the same, so that granting twice changes nothing.
func Same(a, b Grant) bool { return a.canonical() == b.canonical() }

// canonical is the grant's meaning as text: lists sorted and defaults filled in.
func (g Grant) canonical() string {
	c := g
	c.Capabilities = slices.Compact(slices.Sorted(slices.Values(g.Capabilities)))
	c.Packs, c.Verbs, c.Projects = sorted(orAll(g.Packs)), sorted(orAll(g.Verbs)), sorted(orAll(g.Projects))
	c.Planes = sorted(orRuntime(g.Planes))
	c.Args = make(map[string][]json.RawMessage, len(g.Args))
	for name, values := range g.Args {
		texts := make([]string, 0, len(values))
		for _, v := range values {
			if node, _ := jsondoc.Parse(v, jsondoc.Limits{}); node != nil {
				v = node.Canonical(nil)
			}
			texts = append(texts, string(v))
		}
		for _, t := range sorted(texts) {
			c.Args[name] = append(c.Args[name], json.RawMessage(t))
		}
	}
	return c.String()
}

func sorted(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }

func (sel Selector) names(c protocol.Capability) bool { return slices.Contains(sel.Capabilities, c) }

func (sel Selector) argsFit(g Grant) bool {
	for name, want := range sel.Args {
		node, _ := jsondoc.Parse(want, jsondoc.Limits{})
		if node == nil || !slices.ContainsFunc(g.Args[name], func(v json.RawMessage) bool {
			have, _ := jsondoc.Parse(v, jsondoc.Limits{})
			return have != nil && node.Equal(have)
		}) {
			return false
		}
	}
	return true
}

func text(pattern string, list []string) bool {
	return pattern == "" || !slices.ContainsFunc(list, func(s string) bool { return !Glob(pattern, s) })
}

func orAll(list []string) []string {
	if len(list) == 0 {
		return []string{"*"}
	}
	return list
}

func orRuntime(list []string) []string {
	if len(list) == 0 {
		return []string{PlaneRuntime}
	}
	return list
}
