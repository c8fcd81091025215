package composite_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/adapter"
	"hcpx/internal/adapter/composite"
	"hcpx/internal/jq"
	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/policy"
	"hcpx/internal/protocol"
)

func surface(id, verbs string) *manifest.Manifest {
	m, _ := manifest.Decode(fmt.Appendf(nil, `{"hcp":{"version":"1.1"},"id":%q,"version":"1.0.0","summary":"A demo.","adapter":"composite",
"verbs":{%s}}`, id, verbs))
	return m
}

func compileMembers(t testing.TB, members string) (*manifest.Manifest, adapter.Command, []protocol.Issue) {
	t.Helper()
	m := surface("echo", `"run":{"summary":"Run it.",`+members+`}`)
	if m == nil || len(m.Commands) != 1 {
		t.Fatalf("no manifest with %s", members)
	}
	c, issues := composite.New(jq.New()).Compile(m, m.Commands[0])
	found := composite.Expressions(m)
	for i, fault := range judged(t, found) {
		if fault != nil {
			c, issues = nil, append(issues, found[i].Issue(fault))
		}
	}
	return m, c, issues
}

// judged asks the machine of expressions, as lint does.
func judged(t testing.TB, found []composite.Expression) []error {
	t.Helper()
	var texts []string
	for _, e := range found {
		texts = append(texts, e.Text)
	}
	faults, err := jq.New().Check(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	return faults
}

func node(t testing.TB, text string) *jsondoc.Node {
	t.Helper()
	n, faults := jsondoc.Parse([]byte(text), jsondoc.Limits{})
	if n == nil || len(faults) > 0 {
		t.Fatalf("%s: %+v", text, faults)
	}
	return n
}

// placed proves that line and column of an issue are those of the value, or of the key, that its pointer names.
func placed(t *testing.T, m *manifest.Manifest, i protocol.Issue) {
	t.Helper()
	cut := strings.LastIndex(i.Pointer, "/")
	offsets := []int{m.Root.Lookup(i.Pointer).Offset}
	for _, member := range m.Root.Lookup(i.Pointer[:cut]).Members {
		if member.Key == i.Pointer[cut+1:] {
			offsets = append(offsets, member.Offset)
		}
	}
	for _, offset := range offsets {
		if line, column := jsondoc.Place(m.Src, offset); line == i.Line && column == i.Column {
			return
		}
	}
	t.Errorf("%s stands at %d:%d", i.Pointer, i.Line, i.Column)
}

func Test_3_5_Issues(t *testing.T) {
	for name, test := range map[string]struct{ members, code, pointer string }{
		"no steps":                 {`"output":"1"`, "manifest.schema", "/verbs/run"},
		"steps is an object":       {`"steps":{}`, "manifest.schema", "/verbs/run/steps"},
		"steps is empty":           {`"steps":[]`, "manifest.schema", "/verbs/run/steps"},
		"too many steps":           {`"steps":[` + strings.Repeat(`{"id":"a","value":"1"},`, 64) + `{"id":"b","value":"1"}]`, "manifest.schema", "/verbs/run/steps"},
		"a step is a string":       {`"steps":["a"]`, "manifest.schema", "/verbs/run/steps/0"},
		"neither value nor verb":   {`"steps":[{"id":"a"}]`, "manifest.schema", "/verbs/run/steps/0"},
		"value and verb":           {`"steps":[{"id":"a","value":"1","verb":"x"}]`, "manifest.schema", "/verbs/run/steps/0"},
		"an id of a wrong form":    {`"steps":[{"id":"1a","value":"1"}]`, "manifest.schema", "/verbs/run/steps/0/id"},
		"two steps of one id":      {`"steps":[{"id":"a","value":"1"},{"id":"a","value":"1"}]`, "manifest.schema", "/verbs/run/steps/1/id"},
		"verb is no string":        {`"steps":[{"id":"a","verb":1}]`, "manifest.schema", "/verbs/run/steps/0/verb"},
		"pack is empty":            {`"steps":[{"id":"a","verb":"x","pack":""}]`, "manifest.schema", "/verbs/run/steps/0/pack"},
		"args is an object":        {`"steps":[{"id":"a","verb":"x","args":{}}]`, "manifest.schema", "/verbs/run/steps/0/args"},
		"when is a boolean":        {`"steps":[{"id":"a","value":"1","when":true}]`, "manifest.schema", "/verbs/run/steps/0/when"},
		"an unknown member":        {`"steps":[{"id":"a","value":"1","args":"{}"}]`, "manifest.unknown-field", "/verbs/run/steps/0/args"},
		"value does not parse":     {`"steps":[{"id":"a","value":"{a:"}]`, "composite.expression", "/verbs/run/steps/0/value"},
		"args uses the clock":      {`"steps":[{"id":"a","verb":"x","args":"{t: now}"}]`, "composite.expression", "/verbs/run/steps/0/args"},
		"when reads input":         {`"steps":[{"id":"a","value":"1","when":"input"}]`, "composite.expression", "/verbs/run/steps/0/when"},
		"output reads environment": {`"steps":[{"id":"a","value":"1"}],"output":"$ENV.HOME"`, "composite.expression", "/verbs/run/output"},
	} {
		t.Run(name, func(t *testing.T) {
			m, c, issues := compileMembers(t, test.members)
			found := false
			for _, i := range issues {
				if string(i.Code) == test.code && i.Pointer == test.pointer {
					found = true
					placed(t, m, i)
				}
			}
			if !found || (c == nil) != protocol.HasErrors(issues) {
				t.Errorf("%v, %+v; want %s at %s", c, issues, test.code, test.pointer)
			}
		})
	}
}

// calls records what a composite asks the pipeline, and answers from a table.
type pipeline struct {
	asked   []string
	answers map[string]protocol.Result
}

func (p *pipeline) sub(_ context.Context, pack, verb string, args json.RawMessage) protocol.Result {
	p.asked = append(p.asked, pack+" "+verb+" "+string(args))
	return p.answers[pack+" "+verb]
}

func ok(result string) protocol.Result {
	return protocol.Result{OK: true, Result: json.RawMessage(result)}
}

func Test_3_5_Run(t *testing.T) {
	_, c, issues := compileMembers(t, `"steps":[
	  {"id":"said","value":"{text: .args.text}"},
	  {"id":"plan","pack":"transit","verb":"trip.plan","args":"{from: .args.a, n: .args.n}"},
	  {"id":"pay","pack":"ledger","verb":"transfer","args":"{}","when":".args.pay"},
	  {"id":"own","verb":"other","when":".steps.plan.legs"}],
	  "output":"{said: .steps.said, trip: .steps.plan, pay: .steps.pay, own: .steps.own}"`)
	if c == nil {
		t.Fatal(issues)
	}
	want := []adapter.Step{{ID: "plan", Pack: "transit", Verb: "trip.plan"}, {ID: "pay", Pack: "ledger", Verb: "transfer"}, {ID: "own", Pack: "echo", Verb: "other"}}
	if diff := cmp.Diff(want, c.Steps()); diff != "" {
		t.Error(diff)
	}
	call, _ := c.Render(node(t, `{"text":"ü","a":"x","n":12345678901234567890.10}`))
	if c.Spec(call) != nil || c.Supported() != nil {
		t.Error("a composite starts no process")
	}
	p := &pipeline{answers: map[string]protocol.Result{"transit trip.plan": ok(`{"legs":[9007199254740993,0.10000000000000000001]}`), "echo other": ok(`null`)}}
	out, err := c.Run(t.Context(), &adapter.Run{Call: call, Sub: p.sub})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`transit trip.plan {"from":"x","n":12345678901234567890.10}`, `echo other {}`}, p.asked); diff != "" {
		t.Error(diff)
	}
	if got := string(out.Value.Append(nil)); got != `{"own":null,"pay":null,"said":{"text":"ü"},"trip":{"legs":[9007199254740993,0.10000000000000000001]}}` {
		t.Error(got)
	}
	done := []adapter.StepDone{{ID: "said"}, {ID: "plan", Pack: "transit", Verb: "trip.plan"}, {ID: "pay", Pack: "ledger", Verb: "transfer", Skipped: true}, {ID: "own", Pack: "echo", Verb: "other"}}
	if diff := cmp.Diff(done, out.Steps); diff != "" {
		t.Error(diff)
	}
}

