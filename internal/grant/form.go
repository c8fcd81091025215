package grant

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// The planes that a grant may name (§2.5).
const (
	PlaneRuntime = "runtime"
	PlaneControl = "control"
)

// Defaults are the grants of a fresh store (§9.6): a person has all five capabilities, an agent reads.
func Defaults() []Grant {
	return []Grant{
		{Principal: "human:*", Effect: Allow, Capabilities: slices.Clone(protocol.Capabilities)},
		{Principal: "agent:*", Effect: Allow, Capabilities: []protocol.Capability{protocol.VerbExecRead}},
	}
}

// Check says what is wrong with the form of a grant (§9.6), in a sentence for the person who made it.
func (g Grant) Check() error {
	if !principalPattern(g.Principal) {
		return fmt.Errorf("%q names no principal; write kind:name, as human:ada or agent:*", g.Principal)
	}
	if g.Effect != Allow && g.Effect != Deny {
		return fmt.Errorf("the effect %q is neither allow nor deny", g.Effect)
	}
	if len(g.Capabilities) == 0 {
		return errors.New("a grant names at least one capability")
	}
	for _, c := range g.Capabilities {
		if !slices.Contains(protocol.Capabilities, c) {
			return fmt.Errorf("%q is not a capability; the five are %s", c, capabilityList(protocol.Capabilities, ", "))
		}
	}
	for _, p := range g.Planes {
		if p != PlaneRuntime && p != PlaneControl {
			return fmt.Errorf("%q is not a plane; there are runtime and control", p)
		}
	}
	return g.checkRest()
}

func (g Grant) checkRest() error {
	for _, list := range [][]string{g.Packs, g.Verbs, g.Projects} {
		if slices.Contains(list, "") {
			return errors.New("an empty name fits nothing; leave it out for all")
		}
	}
	for name, values := range g.Args {
		if name == "" || len(values) == 0 {
			return errors.New("an argument rule names an argument and at least one value")
		}
		for _, v := range values {
			if node, faults := jsondoc.Parse(v, jsondoc.Limits{}); node == nil || len(faults) > 0 {
				return fmt.Errorf("a value of the argument rule %s is not JSON", name)
			}
		}
	}
	if g.SelfConfirm && g.Effect == Deny {
		return errors.New("a deny confirms nothing; leave self_confirm out")
	}
	if g.Expires != "" {
		if _, err := time.Parse(time.RFC3339, g.Expires); err != nil {
			return fmt.Errorf("%q is not a time; write it as 2027-01-31T18:00:00Z", g.Expires)
		}
	}
	return nil
}

// principalPattern: the form of §9.1 where * may stand in kind and name; * alone is everyone.
func principalPattern(p string) bool {
	if p == "*" {
		return true
	}
	kind, name, found := strings.Cut(p, ":")
	if !found || !slices.Contains([]string{"human", "service", "agent", "mothership", "*"}, kind) {
		return false
	}
	filled := strings.ReplaceAll(name, "*", "0")
	return protocol.Principal("human:" + filled).Valid()
}

// String is the grant in one line for people.
func (g Grant) String() string {
	var b strings.Builder
	b.WriteString(g.Effect + " " + g.Principal + " " + capabilityList(g.Capabilities, ","))
	for _, axis := range []struct {
		flag string
		list []string
	}{{"pack", g.Packs}, {"verb", g.Verbs}, {"plane", g.Planes}, {"project", g.Projects}} {
		if len(axis.list) > 0 {
			b.WriteString(" " + axis.flag + "=" + strings.Join(axis.list, ","))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.Args)) {
		for _, v := range g.Args[name] {
			b.WriteString(" " + name + "=" + string(v))
		}
	}
	if g.SelfConfirm {
		b.WriteString(" self-confirm")
	}
	if g.Expires != "" {
		b.WriteString(" until=" + g.Expires)
	}
	return b.String()
}

func capabilityList(list []protocol.Capability, sep string) string {
	words := make([]string, len(list))
	for i, c := range list {
		words[i] = string(c)
	}
	return strings.Join(words, sep)
}
