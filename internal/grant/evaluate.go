package grant

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"hcpx/internal/protocol"
)

// Reasons of grant_missing, as details.reason names them (§9.5).
const (
	ReasonNone    = "no_grant"
	ReasonDeny    = "deny"
	ReasonPlane   = "plane"
	ReasonExpired = "expired"
	ReasonArgs    = "args"
)

// reach says how far an allow carries the request through the order of §9.5. An allow that fails a
// check says nothing about the later ones, so the request reaches as far as its best allow.
type reach int

const (
	reachNothing    reach = iota // no allow for the capability
	reachExpired                 // an allow, but it has ended
	reachCapability              // capability given, on another plane
	reachPlane                   // plane covered, project not
	reachScope                   // project covered, argument rules not
	reachAllow
)

// verdict is what one pass over the grants found. Indexes are -1 for none.
type verdict struct {
	reach       reach
	by          int // the grant that reached that far
	deny        int
	selfConfirm bool
}

// Evaluate decides in the order of §9.5: principal, tenant, capability, plane, land scope, allow; the
// first failure wins, and nothing is allowed unless a grant says so. A deny beats every allow and is
// found with the capability, so that whoever is denied learns nothing of what lies behind. The order
// of the grants never changes the decision.
func Evaluate(grants []Grant, r Request) Decision { return evaluate(&Set{grants: grants}, r) }

func evaluate(s *Set, r Request) Decision {
	grants := s.grants
	d := Decision{Path: make([]string, 0, 6)}
	if !r.Principal.Valid() {
		return d.refuse("The caller has no valid principal.", unauthenticated())
	}
	d.note("Principal " + string(r.Principal) + " is valid.")
	if r.Tenant == "" {
		return d.refuse("The session has no tenant.", tenantUnresolved(r))
	}
	d.note("Tenant is " + r.Tenant + ".")
	if r.Plane == "" {
		r.Plane = PlaneRuntime
	}
	v := s.weigh(&r)
	if refused := v.capability(grants, &r, &d); refused {
		return d
	}
	if refused := v.scope(grants, &r, &d); refused {
		return d
	}
	if v.reach < reachAllow {
		return d.refuse("No allow fits these arguments.", missing(r, ReasonArgs))
	}
	d.note("Allowed by " + name(grants, v.by) + ".")
	d.SelfConfirm = v.selfConfirm
	return d
}

// capability answers the third and fourth check of §9.5: a deny, no allow, an ended one, the plane.
func (v verdict) capability(grants []Grant, r *Request, d *Decision) (refused bool) {
	sentence, reason := "", ""
	switch {
	case v.deny >= 0:
		sentence, reason = string(r.Capability)+" is denied by "+name(grants, v.deny)+".", ReasonDeny
	case v.reach == reachNothing:
		sentence, reason = "No grant gives "+string(r.Capability)+".", ReasonNone
	case v.reach == reachExpired:
		sentence, reason = string(r.Capability)+" was given by "+name(grants, v.by)+", which has ended.", ReasonExpired
	}
	if reason == "" {
		d.note(string(r.Capability) + " is given by " + name(grants, v.by) + ".")
		if v.reach > reachCapability {
			d.note("Plane " + r.Plane + " is covered.")
			return false
		}
		sentence, reason = "No allow covers plane "+r.Plane+".", ReasonPlane
	}
	*d = d.refuse(sentence, missing(*r, reason))
	return true
}

// scope answers the land's check of §9.5 and §9.2: personal belongs to its owner, brain needs a project
// that some allow fits, local a workspace. Availability leaves it out (§11.2).
func (v verdict) scope(grants []Grant, r *Request, d *Decision) (refused bool) {
	if r.Verb == "" || !r.Scope {
		return false
	}
	switch r.Land {
	case protocol.Personal:
		d.note("Land personal is the principal's own.")
	case protocol.Brain:
		if r.Project == "" {
			*d = d.refuse("Land brain needs a project.", projectRequired(*r))
			return true
		}
		if v.reach == reachPlane {
			*d = d.refuse("No allow fits project "+r.Project+".", projectDenied(*r))
			return true
		}
		d.note("Project " + r.Project + " fits " + name(grants, v.by) + ".")
	case protocol.Local:
		if r.Workspace == "" {
			*d = d.refuse("Land local needs a workspace.", workspaceRequired(*r))
			return true
		}
		d.note("Land local has a workspace.")
	default:
		*d = d.refuse("The policy names no land.", missing(*r, ReasonNone))
		return true
	}
	return false
}