func Test_3_5_WithoutOutputTheResultIsAllSteps(t *testing.T) {
	_, c, _ := compileMembers(t, `"steps":[{"id":"b","value":"1"},{"id":"a","value":".steps.b + 1"},{"id":"c","value":"1","when":"null"}]`)
	call, _ := c.Render(node(t, `{}`))
	out, err := c.Run(t.Context(), &adapter.Run{Call: call})
	if err != nil || string(out.Value.Append(nil)) != `{"a":2,"b":1,"c":null}` {
		t.Errorf("%+v, %v", out, err)
	}
}

func Test_3_5_StepFailed(t *testing.T) {
	refusal := protocol.Fail(protocol.GrantMissing, "It is not granted.").WithHint("hcpx grant x").With("capability", "verb.exec.read")
	first := `{"id":"first","value":"1"},{"id":"skipped","value":"1","when":"false"},`
	for name, test := range map[string]struct {
		steps, output string
		id, pack, key string
		inner         protocol.Code
		message       string
	}{
		"a refused call":           {`{"id":"x","pack":"p","verb":"no"}`, "1", "x", "p", "no", protocol.GrantMissing, "It is not granted."},
		"args of several":          {`{"id":"x","pack":"p","verb":"yes","args":"{},{}"}`, "1", "x", "p", "yes", protocol.StepFailed, "more than one value"},
		"args that is no object":   {`{"id":"x","pack":"p","verb":"yes","args":"[]"}`, "1", "x", "p", "yes", protocol.StepFailed, "no object"},
		"a value of nothing":       {`{"id":"x","value":"empty"}`, "1", "x", "", "", protocol.StepFailed, "no value"},
		"a value that fails":       {`{"id":"x","value":"error(\"why\")"}`, "1", "x", "", "", protocol.StepFailed, "why"},
		"when of several":          {`{"id":"x","pack":"p","verb":"yes","when":"1,2"}`, "1", "x", "p", "yes", protocol.StepFailed, "more than one value"},
		"output":                   {`{"id":"x","value":"1"}`, "empty", "", "", "", protocol.StepFailed, "no value"},
		"a result that is no JSON": {`{"id":"x","pack":"p","verb":"bad"}`, "1", "x", "p", "bad", protocol.InternalError, "no JSON"},
		"a refusal without reason": {`{"id":"x","pack":"p","verb":"mute"}`, "1", "x", "p", "mute", protocol.InternalError, "without a reason"},
	} {
		t.Run(name, func(t *testing.T) {
			_, c, issues := compileMembers(t, `"steps":[`+first+test.steps+`,{"id":"later","pack":"p","verb":"yes"}],"output":"`+test.output+`"`)
			if name == "output" {
				_, c, issues = compileMembers(t, `"steps":[`+first+test.steps+`],"output":"`+test.output+`"`)
			}
			if c == nil {
				t.Fatal(issues)
			}
			call, _ := c.Render(node(t, `{}`))
			p := &pipeline{answers: map[string]protocol.Result{"p no": protocol.Denied("p", "no", refusal), "p yes": ok("1"), "p bad": ok("{"), "p mute": {}}}
			out, err := c.Run(t.Context(), &adapter.Run{Call: call, Sub: p.sub})
			if err == nil || err.Code != protocol.StepFailed || out == nil || out.Value != nil {
				t.Fatalf("%+v, %v", out, err)
			}
			completed := []string{"first"}
			if name == "output" {
				completed = append(completed, "x")
			}
			d := err.Details
			if diff := cmp.Diff([]any{test.id, test.pack, test.key, completed}, []any{d["step_id"], d["pack_id"], d["verb_key"], d["completed"]}); diff != "" {
				t.Error(diff)
			}
			inner, _ := d["error"].(*protocol.Error)
			if inner == nil || inner.Code != test.inner || !strings.Contains(inner.Message, test.message) || !strings.Contains(err.Message, inner.Message) || err.Hint != inner.Hint {
				t.Errorf("the inner error is %+v of %+v", inner, err)
			}
			for _, asked := range p.asked {
				if strings.HasPrefix(asked, "p yes") {
					t.Error("a step ran after the failing one, or with wrong arguments")
				}
			}
		})
	}
}

