package settings

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// base are settings with something to narrow.
func base(t *testing.T) *Settings {
	t.Helper()
	home := t.TempDir()
	write(t, filepath.Join(home, "config.toml"), "confirm.agent = \"envelope\"\nsandbox.accept = [\"metadata\", \"signals\"]\nlimits.files = 100\n")
	s, err := Load(home, ReadManaged(""))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func Test_9_3_AProjectNarrows(t *testing.T) {
	s, root := base(t), t.TempDir()
	if n, err := s.Narrow(root); err != nil || n != s {
		t.Fatalf("without a file: %v %v", n, err)
	}
	write(t, filepath.Join(root, "hcp.toml"), `
confirm = { agent = "ask" }
[packs]
allow = ["git", "acme-*"]
[limits]
files = 100 # as much is no more
memory = "1GiB"
wall_max = "30s"
[sandbox]
accept = []
native_local = "forbid"
dangerous = "forbid"
[[deny]]
principal = "agent:*"
capabilities = ["verb.exec.write"]
packs = ["git"]
verbs = ["push"]
args = { branch = ["main", "release/*"], force = true }
[[deny]]
projects = ["apollo"]
args."a.b" = 1_0
[[deny]]
[deny.args]
n = [0x10, false]
`)
	n, err := s.Narrow(root)
	if err != nil {
		t.Fatal(err)
	}
	if n.ConfirmAgent != "ask" || len(n.Accept) != 0 || n.Limits.Memory != 1<<30 || n.Limits.Files != 100 || n.Native != "forbid" || n.Dangerous != "forbid" ||
		!cmp.Equal(n.Packs, []string{"git", "acme-*"}) {
		t.Errorf("%+v", n)
	}
	file := filepath.Join(root, "hcp.toml")
	want := []Deny{
		{Principal: "agent:*", Capabilities: []string{"verb.exec.write"}, Packs: []string{"git"}, Verbs: []string{"push"},
			Args: map[string][]any{"branch": {"main", "release/*"}, "force": {true}}, File: file, Line: 13, Column: 3},
		{Projects: []string{"apollo"}, Args: map[string][]any{"a.b": {int64(10)}}, File: file, Line: 19, Column: 3},
		{Args: map[string][]any{"n": {int64(16), false}}, File: file, Line: 22, Column: 3},
	}
	if diff := cmp.Diff(want, n.Denies); diff != "" {
		t.Error(diff)
	}
	rows := map[string]string{}
	for _, r := range n.Rows() {
		rows[r.Key] += r.Value + " " + r.From + ";"
	}
	for key, row := range map[string]string{
		"confirm.agent": "ask hcp.toml;", "limits.files": "100 hcp.toml;", "packs.allow": "git, acme-* hcp.toml;", "sandbox.accept": " hcp.toml;", "packs.sources": "* default;",
		"deny": "agent:* verb.exec.write pack=git verb=push branch=main branch=release/* force=true hcp.toml;* project=apollo a.b=10 hcp.toml;* n=16 n=false hcp.toml;",
	} {
		if rows[key] != row {
			t.Errorf("%s: %s, want %s", key, rows[key], row)
		}
	}
	// What was in force stays as it was.
	if s.ConfirmAgent != "envelope" || len(s.Accept) != 2 || s.Denies != nil || s.from["limits.memory"] != "" {
		t.Errorf("the settings above: %+v", s)
	}
}

// §9.3: whatever gives more, and whatever a project does not decide, is an error with its place, and then nothing holds.
func Test_9_3_AProjectMayOnlyNarrow(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a higher limit", "[limits]\nfiles = 101", ":2:9: limits.files gives more here than what is in force, 100; a project may only narrow"},
		{"a longer time", "limits.wall_max = \"1h\"\nlimits.cpu = \"1h\"\nlimits.output = \"9MiB\"", ":3:17: limits.output gives more"},
		{"more memory", "limits.memory = \"9GiB\"", ":1:17: limits.memory gives more"},
		{"a wider word", "confirm.agent = \"envelope\"\nsandbox.native_local = \"allow\"\n[sandbox]\naccept = [\"files\"]", ":4:1: sandbox.accept is a list of some of"},
		{"identity", "[identity]\nagents = \"trust-flags\"", ":1:2: identity may not stand in hcp.toml"},
		{"identity, as it is", "identity.agents = \"detect\"", ":1:1: identity.agents may not stand in hcp.toml"},
		{"the store", "store.home = \"/srv\"", ":1:1: store.home may not stand in hcp.toml"},
		{"sources", "packs.sources = [\"*\"]", ":1:1: packs.sources may not stand in hcp.toml"},
		{"pack limits", "packs.max_files = 1", ":1:1: packs.max_files may not stand in hcp.toml"},
		{"the audit's anchor", "[audit]\nanchor = \"none\"", ":1:2: audit may not stand in hcp.toml"},
		{"allowing", "[[allow]]\nprincipal = \"*\"", ":1:3: allow is no setting"},
		{"unknown", "packs.alow = []", ":1:1: packs.alow is no setting of this runtime"},
		{"a bad list", "packs.allow = \"git\"", ":1:15: packs.allow is a list of patterns"},
		{"an empty pattern", "packs.allow = [\"\"]", "packs.allow is a list of patterns"},
		{"deny as a table", "[deny]\npacks = [\"git\"]", ":1:2: deny is no setting"},
		{"deny's member", "[[deny]]\neffect = \"allow\"", ":2:10: effect is no member of a deny"},
		{"deny's capability", "[[deny]]\ncapabilities = [\"pack.install\"]", "capabilities are some of"},
		{"deny of nothing", "[[deny]]\npacks = []", "packs is a list of patterns"},
		{"deny's principal", "[[deny]]\nprincipal = [\"x\"]", "principal is a pattern"},
		{"a member twice", "[[deny]]\npacks = [\"a\"]\npacks = [\"b\"]", ":3:1: packs (deny 1) stands here a second time"},
		{"a rule of floats", "[[deny]]\nargs.n = 1.5", "a rule on an argument is a text"},
		{"a rule of nothing", "[[deny]]\nargs.n = []", "names at least one value"},
		{"a rule of lists", "[[deny]]\nargs.n = [[1]]", "a rule on an argument is a text"},
		{"no TOML", "[[deny]\n", "this is not TOML"},
		{"too long", strings.Repeat("#", maxProject+1), ":1:1: it is longer than 65536 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, root := base(t), t.TempDir()
			path := filepath.Join(root, "hcp.toml")
			write(t, path, c.text)
			n, err := s.Narrow(root)
			var e *Error
			if n != nil || !errors.As(err, &e) || len(e.Problems) != 1 || !strings.HasPrefix(err.Error(), path+":") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v, %v, want %s", n, err, c.want)
			}
		})
	}
}

