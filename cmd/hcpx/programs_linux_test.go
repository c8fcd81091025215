package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/itchyny/gojq"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// systemPath is where the packs of programs look for them: no shims of version managers (docs/spec/10-isolation.md).
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// programs are real programs, each wrapped by a pack of testdata/programs whose evals say what is expected of it.
var programs = []struct {
	pack  string
	needs []string // programs without which it can't be tried
	// allow are acts of the operator beside --allow-bin and --allow-read; hosts are the servers that it may reach
	allow func(*world) [][]string
	hosts []string
	// files are laid into the workspace
	files map[string]string
}{
	{pack: "jq", needs: []string{"jq"}},
	{pack: "sqlite", needs: []string{"sqlite3"}},
	{pack: "ripgrep", needs: []string{"rg"}, files: map[string]string{
		"a.txt": "a pin\na needle\n", "sub/b.txt": "needle too\n", "sub/c.log": "needle\n", ".ignore": "*.log\n"}},
	{pack: "tar", needs: []string{"tar", "gzip"}, files: map[string]string{"tree/run.sh": "#!/bin/sh\n", "tree/secret.txt": "s\n"}},
	{pack: "curl", needs: []string{"curl"}, hosts: []string{"${httphost}", "localhost:${httpport}"}},
	{pack: "git-clone", needs: []string{"git"}, hosts: []string{"${httphost}"}},
	{pack: "git-commit", needs: []string{"git"}, files: map[string]string{"notes.txt": "a note\n"}},
	{pack: "node", needs: []string{"/usr/bin/node"}},
	{pack: "python", needs: []string{"/usr/bin/python3"}},
	{pack: "go-build", files: map[string]string{
		"go.mod": "module small\n\ngo 1.21\n", "main.go": "package main\n\nimport \"small/greet\"\n\nfunc main() { println(greet.Word(4)) }\n",
		"greet/greet.go": "// Package greet has words.\npackage greet\n\nimport \"unsafe\"\n\n// Word is a word.\nfunc Word(n uintptr) uintptr { return n * unsafe.Sizeof(n) }\n"}},
	{pack: "psql", needs: []string{"psql", "postgres"}, hosts: []string{"127.0.0.1:${pgport}", "localhost:${pgport}"}, allow: func(w *world) [][]string {
		return [][]string{{"allow", filepath.Join(postgresDir(), "psql")}} // Debian's own psql is a script that chooses one
	}},
}

// §10.2: real programs work inside, installed, activated and run as a person would, as root and as a plain user.
func Test_10_2_RealProgramsWorkInside(t *testing.T) {
	self := copyOf(t, "/proc/self/exe")
	servers := startServers(t)
	for _, uid := range uids() {
		t.Run(fmt.Sprint("uid ", uid), func(t *testing.T) {
			for _, p := range first(3, programs) {
				t.Run(p.pack, func(t *testing.T) {
					for _, name := range p.needs {
						if name != "postgres" && lookIn(name) == "" || name == "postgres" && postgresDir() == "" {
							t.Skipf("%s is not installed", name)
						}
					}
					w := newWorld(t, self, uid, servers)
					w.lay(filepath.Join(w.dir, "work"), p.files)
					w.prepare(p.pack)
					if p.allow != nil {
						for _, act := range p.allow(w) {
							w.must(act...)
						}
					}
					w.enter(p.pack, p.hosts)
					w.evals(p.pack)
				})
			}
		})
	}
}

// first are so many of a table with -short, which the race detector runs with: it looks at hcpx, not at the programs.
func first[T any](n int, all []T) []T {
	if testing.Short() {
		return all[:n]
	}
	return all
}

// uids are whom the programs run as: where root tests, a plain user too, but for -short.
func uids() []int {
	if os.Geteuid() == 0 && !testing.Short() {
		return []int{0, 65534}
	}
	return []int{os.Geteuid()}
}

