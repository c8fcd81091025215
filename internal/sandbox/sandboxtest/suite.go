// Package sandboxtest is the suite of §10 that every kind of sandbox passes: what a run gets (argv, environment,
// standard input, working directory), what it gives (exit, signal, output within its caps), how it ends
// (time limit, cancel, output cap, left-overs), and what is refused before anything runs.
//
// Nouns: Kind (how the suite makes Specs of one kind), Helper (the program that the suite runs: the test binary
// itself, started again). What only a confining kind promises is tested in the sandbox's own room.
package sandboxtest

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
)

// Kind is one kind of sandbox under test.
type Kind struct {
	// Open makes a sandbox whose private directories lie under scratch.
	Open func(t *testing.T, scratch string) sandbox.Sandbox
	// Native marks every Spec as native.
	Native bool
	// Contained says that left-overs in a session of their own die too.
	Contained bool
}

// program is the helper as a Program; its directory holds nothing else that a test reads.
func program(t *testing.T) sandbox.Program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return sandbox.Program{Name: "helper", Path: self}
}

// Spec is a Spec that runs one verb of the helper.
func (k Kind) Spec(t *testing.T, verb string, args ...string) *sandbox.Spec {
	t.Helper()
	return &sandbox.Spec{Program: program(t), Args: append([]string{HelperArg, verb}, args...), Native: k.Native,
		Network: sandbox.Network{Mode: "none"}, Limits: sandbox.Limits{Wall: 30 * time.Second, Grace: 300 * time.Millisecond}}
}

// Exec prepares, runs and closes; the run must be startable.
func Exec(t *testing.T, s sandbox.Sandbox, spec *sandbox.Spec) *sandbox.Outcome {
	t.Helper()
	return ExecContext(context.Background(), t, s, spec)
}

// ExecContext is Exec under a context.
func ExecContext(ctx context.Context, t *testing.T, s sandbox.Sandbox, spec *sandbox.Spec) *sandbox.Outcome {
	t.Helper()
	box, refused := s.Prepare(spec)
	if refused != nil {
		t.Fatalf("prepare: %v", refused)
	}
	defer func() {
		if err := box.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := box.Close(); err != nil {
			t.Errorf("second close: %v", err)
		}
	}()
	outcome, refused := box.Run(ctx)
	if refused != nil {
		t.Fatalf("run: %v", refused)
	}
	return outcome
}

// Run holds a kind to the contract.
func Run(t *testing.T, k Kind) {
	s := k.Open(t, filepath.Join(t.TempDir(), "scratch"))
	t.Run("gets", func(t *testing.T) { k.gets(t, s) })
	t.Run("gives", func(t *testing.T) { k.gives(t, s) })
	t.Run("ends", func(t *testing.T) { k.ends(t, s) })
	t.Run("refuses", func(t *testing.T) { k.refuses(t, s) })
	t.Run("private", func(t *testing.T) { k.private(t, s) })
	t.Run("§8.2 files", func(t *testing.T) { k.files(t, s) })
}