// §9.3: the value in force stands in the error as a settings file writes it, whatever its kind, and reads as the same.
func Test_9_3_TheValueInForceIsWrittenAsInTheFile(t *testing.T) {
	for in, want := range map[string]string{
		`sandbox.accept = []`:                      `none`,
		`sandbox.accept = ["signals", "metadata"]`: `["signals", "metadata"]`,
		`limits.memory = 268435456`:                `"256MiB"`,
		`limits.memory = "3072KiB"`:                `"3MiB"`,
		`limits.file_size = 1073741824`:            `"1GiB"`,
		`limits.output = 1_000`:                    `1000`,
		`limits.output = 9223372036854774784`:      `9223372036854774784`,
		`limits.wall_max = "30m"`:                  `"30m"`,
		`limits.wall_max = "90s"`:                  `"1m30s"`,
		`limits.wall_max = "1500ms"`:               `"1.5s"`,
		`limits.cpu = "10s"`:                       `"10s"`,
		`limits.files = 0x10`:                      `16`,
		`confirm.agent = "approval"`:               `"approval"`,
		`sandbox.native_local = "forbid"`:          `"forbid"`,
	} {
		name, _, _ := strings.Cut(in, " ")
		more := map[string]string{"sandbox.accept": `["proc"]`, "confirm.agent": `"ask"`, "sandbox.native_local": `"allow"`, "limits.files": "99999", "limits.output": "9223372036854775807"}[name]
		switch {
		case more != "":
		case strings.HasSuffix(want, `B"`):
			more = `"2GiB"`
		default:
			more = `"59m59s"`
		}
		s := Default()
		if problems := s.apply("config.toml", config, []byte(in)); len(problems) > 0 {
			t.Fatalf("%s: %v", in, problems)
		}
		root := t.TempDir()
		write(t, filepath.Join(root, "hcp.toml"), name+" = "+more)
		if _, err := s.Narrow(root); err == nil || !strings.HasSuffix(err.Error(), name+" gives more here than what is in force, "+want+"; a project may only narrow") {
			t.Errorf("%s, then %s: %v", in, more, err)
		}
		if want == "none" {
			want = "[]"
		}
		again := Default()
		if problems := again.apply("config.toml", config, []byte(name+" = "+want)); len(problems) > 0 || !cmp.Equal(s.Rows(), again.Rows()) {
			t.Errorf("%s is written as %s, which is another value: %v", in, want, problems)
		}
	}
}