// openDir is a directory that any user can reach, which t.TempDir is not.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "programs-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// copyOf is this test binary in a directory that any user can reach.
func copyOf(t *testing.T, program string) string {
	t.Helper()
	src, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(openDir(t), "hcpx")
	if err := os.WriteFile(path, src, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// lookIn finds a program in the directories of the system.
func lookIn(name string) string {
	for _, dir := range strings.Split(systemPath, ":") {
		path := filepath.Join(dir, name)
		if filepath.IsAbs(name) {
			path = name
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// world is one user's home, store and workspace.
type world struct {
	t    *testing.T
	self string
	uid  int
	dir  string
	vars *strings.Replacer
	env  []string // what the caller's environment has besides

	goroot string
}

func newWorld(t *testing.T, self string, uid int, servers map[string]string) *world {
	t.Helper()
	w := &world{t: t, self: self, uid: uid, dir: openDir(t), goroot: goroot(t)}
	pairs := []string{"/usr/local/go", w.goroot, "linux_amd64", "linux_" + runtime.GOARCH}
	for name, value := range servers {
		pairs = append(pairs, name, value)
	}
	w.vars = strings.NewReplacer(pairs...)
	w.lay(filepath.Join(w.dir, "store"), map[string]string{"config.toml": "[identity]\nagents = \"trust-flags\"\n"})
	w.lay(filepath.Join(w.dir, "home"), map[string]string{".profile": ""})
	return w
}

// goroot is the toolchain's own place, by its real path.
func goroot(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// lay writes files that belong to the user.
func (w *world) lay(dir string, files map[string]string) {
	w.t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			w.t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			w.t.Fatal(err)
		}
	}
	w.own()
}

func (w *world) own() {
	w.t.Helper()
	if w.uid == os.Geteuid() {
		return
	}
	if err := filepath.WalkDir(w.dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, w.uid, w.uid)
	}); err != nil {
		w.t.Fatal(err)
	}
}

// prepare lays the pack, with this machine's places in it, and the pieces of the workspace that are no plain files.
func (w *world) prepare(pack string) {
	w.t.Helper()
	files := map[string]string{}
	tree := os.DirFS(filepath.Join("testdata", "programs", pack))
	if err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(path, "evals/") {
			return err
		}
		text, err := fs.ReadFile(tree, path)
		files[path] = w.vars.Replace(string(text))
		return err
	}); err != nil {
		w.t.Fatal(err)
	}
	w.lay(filepath.Join(w.dir, pack), files)
	if pack == "tar" {
		work := filepath.Join(w.dir, "work", "tree")
		if err := os.Chmod(filepath.Join(work, "secret.txt"), 0o600); err != nil {
			w.t.Fatal(err)
		}
		if err := os.Symlink("run.sh", filepath.Join(work, "link")); err != nil {
			w.t.Fatal(err)
		}
		w.own()
	}
	if err := os.MkdirAll(filepath.Join(w.dir, "work"), 0o755); err != nil {
		w.t.Fatal(err)
	}
	w.own()
}

// enter lints, installs with the operator's consent, activates, and asks doctor, which runs the probe.
func (w *world) enter(pack string, hosts []string) {
	w.t.Helper()
	dir := filepath.Join(w.dir, pack)
	if out := w.must("lint", dir); !strings.Contains(out, "no issues") {
		w.t.Fatalf("lint: %s", out)
	}
	w.must("install", dir, "--allow-bin", "--allow-read", "--json")
	if len(hosts) > 0 {
		w.must(append([]string{"allow", "--host", pack}, strings.Fields(w.vars.Replace(strings.Join(hosts, " ")))...)...)
	}
	w.must("activate", pack)
	if out := w.must("availability", pack, "--json"); !strings.Contains(out, `"executable":true`) {
		w.t.Fatalf("availability: %s", out)
	}
	if out, _ := w.run("doctor", "--json"); strings.Contains(out, "The probe of") {
		w.t.Errorf("doctor: %s", out)
	}
}

// command is a program in the user's world.
func (w *world) command(path string, args ...string) *exec.Cmd {
	c := exec.Command(path, args...)
	c.Dir = w.dir
	c.Env = []string{asProgram + "=1", "HOME=" + filepath.Join(w.dir, "home"), "HCP_HOME=" + filepath.Join(w.dir, "store"), "HCP_PRINCIPAL=human:ada",
		"PATH=" + systemPath + ":" + filepath.Join(w.goroot, "bin"), "TMPDIR=" + w.dir}
	c.Env = append(c.Env, w.env...)
	if w.uid != os.Geteuid() {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(w.uid), Gid: uint32(w.uid)}}
	}
	return c
}

