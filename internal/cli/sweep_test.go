package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// swept is every command with words that it takes; @ is the directory of the place. Those that look come first,
// those that take away last, so that one place serves all of them.
func swept() []sweep {
	return []sweep{
		{"exec", "mirror show"}, {"availability", "mirror"}, {"lint", "@mirror"}, {"list", ""}, {"face list", ""}, {"whoami", ""}, {"grants", ""}, {"approvals list", "--all"}, {"approvals show", "01JDZ3Q4W5X6Y7Z8A9B0C1D2E3"}, {"status", ""},
		{"doctor", ""}, {"audit head", ""}, {"audit show", "01JDZ3Q4W5X6Y7Z8A9B0C1D2E3"}, {"audit tail", ""}, {"audit verify", ""}, {"audit export", ""}, {"config show", ""},
		{"demo", ""}, {"conformance", ""}, {"version", ""}, {"completion", "fish"}, {"man", ""}, {"skill", "mirror"}, {"setup status", ""},
		{"setup apply", ""}, {"setup update", ""}, {"repair", ""}, {"allow", "sh"}, {"approvals approve", "01JDZ3Q4W5X6Y7Z8A9B0C1D2E3"}, {"approvals reject", "01JDZ3Q4W5X6Y7Z8A9B0C1D2E3"},
		{"approvals withdraw", "01JDZ3Q4W5X6Y7Z8A9B0C1D2E3"}, {"grant", "agent:x verb.exec.read"}, {"revoke", "agent:x"},
		{"connect", "mirror"}, {"disconnect", "mirror"}, {"add", "echo --yes"}, {"install", "@mirror"}, {"activate", "mirror"},
		{"face install", "mirror --dir @bin"}, {"face remove", "mirror --dir @bin"}, {"import openapi", "@doc.json"}, {"rollback", "mirror"}, {"deactivate", "mirror"}, {"uninstall", "mirror"},
	}
}

// A sweep is one command.
type sweep struct{ name, words string }

// A condition prepares a place and changes a command line; nil words leave the command out.
type condition struct {
	name    string
	prepare func(p place)
	words   func(name, words string) []string
}

func conditions() []condition {
	with := func(more ...string) func(string, string) []string {
		return func(name, words string) []string {
			if name == "demo" || name == "conformance" {
				return nil
			}
			return append(strings.Fields(words), more...)
		}
	}
	return []condition{
		{"a wrong flag", nil, func(_, words string) []string { return append(strings.Fields(words), "--bogus") }},
		{"too many words", nil, func(name, words string) []string {
			if slices.Contains([]string{"lint", "install", "activate", "deactivate", "availability", "allow", "revoke", "grant"}, name) {
				return nil // takes any number
			}
			return append(strings.Fields(words), "a", "b", "c")
		}},
		{"as it should be", nil, with()},
		{"an unknown id", nil, func(name, words string) []string {
			return strings.Fields(strings.NewReplacer("mirror", "nowhere", "echo", "nowhere").Replace(words))
		}},
		{"an agent", nil, with("--as", "agent:claude-code")},
		{"nobody", nil, with("--as", "Nobody")},
		{"a wrong project", nil, with("--project", "No/where")},
		{"damaged state", func(p place) { p.write("store/state.json", "{\"activated\": [") }, with()},
		{"wrong settings", func(p place) { p.write("store/config.toml", "[limits]\noutput = true\n") }, with()},
		{"a store that cannot be made", nil, with("--home", "@mirror/surface.json/store")},
		{"a broken audit", func(p place) { p.write("store/audit/head", "not a head") }, with()},
	}
}

// §6.10, §11.5: whatever is wrong, a command with --json answers exactly one JSON value on stdout and nothing on
// stderr, with an exit code that its answer explains: the code's own, or doctor's, status' and lint's. What comes
// of each is pinned.
func Test_6_10_EveryCommandAnswersInEveryState(t *testing.T) {
	for _, c := range leaves(wholeTree(t)) {
		if slices.Contains([]string{"help", "approvals watch", "mcp"}, commandPath(c)) { // their answer is a page, a stream, a protocol
			continue
		}
		if !slices.ContainsFunc(swept(), func(s sweep) bool { return s.name == commandPath(c) }) {
			t.Errorf("%s is not swept", commandPath(c))
		}
	}
	var b strings.Builder
	for _, c := range conditions() {
		fmt.Fprintf(&b, "%s\n", c.name)
		p := newPlace(t)
		p.mirror()
		p.run(0, "install", filepath.Join(p.dir, "mirror"))
		p.run(0, "activate", "mirror")
		for _, s := range swept() {
			name, words := s.name, c.words(s.name, s.words)
			if words == nil || c.name == "an unknown id" && strings.Join(words, " ") == s.words {
				continue
			}
			if c.prepare != nil {
				c.prepare(p)
			}
			args := append(append([]string{"--json"}, strings.Fields(name)...), words...)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "@", p.dir+"/")
			}
			fmt.Fprintf(&b, "  %s: %s\n", name, p.swept(args))
			if c.name == "damaged state" && name != "repair" {
				if text, err := os.ReadFile(filepath.Join(p.dir, "store/state.json")); err != nil || string(text) != "{\"activated\": [" {
					t.Errorf("%s: the damaged state became %q, %v", name, text, err)
				}
			}
		}
	}
	golden(t, filepath.Join("testdata", "sweep.txt"), []byte(b.String()))
}

// swept runs one command line and says what came: the exit code, and the code of an error.
func (p place) swept(args []string) string {
	p.t.Helper()
	env, out, errs := p.env(args...)
	exit := Main(context.Background(), env)
	n, faults := jsondoc.Parse(out.Bytes(), jsondoc.Limits{Bytes: 8 << 20})
	if len(faults) > 0 || errs.Len() > 0 || strings.Count(out.String(), "\n") != 1 || strings.Contains(out.String(), "goroutine ") {
		p.t.Errorf("%v: exit %d, not one JSON value on stdout alone: %v\n%s%s", args, exit, faults, out, errs)
		return "?"
	}
	e := n.Get("error")
	if e == nil {
		if exit != 0 && exit != 1 && exit != 2 {
			p.t.Errorf("%v: exit %d without an error: %s", args, exit, out)
		}
		if slices.Contains(args, "doctor") || slices.Contains(args, "status") && !slices.Contains(args, "setup") {
			if strings.Contains(out.String(), `"level":"failure"`) != (exit == 1) {
				p.t.Errorf("%v: exit %d: %s", args, exit, out)
			}
			if exit != 1 {
				return "healthy or a warning" // which is the machine's
			}
		}
		return fmt.Sprint(exit)
	}
	code, message := protocol.Code(e.Get("code").Text), e.Get("message").Text
	if code.Exit() != exit || code.Info().Meaning == "A code without a row." || !strings.HasSuffix(message, ".") && !strings.HasSuffix(message, "?") {
		p.t.Errorf("%v: exit %d: %s", args, exit, out)
	}
	return fmt.Sprintf("%d %s", exit, code)
}
