package lifecycle

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// onDisk is a world over the reference layout of §11.3.
func onDisk(t testing.TB, w *world) *store.FS {
	disk := store.OpenFS(filepath.Join(t.TempDir(), "home"), store.Options{Now: func() time.Time { return w.clock }})
	w.Store, w.Gate.Store = disk, disk
	return disk
}

func Test_11_3_TheStagesOnDisk(t *testing.T) {
	w := newWorld(t)
	disk := onDisk(t, w)
	if v := w.Doctor(ada); v.Exit != 0 {
		t.Errorf("a machine without a store: %v", levels(v))
	}
	if _, err := os.Stat(disk.Home()); err == nil {
		t.Error("doctor made a store")
	}
	if err := w.EnsureBootstrap(ada); err != nil {
		t.Fatal(err)
	}
	w.ready("notes")
	if _, err := os.Stat(filepath.Join(disk.Home(), "skills", "notes", "SKILL.md")); err != nil {
		t.Error(err)
	}
	if p := w.available(ada, "notes"); p.Status != StatusExecutable {
		t.Errorf("%+v", p)
	}
	w.install(w.pack("notes", "1.0.0", "1.1.0", "Keeps notes.", "Keeps more notes."), InstallOptions{})
	if _, err := w.Rollback(ada, "notes"); err != nil {
		t.Fatal(err)
	}
	if v := w.Doctor(ada); v.Exit != 0 {
		t.Errorf("%v", levels(v))
	}
	if view, err := w.Uninstall(t.Context(), ada, "notes", UninstallOptions{}); err != nil || !view.Changed {
		t.Errorf("%+v %v", view, err)
	}
	for _, name := range []string{"packs/notes", "skills/notes", "packs/.meta/notes.json", "packs/.previous/notes"} {
		if _, err := os.Lstat(filepath.Join(disk.Home(), name)); err == nil {
			t.Errorf("%s is left", name)
		}
	}
}

func Test_11_3_ADamagedStateIsRefusedUntilRepaired(t *testing.T) {
	w := newWorld(t)
	disk := onDisk(t, w)
	w.ready("notes")
	path := filepath.Join(disk.Home(), "state.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	broken := strings.Replace(string(text), `"bins"`, `"bins" oops`, 1)
	write(t, path, broken, 0o600)
	for name, act := range map[string]func() *protocol.Error{
		"install": func() *protocol.Error {
			_, err := w.Install(ada, []string{w.pack("memos")}, InstallOptions{})
			return err
		},
		"activate":   func() *protocol.Error { _, err := w.Activate(ada, []string{"notes"}); return err },
		"deactivate": func() *protocol.Error { _, err := w.Deactivate(t.Context(), ada, []string{"notes"}); return err },
		"list":       func() *protocol.Error { _, err := w.List(ada); return err },
		"bootstrap":  func() *protocol.Error { return w.EnsureBootstrap(ada) }, // not there yet
	} {
		if err := act(); code(err) != protocol.StateDamaged || err.Hint != "hcpx repair" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if now, err := os.ReadFile(path); err != nil || string(now) != broken {
		t.Error("the damaged state was overwritten")
	}
	if v := w.Status(ada); v.Exit != 1 {
		t.Errorf("%+v", v)
	}
	view, refusal := w.Repair(ada)
	if refusal != nil || !view.Changed || len(view.Kept) != 1 {
		t.Fatalf("%+v %v", view, refusal)
	}
	if kept, err := os.ReadFile(view.Kept[0]); err != nil || string(kept) != broken {
		t.Error("the damaged file was not kept")
	}
	if _, err := w.Activate(ada, []string{"notes"}); err != nil {
		t.Error(err)
	}
}

func Test_11_3_ManyActivateAtOnce(t *testing.T) {
	w := newWorld(t)
	onDisk(t, w)
	w.NewID = func() string { return "id" }
	w.install(w.pack("notes"), InstallOptions{AllowBin: true})
	var wg sync.WaitGroup
	for i := range 16 {
		session := in("session-" + string(rune('a'+i)))
		wg.Go(func() {
			for range 3 {
				if _, err := w.Activate(session, []string{"notes"}); err != nil {
					t.Error(err)
				}
				if _, err := w.Deactivate(t.Context(), session, []string{"notes"}); err != nil {
					t.Error(err)
				}
			}
			if _, err := w.Activate(session, []string{"notes"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := len(w.mustState().SessionsOf("notes")); got != 16 {
		t.Errorf("%d sessions", got)
	}
	if w.skillState("notes") != skillCurrent {
		t.Error("the skill is gone while sessions have the pack activated")
	}
}

// BenchmarkEnsureBootstrap is what each start pays for §11.4.
func BenchmarkEnsureBootstrap(b *testing.B) {
	w := newWorld(b)
	onDisk(b, w)
	if err := w.EnsureBootstrap(ada); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := w.EnsureBootstrap(ada); err != nil {
			b.Fatal(err)
		}
	}
}
