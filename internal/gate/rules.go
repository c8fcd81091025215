package gate

import (
	"slices"

	"hcpx/internal/grant"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// Rules are what settings and a project take away from what the store gives (§9.3). They never add anything.
type Rules struct {
	Denies      []grant.Grant // after the store's grants
	NoNative    bool          // no pack runs outside the sandbox (§10.3)
	NoDangerous bool          // no interpreter is the program of a command (§10.2)
	Endpoints   []string      // the token endpoints that packs of mode mothership may have; nil: the settings name none (§8.3)
}

// standing is a state as the rules leave it, kept while the store answers the same one.
type standing struct {
	from, now *store.State
	asked     int
	set       *grant.Set
}

// setAfter is how many decisions over one state make its grants worth sorting: a command alone asks twice.
const setAfter = 3

// InForce is the state as the rules leave it: what decides, shows and explains reads this one. Whoever changes the
// store changes the store's own.
func (g *Gate) InForce(st *store.State) *store.State {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last.from != st {
		g.last = standing{from: st, now: g.Rules.leave(st)}
	}
	return g.last.now
}

// Decide evaluates a request over a state in force (§9.5), as grant.Evaluate does. A process that lives on asks one
// state many times, and then over sorted grants.
func (g *Gate) Decide(now *store.State, r grant.Request) grant.Decision {
	if set := g.sorted(now); set != nil {
		return set.Evaluate(r)
	}
	return grant.Evaluate(now.Grants, r)
}

func (g *Gate) sorted(now *store.State) *grant.Set {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last.now != now {
		return nil
	}
	if g.last.asked++; g.last.asked >= setAfter && g.last.set == nil {
		g.last.set = grant.NewSet(now.Grants)
	}
	return g.last.set
}

func (r Rules) leave(st *store.State) *store.State {
	if len(r.Denies) == 0 && !r.NoNative && !r.NoDangerous {
		return st
	}
	now := *st
	now.Grants = slices.Concat(st.Grants, r.Denies)
	if r.NoNative {
		now.Native = nil
	}
	if r.NoDangerous {
		now.Bins = slices.Clone(st.Bins)
		for i := range now.Bins {
			now.Bins[i].Dangerous = false
		}
	}
	return &now
}

// Endpoint is §8.3: a mothership's token endpoint is the operator's, never one that a manifest alone names. Where the settings
// name endpoints it is one of them; named answers whether they do.
func (r Rules) Endpoint(b *manifest.Binding) (named bool, refusal *protocol.Error) {
	if b.Mode != manifest.ModeMothership || b.From == nil || r.Endpoints == nil {
		return false, nil
	}
	if slices.Contains(r.Endpoints, b.From.TokenURL) {
		return true, nil
	}
	return true, protocol.Fail(protocol.NotConnected, "The pack wants tokens of "+b.From.TokenURL+", which is none of the operator's endpoints.").
		With("setting", "mothership.endpoints").WithHint("hcpx config show")
}

// Forbidden refuses what the settings forbid to allow; nil when they do not.
func (r Rules) Forbidden(native, dangerous bool) *protocol.Error {
	setting, what := "", ""
	switch {
	case native && r.NoNative:
		setting, what = "sandbox.native_local", "a pack to run outside the sandbox"
	case dangerous && r.NoDangerous:
		setting, what = "sandbox.dangerous", "an interpreter as the program of a command"
	default:
		return nil
	}
	return protocol.Fail(protocol.OperatorRequired, "The setting "+setting+" forbids "+what+".").
		With("setting", setting).WithHint("hcpx config show")
}