func (w *world) run(args ...string) (string, error) {
	c := w.command(w.self, args...)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	return out.String() + errs.String(), err
}

func (w *world) must(args ...string) string {
	w.t.Helper()
	out, err := w.run(args...)
	if err != nil {
		w.t.Fatalf("hcpx %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// expectation is one file of evals/ (§14.2).
type expectation struct {
	Name    string          `json:"name"`
	Verb    string          `json:"verb"`
	Args    json.RawMessage `json:"args"`
	Confirm bool            `json:"confirm"`
	Expect  struct {
		OK     bool            `json:"ok"`
		Code   protocol.Code   `json:"error_code"`
		Result json.RawMessage `json:"result"`
		Match  string          `json:"match"`
	} `json:"expect"`
}

// evals runs what a pack of testdata expects.
func (w *world) evals(pack string) {
	w.t.Helper()
	w.evalsOf(filepath.Join("testdata", "programs"), pack)
}

// evalsOf runs what the pack expects, in the order of the files' names: a later one may rest on an earlier one.
func (w *world) evalsOf(packs, pack string) {
	w.t.Helper()
	names, err := filepath.Glob(filepath.Join(packs, pack, "evals", "*.json"))
	if err != nil || len(names) == 0 {
		w.t.Fatalf("%s expects nothing: %v", pack, err)
	}
	for _, name := range names {
		src, err := os.ReadFile(name)
		if err != nil {
			w.t.Fatal(err)
		}
		var e expectation
		if err := json.Unmarshal([]byte(w.vars.Replace(string(src))), &e); err != nil {
			w.t.Fatalf("%s: %v", name, err)
		}
		w.expect(pack, e)
	}
}

func (w *world) expect(pack string, e expectation) {
	w.t.Helper()
	r, out := w.call(pack, e.Verb, e.Args, e.Confirm)
	if code := codeOf(r); r.OK != e.Expect.OK || code != e.Expect.Code {
		w.t.Fatalf("%s: %s", e.Name, out)
	}
	if e.Expect.Result != nil {
		want, _ := jsondoc.Parse(e.Expect.Result, jsondoc.Limits{})
		got, _ := jsondoc.Parse(r.Result, jsondoc.Limits{})
		if !want.Equal(got) {
			w.t.Errorf("%s:\n got %s\nwant %s", e.Name, r.Result, e.Expect.Result)
		}
	}
	if e.Expect.Match != "" && !matches(w.t, e.Expect.Match, r.Result) {
		w.t.Errorf("%s: %s does not hold for %s", e.Name, e.Expect.Match, r.Result)
	}
}

// call runs one command in the workspace as its envelope, and gives what was printed too.
func (w *world) call(pack, verb string, args any, confirm bool) (protocol.Result, string) {
	w.t.Helper()
	members := map[string]any{"pack_id": pack, "verb_key": verb, "args": args}
	if confirm {
		members["confirm"] = true
	}
	envelope, err := json.Marshal(members)
	if err != nil {
		w.t.Fatal(err)
	}
	w.lay(w.dir, map[string]string{"envelope.json": string(envelope)})
	out, _ := w.run("exec", "--json", "--workspace", filepath.Join(w.dir, "work"), "--envelope", filepath.Join(w.dir, "envelope.json"))
	var r protocol.Result
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		w.t.Fatalf("%s %s: %v: %s", pack, verb, err, out)
	}
	return r, out
}

func codeOf(r protocol.Result) protocol.Code {
	if r.Error == nil {
		return ""
	}
	return r.Error.Code
}

func matches(t *testing.T, query string, result []byte) bool {
	t.Helper()
	q, err := gojq.Parse(query)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(result, &value); err != nil {
		t.Fatal(err)
	}
	v, _ := q.Run(value).Next()
	return v == true
}