func Test_3_5_CancelledBetweenSteps(t *testing.T) {
	_, c, _ := compileMembers(t, `"steps":[{"id":"a","pack":"p","verb":"x"},{"id":"b","pack":"p","verb":"x"}]`)
	call, _ := c.Render(node(t, `{}`))
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	_, err := c.Run(ctx, &adapter.Run{Call: call, Sub: func(context.Context, string, string, json.RawMessage) protocol.Result {
		asked++
		cancel()
		return ok("1")
	}})
	if err == nil || err.Code != protocol.Canceled || asked != 1 || err.Details["step_id"] != "b" || !cmp.Equal(err.Details["completed"], []string{"a"}) {
		t.Errorf("%d calls, %+v", asked, err)
	}
	late, done := context.WithTimeout(t.Context(), 0)
	defer done()
	if _, err := c.Run(late, &adapter.Run{Call: call}); err == nil || err.Code != protocol.Timeout {
		t.Error(err)
	}
	if _, err := c.Run(t.Context(), &adapter.Run{Call: call}); err == nil || err.Code != protocol.StepFailed {
		t.Errorf("without a pipeline: %v", err)
	}
}

// world is the packs of one lint.
type world map[string]struct {
	m *manifest.Manifest
	p *policy.Policy
}

func (w world) lookup(id string) (*manifest.Manifest, *policy.Policy) { return w[id].m, w[id].p }

