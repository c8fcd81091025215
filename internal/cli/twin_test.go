package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/audit"
	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// request is one request, whichever face sends it.
type request struct {
	about, pack, verb string
	args              string // JSON; "" is none
	confirm           bool
	approval, key     string
	project, as       string
	code              string // of the answer that is wanted; "" is ok
	step              int
	not               string // a face that cannot say it
}

// A twin is a face: it sends a request and answers the line of JSON that came. Those that are added to the list are held
// to the same table.
type twin struct {
	name string
	send func(p place, r request) string
}

func twins() []twin {
	return []twin{
		{"words", func(p place, r request) string {
			words := append([]string{"exec", r.pack, r.verb}, r.flags()...)
			return p.line(words, behind(wordsOf(r.node(p.t), p.schema(r))), "", "")
		}},
		{"flags", func(p place, r request) string {
			words := append([]string{r.pack}, strings.Split(r.verb, ".")...)
			return p.line(append(words, r.flags()...), wordsOfFlags(r.node(p.t), p.schema(r)), "", "")
		}},
		{"link", func(p place, r request) string {
			words := strings.Split(r.verb, ".")
			if r.verb == "kinds.show" {
				words = words[1:] // the pack's own name may be left out
			}
			return p.line(append(words, r.flags()...), wordsOfFlags(r.node(p.t), p.schema(r)), r.pack, "")
		}},
		{"envelope", func(p place, r request) string {
			return p.line([]string{"exec", "--envelope", "-", "--as", orWord(r.as, "human:ada")}, nil, "", r.envelope())
		}},
		{"stream", func(p place, r request) string {
			return p.line([]string{"exec", "--stream", "--as", orWord(r.as, "human:ada")}, nil, "", r.envelope()+"\n")
		}},
	}
}

// flags are those of the request itself.
func (r request) flags() []string {
	words := []string{"--as", orWord(r.as, "human:ada")}
	if r.confirm {
		words = append(words, "--apply")
	}
	for _, f := range [][2]string{{"--approval", r.approval}, {"--idempotency-key", r.key}, {"--project", r.project}} {
		if f[1] != "" {
			words = append(words, f[0], f[1])
		}
	}
	return words
}

func (r request) node(t *testing.T) *jsondoc.Node {
	if r.args == "" {
		return nil
	}
	return schemaNode(t, r.args)
}

func (r request) envelope() string {
	text := fmt.Sprintf(`{"pack_id":%q,"verb_key":%q`, r.pack, r.verb)
	if r.args != "" {
		text += `,"args":` + r.args
	}
	if r.confirm {
		text += `,"confirm":true`
	}
	for _, f := range [][2]string{{"confirm", r.approval}, {"idempotency_key", r.key}, {"project", r.project}} {
		if f[1] != "" {
			text += fmt.Sprintf(`,%q:%q`, f[0], f[1])
		}
	}
	return text + "}"
}

func behind(words []string) []string {
	if len(words) == 0 {
		return nil
	}
	return append([]string{"--"}, words...)
}

// schema is the args schema of a request's command; nil when there is none.
func (p place) schema(r request) *jsondoc.Node {
	env, _, _ := p.env()
	a, err := newDeps(env).app()
	if err != nil {
		p.t.Fatal(err)
	}
	return a.ArgsSchema(r.pack, r.verb)
}

// line runs a command line with --json, from a link when face is a pack, and answers its stdout.
func (p place) line(words, more []string, face, stdin string) string {
	p.t.Helper()
	env, out, errs := p.env(append(append([]string{"--json"}, words...), more...)...)
	env.Face, env.In = face, strings.NewReader(stdin)
	code := Main(context.Background(), env)
	if errs.Len() > 0 || (code == 0) != strings.HasPrefix(out.String(), `{"ok":true`) {
		p.t.Errorf("%q: exit %d\n%s%s", env.Args, code, out, errs)
	}
	return out.String()
}

