package grant

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func parse(t testing.TB, src string) *jsondoc.Node {
	t.Helper()
	n, faults := jsondoc.Parse([]byte(src), jsondoc.Limits{})
	if n == nil || len(faults) > 0 {
		t.Fatalf("%s: %v", src, faults)
	}
	return n
}

// transfer is a write that agent:claude-code asks for.
func transfer() Request {
	return Request{Principal: "agent:claude-code", Tenant: "local", Capability: protocol.VerbExecWrite,
		Pack: "ledger", Verb: "transfer", Plane: PlaneRuntime, Land: protocol.Personal, Now: noon, Scope: true}
}

func allow(principal string, edit ...func(*Grant)) Grant {
	g := Grant{Principal: principal, Effect: Allow, Capabilities: []protocol.Capability{protocol.VerbExecWrite}}
	for _, e := range edit {
		e(&g)
	}
	return g
}

func deny(principal string, edit ...func(*Grant)) Grant {
	g := allow(principal, edit...)
	g.Effect = Deny
	return g
}

func args(rules string) func(*Grant) {
	return func(g *Grant) {
		if err := json.Unmarshal([]byte(rules), &g.Args); err != nil {
			panic(err)
		}
	}
}

func ask(edit ...func(*Request)) Request {
	r := transfer()
	for _, e := range edit {
		e(&r)
	}
	return r
}

