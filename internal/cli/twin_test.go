package cli

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"hcpx/internal/audit"
)

// §6.6: words and an envelope build the same request: the same result, and the same audit entries but for
// id, time and hashes.
func Test_6_6_WordsAndEnvelopeAreOneFace(t *testing.T) {
	for _, tt := range []struct {
		name, envelope string
		words          []string
	}{
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
			byEnvelope, exitEnvelope := p.face(tt.envelope, "exec", "--json", "--envelope", "-")
			if byWords != byEnvelope || exitWords != exitEnvelope {
				t.Errorf("words: %d %s\nenvelope: %d %s", exitWords, byWords, exitEnvelope, byEnvelope)
			}
			all := p.audit()
			if before == middle || middle == len(all) {
				t.Fatal("nothing was recorded")
			}
			own := cmpopts.IgnoreFields(audit.Entry{}, "Seq", "Time", "ID", "Prev", "DurationMS")
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
