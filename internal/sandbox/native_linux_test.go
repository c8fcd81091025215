package sandbox_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"hcpx/internal/sandbox"
	"hcpx/internal/sandbox/sandboxtest"
)

// native runs a script outside the sandbox.
func native(t *testing.T, script string, tools ...string) *sandbox.Spec {
	t.Helper()
	spec := &sandbox.Spec{Native: true, Program: tool(t, "sh"), Args: []string{"-eu", "-c", script},
		Limits: sandbox.Limits{Wall: time.Minute, Grace: 200 * time.Millisecond}}
	for _, name := range tools {
		spec.Uses = append(spec.Uses, tool(t, name))
	}
	return spec
}

// gone says that no process with the arguments is left.
func gone(t *testing.T, words ...string) {
	t.Helper()
	if left := processes(t, words...); len(left) > 0 {
		t.Errorf("survivors: %v", left)
	}
}

// §6.9, §10.3: whatever a native command leaves dies with it, wherever it fled to.
func Test_6_9_native_leaves_no_survivor(t *testing.T) {
	s := sandbox.New(sandbox.Options{Scratch: t.TempDir() + "/scratch"})
	for name, script := range map[string]string{
		"a session of its own":     "setsid sleep 2971 & sleep 0.05",
		"a double fork":            "(setsid sh -c 'sleep 2971 & sleep 2971 & exec sleep 2971' </dev/null >/dev/null 2>&1 &); sleep 0.05",
		"without environment":      "(env -i setsid /bin/sleep 2971 >/dev/null 2>&1 &); sleep 0.05",
		"SIGTERM ignored":          "(trap '' TERM HUP; setsid sleep 2971 &) >/dev/null 2>&1; sleep 0.05",
		"a chain that keeps going": "(setsid sh -c 'while :; do setsid sleep 2971 & sleep 0.001; done' >/dev/null 2>&1 &); sleep 0.1",
	} {
		t.Run(name, func(t *testing.T) {
			o := sandboxtest.Exec(t, s, native(t, script, "setsid", "sleep", "sh", "env"))
			if o.Exit != 0 || o.Report.Killed == 0 {
				t.Errorf("%+v\n%s", o, o.Stderr)
			}
			gone(t, "2971")
		})
	}
	t.Run("time limit", func(t *testing.T) {
		spec := native(t, "trap '' TERM; (setsid sleep 2972 &); while :; do sleep 2972; done", "setsid", "sleep")
		spec.Limits.Wall = 300 * time.Millisecond
		if o := sandboxtest.Exec(t, s, spec); !o.TimedOut || o.Duration > 3*time.Second {
			t.Errorf("%+v", o)
		}
		gone(t, "2972")
	})
	var flag int32
	must(t, unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&flag)), 0, 0, 0))
	if flag != 0 {
		t.Error("this process is a subreaper still")
	}
}

// §6.9, §10.3: processes that begin the next one and end are ended too, in whatever group or session each is; what the
// report says of them is true.
func Test_6_9_native_ends_chains(t *testing.T) {
	s := sandbox.New(sandbox.Options{Scratch: t.TempDir() + "/scratch"})
	self, err := os.Executable()
	must(t, err)
	for _, kind := range []string{"fork-chain", "group-chain", "chain"} {
		for _, then := range []string{"end", "stay"} {
			t.Run(kind+"/"+then, func(t *testing.T) {
				mark := "native-" + kind + "-" + then
				o := sandboxtest.Exec(t, s, &sandbox.Spec{Native: true, Program: sandbox.Program{Name: "family", Path: self},
					Args: []string{familyArg, "storm", "6", mark, kind, then}, Limits: sandbox.Limits{Wall: time.Second, Grace: 100 * time.Millisecond}})
				if o.TimedOut != (then == "stay") {
					t.Errorf("%+v\n%s", o, o.Stderr)
				}
				left := 0
				for range 8 {
					left = max(left, killMarked(t, mark))
				}
				if left > 0 && !o.Report.Left || o.Report.Left && kind == "fork-chain" {
					t.Errorf("%d survivors, the report says %+v", left, o.Report)
				}
				t.Logf("%d killed, %v, %d left, %v", o.Report.Killed, o.Duration, left, o.Report.Left)
			})
		}
	}
}

