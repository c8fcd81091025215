package grant

import (
	"slices"
	"strings"

	"hcpx/internal/protocol"
)

// Set is a list of grants made ready for many questions, as availability and long-lived processes ask
// them: a small key per grant turns most of them away without reading the grant. It answers exactly as
// Evaluate over the list does, and may be used by several at once. The list must not change under it.
type Set struct {
	grants []Grant
	keys   []key
	rules  [][]rule // of the grants that have any
}

// rulesOf are the sorted argument rules of a grant, nil in a list that was not made ready.
func (s *Set) rulesOf(i int) []rule {
	if s.rules == nil {
		return nil
	}
	return s.rules[i]
}

// key is what a grant can be turned away by. A zero hash is a glob or several names: look closer.
type key struct {
	who, pack, verb uint32
	capabilities    uint8
}

// NewSet makes a Set of the grants.
func NewSet(grants []Grant) *Set {
	s := &Set{grants: grants, keys: make([]key, len(grants)), rules: make([][]rule, len(grants))}
	for i := range grants {
		g := &grants[i]
		k := key{who: literal(g.Principal), pack: only(g.Packs), verb: only(g.Verbs)}
		for _, c := range g.Capabilities {
			k.capabilities |= bit(c)
		}
		s.keys[i], s.rules[i] = k, g.sortRules()
	}
	return s
}

// Evaluate decides as the function of the same name does.
func (s *Set) Evaluate(r Request) Decision { return evaluate(s, r) }

// concerns says whether grant i may speak of the request; no is certain, yes is not.
func (k *key) concerns(r *probe) bool {
	return k.capabilities&r.capability != 0 &&
		(k.pack == 0 || k.pack == r.pack) && (k.verb == 0 || k.verb == r.verb) &&
		(k.who == 0 || k.who == r.full || k.who == r.host)
}

// probe is a request in the form of keys.
type probe struct {
	full, host, pack, verb uint32
	capability             uint8
}

func newProbe(w who, r *Request) probe {
	return probe{full: hash(w.full), host: hash(w.host), pack: hash(r.Pack), verb: hash(r.Verb), capability: bit(r.Capability)}
}

// bit is a capability's own bit. Words that are none of the five share one, so that they are looked at.
func bit(c protocol.Capability) uint8 {
	if i := slices.Index(protocol.Capabilities, c); i >= 0 {
		return 1 << i
	}
	return 1 << 7
}

func only(patterns []string) uint32 {
	if len(patterns) != 1 {
		return 0
	}
	return literal(patterns[0])
}

func literal(pattern string) uint32 {
	if strings.IndexByte(pattern, '*') >= 0 {
		return 0
	}
	return hash(pattern)
}

// hash is FNV-1a, with 0 kept free for "look closer".
func hash(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return max(h, 1)
}
