package manifest

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"hcpx/internal/jsondoc"
)

// resource is a schema with a base of its own: the whole one, and every one in it with $id.
type resource struct {
	node    *jsondoc.Node
	base    *url.URL // nil without $id
	address string   // base as text
	anchors []anchor
}

type anchor struct {
	name string
	node *jsondoc.Node
}

// enter notes the identifiers of a schema object and makes it the current resource when it has $id.
func (c *compiler) enter(n *jsondoc.Node) {
	if id := n.Get("$id"); id != nil && id.Kind == jsondoc.String {
		c.identify(n, id)
	}
	for _, key := range []string{"$anchor", "$dynamicAnchor"} {
		if a := n.Get(key); a != nil && a.Kind == jsondoc.String {
			c.at.anchors = append(c.at.anchors, anchor{a.Text, n})
		}
	}
}

func (c *compiler) identify(n, id *jsondoc.Node) {
	u, err := url.Parse(id.Text)
	if err != nil || u.Fragment != "" {
		c.below("$id", func() { c.bad(id, "$id is an address without a fragment.") })
		return
	}
	if c.at.base != nil {
		u = c.at.base.ResolveReference(u)
	}
	u.Fragment = ""
	for _, r := range c.known {
		if r.node == n {
			r.base, r.address, c.at = u, u.String(), r
			return
		}
	}
	c.at = &resource{node: n, base: u, address: u.String()}
	c.known = append(c.known, c.at)
}

// resolve connects every $ref with its target. A target that no keyword led to is compiled there; it may
// bring new references with it.
func (c *compiler) resolve() {
	if len(c.pending) == 0 {
		return
	}
	c.byNode = make(map[*jsondoc.Node]*rule, len(c.rules))
	indexed := 0
	for i := 0; i < len(c.pending); i++ {
		for ; indexed < len(c.rules); indexed++ {
			c.byNode[c.rules[indexed].node] = c.rules[indexed]
		}
		p := c.pending[i]
		if target := c.target(p); target != nil {
			p.rule.logics().ref = target
		}
	}
}

func (c *compiler) badRef(p pendingRef, message string) *rule {
	c.faults = append(c.faults, jsondoc.Fault{Code: badSchema, Offset: p.offset, Pointer: p.pointer, Message: message})
	return nil
}

// target finds the rule that a $ref names; only places inside this schema are looked at (§3.2).
func (c *compiler) target(p pendingRef) *rule {
	u, err := url.Parse(p.ref)
	if err != nil {
		return c.badRef(p, "The $ref "+jsondoc.Quote(p.ref)+" is no address.")
	}
	at := p.at
	if !strings.HasPrefix(p.ref, "#") && p.ref != "" {
		if at = c.resourceOf(u, p.at); at == nil {
			return c.badRef(p, "The $ref "+jsondoc.Quote(p.ref)+" leaves the schema; only places inside it may be named.")
		}
	}
	from, node, tokens := at.node, at.node, []string(nil)
	if u.Fragment == "" || u.Fragment[0] == '/' {
		var ok bool
		if tokens, ok = jsondoc.Tokens(u.Fragment); !ok {
			return c.badRef(p, "The $ref "+jsondoc.Quote(p.ref)+" is no JSON pointer.")
		}
		for _, t := range tokens {
			node = node.Child(t)
			at = c.crossing(node, at)
		}
	} else if i := slices.IndexFunc(at.anchors, func(a anchor) bool { return a.name == u.Fragment }); i >= 0 {
		node = at.anchors[i].node
	} else {
		node = nil
	}
	if node == nil {
		return c.badRef(p, "The $ref "+jsondoc.Quote(p.ref)+" names nothing in the schema.")
	}
	if r := c.byNode[node]; r != nil {
		return r
	}
	c.trail, c.at = append(c.trailTo(from), tokens...), at
	r := c.schema(node)
	c.trail = c.trail[:0]
	return r
}

// resourceOf finds the resource with the address u, seen from another.
func (c *compiler) resourceOf(u *url.URL, from *resource) *resource {
	abs := *u
	if from.base != nil {
		abs = *from.base.ResolveReference(u)
	}
	abs.Fragment, abs.RawFragment = "", ""
	address := abs.String()
	for _, r := range c.known {
		if r.base != nil && r.address == address {
			return r
		}
	}
	return nil
}

// crossing is the resource that a node belongs to on the way down.
func (c *compiler) crossing(n *jsondoc.Node, at *resource) *resource {
	for _, r := range c.known {
		if n != nil && r.node == n {
			return r
		}
	}
	return at
}

// trailTo finds the tokens that lead from the root to a node.
func (c *compiler) trailTo(n *jsondoc.Node) []string {
	var trail []string
	var walk func(at *jsondoc.Node) bool
	step := func(token string, at *jsondoc.Node) bool {
		trail = append(trail, token)
		if walk(at) {
			return true
		}
		trail = trail[:len(trail)-1]
		return false
	}
	walk = func(at *jsondoc.Node) bool {
		for _, m := range at.Members {
			if step(m.Key, m.Value) {
				return true
			}
		}
		for i, item := range at.Items {
			if step(strconv.Itoa(i), item) {
				return true
			}
		}
		return at == n
	}
	walk(c.root)
	return trail
}

// circles refuses schemas that come back to themselves without taking a step into the value: checking one
// would never end.
func (c *compiler) circles() {
	const open, done = 1, 2
	state := make(map[*rule]int, len(c.rules))
	var visit func(r *rule) bool
	visit = func(r *rule) bool {
		switch state[r] {
		case open:
			return false
		case done:
			return true
		}
		state[r] = open
		for _, next := range r.inPlace() {
			if !visit(next) {
				return false
			}
		}
		state[r] = done
		return true
	}
	if len(c.pending) == 0 {
		return // without references there is no way back
	}
	for _, p := range c.pending {
		if !visit(p.rule) {
			c.badRef(p, "The $ref "+jsondoc.Quote(p.ref)+" comes back to itself without end.")
			return
		}
	}
}