func TestEvaluate(t *testing.T) {
	agent := "agent:claude-code"
	past, future := noon.Add(-time.Second).Format(time.RFC3339), noon.Add(time.Second).Format(time.RFC3339)
	brain := func(r *Request) { r.Land = protocol.Brain }
	project := func(p string) func(*Request) { return func(r *Request) { r.Project = p } }
	for _, c := range []struct {
		name   string
		grants []Grant
		r      Request
		code   protocol.Code
		reason string
	}{
		{"§9.5 nothing is allowed by default", nil, ask(), protocol.GrantMissing, ReasonNone},
		{"§9.5 the principal comes first", nil, ask(func(r *Request) { r.Principal, r.Tenant = "root", "" }), protocol.Unauthenticated, ""},
		{"§9.5 the tenant comes second", nil, ask(func(r *Request) { r.Tenant = "" }), protocol.TenantUnresolved, ""},
		{"§9.5 an allow allows", []Grant{allow(agent)}, ask(), "", ""},
		{"§9.4 one capability stands for no other", []Grant{allow(agent, func(g *Grant) {
			g.Capabilities = []protocol.Capability{protocol.PackInstall, protocol.PackConnect, protocol.VerbExecRead, protocol.SenseEnable}
		})}, ask(), protocol.GrantMissing, ReasonNone},
		{"§9.5 a deny beats every allow", []Grant{allow("*"), allow(agent), deny("agent:*")}, ask(), protocol.GrantMissing, ReasonDeny},
		{"§9.5 a deny comes before the scope", []Grant{allow("*"), deny(agent)}, ask(brain), protocol.GrantMissing, ReasonDeny},
		{"§9.6 a deny of another pack denies nothing", []Grant{allow(agent), deny(agent, func(g *Grant) { g.Packs = []string{"transit"} })}, ask(), "", ""},
		{"§9.6 an effect of no known name denies", []Grant{allow(agent), {Principal: agent, Effect: "permit", Capabilities: protocol.Capabilities}}, ask(), protocol.GrantMissing, ReasonDeny},
		{"§9.6 other pack", []Grant{allow(agent, func(g *Grant) { g.Packs = []string{"transit"} })}, ask(), protocol.GrantMissing, ReasonNone},
		{"§9.6 verb glob", []Grant{allow(agent, func(g *Grant) { g.Verbs = []string{"balance", "tr*er"} })}, ask(), "", ""},
		{"§9.6 ended", []Grant{allow(agent, func(g *Grant) { g.Expires = past })}, ask(), protocol.GrantMissing, ReasonExpired},
		{"§9.6 the end itself is past", []Grant{allow(agent, func(g *Grant) { g.Expires = noon.Format(time.RFC3339) })}, ask(), protocol.GrantMissing, ReasonExpired},
		{"§9.6 not yet ended", []Grant{allow(agent, func(g *Grant) { g.Expires = future })}, ask(), "", ""},
		{"§9.6 an unreadable end ends an allow", []Grant{allow(agent, func(g *Grant) { g.Expires = "tomorrow" })}, ask(), protocol.GrantMissing, ReasonExpired},
		{"§9.6 an unreadable end ends no deny", []Grant{allow(agent), deny(agent, func(g *Grant) { g.Expires = "tomorrow" })}, ask(), protocol.GrantMissing, ReasonDeny},
		{"§9.6 an ended deny denies nothing", []Grant{allow(agent), deny(agent, func(g *Grant) { g.Expires = past })}, ask(), "", ""},
		{"§2.5 runtime only unless control is named", []Grant{allow(agent)}, ask(func(r *Request) { r.Plane = PlaneControl }), protocol.GrantMissing, ReasonPlane},
		{"§2.5 control named", []Grant{allow(agent, func(g *Grant) { g.Planes = []string{PlaneControl} })}, ask(func(r *Request) { r.Plane = PlaneControl }), "", ""},
		{"§2.5 control only", []Grant{allow(agent, func(g *Grant) { g.Planes = []string{PlaneControl} })}, ask(), protocol.GrantMissing, ReasonPlane},
		{"§9.2 brain needs a project", []Grant{allow(agent)}, ask(brain), protocol.ProjectRequired, ""},
		{"§9.5 capability before project", nil, ask(brain), protocol.GrantMissing, ReasonNone},
		{"§9.5 member of the project", []Grant{allow(agent, func(g *Grant) { g.Projects = []string{"city-*"} })}, ask(brain, project("city-north")), "", ""},
		{"§9.5 not a member", []Grant{allow(agent, func(g *Grant) { g.Projects = []string{"city-*"} })}, ask(brain, project("bank")), protocol.ProjectDenied, ""},
		{"§9.6 a deny of one project", []Grant{allow(agent), deny(agent, func(g *Grant) { g.Projects = []string{"bank"} })}, ask(brain, project("bank")), protocol.GrantMissing, ReasonDeny},
		{"§9.6 a deny of another project", []Grant{allow(agent), deny(agent, func(g *Grant) { g.Projects = []string{"bank"} })}, ask(brain, project("city")), "", ""},
		{"§9.2 local needs a workspace", []Grant{allow(agent)}, ask(func(r *Request) { r.Land = protocol.Local }), protocol.WorkspaceRequired, ""},
		{"§9.2 local with one", []Grant{allow(agent)}, ask(func(r *Request) { r.Land, r.Workspace = protocol.Local, "/src" }), "", ""},
		{"§9.5 a policy without a land fails closed", []Grant{allow(agent)}, ask(func(r *Request) { r.Land = "" }), protocol.GrantMissing, ReasonNone},
		{"§11.2 availability leaves the project out", []Grant{allow(agent, func(g *Grant) { g.Projects = []string{"city"} })}, ask(brain, func(r *Request) { r.Scope = false }), "", ""},
		{"§11.2 a deny of one project is not availability's", []Grant{allow(agent), deny(agent, func(g *Grant) { g.Projects = []string{"city"} })}, ask(brain, project("city"), func(r *Request) { r.Scope = false }), "", ""},
		{"§9.3 a grant to a host covers its labels", []Grant{allow(agent)}, ask(func(r *Request) { r.Principal = "agent:claude-code.review" }), "", ""},
		{"§9.3 a grant to a label is for it alone", []Grant{allow("agent:claude-code.review")}, ask(), protocol.GrantMissing, ReasonNone},
		{"§9.3 only agents have labels", []Grant{allow("human:ada")}, ask(func(r *Request) { r.Principal = "human:ada.lovelace" }), protocol.GrantMissing, ReasonNone},
		{"§9.6 a deny to a host covers its labels", []Grant{allow("*"), deny(agent)}, ask(func(r *Request) { r.Principal = "agent:claude-code.review" }), protocol.GrantMissing, ReasonDeny},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Evaluate(c.grants, c.r)
			if len(d.Path) == 0 {
				t.Error("no decision path")
			}
			if c.code == "" {
				if d.Err != nil {
					t.Fatalf("refused: %v, path %q", d.Err, d.Path)
				}
				return
			}
			if d.Err == nil {
				t.Fatalf("allowed, path %q", d.Path)
			}
			reason, _ := d.Err.Details["reason"].(string)
			if d.Err.Code != c.code || reason != c.reason {
				t.Errorf("got %s %s, want %s %s; path %q", d.Err.Code, reason, c.code, c.reason, d.Path)
			}
			if d.Err.Hint == "" {
				t.Error("no hint")
			}
		})
	}
}

