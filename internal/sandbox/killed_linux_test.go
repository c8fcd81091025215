package sandbox_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"hcpx/internal/sandbox"
	"hcpx/internal/sandbox/redteamtest"
	"hcpx/internal/sandbox/sandboxtest"
)

// hostArg turns the test binary into a runtime of its own, whose command sleeps.
const hostArg = "sandbox-host"

func host() {
	if len(os.Args) != 4 || os.Args[1] != hostArg {
		return
	}
	s := sandbox.New(sandbox.Options{Scratch: os.Args[2], Kernel: ofHost(), Accept: sandbox.Accepted()})
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	program := sandbox.Program{Name: "sleeper", Path: self}
	if os.Args[3] == "often" {
		hostOften(s, program)
	}
	args := []string{sandboxtest.HelperArg, "sleep", os.Args[3]}
	var files []sandbox.File
	if strings.HasPrefix(os.Args[3], "given") {
		files = []sandbox.File{{Env: "KEY_FILE", Content: []byte("a secret")}}
	}
	if strings.HasPrefix(os.Args[3], "headless") {
		args = []string{familyArg, "headless-children", "2", "1h", os.Args[3]}
	}
	box, refused := s.Prepare(&sandbox.Spec{Program: program, Args: args, Limits: sandbox.Limits{Wall: time.Hour}, Files: files, Native: os.Args[3] == "given-native"})
	if refused != nil {
		fmt.Fprintln(os.Stderr, refused)
		os.Exit(1)
	}
	fmt.Println("prepared")
	if _, refused := box.Run(context.Background()); refused != nil {
		fmt.Fprintln(os.Stderr, refused)
	}
	os.Exit(0)
}

// hostOften makes many runs, each of which must find its private directory empty, and leaves dirt in it.
func hostOften(s *sandbox.System, program sandbox.Program) {
	for range 15 {
		box, refused := s.Prepare(&sandbox.Spec{Program: program, Args: []string{sandboxtest.HelperArg, "own", "HOME"}})
		if refused != nil {
			fmt.Fprintln(os.Stderr, refused)
			os.Exit(1)
		}
		o, refused := box.Run(context.Background())
		if err := box.Close(); refused != nil || err != nil || o.Exit != 0 || string(o.Stdout) != "empty" {
			fmt.Fprintf(os.Stderr, "%v %v %+v\n", refused, err, o)
			os.Exit(1)
		}
	}
	os.Exit(0)
}

// §10.2: several runtimes share one place for private directories, and no two runs share a directory.
func Test_10_2_runtimes_at_once(t *testing.T) {
	scratch := t.TempDir() + "/scratch"
	confining(t, sandbox.Options{Scratch: scratch})
	self, err := os.Executable()
	must(t, err)
	var all []*exec.Cmd
	for range 4 {
		c := exec.Command(self, hostArg, scratch, "often")
		c.Stderr = os.Stderr
		must(t, c.Start())
		all = append(all, c)
	}
	for _, c := range all {
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
	slots, err := os.ReadDir(scratch)
	must(t, err)
	if len(slots) > len(all) {
		t.Errorf("left: %v", slots)
	}
	for _, slot := range slots {
		if info, err := slot.Info(); err != nil || info.Mode() != os.ModeDir|0o700 {
			t.Errorf("%s: %v %v", slot.Name(), info.Mode(), err)
		}
	}
}

// §6.9: when the runtime itself is killed, the command dies with it, and the next run gets a directory of its
// own.
func Test_6_9_runtime_killed(t *testing.T) {
	scratch := t.TempDir() + "/scratch"
	s := confining(t, sandbox.Options{Scratch: scratch})
	self, err := os.Executable()
	must(t, err)
	mark := "sleeper-" + strings.ReplaceAll(t.TempDir(), "/", "-")
	runtime := exec.Command(self, hostArg, scratch, mark)
	runtime.Stderr = os.Stderr
	out, err := runtime.StdoutPipe()
	must(t, err)
	must(t, runtime.Start())
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "prepared\n" {
		t.Fatalf("%q %v", line, err)
	}
	running := func() int { return len(processes(t, sandboxtest.HelperArg, "sleep", mark)) }
	await(t, "the command begins", func() bool { return running() == 1 })
	must(t, runtime.Process.Kill())
	_ = runtime.Wait() // it was killed
	await(t, "the command dies", func() bool { return running() == 0 })
	if o := sandboxtest.Exec(t, s, (sandboxtest.Kind{}).Spec(t, "own", "HOME")); string(o.Stdout) != "empty" {
		t.Errorf("%s%s", o.Stdout, o.Stderr)
	}
	entries, err := os.ReadDir(scratch)
	must(t, err)
	if len(entries) != 1 {
		t.Errorf("left: %v", entries)
	}
}

// §6.9, §10.5: in namespaces nothing outlives a killed runtime, whatever it did against that.
func Test_10_5_runtime_killed_in_namespaces(t *testing.T) {
	redteamtest.Users(t, func(t *testing.T, place string) {
		t.Setenv(hostVar, "namespace")
		self, err := os.Executable()
		must(t, err)
		mark := "headless-" + strings.ReplaceAll(place, "/", "-")
		runtime := exec.Command(self, hostArg, place+"/scratch", mark)
		runtime.Stderr = os.Stderr
		must(t, runtime.Start())
		await(t, "the processes begin", func() bool { return len(processes(t, familyArg, "headless", mark)) == 2 })
		must(t, runtime.Process.Kill())
		_ = runtime.Wait() // it was killed
		await(t, "everything dies", func() bool {
			return len(processes(t, familyArg, "headless", mark))+len(processes(t, familyArg, "headless-children", "2", "1h", mark)) == 0
		})
	})
}

func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}
