package sandbox_test

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"hcpx/internal/sandbox/sandboxtest"
)

// §10.2, §8.4: a runtime that crashes while it holds a credential leaves no core dump. The same program without a run
// leaves one, where this machine writes core dumps at all.
func Test_10_2_runtime_leaves_no_core_dump(t *testing.T) {
	if where, err := os.ReadFile("/proc/sys/kernel/core_pattern"); err == nil && strings.HasPrefix(string(where), "|") {
		t.Log("core dumps go to a program of this machine")
	}
	var limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_CORE, &limit))
	before := limit
	limit.Cur = limit.Max
	must(t, unix.Setrlimit(unix.RLIMIT_CORE, &limit))
	t.Cleanup(func() { must(t, unix.Setrlimit(unix.RLIMIT_CORE, &before)) })
	self, err := os.Executable()
	must(t, err)
	dumps := func(first string, args ...string) bool {
		c := exec.Command(self, args...)
		c.Dir, c.Env = t.TempDir(), append(os.Environ(), "GOTRACEBACK=crash")
		out, err := c.StdoutPipe()
		must(t, err)
		must(t, c.Start())
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != first {
			t.Errorf("%q %v", line, err)
		}
		must(t, c.Process.Signal(unix.SIGABRT))
		_ = c.Wait() // it was killed
		return c.ProcessState.Sys().(syscall.WaitStatus).CoreDump()
	}
	if !dumps("ready\n", sandboxtest.HelperArg, "sleep") {
		if limit.Max > 0 {
			t.Fatal("void: nothing leaves a core dump here")
		}
		t.Log("void here: the hard limit of core dumps is 0")
	}
	scratch := t.TempDir() + "/scratch"
	if dumps("prepared\n", hostArg, scratch, "core") {
		t.Error("the runtime left a core dump")
	}
}
