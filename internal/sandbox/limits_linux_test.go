package sandbox_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"hcpx/internal/sandbox"
	"hcpx/internal/sandbox/redteamtest"
	"hcpx/internal/sandbox/sandboxtest"
)

// gluttonArg turns the test binary into a program that takes more than it may.
const gluttonArg = "sandbox-glutton"

func glutton() {
	if len(os.Args) != 5 || os.Args[1] != gluttonArg {
		return
	}
	amount, err := strconv.Atoi(os.Args[3])
	if err != nil {
		panic(err)
	}
	stay, err := time.ParseDuration(os.Args[4])
	if err != nil {
		panic(err)
	}
	if err := gluttons()[os.Args[2]](amount, stay); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func gluttons() map[string]func(int, time.Duration) error {
	return map[string]func(int, time.Duration) error{
		"memory": func(mib int, stay time.Duration) error {
			all, err := touched(mib)
			time.Sleep(stay)
			runtime.KeepAlive(all)
			return err
		},
		"children": children,
		"forks":    forks,
		"threads": func(n int, stay time.Duration) error {
			for range n {
				go func() {
					runtime.LockOSThread()
					time.Sleep(stay)
				}()
			}
			time.Sleep(stay)
			return nil
		},
		"files": func(n int, _ time.Duration) error {
			for range n {
				if _, err := unix.Open("/dev/null", unix.O_RDONLY, 0); err != nil {
					return fmt.Errorf("open /dev/null: %w", err)
				}
			}
			return nil
		},
		"file": func(mib int, _ time.Duration) error { // as an interpreter that ignores the signal
			signal.Ignore(unix.SIGXFSZ)
			f, err := os.Create(os.Getenv("TMPDIR") + "/big")
			if err != nil {
				return err
			}
			for range mib {
				if _, err := f.Write(make([]byte, 1<<20)); err != nil {
					return err
				}
			}
			return f.Close()
		},
	}
}

// children has them take it, each a little.
func children(mib int, stay time.Duration) error {
	var list []*exec.Cmd
	for range 4 {
		c := exec.Command("/proc/self/exe", gluttonArg, "memory", strconv.Itoa(mib/4), stay.String())
		c.SysProcAttr = &unix.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			return err
		}
		list = append(list, c)
	}
	for _, c := range list {
		if err := c.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// forks has children that share what it has.
func forks(mib int, stay time.Duration) error {
	all, err := unix.Mmap(-1, 0, mib<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	for i := 0; i < len(all); i += 4096 {
		all[i] = 1
	}
	for range 4 {
		pid, _, no := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
		if no != 0 {
			return no
		}
		if pid == 0 { // nothing but system calls from here on
			spec := unix.NsecToTimespec(int64(stay))
			for i := 0; i < len(all); i += 4096 {
				all[0] |= all[i]
			}
			_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&spec)), 0, 0)
			_, _, _ = unix.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	for range 4 {
		if _, err := unix.Wait4(-1, nil, 0, nil); err != nil {
			return err
		}
	}
	return nil
}

// touched is memory that is really there.
func touched(mib int) ([]byte, error) {
	all, err := unix.Mmap(-1, 0, mib<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	for i := 0; i < len(all); i += 4096 {
		all[i] = 1
	}
	return all, err
}

// takes is a Spec of the glutton.
func takes(t *testing.T, what string, amount int, stay time.Duration) *sandbox.Spec {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	return &sandbox.Spec{Program: sandbox.Program{Name: "glutton", Path: self},
		Args:   []string{gluttonArg, what, strconv.Itoa(amount), stay.String()},
		Limits: sandbox.Limits{Wall: time.Minute, Grace: 100 * time.Millisecond}}
}

// script is a Spec of a shell script.
func script(t *testing.T, text string, uses ...string) *sandbox.Spec {
	t.Helper()
	spec := &sandbox.Spec{Program: tool(t, "sh"), Args: []string{"-c", text}, Limits: sandbox.Limits{Wall: time.Minute, Grace: 100 * time.Millisecond}}
	for _, name := range uses {
		spec.Uses = append(spec.Uses, tool(t, name))
	}
	return spec
}

// limitCase hits one limit. below is what makes the same program pass: the positive control.
type limitCase struct {
	spec   *sandbox.Spec
	limit  func(*sandbox.Limits)
	below  func(*sandbox.Limits)
	want   string
	signal string
}

func limitCases(t *testing.T) map[string]limitCase {
	const mib = 1 << 20
	none := func(*sandbox.Limits) {}
	memory := func(n uint64) func(*sandbox.Limits) { return func(l *sandbox.Limits) { l.Memory = n * mib } }
	tasks := func(n int) func(*sandbox.Limits) { return func(l *sandbox.Limits) { l.Processes = n } }
	size := func(l *sandbox.Limits) { l.FileSize = 2 * mib }
	python := script(t, "exec python3 -c 'f = [open(\"/dev/null\") for n in range(2000)]'")
	python.Uses = []sandbox.Program{found(t, "python3", "/usr/bin/python3")}
	return map[string]limitCase{
		"memory":             {takes(t, "memory", 500, 700*time.Millisecond), memory(250), none, "memory", "SIGKILL"},
		"memory of children": {takes(t, "children", 600, 700*time.Millisecond), memory(300), none, "memory", "SIGKILL"},
		"processes": {script(t, "n=0; while [ $n -lt 60 ]; do sleep 1 & n=$((n+1)); done; wait", "sleep"),
			tasks(30), none, "processes", "SIGKILL"},
		"processes without a parent": {script(t, "n=0; while [ $n -lt 60 ]; do (sleep 1 >/dev/null 2>&1 &); n=$((n+1)); done; sleep 1", "sleep"),
			tasks(30), none, "processes", "SIGKILL"},
		"threads": {takes(t, "threads", 200, 700*time.Millisecond), tasks(100), none, "processes", "SIGKILL"},
		"open files": {takes(t, "files", 2000, 0), none, func(l *sandbox.Limits) { l.Files = 4000 },
			"open_files", ""},
		"open files, Python": {python, none, func(l *sandbox.Limits) { l.Files = 4000 },
			"open_files", ""},
		"file size":              {script(t, "head -c 3000000 /dev/zero >$TMPDIR/big", "head"), size, none, "file_size", ""},
		"file size, signalled":   {script(t, "exec head -c 3000000 /dev/zero >$TMPDIR/big", "head"), size, none, "file_size", "SIGXFSZ"},
		"file size, not noticed": {takes(t, "file", 3, 0), size, none, "file_size", ""},
		"cpu": {script(t, "while :; do :; done"), func(l *sandbox.Limits) { l.CPU = time.Second },
			nil, "cpu", "SIGXCPU"},
	}
}

// §10.4: each limit ends what passes it and is named; the same program passes below it. As every user.
func Test_10_4_limits(t *testing.T) {
	redteamtest.Users(t, func(t *testing.T, place string) {
		for name, c := range limitCases(t) {
			t.Run(name, func(t *testing.T) { c.run(t, confining(t, sandbox.Options{Scratch: place + "/scratch"})) })
		}
	})
}

// §10.4: so it is where the kernel keeps no signals inside (§10.5).
func Test_10_4_limits_in_the_band(t *testing.T) {
	cases := limitCases(t)
	for _, name := range []string{"memory of children", "processes without a parent", "open files", "file size, signalled"} {
		t.Run(name, func(t *testing.T) {
			cases[name].run(t, confining(t, sandbox.Options{Scratch: t.TempDir() + "/scratch", Kernel: older(4)}))
		})
	}
}

func (c limitCase) run(t *testing.T, s *sandbox.System) {
	t.Helper()
	open := c.spec.Limits
	c.limit(&c.spec.Limits)
	o := sandboxtest.Exec(t, s, c.spec)
	if o.Limit != c.want || o.Signal != c.signal || o.TimedOut {
		t.Errorf("limit %q, signal %q: %+v\n%s", o.Limit, o.Signal, o, o.Stderr)
	}
	if c.below == nil {
		return
	}
	c.spec.Limits = open
	c.below(&c.spec.Limits)
	if o := sandboxtest.Exec(t, s, c.spec); o.Limit != "" || o.Exit != 0 {
		t.Errorf("below it: %+v\n%s", o, o.Stderr)
	}
}

// §10.4: a limit of a process holds from its first instruction, for what it starts at once too, and cannot be raised.
func Test_10_4_born_with_limits(t *testing.T) {
	s := confining(t, sandbox.Options{Scratch: t.TempDir() + "/scratch", Keep: 1})
	spec := script(t, "sh -c 'ulimit -n' & ulimit -n; ulimit -Hn; ulimit -f; ulimit -c; ulimit -n 78 2>/dev/null || echo refused; wait", "sh")
	spec.Limits.Files, spec.Limits.FileSize = 77, 512*1000
	for range 20 {
		o := sandboxtest.Exec(t, s, spec)
		lines := strings.Fields(string(o.Stdout))
		slices.Sort(lines)
		if !slices.Equal(lines, []string{"0", "1000", "77", "77", "77", "refused"}) {
			t.Fatalf("%q %s", o.Stdout, o.Stderr)
		}
	}
}

// §10.4: memory that processes share counts once.
func Test_10_4_shared_memory_counts_once(t *testing.T) {
	s := confining(t, sandbox.Options{Scratch: t.TempDir() + "/scratch"})
	spec := takes(t, "forks", 150, time.Second)
	spec.Limits.Memory = 400 << 20
	if o := sandboxtest.Exec(t, s, spec); o.Limit != "" || o.Exit != 0 {
		t.Errorf("%+v\n%s", o, o.Stderr)
	}
	spec.Limits.Memory = 100 << 20
	if o := sandboxtest.Exec(t, s, spec); o.Limit != "memory" {
		t.Errorf("%+v\n%s", o, o.Stderr)
	}
}

// §10.4: what is not enforced is said by each backend in doctor's table, the plan's note and the report of a run.
func Test_10_4_never_silent(t *testing.T) {
	s := confining(t, sandbox.Options{Scratch: t.TempDir() + "/scratch"})
	delegated := strings.Contains(find(s.Facts(), "memory").Mechanism, "a cgroup of its own")
	watched := map[bool]string{true: "cgroup", false: "sampled"}[delegated]
	for _, limit := range []string{"memory", "processes"} {
		if row := find(s.Facts(), limit); row.State != "degraded" || !strings.HasPrefix(row.Detail, "Sampled: ") {
			t.Errorf("%+v", row)
		}
	}
	for stay, want := range map[time.Duration]string{0: "", 400 * time.Millisecond: watched} {
		o := sandboxtest.Exec(t, s, script(t, fmt.Sprintf("sleep %.1f", stay.Seconds()), "sleep"))
		if !slices.Equal(o.Report.Degraded, []string{"memory", "processes"}) || o.Report.Watched != want && stay > 0 {
			t.Errorf("%s: %+v", stay, o.Report)
		}
	}
	native := script(t, "exit 0")
	native.Native = true
	o := sandboxtest.Exec(t, s, native)
	for _, limit := range []string{"cpu", "open-files", "file-size", "core-dumps", "memory", "processes"} {
		if !slices.Contains(o.Report.Degraded, limit) {
			t.Errorf("native: %s is not in %v", limit, o.Report.Degraded)
		}
	}
	if note := sandbox.LimitsNote(true); !strings.Contains(note, "only time and output") {
		t.Error(note)
	}
	if note := sandbox.LimitsNote(false); !strings.Contains(note, "between two looks") {
		t.Error(note)
	}
}

// §10.4: a run that is over soon is not looked at, and one that goes on leaves nothing behind: no descriptor, and no
// cgroup where one was made.
func Test_10_4_watch_leaves_nothing(t *testing.T) {
	s := confining(t, sandbox.Options{Scratch: t.TempDir() + "/scratch", Keep: 1})
	run := func() { sandboxtest.Exec(t, s, script(t, "sleep 0.1", "sleep")) }
	run()
	files := count(t, "fd")
	for range 5 {
		run()
	}
	if n := settled(t, "fd", files); n > files {
		t.Errorf("%d descriptors, %d before", n, files)
	}
	if _, below, found := strings.Cut(find(s.Facts(), "memory").Mechanism, "a cgroup of its own below "); found {
		left, err := filepath.Glob(below + "/hcpx-" + strconv.Itoa(os.Getpid()) + "-*")
		if err != nil || len(left) > 0 {
			t.Errorf("left: %v %v", left, err)
		}
	}
}

// §10.4, §15.1: plan shows a limit as the command will have it: not above what this process may have.
func Test_10_4_held_limits(t *testing.T) {
	var own unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &own))
	asked := sandbox.Limits{Files: own.Max, CPU: time.Second, Memory: 1}
	if got := asked.Held(); got != asked {
		t.Errorf("%+v, want %+v", got, asked)
	}
	if asked.Files++; asked.Files > 0 && asked.Held().Files != own.Max {
		t.Errorf("%d files, this process may have %d", asked.Held().Files, own.Max)
	}
}
