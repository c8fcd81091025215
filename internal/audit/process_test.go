package audit

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var kills = flag.Int("kills", 200, "how many processes are killed while they append")

// TestMain lets the test binary stand for another process that appends to the same audit.
func TestMain(m *testing.M) {
	if dir := os.Getenv("AUDIT_CHILD"); dir != "" {
		if err := child(dir, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child does what args name; else it appends a number of runs, each of an intent and an outcome; -1 is
// without end.
func child(dir string, args []string) error {
	switch args[0] {
	case "full":
		return fullDisk(dir)
	case "tmpfs", "journal", "peak":
		return systemChild(args[0], dir)
	}
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	if args[0] == "closed" {
		return closedDoor(dir, n)
	}
	cfg := config(dir)
	if cfg.Socket = os.Getenv("AUDIT_SOCKET"); cfg.Socket != "" {
		cfg.Anchor = AnchorJournald
	}
	fmt.Println("ready")
	l := Open(cfg)
	for i := 0; i != n; i++ {
		id := fmt.Sprintf("%s-%d", args[0], i)
		for _, kind := range []string{Intent, Outcome} {
			if err := l.Append(Entry{Kind: kind, ID: id, Principal: "human:ada"}, i%8 == 0 && args[0] != "cold"); err != nil {
				return err
			}
		}
	}
	return nil
}

func process(t testing.TB, dir string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), "AUDIT_CHILD="+dir)
	return cmd
}

// several is how often something is done: less in short tests.
func several(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

func Test_15_4_ProcessesAppendAtOnce(t *testing.T) {
	dir, n := t.TempDir(), several(200)
	var cmds []*exec.Cmd
	for i := range n {
		cmd := process(t, dir, fmt.Sprint("p", i), "4")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds = append(cmds, cmd)
	}
	for _, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	r := verify(t, config(dir))
	if !r.OK || r.Entries != uint64(n*8) || len(r.Notes)+len(r.Interrupted) > 0 || r.Segments < 2 {
		t.Errorf("report: %+v", r)
	}
}

func Test_15_4_GoroutinesAppendAtOnce(t *testing.T) {
	cfg := config(t.TempDir())
	l := Open(cfg)
	errs := make(chan error)
	for i := range 16 {
		go func() { errs <- l.Append(Entry{Kind: Change, ID: fmt.Sprint(i)}, i%2 == 0) }()
	}
	for range 16 {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	if r := verify(t, cfg); !r.OK || r.Entries != 16 {
		t.Errorf("report: %+v", r)
	}
}

// A kill may leave a run without its outcome, entries beyond the head, or half a line: never a broken chain, nor an
// entry whose head was anchored and that is gone.
func Test_15_4_KilledAtRandomMomentsTheChainHolds(t *testing.T) {
	dir, k, kills := t.TempDir(), listen(t), *kills
	var kept []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		kept = k.drain()
	}()
	const together = 8
	for killed := 0; killed < kills; {
		var cmds []*exec.Cmd
		for range together {
			cmds = append(cmds, started(t, dir, k.path, fmt.Sprint("k", killed)))
			killed++
		}
		for _, cmd := range cmds {
			time.Sleep(time.Duration(rand.IntN(4000)) * time.Microsecond) // the moment of death is what is tried
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		if killed%200 != 0 {
			continue
		}
		if r := verify(t, config(dir)); !r.OK || len(r.Interrupted) > killed {
			t.Fatalf("after %d kills: %+v", killed, r)
		}
	}
	k.conn.Close()
	<-done
	appendRuns(t, config(dir), "last", 1)
	r := against(t, config(dir), strings.Join(kept, "\n"))
	if !r.OK || len(r.Interrupted) > kills || r.Anchors.Heads == 0 {
		t.Fatalf("%+v", r)
	}
	t.Logf("%d entries, %d heads, %d interrupted, notes %v", r.Entries, r.Anchors.Heads, len(r.Interrupted), kinds(r.Notes))
}

// started is a process that has begun to append, and goes on.
func started(t *testing.T, dir, socket, name string) *exec.Cmd {
	t.Helper()
	cmd := process(t, dir, name, "-1")
	cmd.Env = append(cmd.Env, "AUDIT_SOCKET="+socket)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// lookThrough reads a whole audit in the ways that must not need more memory for a longer one.
func lookThrough(dir string) error {
	cfg := config(dir)
	r, err := Verify(cfg)
	if err != nil || !r.OK {
		return fmt.Errorf("%+v, %w", r, err)
	}
	var event []byte
	return Read(cfg, 1, func(e Entry, _ []byte) error {
		event = AppendCEF(event[:0], e, "1")
		return nil
	})
}

// BenchmarkColdRun is the processor time, user and system, of the two appends of a run in a process of its
// own: the median of processes that append, less that of processes that do nothing.
func BenchmarkColdRun(b *testing.B) {
	dir := b.TempDir()
	took := [2][]time.Duration{}
	for b.Loop() {
		for n := range took {
			cmd := process(b, dir, "cold", strconv.Itoa(n))
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
			took[n] = append(took[n], cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		}
	}
	for n := range took {
		slices.Sort(took[n])
	}
	middle := len(took[0]) / 2
	b.ReportMetric(float64((took[1][middle]-took[0][middle]).Nanoseconds())/1e3, "cpu-µs/run")
	b.ReportMetric(float64(took[0][middle].Nanoseconds())/1e3, "cpu-µs/nothing")
}
