package cli

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"hcpx/internal/lifecycle"
)

// asks has an agent ask for mirror/set, whose pack is installed, and gives the id.
func (p place) asks(args ...string) string {
	p.t.Helper()
	out, _ := p.run(3, append([]string{"exec", "mirror", "set", "--as", "agent:claude-code", "--json", "--"}, args...)...)
	var answer struct {
		Error struct {
			Details struct {
				ID string `json:"approval_id"`
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil || answer.Error.Details.ID == "" {
		p.t.Fatalf("%v %s", err, out)
	}
	return answer.Error.Details.ID
}

func newMirror(t *testing.T) place {
	p := newPlace(t)
	p.mirror()
	p.run(0, "install", filepath.Join(p.dir, "mirror"))
	p.run(0, "activate", "mirror")
	p.run(0, "grant", "agent:claude-code", "verb.exec.write")
	return p
}

// §15.2: on a terminal a person sees the request before he is asked; only a yes approves, and --yes, --json and a pipe
// ask nothing.
func Test_15_2_APersonOnATerminalSeesAndDecides(t *testing.T) {
	p := newMirror(t)
	for _, tt := range []struct {
		answer string
		exit   int
		state  string
	}{{"n\n", 3, "pending"}, {"", 3, "pending"}, {"y\n", 0, "approved"}} {
		id := p.asks("to=7")
		env, _, errs := p.env("approvals", "approve", id)
		env.In, env.InTTY, env.ErrTTY = strings.NewReader(tt.answer), true, true
		code := Main(context.Background(), env)
		shown := errs.String()
		if code != tt.exit || !strings.Contains(shown, "agent:claude-code asks to run mirror/set") || !strings.Contains(shown, `"to": 7`) ||
			strings.Index(shown, `"to": 7`) > strings.Index(shown, "Approve it?") {
			t.Errorf("%q: exit %d\n%s", tt.answer, code, shown)
		}
		out, _ := p.run(0, "approvals", "show", id, "--json")
		if !strings.Contains(out, `"state":"`+tt.state+`"`) {
			t.Errorf("%q: %s", tt.answer, out)
		}
	}
	env, _, errs := p.env("approvals", "approve", p.asks("to=8"), "--yes")
	env.In, env.InTTY, env.ErrTTY = strings.NewReader("n\n"), true, true
	if code := Main(context.Background(), env); code != 0 || strings.Contains(errs.String(), "[y/N]") {
		t.Errorf("--yes: exit %d %s", code, errs)
	}
	p.run(0, "approvals", "approve", p.asks("to=9"))
}

// §15.2: who approves sees every character, those too that a terminal hides, obeys or mistakes, on a pipe as on a terminal.
func Test_15_2_NothingHidesFromTheApprover(t *testing.T) {
	hidden := "a\x1b[2K\rb\u202ec\u200bd\u00a0e\u3164f\ufefff\U000e0041g\u00adh\x9bi"
	shown := `a\u001b[2K\u000db\u202ec\u200bd\u00a0e\u3164f\ufefff\ue0041g\u00adh`
	plan, err := json.Marshal(shownPlan{Argv: []string{"tool", hidden}, Cwd: "/w/" + hidden, Reads: []string{"/r/" + hidden}, Network: planNet{Mode: "hosts", Hosts: []string{hidden}}})
	if err != nil {
		t.Fatal(err)
	}
	args, err := json.Marshal(map[string]string{"to": hidden})
	if err != nil {
		t.Fatal(err)
	}
	result, err := json.Marshal("line\n" + hidden)
	if err != nil {
		t.Fatal(err)
	}
	v := lifecycle.ApprovalView{ID: "01", Principal: "agent:a", PackID: "p", VerbKey: "v", Message: "To " + hidden + "?", Args: args, Plan: plan,
		Preview: &lifecycle.PreviewView{VerbKey: "look", Result: result}}
	for _, tty := range []bool{false, true} {
		var out strings.Builder
		p := &page{out: &out, tty: tty}
		showApproval(p, v)
		showAsked(p, v)
		for _, r := range out.String() {
			if r != '\n' && (unsafeRune(r) || strings.ContainsRune("\u200b\u00a0\u3164\ufeff\U000e0041\u00ad", r)) {
				t.Fatalf("%U is there:\n%s", r, out.String())
			}
		}
		if n := strings.Count(out.String(), shown); n < 6 {
			t.Errorf("written out %d times:\n%s", n, out.String())
		}
	}
}

// §15.2: whoever approves sees each character, also those that draw nothing.
func Test_15_2_NothingIsInvisible(t *testing.T) {
	for _, r := range "\u2800\u034f\ufe0f\U000e0100\u3164\u115f\u1160\uffa0\u180b\u17b4\u200b\u2066\u00ad\u00a0" {
		if got := visible("a" + string(r) + "b"); strings.ContainsRune(got, r) {
			t.Errorf("%U is printed as it is: %q", r, got)
		}
	}
	if got := visible("Grüße, नमस्ते 東京 👍"); got != "Grüße, नमस्ते 東京 👍" {
		t.Errorf("what can be seen is changed: %q", got)
	}
}
