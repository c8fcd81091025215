package cli

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"hcpx/internal/audit"
	"hcpx/internal/protocol"
)

// §6.6: words and an envelope build the same request: the same result, and the same audit entries but for
// id, time and hashes.
func Test_6_6_WordsAndEnvelopeAreOneFace(t *testing.T) {
	for _, tt := range []struct {
		name, envelope string
		words          []string
	}{
		{"a caller without a valid Principal", `{"pack_id":"mirror","verb_key":"show"}`, []string{"mirror", "show", "--as", "Nobody\xff"}},
		{"such a caller, and no such command", `{"pack_id":"mirror","verb_key":"hide"}`, []string{"mirror", "hide", "--as", "ada"}},
		{"a read", `{"pack_id":"mirror","verb_key":"show","args":{"text":"a\nb","n":9007199254740993}}`,
			[]string{"mirror", "show", "--", "text=a\nb", "n=9007199254740993"}},
		{"without arguments", `{"pack_id":"mirror","verb_key":"show"}`, []string{"mirror", "show"}},
		{"a confirmed write", `{"pack_id":"mirror","verb_key":"set","args":{"to":5},"confirm":true}`, []string{"mirror", "set", "--apply", "--", "to:=5"}},
		{"an unconfirmed write", `{"pack_id":"mirror","verb_key":"set","args":{"to":5}}`, []string{"mirror", "set", "--", "to=5"}},
		{"a wrong argument", `{"pack_id":"mirror","verb_key":"show","args":{"n":"many"}}`, []string{"mirror", "show", "--", "n=many"}},
		{"an unknown command", `{"pack_id":"mirror","verb_key":"hide","args":{"a":"1"}}`, []string{"mirror", "hide", "--", "a=1"}},
		{"an approval", `{"pack_id":"mirror","verb_key":"set","args":{"to":5},"confirm":"01"}`, []string{"mirror", "set", "--approval", "01", "--", "to=5"}},
		{"a key on a read", `{"pack_id":"mirror","verb_key":"show","args":{},"idempotency_key":"k"}`, []string{"mirror", "show", "--idempotency-key", "k"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPlace(t)
			p.mirror()
			p.run(0, "install", filepath.Join(p.dir, "mirror"))
			p.run(0, "activate", "mirror")
			before := len(p.audit())
			byWords, exitWords := p.face("", append([]string{"exec", "--json"}, tt.words...)...)
			middle := len(p.audit())
			as := "human:ada"
			if i := slices.Index(tt.words, "--as"); i >= 0 {
				as = tt.words[i+1]
			}
			byEnvelope, exitEnvelope := p.face(tt.envelope, "exec", "--json", "--envelope", "-", "--as", as)
			if byWords != byEnvelope || exitWords != exitEnvelope {
				t.Errorf("words: %d %s\nenvelope: %d %s", exitWords, byWords, exitEnvelope, byEnvelope)
			}
			all := p.audit()
			if before == middle || middle == len(all) {
				t.Fatal("nothing was recorded")
			}
			own := cmpopts.IgnoreFields(audit.Entry{}, "Seq", "Time", "ID", "Prev", "MAC", "DurationMS")
			if diff := cmp.Diff(all[before:middle], all[middle:], own); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// face runs a command line with stdin.
func (p place) face(stdin string, args ...string) (stdout string, code int) {
	env, out, _ := p.env(args...)
	env.In = strings.NewReader(stdin)
	code = Main(context.Background(), env)
	return out.String(), code
}

func (p place) audit() []audit.Entry {
	p.t.Helper()
	entries, err := audit.Tail(audit.Config{Dir: filepath.Join(p.dir, "store", "audit")}, 1000)
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