// §10.3: the tree kill of one native run leaves other runs, and what else this process has started, alone.
func Test_10_3_native_kill_is_of_its_own_tree(t *testing.T) {
	s := sandbox.New(sandbox.Options{Scratch: t.TempDir() + "/scratch"})
	older := exec.Command("sleep", "2973")
	older.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	must(t, older.Start())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan *sandbox.Outcome)
	go func() {
		ended <- sandboxtest.ExecContext(ctx, t, s, native(t, "(setsid sleep 2974 &); sleep 2974", "setsid", "sleep"))
	}()
	await(t, "the other run begins", func() bool { return len(processes(t, "2974")) == 2 })
	younger := exec.Command("sleep", "2975")
	must(t, younger.Start())

	sandboxtest.Exec(t, s, native(t, "(setsid sleep 2976 &); sleep 0.05", "setsid", "sleep"))
	gone(t, "2976")
	if n := len(processes(t, "2974")); n != 2 {
		t.Errorf("%d of the other run's two processes are alive", n)
	}
	cancel()
	if o := <-ended; !o.Canceled {
		t.Errorf("%+v", o)
	}
	gone(t, "2974")
	for _, mine := range []*exec.Cmd{older, younger} {
		must(t, mine.Process.Kill())
		if err := mine.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("%v: %v", mine.Args, err)
		}
	}
}

// §6.9: a confined run beside a native one keeps its left-behind workers until it ends, and they do not stay
// as zombies of this process.
func Test_6_9_confined_beside_native(t *testing.T) {
	s := newScene(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan bool)
	go func() {
		sandboxtest.ExecContext(ctx, t, s.sandbox, native(t, "sleep 2977", "sleep"))
		close(ended)
	}()
	await(t, "the native run begins", func() bool { return len(processes(t, "2977")) == 1 })
	confined := make(chan *sandbox.Outcome)
	go func() {
		spec := s.spec("")
		spec.Program, spec.Args = tool(t, "sh"), []string{"-c", "(setsid sleep 2978 &); while ! test -e go; do sleep 0.01; done; exit 5"}
		spec.Uses = []sandbox.Program{tool(t, "setsid"), tool(t, "sleep")}
		confined <- sandboxtest.Exec(t, s.sandbox, spec)
	}()
	await(t, "the confined worker begins", func() bool { return len(processes(t, "2978")) == 1 })
	cancel()
	<-ended
	if len(processes(t, "2978")) != 1 {
		t.Error("the native run killed a worker of the confined one")
	}
	must(t, exec.Command("touch", s.land+"/go").Run())
	if o := <-confined; o.Exit != 5 || o.Report.Killed != 1 {
		t.Errorf("%+v", o)
	}
	gone(t, "2978")
}

// §6.9: native runs that end bury nothing that a confined run waits for.
func Test_6_9_native_buries_only_its_own(t *testing.T) {
	s := newScene(t)
	stop := make(chan bool)
	go func() {
		defer close(stop)
		for range 40 {
			sandboxtest.Exec(t, s.sandbox, native(t, "(setsid true &) >/dev/null 2>&1", "setsid", "true"))
		}
	}()
	var free sync.WaitGroup
	for range 2 {
		free.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				box, refused := s.sandbox.Prepare(s.spec("nothing"))
				if refused != nil {
					t.Error(refused)
					return
				}
				if o, refused := box.Run(context.Background()); refused != nil || o.Exit != 0 {
					t.Errorf("%v %+v", refused, o)
				}
				if err := box.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	free.Wait()
}

// §10.3, §10.5: what a native run lacks is named as doctor's table names it, in plan and report alike.
func Test_10_3_native_names_rules_of_the_table(t *testing.T) {
	s := sandbox.New(sandbox.Options{Scratch: t.TempDir() + "/scratch"})
	spec := native(t, "exit 0")
	planned := s.Jail(spec, "/home").Degraded
	if o := sandboxtest.Exec(t, s, spec); !slices.Equal(o.Report.Degraded, planned) {
		t.Errorf("report %v, plan %v", o.Report.Degraded, planned)
	}
	kept := []string{"environment", "wall-time", "output", "protected-names", "canary"}
	for _, row := range s.Facts().Rules {
		if slices.Contains(planned, row.Name) == slices.Contains(kept, row.Name) && row.Name != "devices" && row.Name != "proc" {
			t.Errorf("%s: in the list of what a native run lacks: %v", row.Name, slices.Contains(planned, row.Name))
		}
	}
	for _, name := range planned {
		if find(s.Facts(), name).Name == "" {
			t.Errorf("%s is no rule of the table", name)
		}
	}
}