// add puts in a composite pack: per command its policy ("read", "write" or "confirm") and its steps.
func (w world) add(id string, commands ...[3]string) {
	var verbs, entries []string
	for _, c := range commands {
		verbs = append(verbs, fmt.Sprintf(`%q:{"summary":"s","steps":[%s]}`, c[0], c[2]))
		operation, confirm := c[1], ""
		if operation == "confirm" {
			operation, confirm = "write", `,"confirm":true`
		}
		entries = append(entries, fmt.Sprintf(`%q:{"operation":%q,"privacy":{"land":"personal"}%s}`, c[0], operation, confirm))
	}
	p, _ := policy.Decode(fmt.Appendf(nil, `{"surface_id":%q,"verbs":{%s}}`, id, strings.Join(entries, ",")))
	w[id] = struct {
		m *manifest.Manifest
		p *policy.Policy
	}{surface(id, strings.Join(verbs, ",")), p}
}

func Test_3_5_Check(t *testing.T) {
	const value, read, write, gated = `{"id":"v","value":"1"}`, `{"id":"s","pack":"base","verb":"read"}`, `{"id":"s","pack":"base","verb":"write"}`, `{"id":"s","pack":"base","verb":"gated"}`
	own := func(verb string) string { return fmt.Sprintf(`{"id":"o","verb":%q}`, verb) }
	for name, test := range map[string]struct {
		commands [][3]string
		want     []string // code pointer
	}{
		"clean":                      {[][3]string{{"a", "read", value + "," + read}, {"b", "write", write + "," + own("a")}, {"c", "confirm", gated}}, nil},
		"a pack that is not known":   {[][3]string{{"a", "read", `{"id":"s","pack":"elsewhere","verb":"x"}`}}, nil},
		"no such command":            {[][3]string{{"a", "read", value + `,{"id":"s","pack":"base","verb":"none"}`}}, []string{"composite.unknown-step /verbs/a/steps/1/verb"}},
		"no such command of its own": {[][3]string{{"a", "read", own("none")}}, []string{"composite.unknown-step /verbs/a/steps/0/verb"}},
		"itself":                     {[][3]string{{"a", "read", own("a")}}, []string{"composite.cycle /verbs/a/steps/0/verb"}},
		"a circle of two":            {[][3]string{{"a", "read", own("b")}, {"b", "read", own("a")}}, []string{"composite.cycle /verbs/a/steps/0/verb", "composite.cycle /verbs/b/steps/0/verb"}},
		"a circle through a pack":    {[][3]string{{"a", "read", `{"id":"s","pack":"base","verb":"back"}`}}, []string{"composite.cycle /verbs/a/steps/0/verb"}},
		"a write below a read":       {[][3]string{{"a", "read", value + "," + write}}, []string{"composite.escalation /verbs/a/steps/1/verb"}},
		"a write two below a read":   {[][3]string{{"a", "read", own("b")}, {"b", "read", write}}, []string{"composite.escalation /verbs/a/steps/0/verb", "composite.escalation /verbs/b/steps/0/verb"}},
		"a hidden confirm":           {[][3]string{{"a", "write", gated}}, []string{"composite.confirm /verbs/a/steps/0/verb"}},
		"a confirm two below":        {[][3]string{{"a", "write", own("b")}, {"b", "confirm", gated}}, []string{"composite.confirm /verbs/a/steps/0/verb"}},
		"a gated write below a read": {[][3]string{{"a", "read", gated}}, []string{"composite.escalation /verbs/a/steps/0/verb", "composite.confirm /verbs/a/steps/0/verb"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := world{}
			w.add("base", [3]string{"read", "read", value}, [3]string{"write", "write", value}, [3]string{"gated", "confirm", value},
				[3]string{"back", "read", `{"id":"s","pack":"demo","verb":"a"}`})
			w.add("demo", test.commands...)
			m := w["demo"].m
			var got []string
			for _, i := range composite.Check(m, w.lookup) {
				got = append(got, string(i.Code)+" "+i.Pointer)
				placed(t, m, i)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func Test_3_5_CheckJudgesNothingWithoutPolicies(t *testing.T) {
	m := surface("demo", `"a":{"summary":"s","steps":[{"id":"x","verb":"b"},{"id":"y","verb":7},5]},"b":{"summary":"s","steps":{}}`)
	if issues := composite.Check(m, func(string) (*manifest.Manifest, *policy.Policy) { return nil, nil }); len(issues) > 0 {
		t.Errorf("%+v", issues)
	}
}
