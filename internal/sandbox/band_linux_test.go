package sandbox_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hcpx/internal/sandbox"
	"hcpx/internal/sandbox/sandboxtest"
)

// older is this machine's kernel as if its Landlock were an earlier one.
func older(abi int) *sandbox.Kernel {
	k := able()
	k.ABI, k.Errata, k.GetFd = abi, 0, true
	return &k
}

// band are the ways in which signals are kept, by a name: the kernel's own, and the broker's.
func band() map[string]*sandbox.Kernel {
	return map[string]*sandbox.Kernel{"scoped": nil, "ABI 5": older(5), "ABI 3": older(3)}
}

// §10.5: on kernels whose Landlock does not know signals the whole contract holds too.
func Test_10_5_band_keeps_the_contract(t *testing.T) {
	for name, keep := range map[string]int{"one-shot": 0, "reused": 2} {
		t.Run(name, func(t *testing.T) {
			sandboxtest.Run(t, sandboxtest.Kind{Contained: true, Open: func(t *testing.T, scratch string) sandbox.Sandbox {
				return confining(t, sandbox.Options{Scratch: scratch, Keep: keep, Kernel: older(5)})
			}})
		})
	}
}

// in makes the scene's sandbox one of another kernel.
func (s *scene) in(k *sandbox.Kernel, accept ...string) *scene {
	s.n++
	s.sandbox = confining(s.t, sandbox.Options{Scratch: fmt.Sprintf("%s/scratch%d", filepath.Dir(s.land), s.n), Kernel: k, Accept: accept})
	return s
}

func (s *scene) family(verb string, args ...string) *sandbox.Spec {
	spec := s.spec("")
	spec.Args = append([]string{familyArg, verb}, args...)
	return spec
}

// §10.5, RT22: a process signals its own children, its group and itself, by every call, and nobody else; the
// sandbox of the kernel and the one of the broker answer alike.
func Test_10_5_signals_stay_in_the_tree(t *testing.T) { asUsers(t, signalsStay) }

func signalsStay(t *testing.T) {
	s := newScene(t)
	victim := exec.Command(s.self, sandboxtest.HelperArg, "sleep")
	must(t, victim.Start())
	defer func() { _ = victim.Wait() }()
	defer func() { _ = victim.Process.Kill() }()
	stranger := strconv.Itoa(victim.Process.Pid)
	for name, kernel := range band() {
		s.in(kernel)
		for _, verb := range []string{"child", "group", "own", "own-group", "all", "absent"} {
			t.Run(name+"/"+verb, func(t *testing.T) {
				if o := sandboxtest.Exec(t, s.sandbox, s.family(verb)); o.Exit != 0 || o.TimedOut {
					t.Errorf("exit %d %s: %s", o.Exit, o.Signal, o.Stderr)
				}
			})
		}
		t.Run(name+"/reach", func(t *testing.T) {
			if err := exec.Command(s.self, familyArg, "reach", stranger).Run(); err != nil {
				t.Fatalf("void: it fails outside too: %v", err)
			}
			o := sandboxtest.Exec(t, s.sandbox, s.family("reach", stranger))
			if n := strings.Count(string(o.Stderr), "operation not permitted"); o.Exit != 1 || n != 7 && n != 6 { // its group may be no group
				t.Errorf("exit %d: %s", o.Exit, o.Stderr)
			}
		})
	}
}

// §6.9, §10.5, RT25: nothing survives, however many there are and however fast they begin others.
func Test_10_5_band_leaves_no_survivor(t *testing.T) { asUsers(t, noSurvivor) }

func noSurvivor(t *testing.T) {
	s := newScene(t)
	all := map[string]*sandbox.Kernel{"scoped": nil, "ABI 3": older(3), "accepted": older(4)}
	all["accepted"].Notify = false
	for name, kernel := range all {
		s.in(kernel, sandbox.Accepted()...)
		t.Run(name+"/daemons", func(t *testing.T) {
			if o := sandboxtest.Exec(t, s.sandbox, sandboxtest.Kind{}.Spec(t, "leave", "daemon", "band")); (o.Exit != 0 || o.Report.Killed != 1) != (name == "accepted") { // no session begins there
				t.Errorf("%+v", o)
			}
			if left := processes(t, sandboxtest.HelperArg, "stubborn"); len(left) > 0 {
				t.Errorf("survivors: %v", left)
			}
		})
		t.Run(name+"/bomb", func(t *testing.T) {
			spec := s.spec("bomb", "400")
			spec.Limits.Wall, spec.Limits.Grace = 1500*time.Millisecond, 100*time.Millisecond
			if o := sandboxtest.Exec(t, s.sandbox, spec); !o.TimedOut && o.Limit == "" {
				t.Errorf("%+v", o)
			}
			if left := processes(t, attackArg, "bomb"); len(left) > 0 {
				t.Errorf("survivors: %v", left)
			}
		})
		kinds := []string{"chain", "group-chain", "fork-chain"}
		if testing.Short() {
			kinds = kinds[1:2]
		}
		for _, kind := range kinds {
			for _, then := range []string{"end", "stay"} {
				t.Run(name+"/"+kind+"/"+then, func(t *testing.T) { s.storm(t, kind, then) })
			}
		}
	}
}