func Test_9_7_DenialNamesCapabilityAndPrincipal(t *testing.T) {
	d := Evaluate(nil, transfer())
	for _, want := range []string{"verb.exec.write", "agent:claude-code"} {
		if !strings.Contains(d.Err.Message, want) {
			t.Errorf("message %q lacks %s", d.Err.Message, want)
		}
	}
	want := map[string]any{"capability": "verb.exec.write", "principal": "agent:claude-code", "reason": ReasonNone}
	if diff := cmp.Diff(want, d.Err.Details); diff != "" {
		t.Error(diff)
	}
}

func Test_9_6_ArgumentRules(t *testing.T) {
	for _, c := range []struct {
		name, rules, args string
		fits              bool
	}{
		{"glob crosses /", `{"branch":["agent/*"]}`, `{"branch":"agent/fix/two"}`, true},
		{"glob miss", `{"branch":["agent/*"]}`, `{"branch":"main"}`, false},
		{"absent argument", `{"branch":["*"]}`, `{}`, false},
		{"escapes in a rule", `{"branch":["caf\u00e9/*"]}`, `{"branch":"café/x"}`, true},
		{"letters beyond ASCII", `{"branch":["café"]}`, `{"branch":"café"}`, true},
		{"a quote", `{"branch":["a\"b"]}`, `{"branch":"a\"b"}`, true},
		{"an escape is no backslash", `{"branch":["a\nb"]}`, `{"branch":"a\\nb"}`, false},
		{"a text is no boolean", `{"force":["true"]}`, `{"force":true}`, false},
		{"items that are texts", `{"n":["1"]}`, `{"n":[1]}`, false},
		{"equal boolean", `{"force":[false]}`, `{"force":false}`, true},
		{"other boolean", `{"force":[false]}`, `{"force":true}`, false},
		{"equal number by value", `{"n":[1.0]}`, `{"n":1}`, true},
		{"number is no string", `{"n":["1"]}`, `{"n":1}`, false},
		{"null", `{"n":[null]}`, `{"n":null}`, true},
		{"one of several", `{"n":[1,2]}`, `{"n":2}`, true},
		{"every named argument", `{"a":["x"],"b":["y"]}`, `{"a":"x","b":"z"}`, false},
		{"array fits when each item does", `{"paths":["src/*","doc/*"]}`, `{"paths":["src/a","doc/b"]}`, true},
		{"array with one item that does not", `{"paths":["src/*"]}`, `{"paths":["src/a","/etc/passwd"]}`, false},
		{"equal array", `{"paths":[["a","b"]]}`, `{"paths":["a","b"]}`, true},
		{"equal object", `{"o":[{"a":1}]}`, `{"o":{"a":1}}`, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ask(func(r *Request) { r.Args = parse(t, c.args) })
			d := Evaluate([]Grant{allow("agent:*", args(c.rules))}, r)
			if (d.Err == nil) != c.fits {
				t.Fatalf("fits = %v, path %q", d.Err == nil, d.Path)
			}
			if d.Err != nil && d.Err.Details["reason"] != ReasonArgs {
				t.Errorf("reason %v", d.Err.Details["reason"])
			}
			d = Evaluate([]Grant{allow("agent:*"), deny("agent:*", args(c.rules))}, r)
			if (d.Err != nil) != c.fits {
				t.Errorf("deny: refused = %v", d.Err != nil)
			}
		})
	}
}

func Test_9_6_ArgumentRulesWaitForStep5(t *testing.T) {
	grants := []Grant{allow("agent:*", args(`{"branch":["agent/*"]}`)), deny("agent:*", args(`{"force":[true]}`))}
	if d := Evaluate(grants, transfer()); d.Err != nil {
		t.Errorf("step 4 refused: %v", d.Err)
	}
	secret := "agent/hunter2"
	d := Evaluate(grants, ask(func(r *Request) { r.Args = parse(t, `{"branch":"`+secret+`","force":true}`) }))
	if d.Err == nil || d.Err.Details["reason"] != ReasonDeny {
		t.Fatalf("step 5 did not deny: %v", d.Err)
	}
	shown := strings.Join(d.Path, "\n") + d.Err.Message + d.Err.Hint
	if strings.Contains(shown, "hunter2") || strings.Contains(shown, "agent/*") {
		t.Errorf("the path names argument values: %s", shown)
	}
}

