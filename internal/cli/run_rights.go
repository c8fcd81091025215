package cli

import (
	"context"
	"encoding/json"
	"strings"

	"hcpx/internal/grant"
	"hcpx/internal/lifecycle"
	"hcpx/internal/protocol"
)

func runAllow(ctx context.Context, d *deps, o allowOptions) error {
	if o.Learn {
		return runLearn(ctx, d, o)
	}
	return stage(d, func(l *lifecycle.Lifecycle, s protocol.Session) (lifecycle.AllowView, *protocol.Error) {
		return l.Allow(s, lifecycle.AllowRequest{
			Bins: o.Bins, Dangerous: o.Dangerous, Native: o.Native,
			HostPack: o.HostPack, Hosts: o.Hosts, ReadPack: o.ReadPack, Reads: o.Reads, Remove: o.Remove,
		})
	}, func(p *page, v lifecycle.AllowView) {
		word := "allowed"
		switch {
		case v.Removed && !v.Changed:
			p.line("nothing of that was allowed")
		case v.Removed:
			word = "no longer allowed"
		case !v.Changed:
			word = "already allowed"
		}
		for _, b := range v.Bins {
			p.line("%s %s = %s", word, b.Name, b.Path)
		}
		for _, r := range v.Reads {
			p.line("%s %s to read %s", word, r.Pack, r.Path)
		}
		for _, n := range v.Native {
			p.line("%s %s to run outside the sandbox", word, n)
		}
		for _, h := range v.Hosts {
			p.line("%s %s to reach %s", word, h.Pack, h.Host)
		}
		for _, n := range v.Notes {
			p.styled(warn, "note: %s", n)
		}
	})
}

func runGrant(_ context.Context, d *deps, o grantOptions) error {
	return stage(d, func(l *lifecycle.Lifecycle, s protocol.Session) (lifecycle.GrantView, *protocol.Error) {
		return l.Grant(s, o.grant())
	}, showGrants)
}

func runRevoke(_ context.Context, d *deps, o grantOptions) error {
	return stage(d, func(l *lifecycle.Lifecycle, s protocol.Session) (lifecycle.GrantView, *protocol.Error) {
		return l.Revoke(s, o.selector())
	}, showGrants)
}

// grant is the grant that the words say (§9.6).
func (o grantOptions) grant() grant.Grant {
	g := grant.Grant{
		Principal: o.Principal, Effect: grant.Allow, Capabilities: caps(o.Capabilities), Packs: o.Packs, Verbs: o.Verbs,
		Projects: o.Projects, Planes: o.Planes, SelfConfirm: o.SelfConfirm, Expires: o.Expires,
	}
	if o.Deny {
		g.Effect = grant.Deny
	}
	for _, r := range o.Args {
		if g.Args == nil {
			g.Args = map[string][]json.RawMessage{}
		}
		g.Args[r.Name] = append(g.Args[r.Name], json.RawMessage(r.Value))
	}
	return g
}

// selector is what revoke removes; several values of one axis are one revoke each, so it takes one (§9.6).
func (o grantOptions) selector() grant.Selector {
	sel := grant.Selector{
		Principal: o.Principal, Capabilities: caps(o.Capabilities), Pack: only(o.Packs), Verb: only(o.Verbs),
		Project: only(o.Projects), Plane: only(o.Planes), SelfConfirm: o.SelfConfirm, Expires: o.Expires,
	}
	if o.Deny {
		sel.Effect = grant.Deny
	}
	for _, r := range o.Args {
		if sel.Args == nil {
			sel.Args = map[string]json.RawMessage{}
		}
		sel.Args[r.Name] = json.RawMessage(r.Value)
	}
	return sel
}

func only(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

func caps(words []string) []protocol.Capability {
	out := make([]protocol.Capability, len(words))
	for i, w := range words {
		out[i] = protocol.Capability(w)
	}
	return out
}

func showGrants(p *page, v lifecycle.GrantView) {
	for _, g := range v.Added {
		p.raw(p.paint(good, "added ") + clean(g.String()) + "\n")
	}
	for _, g := range v.Removed {
		p.raw(p.paint(warn, "removed ") + clean(g.String()) + "\n")
	}
	if !v.Changed {
		p.line("%s", orWord(v.Note, "nothing changed"))
	} else if v.Note != "" {
		p.line("%s", v.Note)
	}
	p.next("hcpx grants")
}

func runGrants(_ context.Context, d *deps, o grantsOptions) error {
	if o.Explain {
		return stage(d, func(l *lifecycle.Lifecycle, s protocol.Session) (lifecycle.ExplainView, *protocol.Error) {
			return l.Explain(s, lifecycle.Question{Principal: protocol.Principal(o.Principal), Pack: o.Pack, Verb: o.Verb, Project: o.Project})
		}, showExplanation)
	}
	return stage(d, func(l *lifecycle.Lifecycle, s protocol.Session) (lifecycle.GrantsView, *protocol.Error) {
		return l.Grants(s)
	}, func(p *page, v lifecycle.GrantsView) {
		for i, g := range v.Grants {
			p.line("grant %d: %s", i+1, g.String())
		}
		p.next("hcpx grants --explain PRINCIPAL PACK VERB")
	})
}

func showExplanation(p *page, v lifecycle.ExplainView) {
	for _, step := range v.Path {
		p.line("%s", step)
	}
	for _, r := range v.Rules {
		p.line("arguments are limited: %s", r)
	}
	target := v.PackID + "/" + v.VerbKey
	if v.Allowed {
		p.raw(p.paint(good, "allowed: ") + clean(string(v.Principal)+" "+target) + "\n")
		p.line("%s", confirmation(v))
		return
	}
	p.raw(p.paint(bad, "refused: ") + clean(string(v.Principal)+" "+target) + "\n")
	if v.Error != nil {
		p.raw(clean(v.Error.Message) + "\n")
		if v.Error.Hint != "" {
			p.next(strings.TrimSpace(v.Error.Hint))
		}
	}
}

// confirmation says what step 6 will ask of whom step 4 lets past.
func confirmation(v lifecycle.ExplainView) string {
	switch {
	case !v.Confirm:
		return "No confirmation is asked for."
	case v.OwnConfirm:
		return "A confirmation is asked for, and that of " + string(v.Principal) + " counts."
	}
	return "A confirmation is asked for, and that of " + string(v.Principal) + " does not count: it takes a person, or a grant with --self-confirm."
}
