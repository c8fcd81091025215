package sandbox_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
	"hcpx/internal/sandbox/redteamtest"
	"hcpx/internal/sandbox/sandboxtest"
)

// posture is one way in which a run is confined here.
type posture struct {
	name    string
	options sandbox.Options
	// serial says that runs wait for each other, so that there is never another one beside.
	serial bool
}

// postures are all of them that this machine has. A new one is one line.
func postures() []posture {
	return []posture{
		{"landlock", sandbox.Options{}, false},
		{"landlock5", sandbox.Options{Kernel: older(5)}, true}, // without signal scope: the broker's
		{"namespace", sandbox.Options{Kernel: roomy(0)}, false},
		{"namespace+landlock", sandbox.Options{Kernel: roomy(2)}, false},
	}
}

// looked are those that a test goes through: in the race detector's run each way through the code once.
func looked() []posture {
	if testing.Short() {
		return postures()[1:3]
	}
	return postures()
}

// §10.2, §10.5: each known escape works outside, as this user, and fails inside; what worked is empty.
func Test_10_2_red_team(t *testing.T) {
	redteamtest.Users(t, func(t *testing.T, place string) {
		for name, value := range redteamtest.Ambient() {
			t.Setenv(name, value)
		}
		var worked []string
		controls := map[string]bool{}
		for _, p := range append(looked(), bandPostures()...) {
			worked = append(worked, p.attacked(t, place, controls)...)
		}
		if len(worked) > 0 {
			t.Errorf("worked: %s", strings.Join(worked, "; "))
		}
	})
}

// attacked runs the table in a posture and says what worked. A control is run once; it knows no posture.
func (p posture) attacked(t *testing.T, place string, controls map[string]bool) (worked []string) {
	root := filepath.Join(place, p.name)
	must(t, os.Mkdir(root, 0o755))
	must(t, os.Mkdir(root+"/scratch", 0o700))
	p.options.Scratch = root + "/scratch"
	s := redteamtest.New(t, root)
	box := confining(t, p.options)
	if !p.serial {
		var end func()
		s.Other, end = another(t, box, s)
		defer end()
	}
	rows := s.Rows()
	for _, row := range rows {
		if _, known := controls[row.Name]; !known {
			t.Run("control/"+row.ID+" "+row.Name, func(t *testing.T) { controls[row.Name] = proved(t, s, row) })
		}
	}
	reports := map[string]redteamtest.Report{}
	for _, mode := range []string{"none", "full", "hosts"} {
		if mode == "hosts" && p.options.Kernel != nil && !p.options.Kernel.GetFd {
			if err := box.Check(attackSpec(s, mode, "all")); err == nil || err.Code != protocol.SandboxUnavailable {
				t.Errorf("%s has network hosts: %v", p.name, err)
			}
			continue // refused, so there is nothing to attack
		}
		s.Reset(t)
		reports[mode] = together(t, box, s, mode, rows)
	}
	for _, row := range rows {
		if _, ran := reports[row.Network()]; !ran {
			continue
		}
		t.Run(p.name+"/"+row.ID+" "+row.Name, func(t *testing.T) {
			reason, works := reports[row.Network()].Said(row)
			if row.Mark != "" {
				reason, works = left(t, box, s, row)
			}
			switch {
			case works && p.loose(row):
			case works && !row.Promised:
				worked = append(worked, t.Name())
				t.Errorf("it worked: %s", reason)
			case !works && row.Promised:
				t.Errorf("docs/spec says that this works: %s", reason)
			case !works && controls[row.Name] && !p.says(reason, row):
				t.Errorf("reason %q, want %q", reason, row.Want)
			}
		})
	}
	return worked
}

