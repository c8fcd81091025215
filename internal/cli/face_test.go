package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// facePlace has the packs kinds and mirror, the first of them activated.
func facePlace(t *testing.T) place {
	p := newPlace(t)
	p.kindPack()
	p.mirror()
	p.run(0, "install", filepath.Join(p.dir, "kinds"), filepath.Join(p.dir, "mirror"))
	p.run(0, "activate", "kinds")
	return p
}

// HCP-12.1-1: program, space, subcommand, flags and --json; the words are the segments of the verb_key, and the pack's own
// name may be left out. hcpx's own flags stand before or behind.
func TestHCP_12_1_1_TheFaceOfAPack(t *testing.T) {
	p := facePlace(t)
	for _, tt := range []struct {
		line string
		exit int
		want string // in the one line of JSON
	}{
		{"kinds show --json --text a", 0, `"verb_key":"kinds.show","result":{"n2":7,"text":"a"}`},
		{"kinds kinds show --json --text a", 0, `"result":{"n2":7,"text":"a"}`},
		{"kinds kinds.show --json", 0, `"result":{"n2":7}`},
		{"--json kinds show --n 5", 0, `"result":{"n":5,"n2":7}`},
		{"kinds --json show --n 5", 0, `"result":{"n":5,"n2":7}`},
		{"kinds show --n 5 --home @store --json", 0, `"result":{"n":5,"n2":7}`},
		{"--home @store --json --as human:ada kinds show", 0, `"result":{"n2":7}`},
		{"kinds deep down set --to 5 --apply --project a --json", 0, `"verb_key":"deep.down.set","result":5`},
		{"kinds deep --project=a --confirm down set --to=5 --json", 0, `"result":5`},
		{"kinds deep down set --to 5 --confirm=false --project a --json", 3, `"code":"confirm_required"`},
		{"kinds deep down set --to 5 --plan --project a --json", 0, `"confirm":{"needed":true,"given":false`},
		{"kinds deep down set --to 5 --project a --as agent:claude-code --json", 3, `"code":"grant_missing"`},
		{"kinds show --json -- text=a any:=[1]", 0, `"result":{"any":[1],"n2":7,"text":"a"}`},
		{"kinds show --arg-json x --no-arg-confirm --json", 0, `"confirm":false,"json":"x"`},
		// once both ids are known it is a Result (§6.7)
		{"kinds show --bogus 1 --json", 64, `{"ok":false,"pack_id":"kinds","verb_key":"kinds.show","error":{"code":"invalid_args","message":"Arguments of kinds/kinds.show are not valid. There is no flag --bogus."`},
		{"kinds show more --json", 64, `\"more\" stands alone`},
		{"kinds show --color pink --json", 64, `--color is auto, always or never`},
		{"kinds show --approval= --json", 64, `--approval is given and empty`},
		{"kinds deep down set --confirm --approval x --project a --json", 64, `two confirmations`},
		{"kinds deep down set --confirm --idempotency-key=\xff --project a --json", 64, `no UTF-8 text`},
		{"kinds deep down set --bogus --as agent:claude-code --project a --json", 3, `"code":"grant_missing"`}, // and nothing of its arguments
		{"kinds show --bogus --as Nobody --json", 3, `"code":"unauthenticated"`},
		{"kinds shew --json", 3, `{"ok":false,"pack_id":"kinds","verb_key":"shew","error":{"code":"unknown_command"`},
		{"kinds deep --json", 3, `"nearest":["deep.down.set"]`},
		{"mirror show --bogus --json", 3, `{"ok":false,"pack_id":"mirror","verb_key":"show","error":{"code":"pack_not_activated","message":"Pack \"mirror\" is not activated in session \"default\".","step":2,"hint":"hcpx activate mirror"}`},
		{"mirror show --session s1 --json", 3, `"hint":"hcpx activate mirror --session s1"`},
		// before that it is not
		{"kinds --json", 64, `{"error":{"code":"usage","message":"hcpx kinds needs a command: show, deep.","hint":"hcpx kinds --help"`},
		{"kinds --text a show --json", 64, `{"error":{"code":"usage","message":"--text stands before the command that it belongs to."`},
		{"mirror --json", 3, `{"error":{"code":"pack_not_activated"`},
		{"hcp-cli list --json", 0, `"verb_key":"list","result":{"packs":[{"pack_id":"hcp-cli"`},
	} {
		args := strings.Fields(strings.ReplaceAll(tt.line, "@", p.dir+"/"))
		out, errs := p.run(tt.exit, args...)
		if errs != "" || !strings.Contains(out, tt.want) || strings.Count(out, "\n") != 1 {
			t.Errorf("%s:\n%s%s", tt.line, out, errs)
		}
	}
}