// §9.3: words are compared with what is in force, whoever put it there.
func Test_9_3_AProjectWidensNoWord(t *testing.T) {
	home, root := t.TempDir(), t.TempDir()
	path := filepath.Join(home, "managed.toml")
	write(t, path, "confirm.agent = \"approval\"\nsandbox = { native_local = \"forbid\", dangerous = \"forbid\" }\n")
	s, err := Load(home, ReadManaged(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"confirm.agent = \"ask\"", "confirm.agent = \"envelope\"", "sandbox.native_local = \"allow\"", "sandbox.dangerous = \"allow\"", "sandbox.accept = [\"signals\"]"} {
		write(t, filepath.Join(root, "hcp.toml"), text)
		if _, err := s.Narrow(root); err == nil || !strings.Contains(err.Error(), "may only narrow") {
			t.Errorf("%s: %v", text, err)
		}
	}
	write(t, filepath.Join(root, "hcp.toml"), "confirm.agent = \"approval\"\nsandbox.native_local = \"forbid\"\n")
	if _, err := s.Narrow(root); err != nil {
		t.Error(err)
	}
}

// The file comes with a repository: nothing is waited for, and no link is followed out of it.
func Test_9_3_AProjectsFileIsAFile(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"fifo":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"link":      func(path string) error { return os.Symlink("/etc/hostname", path) },
		"dangling":  func(path string) error { return os.Symlink("nowhere", path) },
	} {
		root := t.TempDir()
		if err := put(filepath.Join(root, "hcp.toml")); err != nil {
			t.Fatal(err)
		}
		if n, err := base(t).Narrow(root); err == nil {
			t.Errorf("%s: %+v", name, n)
		}
	}
	// Others may write it: it gives nothing.
	root := t.TempDir()
	write(t, filepath.Join(root, "hcp.toml"), "")
	if err := os.Chmod(filepath.Join(root, "hcp.toml"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := base(t).Narrow(root); err != nil {
		t.Error(err)
	}
}

func Test_9_3_ManagedPinsTheStoreAndNamesSources(t *testing.T) {
	path := filepath.Join(t.TempDir(), "managed.toml")
	write(t, path, "[store]\nhome = \"~/.work/hcp\"\n[packs]\nsources = [\"shipped\", \"/srv/packs/*\"]\n")
	m := ReadManaged(path)
	if m.Home() != "~/.work/hcp" || ReadManaged("").Home() != "" {
		t.Error(m.Home())
	}
	s, err := Load(t.TempDir(), m)
	if err != nil || !cmp.Equal(s.Sources, []string{"shipped", "/srv/packs/*"}) || s.Home != "~/.work/hcp" {
		t.Errorf("%+v %v", s, err)
	}
	for _, bad := range []string{"relative", "/a/../b", "~ada/x", "", "~"} {
		write(t, path, "store.home = \""+bad+"\"\n")
		if m := ReadManaged(path); m.Home() != "" {
			t.Errorf("%q pins %s", bad, m.Home())
		}
		if _, err := Load(t.TempDir(), ReadManaged(path)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	home := t.TempDir()
	write(t, filepath.Join(home, "config.toml"), "store.home = \"/srv\"\npacks.allow = []\n")
	if _, err := Load(home, ReadManaged("")); err == nil || strings.Count(err.Error(), "may not stand in config.toml") != 2 {
		t.Errorf("%v", err)
	}
}

func FuzzProject(f *testing.F) {
	f.Add([]byte("[[deny]]\nargs = { a = [1, \"x\"] }\n[deny.args]\nb = true"))
	f.Add([]byte("packs.allow = []\nlimits.memory = \"9GiB\"\n[[deny]]\n[[deny]]\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		s := Default()
		s.apply("hcp.toml", project, src)
		d := Default()
		if s.Limits.Memory > d.Limits.Memory || s.Limits.WallMax > d.Limits.WallMax || s.Limits.Output > d.Limits.Output || s.Agents != d.Agents ||
			len(s.Accept) > 0 || s.ConfirmAgent == "envelope" || s.Home != "" || s.Sources != nil || s.PackFiles != d.PackFiles {
			t.Errorf("wider: %+v", s)
		}
		for _, d := range s.Denies {
			if d.Line < 1 || d.String() == "" {
				t.Errorf("%+v", d)
			}
		}
	})
}
