package grant

import (
	"slices"
	"strings"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// Set is a list of grants made ready for many questions, as availability and long-lived processes ask
// them: a small key per grant turns most of them away without reading the grant. It answers exactly as
// Evaluate over the list does, and may be used by several at once. The list must not change under it.
type Set struct {
	grants []Grant
	keys   []key
	fronts []ruleKey
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
	deny, ruled     bool // ruled: there is a ruleKey
}

// ruleKey is of a grant with one argument rule that is one word: the argument, and how its text must begin.
type ruleKey struct {
	arg         uint32
	begin, mask uint64
}

// NewSet makes a Set of the grants.
func NewSet(grants []Grant) *Set {
	s := &Set{grants: grants, keys: make([]key, len(grants)), fronts: make([]ruleKey, len(grants)), rules: make([][]rule, len(grants))}
	for i := range grants {
		g := &grants[i]
		k := key{who: literal(g.Principal), pack: only(g.Packs), verb: only(g.Verbs)}
		for _, c := range g.Capabilities {
			k.capabilities |= bit(c)
		}
		s.rules[i] = g.sortRules()
		k.deny = g.Effect != Allow
		s.fronts[i], k.ruled = ruleKeyOf(s.rules[i])
		s.keys[i] = k
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

// ruleKeyOf takes what can be told of rules without reading them.
func ruleKeyOf(rules []rule) (k ruleKey, ok bool) {
	if len(rules) != 1 || len(rules[0].words) != 1 || len(rules[0].values) > 0 {
		return k, false
	}
	word, _, _ := strings.Cut(rules[0].words[0], "*")
	k.arg = hash(rules[0].name)
	k.begin, k.mask = front(word)
	return k, true
}

// unfit says whether the argument rule certainly fits not; no is not certain.
func (k *ruleKey) unfit(r *probe) bool {
	for i := range r.known { // all of them: two names may have one hash
		if a := &r.args[i]; a.name == k.arg && (!a.text || (a.begin^k.begin)&k.mask == 0) {
			return false
		}
	}
	return !r.more // what is not there fits no rule
}

// front is the beginning of a text as a number, and which bits of it there are.
func front(s string) (begin, mask uint64) {
	for i := range min(len(s), 8) {
		begin |= uint64(s[i]) << (8 * i)
		mask |= 0xff << (8 * i)
	}
	return begin, mask
}

// probe is a request in the form of keys.
type probe struct {
	full, host, pack, verb uint32
	capability             uint8
	given, more            bool // there are arguments; more than args holds
	known                  int
	args                   [6]argument
}

// argument is one of the request's: whether it is a text, and how that begins.
type argument struct {
	name  uint32
	text  bool
	begin uint64
}

func newProbe(w who, r *Request) probe {
	p := probe{full: hash(w.full), host: hash(w.host), pack: hash(r.Pack), verb: hash(r.Verb), capability: bit(r.Capability), given: r.Args != nil}
	if r.Args == nil {
		return p
	}
	p.more = r.Args.Kind != jsondoc.Object || len(r.Args.Members) > len(p.args)
	for _, m := range r.Args.Members[:min(len(r.Args.Members), len(p.args))] {
		a := argument{name: hash(m.Key), text: m.Value.Kind == jsondoc.String}
		a.begin, _ = front(m.Value.Text)
		p.args[p.known] = a
		p.known++
	}
	return p
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
