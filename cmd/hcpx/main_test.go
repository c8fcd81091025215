package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hcpx/internal/jq"
	"hcpx/internal/jq/worker"
	"hcpx/internal/learn"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
	"hcpx/internal/sandbox/redteamtest"
)

// asProgram makes this test binary the program itself.
const asProgram = "HCPX_TEST_RUN"

func TestMain(m *testing.M) {
	if code, ok := worker.Stage(os.Args, jq.New(), os.Stdin, os.Stdout); ok {
		os.Exit(code)
	}
	redteamtest.Attacker()
	if code, ok := sandbox.Inner(os.Args); ok {
		os.Exit(code)
	}
	if code, ok := learn.Stage(os.Args); ok {
		os.Exit(code)
	}
	if os.Getenv(asProgram) != "" {
		os.Exit(run())
	}
	os.Exit(besideItself(m.Run))
}

// besideItself puts this test binary beside itself as the hcpxd that the program looks for there. The copy that another user
// runs lies where that user may not write, and what it runs has no expressions.
func besideItself(tests func() int) int {
	self, err := os.Executable()
	if err == nil {
		path := filepath.Join(filepath.Dir(self), "hcpxd")
		if err = os.Symlink(self, path); err == nil {
			defer os.Remove(path)
		}
	}
	if err != nil && !errors.Is(err, os.ErrExist) && !errors.Is(err, os.ErrPermission) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return tests()
}

// home is a store with one pack, whose command starts a process in a session of its own and then waits.
type home struct {
	t   *testing.T
	dir string
}

func newHome(t *testing.T) home {
	t.Helper()
	h := home{t, t.TempDir()}
	for name, text := range map[string]string{
		"linger/surface.json": `{"hcp":{"version":"1.1"},"id":"linger","version":"1.0.0","summary":"Wait for a while.","adapter":"wrap",
			"wrap":{"bin":"./linger.sh","uses":["sh","sleep","setsid"]},
			"verbs":{"wait":{"summary":"Wait.","args":{"type":"object","properties":{"seconds":{"type":"string"}},"required":["seconds"],"additionalProperties":false},
			"argv":["{seconds}"],"output":"text","examples":[{"args":{"seconds":"1"}}]}}}`,
		"linger/policy.json": `{"surface_id":"linger","verbs":{"wait":{"operation":"read","privacy":{"land":"personal"}}}}`,
		"linger/HARNESS.md":  "# Linger\n\nWaits for a while.\n\n`hcpx exec linger wait`\n",
		"store/config.toml":  "[identity]\nagents = \"trust-flags\"\n", // whoever runs the tests, an agent too, is no part of them
		"linger/linger.sh":   "#!/bin/sh\nsetsid sleep \"$1\" &\ntrap '' TERM\nsleep \"$1\"\nsleep \"$1\"\n",
	} {
		path := filepath.Join(h.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := h.command("install", "linger", "--allow-bin", "--json").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if out, err := h.command("activate", "linger").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	return h
}

func (h home) command(args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	c := exec.Command(self, args...)
	c.Dir = h.dir
	c.Env = []string{asProgram + "=1", "HOME=" + h.dir, "HCP_HOME=" + filepath.Join(h.dir, "store"), "HCP_PRINCIPAL=human:ada", "PATH=" + os.Getenv("PATH")}
	return c
}

// §6.9: a signal during a run leaves nothing of it alive, however it was started and whatever it ignores, and the
// answer is one envelope.
func Test_6_9_ASignalTakesTheWholeTree(t *testing.T) {
	h := newHome(t)
	for i, sig := range heard() {
		t.Run(sig.String(), func(t *testing.T) {
			mark := fmt.Sprintf("%d.%d", 100000+os.Getpid(), i)
			c := h.command("exec", "linger", "wait", "--json", "--", "seconds="+mark)
			var out, errs bytes.Buffer
			c.Stdout, c.Stderr = &out, &errs
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			await(t, func() bool { return sleeping(t, mark) == 2 }, func() string { return out.String() + errs.String() })
			if err := c.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			canceled(t, c, &out)
			if n := sleeping(t, mark); n != 0 {
				t.Errorf("%d processes survive", n)
			}
		})
	}
}

// heard are the signals that end a run. A hang-up that whoever started the tests ignores, as nohup does, is none.
func heard() []syscall.Signal {
	list := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT}
	if !signal.Ignored(syscall.SIGHUP) {
		list = append(list, syscall.SIGHUP)
	}
	return list
}

// §6.9: whoever waits for a file that never comes hears a signal too.
func Test_6_9_ASignalEndsTheWaitingForAnEnvelope(t *testing.T) {
	h := newHome(t)
	fifo := filepath.Join(h.dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, sig := range heard() {
		c := h.command("exec", "--json", "--envelope", "fifo")
		var out, errs bytes.Buffer
		c.Stdout, c.Stderr = &out, &errs
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		var writer *os.File
		await(t, func() bool {
			var err error // without a reader it can't be opened so
			writer, err = os.OpenFile(fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0)
			return err == nil
		}, errs.String)
		if err := c.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if c.Wait() == nil || c.ProcessState.ExitCode() != 1 || !strings.Contains(out.String(), `"code":"canceled"`) || errs.Len() > 0 {
			t.Errorf("%v: %v, %s%s", sig, c.ProcessState, &out, &errs)
		}
		if err := writer.Close(); err != nil {
			t.Error(err)
		}
	}
}

// §6.9: a run under nohup outlives its terminal.
func Test_6_9_AnIgnoredHangUpStaysIgnored(t *testing.T) {
	h := newHome(t)
	mark := fmt.Sprintf("%d.9", 300000+os.Getpid())
	plain := h.command("exec", "linger", "wait", "--json", "--", "seconds="+mark)
	c := exec.Command("sh", append([]string{"-c", `trap "" HUP; exec "$@"`, "sh"}, plain.Args...)...)
	c.Dir, c.Env = plain.Dir, plain.Env
	var out bytes.Buffer
	c.Stdout = &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, func() bool { return sleeping(t, mark) == 2 }, out.String)
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "SigIgn:")
	line, _, _ := strings.Cut(rest, "\n")
	if mask, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64); err != nil || mask&(1<<(syscall.SIGHUP-1)) == 0 {
		t.Errorf("the hang-up is heard: %s %v", line, err)
	}
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // its answer is another test's matter
}