// storm has a command begin chains of a kind, and looks for them afterwards.
func (s *scene) storm(t *testing.T, kind, then string) {
	mark := "storm-" + strings.ReplaceAll(t.Name(), "/", "-")
	spec := s.family("storm", "6", mark, kind, then)
	spec.Limits.Wall, spec.Limits.Grace = time.Minute, 100*time.Millisecond
	if then == "stay" {
		spec.Limits.Wall = 600 * time.Millisecond
	}
	o := sandboxtest.Exec(t, s.sandbox, spec)
	if o.TimedOut != (then == "stay") || then == "end" && o.Exit != 0 {
		t.Errorf("%+v\n%s", o, o.Stderr)
	}
	if o.Duration > 8*time.Second {
		t.Errorf("it took %s", o.Duration)
	}
	for range 8 {
		if left := processes(t, familyArg, kind, mark); len(left) > 0 {
			t.Fatalf("survivors: %v", left)
		}
	}
}

// §10.5: where a run is held together by its groups, shells and whoever handles signals without restarting calls make
// processes as ever.
func Test_10_5_band_forks_are_never_interrupted(t *testing.T) { asUsers(t, forksAreFree) }

func forksAreFree(t *testing.T) {
	s := newScene(t)
	all := band()
	all["accepted"] = older(4)
	all["accepted"].Notify = false
	rounds := 300
	if testing.Short() {
		rounds = 30
	}
	pipes := fmt.Sprintf(`n=0; while [ $n -lt %d ]; do r=$(echo a | cat | cat) && [ "$r" = a ] || exit 3; n=$((n+1)); done`, rounds)
	for name, kernel := range all {
		t.Run(name, func(t *testing.T) {
			s.in(kernel, sandbox.Accepted()...)
			if o := sandboxtest.Exec(t, s.sandbox, script(t, pipes, "cat")); o.Exit != 0 || o.StderrSize > 0 {
				t.Errorf("pipelines: exit %d %s", o.Exit, o.Stderr)
			}
			for range 10 {
				if o := sandboxtest.Exec(t, s.sandbox, script(t, "echo a | cat | cat", "cat")); o.Exit != 0 || string(o.Stdout) != "a\n" {
					t.Errorf("a pipeline: exit %d %s", o.Exit, o.Stderr)
				}
			}
			if o := sandboxtest.Exec(t, s.sandbox, s.family("forks")); o.Exit != 0 || o.StderrSize > 0 {
				t.Errorf("forks: exit %d %s", o.Exit, o.Stderr)
			}
		})
	}
}

// bandPostures are those of kernels whose Landlock does not know signals, and where the operator accepted that metadata
// and signals are refused. The red team meets them too.
func bandPostures() []posture {
	weak := older(4)
	weak.Notify, weak.GetFd = false, false
	return []posture{
		{"landlock with refusals accepted", sandbox.Options{Kernel: weak, Accept: sandbox.Accepted()}, true},
	}
}

// §10.5: many runs that begin processes and signal them, with the garbage collector at work and with one processor
// alone for Go: nobody waits for an answer that cannot come.
func Test_10_5_band_soak(t *testing.T) {
	s := newScene(t)
	for name, keep := range map[string]int{"one-shot": 0, "reused": 1} {
		t.Run(name, func(t *testing.T) {
			kept := confining(t, sandbox.Options{Scratch: s.land + "/../" + name, Keep: keep, Kernel: older(5)})
			sandboxtest.Exec(t, kept, s.spec("chmod", s.file)) // what is opened once
			files := settled(t, "fd", 0)
			for _, processors := range []int{runtime.GOMAXPROCS(0), 1} {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
				var all sync.WaitGroup
				for range 4 {
					all.Go(func() {
						for n := range 4 {
							spec := s.family("group")
							if n%3 == 0 {
								spec = s.spec("chmod", s.file)
							}
							if o := sandboxtest.Exec(t, kept, spec); o.Exit != 0 || o.Report.Killed != 0 {
								t.Errorf("%+v\n%s", o, o.Stderr)
							}
							runtime.GC()
						}
					})
				}
				all.Wait()
			}
			must(t, kept.Close())
			if n := settled(t, "fd", files); n > files {
				t.Errorf("%d descriptors, %d before", n, files)
			}
		})
	}
}

// §10.4, §10.5: the dead that the runtime adopts are buried while the run goes on, whatever group they were in.
func Test_10_5_band_buries_the_dead(t *testing.T) {
	s := newScene(t)
	s.in(older(3))
	dead := func() (n int) {
		for _, pid := range processesOf(t, os.Getpid()) {
			if state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && strings.Contains(string(state), ") Z ") {
				n++
			}
		}
		return n
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan *sandbox.Outcome)
	go func() {
		spec := script(t, "n=0; while [ $n -lt 60 ]; do (true &) ; (setsid true &) ; n=$((n+1)); done; : >ready; sleep 3600", "true", "setsid", "sleep")
		spec.Write, spec.Dir = []string{s.land}, s.land
		done <- sandboxtest.ExecContext(ctx, t, s.sandbox, spec)
	}()
	await(t, "all have begun", func() bool { _, err := os.Stat(s.land + "/ready"); return err == nil })
	await(t, "the dead are buried", func() bool { return dead() == 0 })
	cancel()
	if o := <-done; !o.Canceled {
		t.Errorf("%+v", o)
	}
}

// processesOf are the children of a process.
func processesOf(t *testing.T, parent int) (pids []int) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	must(t, err)
	for _, file := range threads {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for _, word := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(word)
			must(t, err)
			pids = append(pids, pid)
		}
	}
	return pids
}