func Test_9_6_SelfConfirmCountsOnlyFromTheAllowThatMatched(t *testing.T) {
	self := func(g *Grant) { g.SelfConfirm = true }
	branch := args(`{"branch":["agent/*"]}`)
	at := func(s string) Request { return ask(func(r *Request) { r.Args = parse(t, s) }) }
	for _, c := range []struct {
		name   string
		grants []Grant
		r      Request
		want   bool
	}{
		{"of the one that matched", []Grant{allow("agent:*"), allow("agent:*", branch, self)}, at(`{"branch":"agent/x"}`), true},
		{"of one that did not", []Grant{allow("agent:*"), allow("agent:*", branch, self)}, at(`{"branch":"main"}`), false},
		{"not before the arguments are known", []Grant{allow("agent:*", branch, self)}, ask(), false},
		{"of one that is for another", []Grant{allow("agent:*"), allow("human:*", self)}, at(`{}`), false},
		{"never with a deny", []Grant{allow("agent:*", self), deny("agent:*")}, at(`{}`), false},
	} {
		if d := Evaluate(c.grants, c.r); d.SelfConfirm != c.want {
			t.Errorf("%s: %v, path %q", c.name, d.SelfConfirm, d.Path)
		}
	}
}

func Test_9_6_FreshStore(t *testing.T) {
	for _, g := range Defaults() {
		if err := g.Check(); err != nil {
			t.Error(err)
		}
	}
	for _, c := range protocol.Capabilities {
		r := Request{Tenant: "local", Capability: c, Pack: "ledger", Now: noon}
		for principal, want := range map[protocol.Principal]bool{
			"human:ada": true, "agent:claude-code": c == protocol.VerbExecRead, "service:ci": false, "mothership:hq": false,
		} {
			r.Principal = principal
			if d := Evaluate(Defaults(), r); (d.Err == nil) != want {
				t.Errorf("%s %s: %v", principal, c, d.Path)
			}
		}
	}
}

// random makes grants and requests from so few words that they often meet.
type random struct{ *rand.Rand }

func (r random) pick(list ...string) string { return list[r.IntN(len(list))] }

func (r random) list(words ...string) []string {
	var out []string
	for range r.IntN(3) {
		out = append(out, r.pick(words...))
	}
	return out
}

func (r random) grant() Grant {
	g := Grant{
		Principal: r.pick("*", "agent:*", "human:*", "agent:a", "agent:a.x", "human:ada", "agent:b"),
		Effect:    r.pick(Allow, Allow, Allow, Deny),
		Packs:     r.list("*", "ledger", "l*", "git"), Verbs: r.list("*", "transfer", "bal*"),
		Planes: r.list(PlaneRuntime, PlaneControl), Projects: r.list("*", "city", "c*", "bank"),
		SelfConfirm: r.IntN(4) == 0,
		Expires:     r.pick("", "", "", noon.Add(time.Hour).Format(time.RFC3339), noon.Format(time.RFC3339), "never"),
	}
	for _, c := range protocol.Capabilities {
		if r.IntN(2) == 0 {
			g.Capabilities = append(g.Capabilities, c)
		}
	}
	if r.IntN(3) == 0 {
		g.Args = map[string][]json.RawMessage{r.pick("branch", "force"): {json.RawMessage(r.pick(`"agent/*"`, `true`, `"*"`, `"main"`, `""`, `"agent/x-long-1"`, `"*x"`, `"agent/x-long-*"`))}}
	}
	return g
}

func (r random) grants() []Grant {
	var out []Grant
	for range r.IntN(6) {
		out = append(out, r.grant())
	}
	return out
}

func (r random) request() Request {
	return Request{
		Principal:  protocol.Principal(r.pick("agent:a", "agent:a.x", "human:ada", "service:ci", "bad")),
		Tenant:     r.pick("local", "local", "local", ""),
		Capability: protocol.Capabilities[r.IntN(len(protocol.Capabilities))],
		Pack:       r.pick("ledger", "git"), Verb: r.pick("transfer", "balance", ""),
		Plane: r.pick(PlaneRuntime, PlaneRuntime, PlaneControl), Land: protocol.Land(r.pick("personal", "brain", "local")),
		Project: r.pick("", "city", "bank"), Workspace: r.pick("", "/src"), Now: noon, Scope: r.IntN(3) > 0,
	}
}

// answer is what must not depend on the order of the grants.
func answer(d Decision) string {
	if d.Err == nil {
		return "allowed"
	}
	reason, _ := d.Err.Details["reason"].(string)
	return string(d.Err.Code) + " " + reason
}