// A word that is no pack: what is nearest, and how a pack would come here. hcpx's own words come first.
func Test_12_1_AWordThatIsNoPack(t *testing.T) {
	p := facePlace(t)
	for _, tt := range []struct{ line, said, hint string }{
		{"kinda show", "There is no command \"kinda\", and no pack of that name is installed; a pack is installed by hcpx add DIR; the nearest is kinds.", "hcpx kinds --help"},
		{"exce", "the nearest is exec.", "hcpx exec --help"},
		{"ledger balance --account checking", "it ships with hcpx: hcpx add ledger.", "hcpx add ledger"},
		{"transit", "it ships with hcpx: hcpx add transit.", "hcpx add transit"},
		{"frobnicate it", "a pack is installed by hcpx add DIR.", "hcpx help"},
		{"--bogus kinds show", "--bogus stands before the command that it belongs to.", "hcpx help"},
		{"No/Pack", "There is no command \"No/Pack\".", "hcpx help"},
		{"help frobnicate", "There is no command \"frobnicate\"", "hcpx help"},
	} {
		_, errs := p.run(64, strings.Fields(tt.line)...)
		if !strings.Contains(errs, tt.said) || !strings.Contains(errs, "hint: "+tt.hint+"\n") {
			t.Errorf("%s: %s", tt.line, errs)
		}
	}
	p.write("skill/surface.json", strings.ReplaceAll(mirrorText, "mirror", "skill"))
	p.write("skill/policy.json", `{"surface_id":"skill","verbs":{"show":{"operation":"read","privacy":{"land":"personal"}}}}`)
	p.write("skill/HARNESS.md", "# Skill\n\nShows it.\n\n`hcpx exec skill show`\n")
	p.run(0, "install", filepath.Join(p.dir, "skill"))
	p.run(0, "activate", "skill")
	if out, _ := p.run(0, "skill", "kinds"); !strings.Contains(out, "Shows arguments.") {
		t.Errorf("an own word is not its own any more: %s", out)
	}
	if out := p.line([]string{"show"}, nil, "skill", ""); !strings.Contains(out, `"pack_id":"skill"`) {
		t.Errorf("by its link: %s", out)
	}
	if out := p.line([]string{"version"}, nil, "kinds", ""); !strings.Contains(out, `"code":"unknown_command"`) {
		t.Errorf("a link runs another thing than its pack: %s", out)
	}
	if out := p.line([]string{"show"}, nil, "nowhere", ""); !strings.Contains(out, `"code":"pack_not_installed"`) {
		t.Errorf("a link of a pack that is gone: %s", out)
	}
}

const mirrorText = `{"hcp":{"version":"1.1"},"id":"mirror","version":"1.0.0","summary":"Show it.","adapter":"composite","verbs":{
	"show":{"summary":"Show it.","steps":[{"id":"a","value":".args"}],"output":".steps.a","examples":[{"args":{}}]}}}`

