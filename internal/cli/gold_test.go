package cli

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/itchyny/gojq"

	"hcpx/examples"
	"hcpx/internal/conformance"
	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// TestVectors runs every vector of §14.3 against this program's own wiring; -update rewrites the wanted answers.
func TestVectors(t *testing.T) {
	if !sandboxWorks() {
		t.Skip("this kernel cannot confine")
	}
	env, _, _ := terminalFree(t)
	env.Getenv, env.Now = os.Getenv, time.Now
	report, err := conformance.Run(t.Context(), target{env}, conformance.Options{Update: *update})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range report.Vectors {
		t.Run(v.Vector, func(t *testing.T) {
			if !v.OK {
				t.Errorf("%s: %s", v.Section, v.Detail)
				return
			}
			if *update {
				if err := os.WriteFile(filepath.Join("..", "conformance", "vectors", v.Vector+".txtar"), v.Archive, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// evalCase is one file of evals/ (§14.2).
type evalCase struct {
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

// TestGoldPacksKeepTheirEvals runs the eval cases of the gold packs live, each as its envelope (§14.2).
func TestGoldPacksKeepTheirEvals(t *testing.T) {
	if !sandboxWorks() {
		t.Skip("this kernel cannot confine")
	}
	for _, id := range []string{"transit", "ledger", "echo", "git", "git-remote"} {
		t.Run(id, func(t *testing.T) {
			r, s := goldRuntime(t, id)
			tree, err := examples.Pack(id)
			if err != nil {
				t.Fatal(err)
			}
			names, err := fs.Glob(tree, "evals/*.json")
			if err != nil || len(names) == 0 {
				t.Fatalf("no eval cases: %v", err)
			}
			for _, name := range names {
				src, err := fs.ReadFile(tree, name)
				if err != nil {
					t.Fatal(err)
				}
				var c evalCase
				if err := json.Unmarshal(src, &c); err != nil {
					t.Fatal(err)
				}
				t.Run(c.Name, func(t *testing.T) { runEval(t, r, s, id, c) })
			}
		})
	}
}

// goldRuntime has the gold pack, and transit for the steps that call it, active in a session with a project and a
// repository as its workspace.
func goldRuntime(t *testing.T, id string) (conformance.Runtime, protocol.Session) {
	t.Helper()
	env, _, _ := terminalFree(t)
	env.Getenv, env.Now = os.Getenv, time.Now
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r, err := target{env}.New(filepath.Join(dir, "home"))
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	s := protocol.Session{ID: "default", Principal: "human:ada", Tenant: "local", Project: "evals", Dir: work, Workspace: work}
	if strings.HasPrefix(id, "git") {
		if out, err := exec.Command("git", "init", "-q", work).CombinedOutput(); err != nil {
			t.Skipf("git cannot be used: %v %s", err, out)
		}
	}
	packs := filepath.Join("..", "..", "examples", "packs")
	if e := r.Install(s, []string{filepath.Join(packs, "transit")}, true); e != nil {
		t.Fatal(e)
	}
	if e := r.Install(s, []string{filepath.Join(packs, id)}, true); e != nil {
		t.Fatal(e)
	}
	if e := r.Activate(s, []string{"transit", id}); e != nil {
		t.Fatal(e)
	}
	return r, s
}

func runEval(t *testing.T, r conformance.Runtime, s protocol.Session, id string, c evalCase) {
	t.Helper()
	members := map[string]any{"pack_id": id, "verb_key": c.Verb, "args": c.Args}
	if c.Confirm {
		members["confirm"] = true
	}
	envelope, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	got := r.Exec(t.Context(), s, envelope)
	var code protocol.Code
	if got.Error != nil {
		code = got.Error.Code
	}
	if got.OK != c.Expect.OK || code != c.Expect.Code {
		t.Fatalf("ok %t, %s (%v)", got.OK, code, got.Error)
	}
	if c.Expect.Result != nil {
		want, _ := jsondoc.Parse(c.Expect.Result, jsondoc.Limits{})
		is, _ := jsondoc.Parse(got.Result, jsondoc.Limits{})
		if !want.Equal(is) {
			t.Errorf("got %s", got.Result)
		}
	}
	if c.Expect.Match == "" {
		return
	}
	query, err := gojq.Parse(c.Expect.Match)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(got.Result, &value); err != nil {
		t.Fatal(err)
	}
	if v, _ := query.Run(value).Next(); v != true {
		t.Errorf("%s gives %v for %s", c.Expect.Match, v, got.Result)
	}
}
