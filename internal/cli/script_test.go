package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"hcpx/internal/jq"
	"hcpx/internal/jq/worker"
	"hcpx/internal/jsondoc"
	"hcpx/internal/sandbox"
)

// The scripts run the real program, as a process of its own, in a home of their own.
func TestMain(m *testing.M) {
	if code, ok := sandbox.Inner(os.Args); ok {
		os.Exit(code)
	}
	testscript.Main(m, map[string]func(){
		"hcpx": func() { os.Exit(scripted(nil)) },
		"hcpxd": func() { // beside hcpx: what evaluates expressions, and the demo
			code, ok := worker.Stage(os.Args, jq.New(), os.Stdin, os.Stdout)
			if !ok {
				code = scripted(&Daemon{Demo: Demo})
			}
			os.Exit(code)
		},
	})
}

// scripted is a program of the scripts.
func scripted(parts *Daemon) int {
	env := System()
	if env.Getenv("ANCESTORS") == "" {
		env.Parent = 0 // whoever runs the tests, an agent too, is no part of them
	}
	env.Managed, env.Daemon = env.Getenv("MANAGED"), parts
	return Main(context.Background(), env)
}

func TestScripts(t *testing.T) {
	examples, err := filepath.Abs(filepath.Join("..", "..", "examples", "packs"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts: ", err)
	}
	if testing.Short() { // the race detector's run: most of them take the same ways through the code
		for i := range len(files) / 3 {
			files[i] = files[3*i]
		}
		files = files[:len(files)/3]
	}
	picture, err := newPictures()
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Files:               files,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(e *testscript.Env) error {
			store := filepath.Join(e.WorkDir, "store")
			if err := os.Mkdir(store, 0o700); err != nil {
				return err
			}
			if err := os.Mkdir(filepath.Join(e.WorkDir, "home"), 0o700); err != nil {
				return err
			}
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("HCP_HOME", store)
			e.Setenv("HCP_PRINCIPAL", "human:ada")
			e.Setenv("PACKS", examples)
			e.Setenv("MANAGED", filepath.Join(e.WorkDir, "managed.toml"))
			return os.WriteFile(filepath.Join(store, "config.toml"), []byte("[identity]\nagents = \"trust-flags\"\n"), 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "answer": answerIs, "tree": treeIs, "removeall": removeAllCmd, "machinezone": machineZone, "pictured": picture.pictured,
		},
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "sandbox":
				return sandboxWorks(), nil
			case "landlock":
				return sandbox.New(sandbox.Options{}).Facts().Backend == "landlock", nil
			}
			return false, errors.New("unknown condition " + cond)
		},
	})
}

// exits CODE COMMAND ARGS… runs a command and demands its exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var left *exec.ExitError
		if !errors.As(err, &left) {
			ts.Fatalf("%v", err)
		}
		got = left.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit %d, want %d", got, want)
	}
}

// answer POINTER [VALUE] looks into the one JSON value on stdout: a string is compared as its text, other
// values as JSON; without VALUE it only must be there; ! demands that it is not.
func answerIs(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: [!] answer POINTER [VALUE]")
	}
	root, faults := jsondoc.Parse([]byte(ts.ReadFile("stdout")), jsondoc.Limits{Bytes: 16 << 20})
	if len(faults) > 0 {
		ts.Fatalf("stdout is not one JSON value: %v", faults)
	}
	n := root.Lookup(args[0])
	ok := n != nil
	shown := "nothing"
	if ok {
		shown = string(n.Append(nil))
		if len(args) == 2 {
			ok = shown == args[1] || n.Kind == jsondoc.String && n.Text == args[1]
		}
	}
	if ok == neg {
		ts.Fatalf("%s is %s", args[0], shown)
	}
}

// tree DIR NAMES… demands that a directory holds exactly these entries.
func treeIs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: tree DIR NAMES…")
	}
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	ts.Check(err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got, want := strings.Join(names, " "), strings.Join(args[1:], " "); got != want {
		ts.Fatalf("%s holds %q, want %q", args[0], got, want)
	}
}

func removeAllCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: removeall DIR")
	}
	ts.Check(removeTree(ts.MkAbs(args[0])))
}

// machinezone demands that stdout is this machine's time zone, as TZ names one: /etc/localtime by its name among the zones,
// the file itself where it has none, UTC where there is no file.
func machineZone(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: machinezone")
	}
	want := ":/etc/localtime"
	if target, err := os.Readlink("/etc/localtime"); err == nil && strings.Contains(target, "/zoneinfo/") {
		want = target[strings.Index(target, "/zoneinfo/")+len("/zoneinfo/"):]
	} else if _, err := os.Stat("/etc/localtime"); err != nil {
		want = "UTC"
	}
	if got := strings.TrimSpace(ts.ReadFile("stdout")); got != want {
		ts.Fatalf("TZ is %q, want %q", got, want)
	}
}

// sandboxWorks says whether the kernel can confine here; without it no wrapped program runs.
func sandboxWorks() bool { return sandbox.New(sandbox.Options{}).Facts().Backend != "" }
