package cli

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"hcpx/internal/protocol"
)

//go:embed demo/peek
var peekPack embed.FS

// demoStep is one command line of the demo and what must come of it.
type demoStep struct {
	title string
	as    string
	args  []string
	want  demoWant
}

// demoWant is an expectation: the exit code, the error's code and step, and a text in the answer.
type demoWant struct {
	exit int
	code protocol.Code
	step int
	text string
}

// demoView is the whole demo.
type demoView struct {
	OK    bool       `json:"ok"`
	Steps []demoDone `json:"steps"`
}

// demoDone is one step with the answer as it came.
type demoDone struct {
	Title     string          `json:"title"`
	Principal string          `json:"principal"`
	Command   string          `json:"command"`
	Exit      int             `json:"exit"`
	Answer    json.RawMessage `json:"answer"`
	Expected  bool            `json:"expected"`
	Missing   string          `json:"missing,omitempty"` // what was expected and did not come
}

// runDemo shows the main job on the real runtime, in a place of its own that is removed at the end.
func runDemo(ctx context.Context, d *deps, _ demoOptions) (err error) {
	root, err := os.MkdirTemp("", "hcpx-demo-")
	if err != nil {
		return broken("make a temporary directory", err)
	}
	defer func() {
		if gone := removeTree(root); gone != nil && err == nil {
			err = broken("remove "+root, gone)
		}
	}()
	place := demoPlace{root: root}
	if err := place.make(); err != nil {
		return broken("prepare the demo", err)
	}
	v := demoView{OK: true, Steps: []demoDone{}}
	for i, s := range place.steps() {
		if ctx.Err() != nil {
			return protocol.Fail(protocol.Canceled, "The demo was cancelled.")
		}
		done := place.play(ctx, d, s)
		v.Steps = append(v.Steps, done)
		v.OK = v.OK && done.Expected
		if !d.json() {
			if err := d.show(done, func(p *page) { showDemoStep(p, i+1, done) }); err != nil {
				return err
			}
		}
	}
	if d.json() {
		err = d.writeJSON(v)
	} else {
		err = d.show(v, func(p *page) { demoEnd(p, v) })
	}
	if err == nil && !v.OK {
		err = exit(1)
	}
	return err
}

func showDemoStep(p *page, n int, s demoDone) {
	p.head(fmt.Sprintf("%d. %s", n, s.Title))
	p.raw(p.paint(faint, clean(s.Principal)+" $ ") + clean(s.Command) + "\n")
	p.given(indented(s.Answer) + "\n")
	if s.Expected {
		p.styled(good, "as expected, exit %d", s.Exit)
	} else {
		p.styled(bad, "not as expected, exit %d: %s", s.Exit, s.Missing)
	}
}

func demoEnd(p *page, v demoView) {
	p.raw("\n")
	if v.OK {
		p.styled(good, "All %d steps went as they should; store and repository are removed.", len(v.Steps))
		p.next("hcpx add git")
		return
	}
	p.styled(bad, "The demo did not go as it should; store and repository are removed.")
	p.next("hcpx doctor")
}

// demoPlace is the temporary world: a home with nothing of the user's, a store, a git repository, a file
// outside the workspace, and a second pack.
type demoPlace struct{ root string }

func (m demoPlace) at(parts ...string) string {
	return filepath.Join(append([]string{m.root}, parts...)...)
}

func (m demoPlace) make() error {
	files := map[string]string{
		"store/config.toml":     "[identity]\nagents = \"trust-flags\"\n",
		"outside/secret.txt":    "This lies outside the workspace.\n",
		"repo/notes.txt":        "The door sticks in winter.\n",
		"repo/.git/HEAD":        "ref: refs/heads/main\n",
		"repo/.git/config":      "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n[user]\n\tname = Ada\n\temail = ada@example.org\n",
		"repo/.git/description": "A repository of the demo.\n",
	}
	for _, dir := range []string{"home", "config", "repo/.git/objects/info", "repo/.git/objects/pack", "repo/.git/refs/heads", "repo/.git/refs/tags", "repo/.git/info"} {
		if err := os.MkdirAll(m.at(dir), 0o700); err != nil {
			return err
		}
	}
	for name, text := range files {
		if err := m.write(name, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return fs.WalkDir(peekPack, "demo/peek", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		src, err := peekPack.ReadFile(name)
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if strings.Contains(name, "/bin/") {
			mode = 0o755
		}
		return m.write(strings.TrimPrefix(name, "demo/"), src, mode)
	})
}

func (m demoPlace) write(name string, text []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(m.at(name)), 0o700); err != nil {
		return err
	}
	return os.WriteFile(m.at(name), text, mode)
}

