package sandbox_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"hcpx/internal/sandbox"
	"hcpx/internal/sandbox/sandboxtest"
)

// count is how many entries a directory of /proc/self has.
func count(t *testing.T, dir string) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/" + dir)
	must(t, err)
	return len(entries)
}

// settled waits until threads that are on their way out have gone.
func settled(t *testing.T, dir string, most int) int {
	t.Helper()
	n := count(t, dir)
	for end := time.Now().Add(10 * time.Second); n > most && time.Now().Before(end); n = count(t, dir) {
		runtime.GC()
		time.Sleep(10 * time.Millisecond)
	}
	return n
}

// §10.2: a kept launcher serves only its own policy, and only while its files are the same.
func Test_10_2_reuse_is_by_policy(t *testing.T) {
	s := newScene(t)
	kept := confining(t, sandbox.Options{Scratch: filepath.Dir(s.land) + "/kept", Keep: 4})
	private := func(change func(*sandbox.Spec)) string {
		spec := s.spec("")
		spec.Program, spec.Args = tool(t, "sh"), []string{"-c", "echo $HOME; : >$HOME/left"}
		change(spec)
		return string(sandboxtest.Exec(t, kept, spec).Stdout)
	}
	first := private(func(*sandbox.Spec) {})
	if again := private(func(p *sandbox.Spec) { p.Stdin = []byte("x") }); again != first {
		t.Errorf("the same policy got another launcher: %s %s", first, again)
	}
	if other := private(func(p *sandbox.Spec) { p.Read = nil }); other == first {
		t.Error("another policy got the same launcher")
	}
	must(t, os.Rename(s.readable, s.readable+".old"))
	must(t, os.Mkdir(s.readable, 0o755))
	if replaced := private(func(*sandbox.Spec) {}); replaced == first {
		t.Error("a replaced tree got the same launcher")
	}
}

// A launcher after a run that ended badly is as good as new.
func Test_6_9_reuse_after_timeout(t *testing.T) {
	s := newScene(t)
	kept := confining(t, sandbox.Options{Scratch: filepath.Dir(s.land) + "/kept", Keep: 1})
	spec := s.spec("bomb", "20")
	spec.Limits.Wall, spec.Limits.Grace = 300*time.Millisecond, 50*time.Millisecond
	if o := sandboxtest.Exec(t, kept, spec); !o.TimedOut {
		t.Fatalf("%+v", o)
	}
	for n := range 3 {
		if o := sandboxtest.Exec(t, kept, s.spec("nothing", strconv.Itoa(n))); o.Exit != 0 || o.Report.Killed != 0 {
			t.Errorf("%+v", o)
		}
	}
}

// A cancel that comes at any moment ends the run and leaves nothing.
func Test_6_9_cancel_at_any_moment(t *testing.T) {
	s := newScene(t)
	for n := range 12 {
		ctx, cancel := context.WithCancel(context.Background())
		box, refused := s.sandbox.Prepare(s.spec("bomb", "3"))
		if refused != nil {
			t.Fatal(refused)
		}
		time.AfterFunc(time.Duration(n)*time.Millisecond, cancel)
		if o, refused := box.Run(ctx); refused == nil && !o.Canceled {
			t.Errorf("%+v", o)
		}
		must(t, box.Close())
	}
	if left := processes(t, attackArg, "bomb"); len(left) > 0 {
		t.Errorf("survivors: %v", left)
	}
}
