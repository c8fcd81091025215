package sandbox_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
	"hcpx/internal/sandbox/redteamtest"
	"hcpx/internal/sandbox/sandboxtest"
)

// proving makes a System with a canary of this test binary, which begins with Inner.
func proving(t testing.TB, change func(*sandbox.Options)) *sandbox.System {
	t.Helper()
	dir := t.TempDir()
	o := sandbox.Options{Scratch: filepath.Join(dir, "run"),
		Canary: &sandbox.Canary{Dir: filepath.Join(dir, "canary"), Proof: filepath.Join(dir, "canary", "passed")}}
	if change != nil {
		change(&o)
	}
	return confining(t, o)
}

// nothing is a Spec that every sandbox takes.
func nothing(t testing.TB) *sandbox.Spec {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &sandbox.Spec{Program: sandbox.Program{Name: "helper", Path: self}, Args: []string{sandboxtest.HelperArg, "exit", "0"}}
}

// firstRun says how a first run is answered.
func firstRun(t testing.TB, s *sandbox.System) *protocol.Error {
	t.Helper()
	box, refusal := s.Prepare(nothing(t))
	if refusal != nil {
		return refusal
	}
	if err := box.Close(); err != nil {
		t.Error(err)
	}
	return nil
}

// §10.5: a hole in the sandbox is found and named; without one the canary can do nothing, on every kind of kernel;
// without any sandbox every attempt works. As root and as an ordinary user.
func Test_10_5_canary_finds_each_hole(t *testing.T) {
	redteamtest.Users(t, func(t *testing.T, _ string) {
		t.Run("no hole", noHole)
		t.Run("holes", holes)
		t.Run("no sandbox", noSandbox)
	})
}

// canaryKernels are those that are confined in different ways; nil is this machine's own.
func canaryKernels() map[string]*sandbox.Kernel {
	band := able()
	band.ABI, band.Errata = 4, 0
	return map[string]*sandbox.Kernel{"": nil, "ABI 4": &band, "namespaces": roomy(0), "namespaces and ABI 2": roomy(2)}
}

func noHole(t *testing.T) {
	for name, kernel := range canaryKernels() {
		t.Run(name, func(t *testing.T) {
			s := proving(t, func(o *sandbox.Options) { o.Kernel = kernel })
			if worked, undecided, err := sandbox.Fly(s, false); err != nil || len(worked)+len(undecided) > 0 {
				t.Errorf("worked %v, undecided %v: %v", worked, undecided, err)
			}
		})
	}
}

func holes(t *testing.T) {
	for _, x := range sandbox.Sabotages() {
		t.Run(x.Name, func(t *testing.T) {
			s := proving(t, nil)
			x.Make(t, s)
			worked, undecided, err := sandbox.Fly(s, false)
			if err != nil || !slices.Equal(worked, x.Worked) || len(undecided) > 0 {
				t.Errorf("worked %v, want %v, undecided %v: %v", worked, x.Worked, undecided, err)
			}
		})
	}
}

func noSandbox(t *testing.T) {
	s := proving(t, nil)
	was, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	must(t, err)
	must(t, unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)) // an earlier run of this process closed its memory
	defer func() { must(t, unix.Prctl(unix.PR_SET_DUMPABLE, uintptr(was), 0, 0, 0)) }()
	worked, undecided, refusal := sandbox.Fly(s, true)
	want := sandbox.Attempts()
	if scope, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil && string(scope) != "0\n" && os.Geteuid() != 0 {
		want = slices.DeleteFunc(want, func(name string) bool { return name == "memory" })
	}
	if refusal != nil || !slices.Equal(worked, want) || len(undecided) > 0 {
		t.Errorf("worked %v, want %v, undecided %v: %v", worked, want, undecided, refusal)
	}
}

// §10.5: what the canary found refuses every confined command with its rule, and no native one; nothing is kept.
func Test_10_5_a_failed_canary_refuses(t *testing.T) {
	s := proving(t, nil)
	sandbox.Sabotages()[0].Make(t, s)
	for range 2 {
		refusal := firstRun(t, s)
		if refusal == nil || refusal.Code != protocol.SandboxUnavailable || refusal.Details["rule"] != "canary" || refusal.Hint != "hcpx doctor" ||
			fmt.Sprint(refusal.Details["worked"]) != "[read]" || !strings.Contains(refusal.Message, "read") {
			t.Fatalf("%+v", refusal)
		}
	}
	if row := s.Prove(context.Background()); row.Name != "canary" || row.State != "missing" || !strings.Contains(row.Detail, "read") {
		t.Errorf("%+v", row)
	}
	spec := nothing(t)
	spec.Native = true
	if o := sandboxtest.Exec(t, s, spec); o.Exit != 0 {
		t.Errorf("%+v", o)
	}
	if refusal := s.Check(nothing(t)); refusal != nil {
		t.Errorf("looking asks the canary: %v", refusal)
	}
}

