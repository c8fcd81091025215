package sandbox_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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
		{"namespace", sandbox.Options{Kernel: roomy(0)}, false},
		{"namespace+landlock", sandbox.Options{Kernel: roomy(2)}, false},
	}
}

// §10.2, §10.5: each known escape works outside, as this user, and fails inside; what worked is empty.
func Test_10_2_red_team(t *testing.T) {
	redteamtest.Users(t, func(t *testing.T, place string) {
		for name, value := range redteamtest.Ambient() {
			t.Setenv(name, value)
		}
		var worked []string
		for _, p := range postures() {
			worked = append(worked, p.attacked(t, place)...)
		}
		if len(worked) > 0 {
			t.Errorf("worked: %s", strings.Join(worked, "; "))
		}
	})
}

// attacked runs the table in a posture and says what worked.
func (p posture) attacked(t *testing.T, place string) (worked []string) {
	root := filepath.Join(place, p.name)
	must(t, os.Mkdir(root, 0o755))
	must(t, os.Mkdir(root+"/scratch", 0o700))
	p.options.Scratch = root + "/scratch"
	s := redteamtest.New(t, root)
	box := confining(t, p.options)
	if !p.serial {
		s.Other = another(t, box, s)
	}
	for _, row := range s.Rows() {
		t.Run(p.name+"/"+row.ID+" "+row.Name, func(t *testing.T) {
			void := !proved(t, s, row)
			s.Reset(t)
			reason, works := inside(t, box, s, row)
			switch {
			case works && p.loose(row):
			case works && !row.Promised:
				worked = append(worked, t.Name())
				t.Errorf("it worked: %s", reason)
			case !works && row.Promised:
				t.Errorf("docs/spec says that this works: %s", reason)
			case !works && !void && !p.says(reason, row):
				t.Errorf("reason %q, want %q", reason, row.Want)
			}
		})
	}
	return worked
}

// proved runs the control: the same probe, outside. A row without one is void.
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

// inside runs a row in the sandbox.
func inside(t *testing.T, box sandbox.Sandbox, s *redteamtest.Scene, row redteamtest.Row) (reason string, works bool) {
	t.Helper()
	o := sandboxtest.Exec(t, box, attackSpec(s, row.Mode, row.Attack, row.Args...))
	reason, works = strings.TrimSpace(string(o.Stderr)), o.Exit == 0
	if row.Mark != "" {
		if o.TimedOut || o.Duration > 20*time.Second {
			t.Errorf("the run was held up: %+v", o)
		}
		return reason, killMarked(t, row.Mark) > 0
	}
	if o.Exit != 1 && o.Exit != 0 {
		t.Errorf("exit %d %s, %s", o.Exit, o.Signal, reason)
	}
	return reason, works
}

// attackSpec is what a pack gets that asks for much: a readable and a writable tree, and programs.
func attackSpec(s *redteamtest.Scene, mode, attack string, args ...string) *sandbox.Spec {
	spec := &sandbox.Spec{
		Program: sandbox.Program{Name: "attacker", Path: s.Self},
		Args:    append([]string{attackArg, attack}, args...),
		Read:    []string{s.Readable}, Write: []string{s.Land}, Dir: s.Land,
		Network: sandbox.Network{Mode: "none"}, Limits: sandbox.Limits{Wall: time.Minute, Grace: 100 * time.Millisecond},
	}
	if mode != "" {
		spec.Network.Mode = mode
	}
	for _, path := range s.Programs {
		spec.Uses = append(spec.Uses, sandbox.Program{Name: filepath.Base(path), Path: path})
	}
	return spec
}

// another begins a run of the same runtime that lasts as long as the test, and answers its process.
func another(t *testing.T, box sandbox.Sandbox, s *redteamtest.Scene) string {
	t.Helper()
	mark := "other-" + s.Host
	spec := attackSpec(s, "", "left", "plain", mark)
	spec.Limits.Wall = time.Hour
	ctx, done := t.Context(), make(chan struct{})
	go func() {
		defer close(done)
		sandboxtest.ExecContext(ctx, t, box, spec)
	}()
	t.Cleanup(func() { <-done }) // the test's context ends before
	var found []string
	await(t, "the other run begins", func() bool { found = processes(t, attackArg, "left", "plain", mark); return len(found) == 1 })
	return strings.Split(found[0], "/")[2]
}

// killMarked ends the processes that have a word in their arguments, and says how many there were.
func killMarked(t *testing.T, mark string) (killed int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	for _, file := range all {
		line, err := os.ReadFile(file)
		if err != nil || !slices.Contains(strings.Split(string(line), "\x00"), mark) {
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