// gets is what the child receives.
func (k Kind) gets(t *testing.T, s sandbox.Sandbox) {
	t.Run("§3.3 argv arrives byte for byte", func(t *testing.T) {
		want := []string{"", "a b", "'\"`$(id)\\", "line\nbreak\t", "\x01\xff\xfe", "日本語 🎛", strings.Repeat("x", 100_000), "--", "-n", "*"}
		o := Exec(t, s, k.Spec(t, "raw", want...))
		if got := strings.Split(string(o.Stdout), "\x00"); !cmp.Equal(append(want, ""), got) {
			t.Error(cmp.Diff(append(want, ""), got))
		}
	})
	t.Run("§10.2 environment is built from nothing", func(t *testing.T) {
		t.Setenv("AMBIENT_SECRET", "must not arrive")
		spec := k.Spec(t, "env")
		spec.Env = []string{"ONE=1", "TOKEN=minted"}
		var got []string
		if err := json.Unmarshal(Exec(t, s, spec).Stdout, &got); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, entry := range got {
			name, _, _ := strings.Cut(entry, "=")
			names = append(names, name)
		}
		want := []string{"PATH", "HOME", "TMPDIR", "LANG", "TZ", "ONE", "TOKEN"}
		if runtime.GOOS != "windows" && !cmp.Equal(want, names) {
			t.Error(cmp.Diff(want, names))
		}
		if len(s.Environ(spec, "/home")) != len(want) {
			t.Errorf("plan would show %v", s.Environ(spec, "/home"))
		}
	})
	t.Run("§10.2 stdin is what is given and empty else", func(t *testing.T) {
		spec := k.Spec(t, "cat")
		if o := Exec(t, s, spec); len(o.Stdout) != 0 || o.Exit != 0 {
			t.Errorf("without stdin: %d bytes, exit %d", len(o.Stdout), o.Exit)
		}
		spec.Stdin = bytes.Repeat([]byte("0123456789"), 60_000)
		if o := Exec(t, s, spec); !bytes.Equal(o.Stdout, spec.Stdin) {
			t.Errorf("got %d bytes of %d", len(o.Stdout), len(spec.Stdin))
		}
		spec = k.Spec(t, "exit", "0")
		spec.Stdin = bytes.Repeat([]byte("x"), 8<<20) // nobody reads it
		if o := Exec(t, s, spec); o.Exit != 0 {
			t.Errorf("unread stdin: exit %d", o.Exit)
		}
	})
	t.Run("§10.2 working directory", func(t *testing.T) {
		land, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		sub := filepath.Join(land, "sub")
		if err := os.Mkdir(sub, 0o700); err != nil {
			t.Fatal(err)
		}
		spec := k.Spec(t, "pwd")
		spec.Write, spec.Dir = []string{land}, sub
		if o := Exec(t, s, spec); string(o.Stdout) != sub {
			t.Errorf("working directory %q, want %q; %s", o.Stdout, sub, o.Stderr)
		}
	})
}

// gives is what the run answers.
func (k Kind) gives(t *testing.T, s sandbox.Sandbox) {
	t.Run("§6.5 exit code", func(t *testing.T) {
		if o := Exec(t, s, k.Spec(t, "exit", "7")); o.Exit != 7 || o.Signal != "" || o.TimedOut {
			t.Errorf("%+v", o)
		}
	})
	t.Run("§6.3 signal", func(t *testing.T) {
		if o := Exec(t, s, k.Spec(t, "die")); runtime.GOOS != "windows" && (o.Exit != -1 || o.Signal != "SIGKILL" || o.TimedOut) {
			t.Errorf("%+v", o)
		}
	})
	t.Run("§6.5 stderr keeps its tail", func(t *testing.T) {
		o := Exec(t, s, k.Spec(t, "stderr", "1000000"))
		if o.StderrSize != 1_000_003 || len(o.Stderr) != 64<<10 || !bytes.HasSuffix(o.Stderr, []byte("xend")) {
			t.Errorf("%d bytes of %d", len(o.Stderr), o.StderrSize)
		}
	})
	t.Run("§6.5 output beyond the cap ends the run", func(t *testing.T) {
		spec := k.Spec(t, "spew")
		spec.Limits.Output = 100_000
		if o := Exec(t, s, spec); !o.Overflow || len(o.Stdout) != 100_000 || o.TimedOut {
			t.Errorf("overflow %v, %d bytes", o.Overflow, len(o.Stdout))
		}
	})
	t.Run("§6.5 output of exactly the cap is whole", func(t *testing.T) {
		spec := k.Spec(t, "cat")
		spec.Stdin, spec.Limits.Output = make([]byte, 100_000), 100_000
		if o := Exec(t, s, spec); o.Overflow || len(o.Stdout) != 100_000 {
			t.Errorf("overflow %v, %d bytes", o.Overflow, len(o.Stdout))
		}
	})
	t.Run("§6.5 one byte more than the cap is too much", func(t *testing.T) {
		spec := k.Spec(t, "cat")
		spec.Stdin, spec.Limits.Output = make([]byte, 100_001), 100_000
		if o := Exec(t, s, spec); !o.Overflow || len(o.Stdout) != 100_000 {
			t.Errorf("overflow %v, %d bytes", o.Overflow, len(o.Stdout))
		}
	})
	t.Run("§6.9 one that closes its files early ends by itself", func(t *testing.T) {
		spec := k.Spec(t, "close")
		spec.Stdin = make([]byte, 1<<20)
		if o := Exec(t, s, spec); o.Exit != 3 || o.Signal != "" || o.TimedOut {
			t.Errorf("%+v", o)
		}
	})
	t.Run("§10.2 a declared read under ~ stands in HOME", func(t *testing.T) {
		target := filepath.Join(t.TempDir(), "rc")
		if err := os.WriteFile(target, []byte("content"), 0o600); err != nil {
			t.Fatal(err)
		}
		spec := k.Spec(t, "home", ".config/tool/rc")
		spec.Links = []sandbox.Link{{Target: target, HomeRel: ".config/tool/rc"}}
		if o := Exec(t, s, spec); string(o.Stdout) != "content" {
			t.Errorf("%q %s", o.Stdout, o.Stderr)
		}
	})
	t.Run("§10.4 what is not enforced is reported", func(t *testing.T) {
		o := Exec(t, s, k.Spec(t, "exit", "0"))
		degraded := " " + strings.Join(o.Report.Degraded, " ") + " "
		if o.Report.Backend == "" || !strings.Contains(degraded, " memory ") || !strings.Contains(degraded, " processes ") {
			t.Errorf("%+v", o.Report)
		}
		if k.Native != strings.Contains(degraded, " files ") {
			t.Errorf("degraded: %s", degraded)
		}
	})
}