// HCP-12.1-6 through the face: a person on a terminal is asked once, an agent never.
func TestHCP_12_1_6_TheFaceAsksAPersonOnce(t *testing.T) {
	p := facePlace(t)
	p.run(0, "grant", "agent:claude-code", "verb.exec.write", "--pack", "kinds")
	for _, tt := range []struct {
		more  []string
		asked int
		exit  int
	}{
		{nil, 1, 0}, {[]string{"--confirm"}, 0, 0}, {[]string{"--json"}, 0, 3}, {[]string{"--as", "agent:claude-code"}, 0, 3}, {[]string{"--plan"}, 0, 0},
	} {
		env, _, errs := p.env(append([]string{"kinds", "deep", "down", "set", "--to", "5", "--project", "a"}, tt.more...)...)
		env.In, env.InTTY, env.ErrTTY = strings.NewReader("y\n"), true, true
		if code := Main(context.Background(), env); code != tt.exit || strings.Count(errs.String(), "[y/N]") != tt.asked {
			t.Errorf("%v: exit %d, %s", tt.more, code, errs)
		}
	}
}

// §15.2: a yes at a terminal is to what was shown; a pack that is another one by then is asked about again.
func Test_15_2_AYesAtATerminalIsToWhatWasShown(t *testing.T) {
	p := facePlace(t)
	for _, changes := range []bool{true, false} {
		env, _, errs := p.env("kinds", "deep", "down", "set", "--to", "5", "--project", "a")
		env.InTTY, env.ErrTTY = true, true
		env.In = lateReader{func() {
			if !changes {
				return
			}
			text, err := os.ReadFile(filepath.Join(p.dir, "kinds", "surface.json"))
			p.write("kinds/surface.json", strings.Replace(string(text), `"1.0.0"`, `"1.0.1"`, 1))
			install, _, errs := p.env("install", filepath.Join(p.dir, "kinds"))
			if code := Main(context.Background(), install); err != nil || code != 0 {
				t.Errorf("%v, exit %d: %s", err, code, errs)
			}
		}, strings.NewReader("y\n")}
		code := Main(context.Background(), env)
		if refused := strings.Contains(errs.String(), "no longer what was shown"); refused != changes || refused != (code == 3) {
			t.Errorf("changed %v: exit %d, %s", changes, code, errs)
		}
	}
}

// lateReader does something before what is typed is read.
type lateReader struct {
	first func()
	in    *strings.Reader
}

func (r lateReader) Read(b []byte) (int, error) {
	if int64(r.in.Len()) == r.in.Size() {
		r.first()
	}
	return r.in.Read(b)
}