// weigh is the one pass over the grants. It allocates nothing, and once an allow has carried the
// request all the way, only a deny or a self_confirm is still looked for.
func (s *Set) weigh(r *Request) verdict {
	v := verdict{by: -1, deny: -1}
	who := newWho(r.Principal)
	probe := newProbe(who, r)
	for i := range s.grants {
		if s.keys != nil {
			k := &s.keys[i]
			// A rule that fits not says nothing more once another one was found so.
			if !k.concerns(&probe) || k.ruled && probe.given && (k.deny || v.reach >= reachScope) && s.fronts[i].unfit(&probe) {
				continue
			}
		}
		g := &s.grants[i]
		allows := g.Effect == Allow
		if allows && v.reach == reachAllow && (v.selfConfirm || !g.SelfConfirm) {
			continue
		}
		if !who.fits(g.Principal) || !oneFits(g.Packs, r.Pack) || !oneFits(g.Verbs, r.Verb) ||
			!slices.Contains(g.Capabilities, r.Capability) || len(g.Except) > 0 && oneFits(g.Except, r.Pack) {
			continue
		}
		if !allows {
			if g.denies(r, s.rulesOf(i)) {
				v.deny = i
				return v
			}
			continue
		}
		got := g.carries(r, s.rulesOf(i))
		if got > v.reach {
			v.reach, v.by = got, i
		}
		// At step 4 an allow with argument rules has not matched yet, so its self_confirm doesn't count.
		if got == reachAllow && g.SelfConfirm && (r.Args != nil || len(g.Args) == 0) {
			v.selfConfirm = true
		}
	}
	return v
}

// carries says how far the allow g carries a request that it concerns.
func (g *Grant) carries(r *Request, rules []rule) reach {
	switch {
	case g.expired(r.Now, true):
		return reachExpired
	case !g.covers(r.Plane):
		return reachCapability
	case r.Scope && r.Land == protocol.Brain && !oneFits(g.Projects, r.Project):
		return reachPlane
	case r.Args != nil && !g.argsFit(r.Args, rules):
		return reachScope
	}
	return reachAllow
}

// denies says whether the deny g fits a request that it concerns (§9.6). One that is limited to
// projects speaks only of a request with such a project; one with argument rules waits for the
// arguments.
func (g *Grant) denies(r *Request, rules []rule) bool {
	if g.expired(r.Now, false) || !g.covers(r.Plane) {
		return false
	}
	if !all(g.Projects) && (!r.Scope || r.Project == "" || !oneFits(g.Projects, r.Project)) {
		return false
	}
	if len(g.Args) > 0 {
		return r.Args != nil && g.argsFit(r.Args, rules)
	}
	return true
}

// covers says whether the grant speaks of the plane; without a word it is runtime only (§2.5).
func (g *Grant) covers(plane string) bool {
	if len(g.Planes) == 0 {
		return plane == PlaneRuntime
	}
	return oneFits(g.Planes, plane)
}

// expired says whether the grant has ended. An end that can't be read has passed for an allow and
// not for a deny: both fail closed.
func (g *Grant) expired(now time.Time, unreadable bool) bool {
	if g.Expires == "" {
		return false
	}
	end, err := time.Parse(time.RFC3339, g.Expires)
	if err != nil {
		return unreadable
	}
	return !now.Before(end)
}

// who is a Principal as grants may name it: itself, or for an agent with a label the host alone.
type who struct{ full, host string }

// newWho splits agent:<host>.<label>: grants to the host cover its labels (§9.3).
func newWho(p protocol.Principal) who {
	w := who{full: string(p)}
	if strings.HasPrefix(w.full, "agent:") {
		if dot := strings.IndexByte(w.full, '.'); dot > 0 {
			w.host = w.full[:dot]
		}
	}
	return w
}

func (w who) fits(pattern string) bool {
	if !misses(pattern, w.full) && Glob(pattern, w.full) {
		return true
	}
	return w.host != "" && Glob(pattern, w.host)
}

func (d *Decision) note(sentence string) { d.Path = append(d.Path, sentence) }

func (d *Decision) refuse(sentence string, err *protocol.Error) Decision {
	d.note(sentence)
	d.Err = err
	return *d
}

// name is how the path speaks of a grant: its place in the list and whom it names, never its rules.
func name(grants []Grant, i int) string {
	if from := grants[i].From; from != "" {
		return from
	}
	return "grant " + strconv.Itoa(i+1) + " to " + grants[i].Principal
}