// ends is how runs end that do not end by themselves (§6.9).
func (k Kind) ends(t *testing.T, s sandbox.Sandbox) {
	t.Run("§6.9 a time limit ends one that ignores SIGTERM", func(t *testing.T) {
		spec, o := k.Spec(t, "stubborn"), &sandbox.Outcome{}
		// On a busy machine the helper may not have begun to ignore the signal: give it more time then.
		for wall := 300 * time.Millisecond; len(o.Stdout) == 0 && wall < 30*time.Second; wall *= 2 {
			spec.Limits.Wall = wall
			o = Exec(t, s, spec)
		}
		if !o.TimedOut || o.Signal != "SIGKILL" && runtime.GOOS != "windows" || o.Duration > spec.Limits.Wall+3*time.Second {
			t.Errorf("%+v", o)
		}
	})
	t.Run("§6.9 SIGTERM comes first", func(t *testing.T) {
		spec := k.Spec(t, "sleep")
		spec.Limits.Wall, spec.Limits.Grace = 300*time.Millisecond, 20*time.Second
		if o := Exec(t, s, spec); runtime.GOOS != "windows" && (!o.TimedOut || o.Signal != "SIGTERM") {
			t.Errorf("%+v", o)
		}
	})
	t.Run("§6.9 cancel is like a time limit", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(100*time.Millisecond, cancel)
		if o := ExecContext(ctx, t, s, k.Spec(t, "sleep")); !o.Canceled || o.TimedOut {
			t.Errorf("%+v", o)
		}
	})
	hows := []string{"near"}
	if k.Contained {
		hows = append(hows, "away", "daemon")
	}
	for _, how := range hows {
		t.Run("§6.9 left-overs die: "+how, func(t *testing.T) {
			o := Exec(t, s, k.Spec(t, "leave", how))
			if o.Exit != 0 || o.Report.Killed != 1 || o.TimedOut {
				t.Errorf("%+v\n%s", o, o.Stderr)
			}
		})
	}
}