// kinds are arguments of every kind; the command gives back what came.
const kinds = `{"hcp":{"version":"1.1"},"id":"kinds","version":"1.0.0","summary":"Show arguments of every kind.","adapter":"composite","verbs":{
	"kinds.show":{"summary":"Show them.","args":{"type":"object","properties":{
		"text":{"type":"string"},"n":{"type":"integer"},"ratio":{"type":"number"},"on":{"type":"boolean"},"maybe":{"type":["string","null"]},
		"unset":{"type":["null","boolean"]},"level":{"enum":["low",2,true]},"day":{"type":"string","format":"date"},
		"tags":{"type":"array","items":{"type":"string"}},"sizes":{"type":"array","items":{"type":"integer"}},"pairs":{"type":"array","items":{"type":"array"}},
		"rows":{"type":"array","items":{"type":"object"}},"opts":{"type":"object"},"fromStop":{"type":"string"},"a.b":{"type":"string"},
		"json":{"type":"string"},"confirm":{"type":"boolean"},"any":{},"n2":{"type":"integer","default":7}},"additionalProperties":false},
		"steps":[{"id":"a","value":".args"}],"output":".steps.a","examples":[{"args":{"text":"a"}}]},
	"deep.down.set":{"summary":"Set it.","args":{"type":"object","properties":{"to":{"type":"integer"}},"required":["to"],"additionalProperties":false},
		"steps":[{"id":"a","value":".args.to"}],"output":".steps.a","examples":[{"args":{"to":1}}]}}}`

// kindPack writes that pack.
func (p place) kindPack() {
	p.write("kinds/surface.json", kinds)
	p.write("kinds/policy.json", `{"surface_id":"kinds","verbs":{"kinds.show":{"operation":"read","privacy":{"land":"personal"}},
		"deep.down.set":{"operation":"write","privacy":{"land":"brain"},"confirm":{"message":"Set it to {to}?"}}}}`)
	p.write("kinds/HARNESS.md", "# Kinds\n\nShows arguments.\n\n`hcpx exec kinds kinds.show` and `hcpx exec kinds deep.down.set`\n")
}