// proved runs the control: the same probe, outside. A row without one is void and fails, but for what this machine or
// this user cannot do at all.
func proved(t *testing.T, s *redteamtest.Scene, row redteamtest.Row) bool {
	t.Helper()
	s.Reset(t)
	args := row.Args
	if row.Control != nil {
		args = row.Control
	}
	reason, works := s.Control(t, row.Attack, args...)
	if row.Mark != "" {
		works = works && killMarked(t, row.Mark) > 0
	}
	switch {
	case works && row.Nobody:
		t.Fatal("the kernel let nobody do this, and now it does: the row needs an ordinary control")
	case works || row.Nobody:
	case row.Lacks(reason):
		t.Logf("void here, outside too: %s %s: %s", row.ID, row.Name, reason)
		return false
	default:
		t.Fatalf("void: it fails outside too: %s", reason)
	}
	return true
}

// together runs the rows of a network mode in one run, each in a process of its own, and gives what the attacker
// reports.
func together(t *testing.T, box sandbox.Sandbox, s *redteamtest.Scene, mode string, rows []redteamtest.Row) (report redteamtest.Report) {
	t.Helper()
	var some []redteamtest.Row
	for _, row := range rows {
		if row.Network() == mode && row.Mark == "" {
			some = append(some, row)
		}
	}
	spec := attackSpec(s, mode, "all")
	var err error
	spec.Stdin, err = json.Marshal(some)
	must(t, err)
	spec.Limits.Wall = 3 * time.Minute
	o := sandboxtest.Exec(t, box, spec)
	if err := json.Unmarshal(o.Stdout, &report); err != nil || o.Exit != 0 || report.Tried != len(some) {
		t.Fatalf("no report: %v, %d of %d tried, exit %d %s, %s%s", err, report.Tried, len(some), o.Exit, o.Signal, o.Stdout, o.Stderr)
	}
	return report
}

// left runs a row that leaves a process behind.
func left(t *testing.T, box sandbox.Sandbox, s *redteamtest.Scene, row redteamtest.Row) (reason string, works bool) {
	t.Helper()
	o := sandboxtest.Exec(t, box, attackSpec(s, "none", row.Attack, row.Args...))
	if o.TimedOut || o.Duration > 20*time.Second {
		t.Errorf("the run was held up: %+v", o)
	}
	return strings.TrimSpace(string(o.Stderr)), killMarked(t, row.Mark) > 0
}

// attackSpec is what a pack gets that asks for much: a readable and a writable tree, and programs.
func attackSpec(s *redteamtest.Scene, mode, attack string, args ...string) *sandbox.Spec {
	spec := &sandbox.Spec{
		Program: sandbox.Program{Name: "attacker", Path: s.Self},
		Args:    append([]string{attackArg, attack}, args...),
		Read:    []string{s.Readable}, Write: []string{s.Land}, Dir: s.Land,
		Network: sandbox.Network{Mode: mode}, Limits: sandbox.Limits{Wall: time.Minute, Grace: 100 * time.Millisecond},
	}
	if mode == "hosts" {
		spec.Network.Hosts = []string{"listed.example:443"}
	}
	for _, path := range s.Programs {
		spec.Uses = append(spec.Uses, sandbox.Program{Name: filepath.Base(path), Path: path})
	}
	return spec
}

// another begins a run of the same runtime that lasts until it is ended, and answers its process.
func another(t *testing.T, box sandbox.Sandbox, s *redteamtest.Scene) (pid string, end func()) {
	t.Helper()
	mark := "other-" + s.Host + "-" + strings.ReplaceAll(filepath.Base(s.Root), " ", "-")
	spec := attackSpec(s, "none", "left", "plain", mark)
	spec.Limits.Wall = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		sandboxtest.ExecContext(ctx, t, box, spec)
	}()
	var found []string
	await(t, "the other run begins in "+s.Root, func() bool { found = processes(t, attackArg, "left", "plain", mark); return len(found) == 1 })
	return strings.Split(found[0], "/")[2], func() { cancel(); <-done }
}

// killMarked ends the processes that have a word in their arguments, and says how many there were.
func killMarked(t *testing.T, mark string) (killed int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	for _, file := range all {
		line, err := os.ReadFile(file)
		if err != nil || !slices.Contains(strings.Split(string(line), "\x00"), mark) || foreign(filepath.Dir(file)) {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(file, "/")[2])
		must(t, err)
		if unix.Kill(pid, unix.SIGKILL) == nil {
			killed++
		}
	}
	return killed
}