func Test_9_5_Properties(t *testing.T) {
	r := random{rand.New(rand.NewPCG(9, 5))}
	allArgs := []*jsondoc.Node{parse(t, `{}`), parse(t, `{"branch":"agent/x"}`), parse(t, `{"branch":"main","force":true}`), parse(t, `{"force":false}`),
		parse(t, `{"branch":["agent/x","agent/y"]}`), parse(t, `{"branch":""}`), parse(t, `{"branch":"agent/x-long-2"}`), parse(t, `{"branch":"agent/x-long-1"}`), parse(t, `{"branch":5}`),
		parse(t, `{"a":1,"b":"2","c":3,"d":4,"e":5,"f":6,"branch":"agent/x"}`), parse(t, `{"a":1,"b":"2","c":3,"d":4,"e":5,"f":6,"g":7}`)}
	for range 3000 {
		grants, request := r.grants(), r.request()
		before := Evaluate(grants, request)
		for _, args := range allArgs {
			at5 := request
			at5.Args = args
			d := Evaluate(grants, at5)
			if d.Err == nil && before.Err != nil {
				t.Fatalf("step 4 refused what step 5 allows: %v %+v", grants, at5)
			}
			if before.SelfConfirm && before.Err == nil && d.Err == nil && !d.SelfConfirm {
				t.Fatalf("self_confirm known at step 4 is lost at step 5: %v", grants)
			}
			if diff := cmp.Diff(d, NewSet(grants).Evaluate(at5)); diff != "" {
				t.Fatalf("the set answers otherwise: %s for %v", diff, grants)
			}
			mixed := slices.Clone(grants)
			r.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
			if o := Evaluate(mixed, at5); answer(o) != answer(d) || o.SelfConfirm != d.SelfConfirm {
				t.Fatalf("order matters: %s, %s for %v", answer(d), answer(o), grants)
			}
			more := r.grant()
			more.Effect = Deny
			if w := Evaluate(append(slices.Clone(grants), more), at5); d.Err != nil && w.Err == nil {
				t.Fatalf("a deny allowed: %v", more)
			}
			more.Effect = Allow
			if w := Evaluate(append(slices.Clone(grants), more), at5); d.Err == nil && w.Err != nil {
				t.Fatalf("an allow refused: %v", more)
			}
		}
	}
}

func Test_9_6_Revoke(t *testing.T) {
	both := Grant{Principal: "agent:a", Effect: Allow, Capabilities: []protocol.Capability{protocol.VerbExecRead, protocol.VerbExecWrite}}
	one := allow("agent:a", func(g *Grant) { g.Packs = []string{"ledger"} })
	two := allow("agent:a", func(g *Grant) { g.Packs = []string{"ledger", "git"} })
	ruled := allow("agent:a", args(`{"branch":["agent/*"]}`))
	write := []protocol.Capability{protocol.VerbExecWrite}
	for _, c := range []struct {
		name   string
		grants []Grant
		sel    Selector
		kept   []string
	}{
		{"others are wildcards", []Grant{both, one, allow("human:ada")}, Selector{Principal: "agent:a"}, []string{"allow human:ada verb.exec.write"}},
		{"the other capabilities stay", []Grant{both}, Selector{Principal: "agent:a", Capabilities: write}, []string{"allow agent:a verb.exec.read"}},
		{"one pack's, not everyone's", []Grant{both, one, two}, Selector{Pack: "ledger"}, []string{both.String(), two.String()}},
		{"a glob over what stands there", []Grant{one, allow("human:ada")}, Selector{Principal: "agent:*"}, []string{"allow human:ada verb.exec.write"}},
		{"by argument rule", []Grant{one, ruled}, Selector{Args: map[string]json.RawMessage{"branch": ArgValue("agent/*")}}, []string{one.String()}},
		{"denies only", []Grant{one, deny("agent:a")}, Selector{Effect: Deny}, []string{one.String()}},
		{"by plane", []Grant{one, allow("agent:a", func(g *Grant) { g.Planes = []string{"control"} })}, Selector{Plane: "control"}, []string{one.String()}},
	} {
		kept, removed := Revoke(c.grants, c.sel)
		var lines []string
		for _, g := range kept {
			lines = append(lines, g.String())
		}
		if diff := cmp.Diff(c.kept, lines); diff != "" || len(removed) == 0 {
			t.Errorf("%s: removed %d, kept %s", c.name, len(removed), diff)
		}
		if again, more := Revoke(kept, c.sel); len(more) > 0 || len(again) != len(kept) {
			t.Errorf("%s: not idempotent", c.name)
		}
	}
}

