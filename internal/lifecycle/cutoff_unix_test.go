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

// §10.2: a run that was killed with its runtime is named by status and doctor, and repair, a person's act, puts back.
func Test_10_2_RepairPutsBackWhatACutOffRunChanged(t *testing.T) {
	w := newWorld(t)
	onDisk(t, w)
	root := t.TempDir()
	write(t, filepath.Join(root, "Makefile"), "all:\n", 0o644)
	open := filepath.Join(w.Store.Home(), "quarantine", ".open", "run")
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