// §10.5: an answer that does not come is no proof.
func Test_10_5_a_canary_without_answer_refuses(t *testing.T) {
	for name, change := range map[string]func(*sandbox.Options){
		"a program that knows nothing of it": func(o *sandbox.Options) { o.Canary.Program = tool(t, "true").Path },
		"a program that fails":               func(o *sandbox.Options) { o.Canary.Program = tool(t, "false").Path },
		"no program":                         func(o *sandbox.Options) { o.Canary.Program = "/nonexistent" },
		"no directory":                       func(o *sandbox.Options) { o.Canary.Dir = "/proc/self/canary" },
		"a directory by a relative path":     func(o *sandbox.Options) { o.Canary.Dir = "canary" },
		"a directory that others may read": func(o *sandbox.Options) {
			must(t, os.Mkdir(o.Canary.Dir, 0o755))
			must(t, os.Chmod(o.Canary.Dir, 0o755))
		},
	} {
		t.Run(name, func(t *testing.T) {
			if refusal := firstRun(t, proving(t, change)); refusal == nil || refusal.Code != protocol.SandboxUnavailable || refusal.Details["rule"] != "canary" {
				t.Errorf("%v", refusal)
			}
		})
	}
}

// §10.5: a proof is believed only when it is whole, this user's alone, and of this machine, program and kernel.
func Test_10_5_proof_is_kept_and_doubted(t *testing.T) {
	first := proving(t, nil)
	if row := canaryRow(t, first); row.State != "missing" {
		t.Errorf("before any run: %+v", row)
	}
	if refusal := firstRun(t, first); refusal != nil {
		t.Fatal(refusal)
	}
	canary := sandbox.CanaryOf(first)
	proof, err := os.ReadFile(canary.Proof)
	must(t, err)
	left, err := os.ReadDir(canary.Dir)
	if err != nil || len(left) != 1 {
		t.Errorf("%v is left: %v", left, err)
	}
	for name, spoil := range map[string]func(t *testing.T, at string){
		"":           func(*testing.T, string) {},
		"another":    func(t *testing.T, at string) { must(t, os.WriteFile(at, bytes.ToUpper(proof), 0o600)) },
		"half of it": func(t *testing.T, at string) { must(t, os.WriteFile(at, proof[:len(proof)/2], 0o600)) },
		"more":       func(t *testing.T, at string) { must(t, os.WriteFile(at, append(proof, '\n'), 0o600)) },
		"nothing":    func(t *testing.T, at string) { must(t, os.Truncate(at, 0)) },
		"gone":       func(t *testing.T, at string) { must(t, os.Remove(at)) },
		"readable":   func(t *testing.T, at string) { must(t, os.Chmod(at, 0o644)) },
		"writable":   func(t *testing.T, at string) { must(t, os.Chmod(at, 0o602)) },
		"a link": func(t *testing.T, at string) {
			must(t, os.Rename(at, at+".real"))
			must(t, os.Symlink(at+".real", at))
		},
		"a fifo": func(t *testing.T, at string) {
			must(t, os.Remove(at))
			must(t, unix.Mkfifo(at, 0o600))
		},
		"another boot": func(t *testing.T, at string) {
			lines := strings.SplitAfter(string(proof), "\n")
			lines[1] = "boot " + strings.Repeat("0", 36) + "\n"
			must(t, os.WriteFile(at, []byte(strings.Join(lines, "")), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			at := filepath.Join(t.TempDir(), "passed")
			must(t, os.WriteFile(at, proof, 0o600))
			spoil(t, at)
			s := proving(t, func(o *sandbox.Options) { o.Canary.Proof = at; o.Canary.ReadOnly = true })
			sandbox.Sabotages()[0].Make(t, s) // a canary that flies is seen by what it finds
			if flew := firstRun(t, s) != nil; flew != (name != "") {
				t.Errorf("it flew: %v", flew)
			}
		})
	}
}

// §10.5: where a proof can't be written, or nobody wants one, each process proves the sandbox for itself.
func Test_10_5_a_proof_that_cannot_be_kept(t *testing.T) {
	for name, change := range map[string]func(*sandbox.Options){
		"no directory for it": func(o *sandbox.Options) { o.Canary.Proof = "/proc/self/passed" },
		"not wanted":          func(o *sandbox.Options) { o.Canary.Proof = "" },
		"only read":           func(o *sandbox.Options) { o.Canary.ReadOnly = true },
	} {
		t.Run(name, func(t *testing.T) {
			s := proving(t, change)
			if refusal := firstRun(t, s); refusal != nil {
				t.Error(refusal)
			}
			if row := canaryRow(t, s); row.State != "enforced" {
				t.Errorf("%+v", row)
			}
			if left, err := os.ReadDir(sandbox.CanaryOf(s).Dir); err != nil || len(left) != 0 {
				t.Errorf("%v is left: %v", left, err)
			}
		})
	}
}

func canaryRow(t *testing.T, s *sandbox.System) sandbox.Rule {
	t.Helper()
	for _, row := range s.Facts().Rules {
		if row.Name == "canary" {
			return row
		}
	}
	t.Fatal("the table has no canary")
	return sandbox.Rule{}
}