// §12.1: help of a pack, of a space and of a command, in each form; it makes no store, and the mark of a gated write is
// always there (§12.6).
func Test_12_1_FaceHelp(t *testing.T) {
	p := facePlace(t)
	for name, forms := range map[string][]string{
		"face-pack":    {"kinds --help", "--help kinds", "help kinds", "kinds -h"},
		"face-space":   {"kinds deep --help", "help kinds deep", "kinds deep down -h"},
		"face-read":    {"kinds show --help", "kinds show --n 5 --bogus --help", "help kinds show", "kinds kinds show --help"},
		"face-write":   {"kinds deep down set --help", "help kinds deep down set"},
		"face-dormant": {"mirror --help"},
	} {
		for _, line := range forms {
			out, _ := p.run(0, strings.Fields(line)...)
			golden(t, filepath.Join("testdata", "help", name+".txt"), []byte(out))
		}
	}
	out, _ := p.run(0, "kinds", "deep", "down", "set", "--help", "--json")
	if !strings.Contains(out, `"confirm":true`) || !strings.Contains(out, `"flag":"--to"`) || !strings.Contains(out, `"example":"hcpx kinds deep down set --confirm --to 1"`) {
		t.Error(out)
	}
	p.run(3, "kinds", "nothing", "--help")
	env, _, errs := terminalFree(t, "kinds", "--help")
	if code := Main(context.Background(), env); code != 64 || !strings.Contains(errs.String(), "no pack of that name") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if left, err := filepath.Glob(filepath.Join(env.Dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("help made %v", left)
	}
}

// §12.1: completion offers words, flags and values of activated packs, and runs and records nothing.
func Test_12_1_Completion(t *testing.T) {
	p := facePlace(t)
	before := len(p.audit())
	for _, tt := range []struct {
		line string // the last word is being typed; ~ is an empty one
		want string // what must be offered, and behind ! what must not
	}{
		{"~", "exec kinds ! mirror hcp-cli"},
		{"ki", "kinds ! exec"},
		{"kinds ~", "show deep ! kinds set"},
		{"--as human:ada kinds de", "deep ! show"},
		{"kinds deep ~", "down ! set show"},
		{"kinds deep down set ~", "--to --plan --confirm ! --text"},
		{"kinds show --t", "--text --tags ! --n --confirm"},
		{"kinds show --text a --t", "--tags ! --text"},
		{"kinds show --tags a --t", "--tags --text"},
		{"kinds show --no-", "--no-on --no-unset --no-arg-confirm ! --no-text"},
		{"kinds show --", "--text --json --project --plan ! --confirm --approval"},
		{"kinds show --level ~", "low 2 true"},
		{"kinds show --level=l", "low ! 2"},
		{"kinds show --on=", "true false"},
		{"kinds show --color ~", "auto always never"},
		{"kinds show --day 20", "20"},
		{"kinds show -- te", "text="},
		{"mirror ~", "! show set"},
		{"kinds show --session s1 --", "! --text"},
		{"completion ~", "bash zsh fish"},
		{"completion bash ~", "kinds ! mirror"},
		{"face install ~", "kinds mirror"},
	} {
		words := strings.Fields(tt.line)
		if words[len(words)-1] == "~" {
			words[len(words)-1] = ""
		}
		env, out, errs := p.env(append([]string{"__complete"}, words...)...)
		if code := Main(context.Background(), env); code != 0 {
			t.Fatalf("%s: exit %d %s", tt.line, code, errs)
		}
		var offered []string
		for line := range strings.Lines(out.String()) {
			word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
			offered = append(offered, word)
		}
		must := true
		for _, word := range strings.Fields(tt.want) {
			if word == "!" {
				must = false
				continue
			}
			found := slices.ContainsFunc(offered, func(s string) bool { return s == word || word == "20" && strings.HasPrefix(s, word) })
			if found != must {
				t.Errorf("%s: %s offered: %v, in %q", tt.line, word, found, offered)
			}
		}
	}
	env, out, _ := p.env("__completeNoDesc", "deep", "")
	env.Face = "kinds"
	if code := Main(context.Background(), env); code != 0 || !strings.HasPrefix(out.String(), "down\n") {
		t.Errorf("by a link: exit %d, %q", code, out)
	}
	if all := len(p.audit()); all != before {
		t.Errorf("completion left %d entries", all-before)
	}
}

// The name that a program was started by is a pack's only where it was reached by a link of that name.
func Test_12_1_FaceName(t *testing.T) {
	for _, tt := range []struct{ arg, file, want string }{
		{"mail", "/opt/bin/hcpx", "mail"}, {"/usr/bin/mail", "/opt/bin/hcpxd", "mail"}, {"./mail", "/opt/bin/hcpx-2", "mail"},
		{"hcpx", "/opt/bin/hcpx", ""}, {"hcp", "/opt/bin/hcpx", ""}, {"hcpxd", "/opt/bin/hcpxd", ""}, {"hcpx-2", "/opt/bin/hcpx-2", ""},
		{"exec", "/opt/bin/hcpx", ""}, {"Mail", "/opt/bin/hcpx", ""}, {"-mail", "/opt/bin/hcpx", ""}, {"mail.exe", "/opt/bin/hcpx", ""},
	} {
		if got := faceName([]string{tt.arg}, func() (string, error) { return tt.file, nil }); got != tt.want {
			t.Errorf("%s of %s: %q, want %q", tt.arg, tt.file, got, tt.want)
		}
	}
	if got := faceName(nil, nil); got != "" {
		t.Error(got)
	}
}