// requests are the table. Every request is sent in one order to every face, each in a store of its own.
func requests(confined bool) []request {
	all := []request{}
	for _, args := range []string{
		``, `{}`, `{"text":"a\nb"}`, `{"text":""}`, `{"text":"--plan"}`, `{"text":"-x"}`, `{"text":"true"}`, `{"text":"a=b:=c"}`, `{"text":"$(x) 'y' \"z\" \\"}`, `{"text":"日本 🚋 e\u0301"}`,
		`{"n":0}`, `{"n":-5}`, `{"n":9007199254740993}`, `{"n":1e2}`, `{"ratio":0.10}`, `{"ratio":-1e-3}`, `{"on":true}`, `{"on":false}`, `{"maybe":null}`, `{"maybe":"null"}`,
		`{"unset":null}`, `{"unset":false}`, `{"level":"low"}`, `{"level":2}`, `{"level":true}`, `{"day":"2026-12-01"}`,
		`{"tags":[]}`, `{"tags":["a"]}`, `{"tags":["b","a","b",""]}`, `{"tags":["[1]"]}`, `{"sizes":[1,-2,3]}`, `{"pairs":[[1],[2,[3]]]}`, `{"rows":[{"a":1},{"b":[]}]}`, `{"opts":{}}`,
		`{"opts":{"deep":{"er":[1.0,null]},"x.y":1}}`, `{"fromStop":"A"}`, `{"a.b":"c"}`, `{"json":"x","confirm":true}`, `{"confirm":false}`, `{"any":{"x":[1]}}`, `{"any":"7"}`, `{"any":7}`, `{"n2":8}`,
		`{"text":"` + strings.Repeat("ab", 4_000) + `"}`,
	} {
		all = append(all, request{about: "kinds " + clip(args), pack: "kinds", verb: "kinds.show", args: args})
	}
	all = append(all,
		request{about: "a wrong type", pack: "kinds", verb: "kinds.show", args: `{"n":"many"}`, code: "invalid_args", step: 5},
		request{about: "a wrong format", pack: "kinds", verb: "kinds.show", args: `{"day":"tomorrow"}`, code: "invalid_args", step: 5},
		request{about: "an unknown argument", pack: "kinds", verb: "kinds.show", args: `{"zip":1}`, code: "invalid_args", step: 5},
		request{about: "a confirmed write", pack: "kinds", verb: "deep.down.set", args: `{"to":5}`, confirm: true, project: "alpha"},
		request{about: "under a key", pack: "kinds", verb: "deep.down.set", args: `{"to":5}`, confirm: true, project: "alpha", key: "k1"},
		request{about: "under that key again", pack: "kinds", verb: "deep.down.set", args: `{"to":5}`, confirm: true, project: "alpha", key: "k1"},
		request{about: "under that key, and another request", pack: "kinds", verb: "deep.down.set", args: `{"to":6}`, confirm: true, project: "alpha", key: "k1", code: "idempotency_conflict", step: 5},
		request{about: "a key on a read", pack: "kinds", verb: "kinds.show", key: "k", code: "invalid_envelope", step: 5},
		request{about: "step 1", pack: "kinds", verb: "kinds.show", key: strings.Repeat("k", 256), code: "invalid_envelope", step: 1},
		request{about: "step 2, not installed", pack: "nowhere", verb: "show", args: `{"n":1}`, code: "pack_not_installed", step: 2, not: "flags"},
		request{about: "step 2, not activated", pack: "mirror", verb: "show", args: `{"n":1}`, code: "pack_not_activated", step: 2},
		request{about: "step 3", pack: "kinds", verb: "kinds.hide", args: `{"a":"1"}`, code: "unknown_command", step: 3},
		request{about: "step 4, nobody", pack: "kinds", verb: "kinds.show", as: "Nobody\xff", code: "unauthenticated", step: 4},
		request{about: "step 4, nobody, and no such command", pack: "kinds", verb: "kinds.hide", as: "ada", code: "unknown_command", step: 3},
		request{about: "step 4, an agent", pack: "kinds", verb: "deep.down.set", args: `{"to":5}`, as: "agent:claude-code", project: "alpha", code: "grant_missing", step: 4},
		request{about: "step 4, no project", pack: "kinds", verb: "deep.down.set", args: `{"to":5}`, confirm: true, code: "project_required", step: 4},
		request{about: "step 6", pack: "kinds", verb: "deep.down.set", args: `{"to":5}`, project: "alpha", code: "confirm_required", step: 6},
		request{about: "step 6, an approval that is none", pack: "kinds", verb: "deep.down.set", args: `{"to":5}`, approval: "01", project: "alpha", code: "confirm_required", step: 6},
		request{about: "step 7", pack: "locked", verb: "show", code: "not_connected", step: 7},
	)
	if !confined {
		return all
	}
	return append(all,
		request{about: "step 8", pack: "barred", verb: "show", code: "bin_not_allowed", step: 8},
		request{about: "a wrapped read", pack: "ledger", verb: "balance", args: `{"account":"checking"}`},
		request{about: "a wrapped write, confirmed", pack: "ledger", verb: "transfer", args: `{"to":"grocer","amount":1.10e1}`, confirm: true},
		request{about: "a wrapped write, unconfirmed", pack: "ledger", verb: "transfer", args: `{"to":"grocer","amount":1}`, code: "confirm_required", step: 6},
		request{about: "a program that fails", pack: "ledger", verb: "transfer", args: `{"to":"grocer","amount":100000000}`, confirm: true, code: "command_failed", step: 9},
	)
}