// §6.9: at whatever moment the signal comes, none of the run survives it. Before the program would hear it, it has
// started nothing, and ends by the signal.
func Test_6_9_ASignalAtAnyMoment(t *testing.T) {
	h := newHome(t)
	for i := range 12 {
		mark := fmt.Sprintf("%d.%d", 200000+os.Getpid(), i)
		c := h.command("exec", "linger", "wait", "--json", "--", "seconds="+mark)
		var out bytes.Buffer
		c.Stdout = &out
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(2*i) * time.Millisecond) // to spread the moments: nothing rests on it
		if err := c.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		ended := c.Wait() // only then is the output whole
		if ended != nil && out.Len() == 0 && c.ProcessState.Sys().(syscall.WaitStatus).Signaled() {
			// it had not begun
		} else if code := c.ProcessState.ExitCode(); code != 1 || !strings.Contains(out.String(), `"code":"canceled"`) {
			t.Errorf("after %d ms: exit %d, %s", 2*i, code, &out)
		}
		if n := sleeping(t, mark); n != 0 {
			t.Errorf("after %d ms: %d processes survive", 2*i, n)
		}
	}
}

func canceled(t *testing.T, c *exec.Cmd, out *bytes.Buffer) {
	t.Helper()
	var left *exec.ExitError
	if err := c.Wait(); !errors.As(err, &left) || left.ExitCode() != 1 {
		t.Errorf("%v", err)
	}
	var r protocol.Result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || r.OK || r.PackID != "linger" || r.Error.Code != protocol.Canceled || r.Error.Step != 9 {
		t.Errorf("%v: %s", err, out)
	}
}

// sleeping counts the processes that sleep for mark.
func sleeping(t *testing.T, mark string) int {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range found {
		if line, err := os.ReadFile(name); err == nil && string(line) == "sleep\x00"+mark+"\x00" {
			n++
		}
	}
	return n
}

// await waits for what must come; a long silence is a failure.
func await(t *testing.T, come func() bool, last func() string) {
	t.Helper()
	for range 2000 {
		if come() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("it did not begin: %s", last())
}
