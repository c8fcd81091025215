//go:build unix

package lifecycle

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hcpx/internal/protect"
)

// cutOff leaves a run on the shelf as a killed runtime does, and says where.
func cutOff(t *testing.T, w *world, root string) (open string) {
	t.Helper()
	open = filepath.Join(w.Store.Home(), "quarantine", ".open", "run")
	g, err := protect.Begin(context.Background(), protect.Watch{Home: w.Store.Home(), Run: "run", Command: "notes/keep", Root: root})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(open+"-copy", os.DirFS(open)); err != nil {
		t.Fatal(err)
	}
	if _, err := g.End(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(open+"-copy", open); err != nil {
		t.Fatal(err)
	}
	return open
}

// §10.2: a run that was killed with its runtime is named by status and doctor, and repair, a person's act, puts back.
func Test_10_2_RepairPutsBackWhatACutOffRunChanged(t *testing.T) {
	w := newWorld(t)
	onDisk(t, w)
	root := t.TempDir()
	write(t, filepath.Join(root, "Makefile"), "all:\n", 0o644)
	cutOff(t, w, root)
	write(t, filepath.Join(root, "Makefile"), "evil:\n", 0o644)
	write(t, filepath.Join(root, ".envrc"), "evil\n", 0o644)
	before := contents(t, w.Store.Home())
	for _, v := range []HealthView{w.Status(ada), w.Doctor(ada)} {
		if !slices.ContainsFunc(v.Findings, func(f Finding) bool {
			return f.Subject == root && f.Fix == "hcpx repair" && strings.Contains(f.Message, "notes/keep")
		}) {
			t.Error(v.Findings)
		}
	}
	if after := contents(t, w.Store.Home()); len(after) != len(before) {
		t.Error("looking changed the store")
	}
	if _, err := w.Repair(as("agent:a")); err == nil {
		t.Error("an agent repaired")
	}
	view, refusal := w.Repair(ada)
	if refusal != nil || len(view.Done) < 3 || !slices.Contains(view.Kept, filepath.Join(w.Store.Home(), "quarantine", "run")) {
		t.Errorf("%+v %v", view, refusal)
	}
	if text, err := os.ReadFile(filepath.Join(root, "Makefile")); string(text) != "all:\n" {
		t.Error(string(text), err)
	}
	if _, err := os.Lstat(filepath.Join(root, ".envrc")); err == nil {
		t.Error("it stands")
	}
	if view, refusal := w.Repair(ada); refusal != nil || strings.Contains(strings.Join(view.Done, " "), "cut off") {
		t.Errorf("%+v %v", view, refusal)
	}
}

// One run that can't be mended keeps no other from it, and repair does not work beside a write command.
func Test_10_2_RepairGoesOn(t *testing.T) {
	w := newWorld(t)
	onDisk(t, w)
	open := filepath.Join(w.Store.Home(), "quarantine", ".open")
	cut := func(run string) string {
		root := t.TempDir()
		write(t, filepath.Join(root, "Makefile"), "all:\n", 0o644)
		g, err := protect.Begin(context.Background(), protect.Watch{Home: w.Store.Home(), Run: run, Command: "notes/keep", Root: root})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(filepath.Join(open, run+"-copy"), os.DirFS(filepath.Join(open, run))); err != nil {
			t.Fatal(err)
		}
		if _, err := g.End(); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(root, "Makefile"), "evil:\n", 0o644)
		return root
	}
	lost, busy, good := cut("1"), cut("2"), cut("3")
	working, err := protect.Begin(context.Background(), protect.Watch{Home: w.Store.Home(), Run: "now", Root: busy})
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range []string{"1", "2", "3"} {
		if err := os.Rename(filepath.Join(open, run+"-copy"), filepath.Join(open, run)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(open, "1", "content"), "", 0o600)
	write(t, filepath.Join(open, "half", "content"), "", 0o600)
	view, refusal := w.Repair(ada)
	left := strings.Join(view.Left, " ")
	if refusal != nil || !strings.Contains(left, lost) || !strings.Contains(left, "A write command is running in "+busy) || strings.Contains(left, good) {
		t.Errorf("%v %v", left, refusal)
	}
	if text, err := os.ReadFile(filepath.Join(good, "Makefile")); string(text) != "all:\n" {
		t.Error(string(text), err)
	}
	if text, err := os.ReadFile(filepath.Join(busy, "Makefile")); string(text) != "evil:\n" {
		t.Error(string(text), err)
	}
	if _, err := working.End(); err != nil {
		t.Error(err)
	}
	if view, refusal := w.Repair(ada); refusal != nil || len(view.Left) > 0 {
		t.Error(view.Left, refusal)
	}
	if text, err := os.ReadFile(filepath.Join(busy, "Makefile")); string(text) != "all:\n" {
		t.Error(string(text), err)
	}
	if entries, err := os.ReadDir(open); err != nil || len(entries) > 0 {
		t.Error(entries, err)
	}
}

// §10.2: a workspace that was moved away and a journal that can't be read are left, and repair says so.
func Test_10_2_RepairTellsWhatIsLeft(t *testing.T) {
	for _, damaged := range []bool{false, true} {
		w := newWorld(t)
		onDisk(t, w)
		root := filepath.Join(t.TempDir(), "repo")
		write(t, filepath.Join(root, "Makefile"), "all:\n", 0o644)
		open := cutOff(t, w, root)
		if damaged {
			write(t, filepath.Join(open, "before.json"), "{", 0o600)
		} else if err := os.Rename(root, root+"-moved"); err != nil {
			t.Fatal(err)
		}
		view, refusal := w.Repair(ada)
		if refusal != nil || !view.Changed || len(view.Left) != 1 || !strings.Contains(view.Left[0], "not put back") {
			t.Errorf("%+v %v", view, refusal)
		}
		if view, refusal := w.Repair(ada); refusal != nil || len(view.Left) > 0 {
			t.Errorf("%+v %v", view, refusal)
		}
	}
}