// refuses is what never starts (§6.3 step 8).
func (k Kind) refuses(t *testing.T, s sandbox.Sandbox) {
	missing := filepath.Join(t.TempDir(), "missing")
	cases := map[string]struct {
		change func(*sandbox.Spec)
		want   protocol.Code
	}{
		"§10.2 a program that is not there": {func(s *sandbox.Spec) { s.Program.Path = missing }, protocol.BinNotAllowed},
		"§10.2 a used program that is not there": {func(s *sandbox.Spec) {
			s.Uses = []sandbox.Program{{Name: "other", Path: missing}}
		}, protocol.BinNotAllowed},
		"§10.2 a link out of HOME": {func(s *sandbox.Spec) {
			s.Links = []sandbox.Link{{Target: s.Program.Path, HomeRel: "../x"}}
		}, protocol.JailEscape},
		"§10.2 a working directory that is not there": {func(s *sandbox.Spec) { s.Dir = missing }, protocol.JailEscape},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			spec := k.Spec(t, "exit", "0")
			c.change(spec)
			if got := s.Check(spec); got == nil || got.Code != c.want || got.Message == "" {
				t.Errorf("check: %v", got)
			}
			if _, got := s.Prepare(spec); got == nil || got.Code != c.want {
				t.Errorf("prepare: %v", got)
			}
		})
	}
	t.Run("a prepared run runs once", func(t *testing.T) {
		box, refused := s.Prepare(k.Spec(t, "exit", "0"))
		if refused != nil {
			t.Fatal(refused)
		}
		defer box.Close()
		if _, refused := box.Run(context.Background()); refused != nil {
			t.Fatal(refused)
		}
		if _, refused := box.Run(context.Background()); refused == nil {
			t.Error("it ran twice")
		}
	})
	t.Run("a cancelled context starts nothing", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		box, refused := s.Prepare(k.Spec(t, "exit", "0"))
		if refused != nil {
			t.Fatal(refused)
		}
		defer box.Close()
		if _, refused := box.Run(ctx); refused == nil || refused.Code != protocol.Canceled {
			t.Errorf("%v", refused)
		}
	})
}

// private is the run's own directory: writable, and nothing in it is there for the next run.
func (k Kind) private(t *testing.T, s sandbox.Sandbox) {
	for _, name := range []string{"HOME", "TMPDIR"} {
		for range 2 {
			o := Exec(t, s, k.Spec(t, "own", name))
			if o.Exit != 0 || string(o.Stdout) != "empty" {
				t.Errorf("§10.2 %s: %s%s", name, o.Stdout, o.Stderr)
			}
		}
	}
}

// files are what one child alone may read: there while it runs, by the path in its variable, and gone afterwards.
func (k Kind) files(t *testing.T, s sandbox.Sandbox) {
	for _, content := range []string{"the first\n", "another, and longer\n", ""} {
		spec := k.Spec(t, "given", "KEY_FILE")
		spec.Files = []sandbox.File{{Env: "OTHER_FILE", Content: []byte("other")}, {Env: "KEY_FILE", Content: []byte(content)}}
		o := Exec(t, s, spec)
		rest, found := strings.CutPrefix(string(o.Stdout), content+" ")
		mode, path, _ := strings.Cut(rest, " ")
		if o.Exit != 0 || !found || filepath.Base(path) != "KEY_FILE" || runtime.GOOS != "windows" && mode != "-rw-------" {
			t.Fatalf("%s%s", o.Stdout, o.Stderr)
		}
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%s outlived its run: %v", path, err)
		}
		if !strings.Contains(strings.Join(s.Environ(spec, "/home"), " "), " OTHER_FILE=/home/given/OTHER_FILE KEY_FILE=/home/given/KEY_FILE") {
			t.Errorf("plan would show %v", s.Environ(spec, "/home"))
		}
	}
	if o := Exec(t, s, k.Spec(t, "given", "KEY_FILE")); o.Exit == 0 {
		t.Errorf("a run that was given nothing has %s", o.Stdout)
	}
	for _, bad := range []string{"", ".", "..", "a/b", "../a"} {
		spec := k.Spec(t, "exit", "0")
		spec.Files = []sandbox.File{{Env: bad, Content: []byte("x")}}
		if box, refused := s.Prepare(spec); refused == nil {
			t.Errorf("a file named %q was made: %v", bad, box.Close())
		}
	}
}