// steps is the story: a pack comes in, is seen, planned, run, refused, confirmed, and all of it is on record.
func (m demoPlace) steps() []demoStep {
	const ada, agent = "human:ada", "agent:claude-code"
	ok := func(text string) demoWant { return demoWant{text: text} }
	refused := func(code protocol.Code, step int) demoWant { return demoWant{code.Exit(), code, step, ""} }
	return []demoStep{
		{"A person adds the git pack", ada, []string{"add", "git", "--yes"}, ok(`"activated":true`)},
		{"What is available now", ada, []string{"availability", "git"}, ok(`"status":"executable"`)},
		{"A person stages a file", ada, []string{"exec", "git", "add", "--", "paths=notes.txt"}, ok(`"notes.txt"`)},
		{"A plan shows what a commit would run, and runs nothing", ada, []string{"exec", "git", "commit", "--plan", "--", "message=Note the door"}, ok(`"argv"`)},
		{"A gated write without confirmation is refused", ada, []string{"exec", "git", "commit", "--", "message=Note the door"}, refused(protocol.ConfirmRequired, 6)},
		{"A person's confirmed write runs", ada, []string{"exec", "git", "commit", "--confirm", "--", "message=Note the door"}, ok(`"Note the door"`)},
		{"An agent may read: a real git log", agent, []string{"exec", "git", "log", "--", "limit=2"}, ok(`"subject":"Note the door"`)},
		{"An agent's write is refused, before anything looks at its arguments", agent, []string{"exec", "git", "commit", "--confirm", "--", "message=Mine"}, refused(protocol.GrantMissing, 4)},
		{"A second pack, from a directory", ada, []string{"add", m.at("peek"), "--yes"}, ok(`"activated":true`)},
		{"It reads a file of the workspace", agent, []string{"exec", "peek", "file", "--", "path=notes.txt"}, ok("The door sticks")},
		{"An argument that tries to be an option is refused", agent, []string{"exec", "peek", "file", "--", "path=--help"}, refused(protocol.InvalidArgs, 5)},
		{"A read outside the jail is refused by the kernel", agent, []string{"exec", "peek", "file", "--", "path=" + m.at("outside", "secret.txt")}, refused(protocol.CommandFailed, 9)},
		{"The audit holds all of it, and verifies", ada, []string{"audit", "verify"}, ok(`"ok":true`)},
	}
}

// play runs one command line through the tree of this program, as a process of its own would.
func (m demoPlace) play(ctx context.Context, d *deps, s demoStep) demoDone {
	var out, notes bytes.Buffer
	env := Env{
		Name: d.env.Name, In: strings.NewReader(""), Out: &out, Err: &notes, Getenv: m.getenv(d.env.Getenv),
		Dir: m.at("repo"), UserHome: m.at("home"), Managed: m.at("managed.toml"), User: func() string { return "ada" }, Now: d.env.Now, Ready: d.env.Ready,
	}
	env.Args = append([]string{"--json", "--as", s.as}, s.args...)
	done := demoDone{Title: s.title, Principal: s.as, Command: d.env.Name + " " + quoted(s.args)}
	done.Exit = Main(ctx, env)
	done.Answer = bytes.TrimSpace(out.Bytes())
	if !json.Valid(done.Answer) {
		done.Answer, done.Missing = json.RawMessage("null"), "one JSON value on stdout"
		return done
	}
	done.Missing = s.want.missing(done)
	done.Expected = done.Missing == ""
	return done
}

// getenv lets only PATH through: the demo reads nothing of the user's.
func (m demoPlace) getenv(real func(string) string) func(string) string {
	return func(name string) string {
		switch name {
		case "PATH":
			return real(name)
		case "HCP_HOME":
			return m.at("store")
		case "XDG_CONFIG_HOME":
			return m.at("config")
		}
		return ""
	}
}

// missing says what an answer lacks, "" when it is as expected.
func (w demoWant) missing(got demoDone) string {
	var answer struct{ Error *protocol.Error }
	if err := json.Unmarshal(got.Answer, &answer); err != nil {
		return "an object"
	}
	switch e := answer.Error; {
	case got.Exit != w.exit:
		return fmt.Sprintf("exit %d", w.exit)
	case w.code != "" && (e == nil || e.Code != w.code || e.Step != w.step):
		return fmt.Sprintf("%s at step %d", w.code, w.step)
	case !strings.Contains(string(got.Answer), w.text):
		return w.text
	}
	return ""
}

// removeTree removes a tree whose directories may be read-only, as those of installed packs are.
func removeTree(root string) error {
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return nil
	})
	return errors.Join(err, os.RemoveAll(root))
}