func Test_9_6_Form(t *testing.T) {
	good := allow("agent:*", args(`{"branch":["agent/*"],"force":[false]}`))
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for name, edit := range map[string]func(*Grant){
		"principal": func(g *Grant) { g.Principal = "Ada" }, "kind": func(g *Grant) { g.Principal = "robot:x" },
		"effect": func(g *Grant) { g.Effect = "" }, "capabilities": func(g *Grant) { g.Capabilities = nil },
		"capability": func(g *Grant) { g.Capabilities = []protocol.Capability{"admin"} },
		"plane":      func(g *Grant) { g.Planes = []string{"data"} }, "pack": func(g *Grant) { g.Packs = []string{""} },
		"args":    func(g *Grant) { g.Args = map[string][]json.RawMessage{"a": nil} },
		"value":   func(g *Grant) { g.Args = map[string][]json.RawMessage{"a": {json.RawMessage("{")}} },
		"expires": func(g *Grant) { g.Expires = "soon" }, "self": func(g *Grant) { g.Effect, g.SelfConfirm = Deny, true },
	} {
		g := allow("agent:*")
		edit(&g)
		if g.Check() == nil {
			t.Errorf("%s: accepted %v", name, g)
		}
	}
	for in, want := range map[string]string{"true": "true", "null": "null", "1e2": "1e2", "agent/*": `"agent/*"`, "[1]": `"[1]"`, `"x"`: `"\"x\""`, "": `""`, " 1": `" 1"`} {
		if got := string(ArgValue(in)); got != want {
			t.Errorf("ArgValue(%q) = %s, want %s", in, got, want)
		}
	}
	a := allow("agent:*", args(`{"b":["x",1.0]}`))
	b := allow("agent:*", args(`{"b":[1,"x"]}`), func(g *Grant) { g.Packs, g.Planes = []string{"*"}, []string{"runtime"} })
	if !Same(a, b) || Same(a, allow("agent:*")) {
		t.Error("Same compares meaning")
	}
}

func FuzzGlob(f *testing.F) {
	for _, s := range [][2]string{{"a*c", "abc"}, {"*", ""}, {"a*b*c", "axxbyyc"}, {"", "x"}, {"**x", "ax"}, {"agent/*", "agent/a/b"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, s string) {
		if len(pattern) > 12 || len(s) > 16 {
			return
		}
		if got, want := Glob(pattern, s), slowGlob(pattern, s); got != want {
			t.Errorf("Glob(%q, %q) = %v", pattern, s, got)
		}
	})
}

// slowGlob is the definition, written without care for cost.
func slowGlob(pattern, s string) bool {
	if pattern == "" {
		return s == ""
	}
	if pattern[0] == '*' {
		return slowGlob(pattern[1:], s) || s != "" && slowGlob(pattern, s[1:])
	}
	return s != "" && s[0] == pattern[0] && slowGlob(pattern[1:], s[1:])
}

func thousand(make func(i int) Grant) []Grant {
	out := Defaults()
	for i := len(out); i < 1000; i++ {
		out = append(out, make(i))
	}
	return out
}

// BenchmarkEvaluate measures §9.5 over 1,000 grants; the goal is 5 µs for one decision.
func BenchmarkEvaluate(b *testing.B) {
	num := func(i int) string { return string(rune('a'+i%26)) + string(rune('a'+i/26%26)) }
	for name, grants := range map[string][]Grant{
		"other-principals": thousand(func(i int) Grant { return allow("agent:" + num(i)) }),
		"other-packs":      thousand(func(i int) Grant { return allow("agent:*", func(g *Grant) { g.Packs = []string{"pack-" + num(i)} }) }),
		"all-match":        thousand(func(int) Grant { return allow("agent:claude-code") }),
		"other-verbs": thousand(func(i int) Grant {
			return allow("agent:claude-*", func(g *Grant) { g.Verbs = []string{"verb." + num(i)} })
		}),
	} {
		b.Run(name+"/list", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Evaluate(grants, transfer())
			}
		})
		b.Run(name+"/set", func(b *testing.B) {
			b.ReportAllocs()
			set := NewSet(grants)
			for b.Loop() {
				set.Evaluate(transfer())
			}
		})
	}
}

func Test_9_5_WeighAllocatesNothing(t *testing.T) {
	grants := thousand(func(i int) Grant { return allow("agent:*", func(g *Grant) { g.Packs = []string{"x", "ledger"} }) })
	r := transfer()
	if n := testing.AllocsPerRun(100, func() { (&Set{grants: grants}).weigh(&r) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
