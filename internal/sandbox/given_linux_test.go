package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hcpx/internal/sandbox"
	"hcpx/internal/sandbox/sandboxtest"
)

// §8.2: the child reads what it was given and can change nothing of it; a run beside it has its own alone.
func Test_8_2_WhatIsGivenIsReadAndNotChanged(t *testing.T) {
	s := newScene(t)
	names := []string{"cat", "rm", "mv", "chmod", "ln", "touch"}
	spec := s.spec("")
	spec.Program, spec.Args = tool(t, "sh"), []string{"-c", `cat "$KEY_FILE"
(echo x >"$KEY_FILE") 2>/dev/null && echo wrote
rm -f "$KEY_FILE" 2>/dev/null && echo removed
mv "$KEY_FILE" "$HOME/k" 2>/dev/null && echo moved
chmod 644 "$KEY_FILE" 2>/dev/null && echo opened
ln "$KEY_FILE" "$HOME/k" 2>/dev/null && echo linked
touch "${KEY_FILE%/*}/new" 2>/dev/null && echo made
cat "${KEY_FILE%/*/*/*}"/*/given/* 2>/dev/null
echo end`}
	for _, name := range names {
		spec.Uses = append(spec.Uses, tool(t, name))
	}
	spec.Files = []sandbox.File{{Env: "KEY_FILE", Content: []byte("given\n")}}
	beside := s.spec("")
	beside.Program, beside.Args = tool(t, "sh"), []string{"-c", ":"}
	beside.Files = []sandbox.File{{Env: "KEY_FILE", Content: []byte("of another run\n")}}
	box, refused := s.sandbox.Prepare(beside)
	if refused != nil {
		t.Fatal(refused)
	}
	defer box.Close()
	o := sandboxtest.Exec(t, s.sandbox, spec)
	if string(o.Stdout) != "given\nend\n" {
		t.Errorf("%s%s", o.Stdout, o.Stderr)
	}
}

// §8.2: a launcher that serves again gives each run its own files.
func Test_8_2_AKeptLauncherGivesAnew(t *testing.T) {
	s := confining(t, sandbox.Options{Scratch: t.TempDir() + "/scratch", Keep: 2})
	defer s.Close()
	for _, content := range []string{"first", "second", "third"} {
		spec := sandboxtest.Kind{}.Spec(t, "given", "KEY_FILE")
		spec.Files = []sandbox.File{{Env: "KEY_FILE", Content: []byte(content)}}
		if o := sandboxtest.Exec(t, s, spec); !strings.HasPrefix(string(o.Stdout), content+" -rw------- ") {
			t.Errorf("%s%s", o.Stdout, o.Stderr)
		}
	}
}

// §8.4: what a run was given is gone with the next run of anything, when the runtime was killed by a signal that it cannot
// answer: in a slot, in one that was thrown away half, and outside of the sandbox. What others hold stays.
func Test_8_4_AKilledRuntimesFilesAreSwept(t *testing.T) {
	scratch := t.TempDir() + "/scratch"
	s := confining(t, sandbox.Options{Scratch: scratch})
	self, err := os.Executable()
	must(t, err)
	for _, native := range []string{"given", "given-native"} {
		for range 2 { // two at once, so that one of them is not in the place that the next run takes
			c := exec.Command(self, hostArg, scratch, native)
			c.Stderr = os.Stderr
			must(t, c.Start())
			defer c.Wait()
			defer c.Process.Signal(syscall.SIGKILL)
		}
	}
	found := func() []string {
		all, err := filepath.Glob(scratch + "/*/given/KEY_FILE")
		must(t, err)
		return all
	}
	for until := time.Now().Add(20 * time.Second); len(found()) < 4; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%q were given", found())
		}
	}
	run := func(native bool) {
		spec := sandboxtest.Kind{Native: native}.Spec(t, "exit", "0")
		sandboxtest.Exec(t, s, spec)
	}
	run(false)
	run(true)
	if left := found(); len(left) != 4 {
		t.Errorf("what other runtimes hold was taken away: %q", left)
	}
	dead(t, self, scratch)
	run(false)
	if left := found(); len(left) != 4 {
		t.Errorf("after a kill -9 and another run: %q", left)
	}
	if left, err := filepath.Glob(scratch + "/*.left-*"); err != nil || len(left) > 0 {
		t.Errorf("%q are left, %v", left, err)
	}
}

// dead kills two more, and leaves a third that was thrown away and not removed.
func dead(t *testing.T, self, scratch string) {
	t.Helper()
	given := func() int {
		all, err := filepath.Glob(scratch + "/*/given/KEY_FILE")
		must(t, err)
		return len(all)
	}
	before := given()
	var both []*exec.Cmd
	for _, native := range []string{"given", "given-native"} {
		c := exec.Command(self, hostArg, scratch, native)
		must(t, c.Start())
		both = append(both, c)
	}
	for until := time.Now().Add(20 * time.Second); given() < before+2; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("nothing was given")
		}
	}
	for _, c := range both {
		must(t, c.Process.Kill())
		_ = c.Wait()
	}
	if given() != before+2 {
		t.Error("it is gone by itself, so that nothing is proved")
	}
	must(t, os.MkdirAll(scratch+"/77.left-abcd/given", 0o700))
	must(t, os.WriteFile(scratch+"/77.left-abcd/given/KEY_FILE", []byte("old"), 0o600))
}
