package lifecycle

import (
	"maps"
	"slices"
	"time"

	"hcpx/internal/gate"
	"hcpx/internal/grant"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// Grant adds a grant (§9.6). It is a person's act; one that means the same as another changes nothing.
func (l *Lifecycle) Grant(s protocol.Session, g grant.Grant) (GrantView, *protocol.Error) {
	view := GrantView{Added: []grant.Grant{}, Removed: []grant.Grant{}}
	if err := l.operator(s, "Changing grants"); err != nil {
		return view, err
	}
	if err := g.Check(); err != nil {
		return view, protocol.Fail(protocol.UsageError, "The grant was not made: "+sentenceEnd(err.Error())+".").WithHint("hcpx grant --help")
	}
	var err *protocol.Error
	view.Changed, err = l.update(s, "grant", "", func(st *store.State) (any, *protocol.Error) {
		view.Added = []grant.Grant{}
		view.Note = l.ended(g)
		if slices.ContainsFunc(st.Grants, func(old grant.Grant) bool { return grant.Same(old, g) }) {
			return nil, nil
		}
		st.Grants = append(slices.Clip(st.Grants), g)
		view.Added = append(view.Added, g)
		return map[string]any{"added": view.Added}, nil
	})
	return view, err
}

// ended warns of a grant that is over before it begins.
func (l *Lifecycle) ended(g grant.Grant) string {
	end, err := time.Parse(time.RFC3339, g.Expires)
	if g.Expires == "" || err == nil && l.Now().Before(end) {
		return ""
	}
	return "It has ended already, at " + g.Expires + ": it changes nothing that anyone may do."
}

// Revoke removes every grant that fits the selectors (§9.6). It is a person's act.
func (l *Lifecycle) Revoke(s protocol.Session, sel grant.Selector) (GrantView, *protocol.Error) {
	view := GrantView{Added: []grant.Grant{}, Removed: []grant.Grant{}}
	if err := l.operator(s, "Changing grants"); err != nil {
		return view, err
	}
	for _, c := range sel.Capabilities {
		if !slices.Contains(protocol.Capabilities, c) {
			return view, protocol.Fail(protocol.UsageError, "\""+string(c)+"\" is not a capability.").WithHint("hcpx revoke --help")
		}
	}
	var err *protocol.Error
	view.Changed, err = l.update(s, "revoke", "", func(st *store.State) (any, *protocol.Error) {
		kept, removed := grant.Revoke(st.Grants, sel)
		view.Removed = append([]grant.Grant{}, removed...)
		view.Note = stillGiven(kept, sel)
		if len(removed) == 0 {
			return nil, nil
		}
		st.Grants = kept
		return map[string]any{"removed": view.Removed}, nil
	})
	return view, err
}

// stillGiven warns when a wider grant gives what was revoked.
func stillGiven(kept []grant.Grant, sel grant.Selector) string {
	for _, g := range kept {
		if g.Effect != grant.Allow || !grant.Glob(g.Principal, sel.Principal) {
			continue
		}
		for _, c := range g.Capabilities {
			if slices.Contains(sel.Capabilities, c) {
				return "a grant to " + g.Principal + " may still give " + string(c) + "; a deny beats every allow: hcpx grant " + sel.Principal + " " + string(c) + " --deny"
			}
		}
	}
	return ""
}

// Grants lists those of the store in their order.
func (l *Lifecycle) Grants(protocol.Session) (GrantsView, *protocol.Error) {
	st, err := l.state()
	if err != nil {
		return GrantsView{Grants: []grant.Grant{}}, err
	}
	own := func(g grant.Grant) bool { return g.From != "" }
	return GrantsView{Grants: append([]grant.Grant{}, slices.DeleteFunc(slices.Clone(st.Grants), own)...)}, nil
}

// Question is what grants --explain asks about.
type Question struct {
	Principal protocol.Principal
	Pack      string
	Verb      string
	Project   string
}

// Explain answers the decision path of step 4 for a principal in this session's place (§9.6). The answer
// no is an answer, not an error.
func (l *Lifecycle) Explain(s protocol.Session, q Question) (ExplainView, *protocol.Error) {
	view := ExplainView{Principal: q.Principal, PackID: q.Pack, VerbKey: q.Verb, Project: q.Project, Path: []string{}, Rules: []string{}}
	st, err := l.state()
	if err != nil {
		return view, err
	}
	if loaded, refusal := l.Gate.Installed(q.Pack); refusal != nil {
		view.Error = refusal
	} else {
		l.explain(st, s, q, loaded, &view)
	}
	if view.Error != nil && len(view.Path) == 0 {
		view.Path = append(view.Path, view.Error.Message)
	}
	return view, nil
}

func (l *Lifecycle) explain(st *store.State, s protocol.Session, q Question, loaded *gate.Loaded, view *ExplainView) {
	c, e := loaded.Manifest.Command(q.Verb), loaded.Policy.Verb(q.Verb)
	if c == nil || e == nil {
		view.Error = protocol.Fail(protocol.UnknownCommand, "Pack \""+q.Pack+"\" has no command \""+q.Verb+"\".").WithHint("hcpx availability " + q.Pack)
		return
	}
	s.Principal = q.Principal
	project := q.Project
	if project == "" {
		project = s.Project
	}
	r := l.request(s, loaded.Manifest, c, e, project, true)
	d := grant.Evaluate(st.Grants, r)
	view.Capability, view.Allowed, view.Path, view.Error = r.Capability, d.Err == nil, d.Path, d.Err
	view.Confirm = e.Confirm
	view.OwnConfirm = view.Allowed && e.Confirm && (!q.Principal.Agent() || l.AgentEnvelope || d.SelfConfirm && !l.NoSelfConfirm)
	rules := map[string]bool{}
	for _, g := range st.Grants {
		// A grant alone in the world tells whether it concerns this request at all.
		alone := g
		alone.Effect = grant.Allow
		if len(g.Args) > 0 && grant.Evaluate([]grant.Grant{alone}, r).Err == nil {
			for name := range g.Args {
				rules[name] = true
			}
		}
	}
	view.Rules = append(view.Rules, slices.Sorted(maps.Keys(rules))...)
}