// twinPlace is a store with the packs of the table.
func twinPlace(t *testing.T) place {
	p := newPlace(t)
	p.mirror()
	p.kindPack()
	for id, binding := range map[string]string{"locked": `{"mode":"user","hub":"keyring","source":{"kind":"token"},"inject":{"env":{"LOCKED_KEY":"{token}"}}}`, "barred": `{"mode":"public","hub":"public"}`} {
		p.write(id+"/surface.json", `{"hcp":{"version":"1.1"},"id":"`+id+`","version":"1.0.0","summary":"Show it.","adapter":"wrap","wrap":{"bin":"./show.sh","uses":["sh","env"]},"binding":`+binding+`,
			"verbs":{"show":{"summary":"Show it.","argv":[],"output":"text","examples":[{"args":{}}]}}}`)
		p.write(id+"/policy.json", `{"surface_id":"`+id+`","verbs":{"show":{"operation":"read","privacy":{"land":"personal"}}}}`)
		p.write(id+"/HARNESS.md", "# Show\n\nShows it.\n\n`hcpx exec "+id+" show`\n")
		p.write(id+"/show.sh", "#!/bin/sh\necho shown\n")
		if err := os.Chmod(filepath.Join(p.dir, id, "show.sh"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"mirror", "kinds", "locked", "barred"} {
		p.run(0, "install", filepath.Join(p.dir, id))
	}
	p.run(0, "activate", "kinds", "locked", "barred")
	if sandboxWorks() {
		p.run(0, "add", "ledger", "--yes")
	}
	return p
}

// told is what came of one request.
type told struct {
	Answer  string
	Entries []audit.Entry
}

// §6.6: whichever face sends a request, the result is the same, and so are the audit entries but for id, time and
// hashes.
func Test_6_6_TheFacesAreTwins(t *testing.T) {
	table := requests(sandboxWorks())
	var first []told
	for _, face := range twins() {
		p := twinPlace(t)
		var came []told
		for _, r := range table {
			if r.not == face.name {
				came = append(came, told{})
				continue
			}
			before := p.tail(1)[0].Seq
			answer := face.send(p, r)
			got := told{Answer: p.plain(answer)}
			for _, e := range p.tail(4) {
				if e.Seq > before {
					got.Entries = append(got.Entries, p.plainEntry(e))
				}
			}
			came = append(came, got)
			wantedAnswer(t, face.name, r, answer)
		}
		if first == nil {
			first = came
		}
		for i, r := range table {
			if !reflect.DeepEqual(first[i], came[i]) && r.not != face.name {
				t.Errorf("%s by %s is not as by %s:\n%s", r.about, face.name, twins()[0].name, cmp.Diff(first[i], came[i]))
			}
			if len(came[i].Entries) == 0 && r.not != face.name && r.about != "under that key again" {
				t.Errorf("%s by %s: nothing was recorded", r.about, face.name)
			}
		}
	}
}

// wantedAnswer holds an answer against the table.
func wantedAnswer(t *testing.T, face string, r request, answer string) {
	t.Helper()
	n, faults := jsondoc.Parse([]byte(answer), jsondoc.Limits{Bytes: 4 << 20})
	if len(faults) > 0 {
		t.Fatalf("%s by %s: %s", r.about, face, answer)
	}
	if r.code == "" {
		if n.Get("ok").Text != "true" {
			t.Errorf("%s by %s: %s", r.about, face, answer)
		}
		if r.verb == "kinds.show" && r.args != "" {
			if want := schemaNode(t, r.args); want.Get("n2") == nil && !n.Get("result").Equal(want.With("n2", jsondoc.Num("7"))) {
				t.Errorf("%s by %s: %s", r.about, face, answer)
			}
		}
		return
	}
	if e := n.Get("error"); e.Get("code") == nil || e.Get("code").Text != r.code || e.Get("step").Text != fmt.Sprint(r.step) {
		t.Errorf("%s by %s: %s, want %s at step %d", r.about, face, answer, r.code, r.step)
	}
}

// plain takes out what differs between stores and moments.
func (p place) plain(s string) string {
	s = strings.ReplaceAll(s, p.dir, "@")
	s = regexp.MustCompile(`[0-9A-HJKMNP-TV-Z]{26}`).ReplaceAllString(s, "ID")
	return strings.ReplaceAll(s, `"watched":"sampled",`, "") // which only a run that lives longer is
}

// plainEntry is an entry but for id, time and hashes.
func (p place) plainEntry(e audit.Entry) audit.Entry {
	e.Seq, e.Time, e.ID, e.Prev, e.MAC, e.DurationMS, e.PlanHash = 0, "", "", "", "", 0, ""
	e.Message = p.plain(e.Message)
	e.Sandbox, e.Detail = []byte(p.plain(string(e.Sandbox))), []byte(p.plain(string(e.Detail)))
	return e
}

func (p place) audit() []audit.Entry { return p.tail(1000) }

func (p place) tail(most int) []audit.Entry {
	p.t.Helper()
	entries, err := audit.Tail(audit.Config{Dir: filepath.Join(p.dir, "store", "audit")}, most)
	if err != nil {
		p.t.Fatal(err)
	}
	return entries
}

// §9.7: what is refused before an envelope can be built, or because a person said no, is in the audit like any
// other denial, with the code and step of its answer.
func Test_9_7_EveryRefusalOfAFaceIsInTheAudit(t *testing.T) {
	p := newPlace(t)
	p.mirror()
	p.run(0, "install", filepath.Join(p.dir, "mirror"))
	p.run(0, "activate", "mirror")
	for _, tt := range []struct {
		name, line, code string
		step, exit       int
	}{
		{"words that are no arguments", "exec mirror show -- nothing", "invalid_args", 5, 64},
		{"a value that is no JSON", "exec mirror show --plan -- n:={", "invalid_args", 5, 64},
		{"such words to no command", "exec mirror hide -- nothing", "unknown_command", 3, 3},
		{"such words of one who may not", "exec mirror set --as agent:claude-code -- nothing", "grant_missing", 4, 3},
		{"no valid Principal", "exec mirror show --as Nobody", "unauthenticated", 4, 3},
		{"no valid Principal, a plan", "exec mirror show --plan --as Nobody", "unauthenticated", 4, 3},
		{"no valid Principal, a stage", "activate mirror --as Nobody", "unauthenticated", 0, 3},
		{"no valid Principal, repair", "repair --as Nobody", "unauthenticated", 0, 3},
	} {
		before := len(p.audit())
		out, _ := p.run(tt.exit, append([]string{"--json"}, strings.Fields(tt.line)...)...)
		all := p.audit()
		if len(all) != before+1 {
			t.Errorf("%s: %d entries", tt.name, len(all)-before)
			continue
		}
		if e := all[before]; e.Kind != audit.Denial || e.Code != tt.code || e.Step != tt.step || !strings.Contains(out, `"code":"`+tt.code+`"`) {
			t.Errorf("%s: %+v\n%s", tt.name, e, out)
		}
		if tt.step == 5 && (!strings.Contains(out, `"schema":{`) || !strings.Contains(out, `"example":{`) || !strings.Contains(out, `"violations":[`)) {
			t.Errorf("%s: the details of invalid_args are not all there: %s", tt.name, out)
		}
	}
	before := len(p.audit())
	env, _, _ := p.env("exec", "mirror", "set", "--", "to=2")
	env.In, env.InTTY, env.ErrTTY = strings.NewReader("n\n"), true, true
	if code := Main(context.Background(), env); code != 3 || len(p.audit()) != before+1 || p.audit()[before].Code != "confirm_required" {
		t.Errorf("a no: exit %d, %+v", code, p.audit()[before:])
	}
}

// §9.7, §12.1.7: settings that are not understood refuse an exec, in the audit too.
func Test_9_7_ARefusalBySettingsIsInTheAudit(t *testing.T) {
	p := newPlace(t)
	p.write("store/config.toml", "[identity]\nagents = 1\n")
	out, _ := p.run(70, "exec", "mirror", "show", "--json")
	if all := p.audit(); len(all) != 1 || all[0].Kind != audit.Denial || all[0].Step != 2 || !strings.Contains(out, "config.toml:2:10") || !strings.Contains(out, "hcpx config show") {
		t.Errorf("%+v\n%s", all, out)
	}
}

// §6.5: a person is told what was done to the output, on stderr; a program that asked for JSON is not.
func Test_6_5_NotesOnAnOutputGoToStderr(t *testing.T) {
	r := protocol.Result{OK: true, PackID: "a", VerbKey: "b", Result: []byte(`"x"`), Notes: []string{"One sequence of bytes was replaced."}}
	env, out, errs := terminalFree(t)
	if err := newDeps(env).answer(r); err != nil || out.String() != "x\n" || errs.String() != "note: One sequence of bytes was replaced.\n" {
		t.Errorf("%v %q %q", err, out, errs)
	}
	env, out, errs = terminalFree(t)
	d := newDeps(env)
	d.asJSON = true
	if err := d.answer(r); err != nil || errs.Len() > 0 || strings.Contains(out.String(), "replaced") {
		t.Errorf("%v %q %q", err, out, errs)
	}
}

// A signal cancels the context: the answer is still one Result (§6.9).
func Test_6_9_ACancelledRunSaysSo(t *testing.T) {
	p := newPlace(t)
	p.mirror()
	p.run(0, "install", filepath.Join(p.dir, "mirror"))
	p.run(0, "activate", "mirror")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	env, out, _ := p.env("exec", "mirror", "show", "--json")
	if code := Main(ctx, env); code != 1 || !strings.Contains(out.String(), `"code":"canceled"`) {
		t.Errorf("exit %d: %s", code, out)
	}
}
