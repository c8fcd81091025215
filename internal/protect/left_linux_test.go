package protect

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// killed is a guard whose process died: its locks are gone and its journal is not.
func killed(t *testing.T, g *Guard) {
	t.Helper()
	must(t, g.close())
}

// A run that was killed with its runtime: the next one in that workspace waits for a person, who puts back.
func Test_10_2_Leftover(t *testing.T) {
	g := newGround(t)
	guard := g.begin("first")
	if left, err := Left(g.home); err != nil || len(left) > 0 {
		t.Fatal("a run that goes on is no leftover:", left, err)
	}
	g.write(g.root+"/.git/hooks/post-checkout", "evil", 0o755)
	must(t, os.Remove(g.root+"/Makefile"))
	killed(t, guard)

	_, err := Begin(context.Background(), g.watch("second"))
	var refused *LeftError
	if !errors.As(err, &refused) || refused.Left.Run != "first" || refused.Left.Root != g.root {
		t.Fatal(err)
	}
	other := newGround(t)
	w := other.watch("third")
	w.Home = g.home
	if guard, err := Begin(context.Background(), w); err != nil {
		t.Error("another workspace is not held up:", err)
	} else if _, err := guard.End(); err != nil {
		t.Error(err)
	}

	left, err := Left(g.home)
	if err != nil || len(left) != 1 || left[0].Command != "x/y" {
		t.Fatal(left, err)
	}
	changes, _, err := left[0].Mend()
	if err != nil || len(changes) != 2 || !changes[0].Restored || !changes[1].Restored {
		t.Fatalf("%+v %v", changes, err)
	}
	if _, err := os.Lstat(g.root + "/.git/hooks/post-checkout"); err == nil {
		t.Error("the hook stands")
	}
	if text, err := os.ReadFile(g.root + "/Makefile"); string(text) != "all:\n" {
		t.Error(string(text), err)
	}
	g.closed()
	if _, err := g.begin("fourth").End(); err != nil {
		t.Error(err)
	}
}

// One that changed nothing of the list holds nobody up.
func Test_10_2_LeftoverWithoutHarm(t *testing.T) {
	g := newGround(t)
	guard := g.begin("first")
	g.write(g.root+"/src/main.c", "changed", 0o644)
	killed(t, guard)
	if _, err := g.begin("second").End(); err != nil {
		t.Error(err)
	}
	g.closed()

	guard = g.begin("third") // killed before its journal was whole
	must(t, os.Remove(guard.dir+"/"+recordFile))
	killed(t, guard)
	if _, err := g.begin("fourth").End(); err != nil {
		t.Error(err)
	}

	guard = g.begin("fifth") // and its workspace is gone since
	killed(t, guard)
	must(t, os.RemoveAll(g.root))
	left, err := Left(g.home)
	if err != nil || len(left) != 1 {
		t.Fatal(left, err)
	}
	if _, _, err := left[0].Mend(); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
	if left, err = Left(g.home); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
	g = newGround(t)
	guard = g.begin("sixth") // and the disk broke
	must(t, os.WriteFile(guard.dir+"/"+recordFile, []byte("{"), 0o600))
	killed(t, guard)
	if left, err = Left(g.home); err != nil || len(left) != 1 {
		t.Fatal(left, err)
	}
	if _, _, err := left[0].Mend(); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
	g.closed()
}

// Write commands of one workspace take turns: what one changed and gets undone is never the other's look before.
func Test_10_2_WritesTakeTurns(t *testing.T) {
	g := newGround(t)
	first := g.begin("first")
	g.write(g.root+"/Makefile", "evil", 0o644)
	var busy *BusyError
	if _, err := Begin(context.Background(), g.watch("second")); !errors.As(err, &busy) || busy.Root != g.root {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	w := g.watch("third")
	w.Patience = time.Hour
	if _, err := Begin(ctx, w); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	waited := make(chan *Guard)
	go func() {
		guard, err := Begin(context.Background(), w)
		if err != nil {
			t.Error(err)
		}
		waited <- guard
	}()
	time.Sleep(20 * time.Millisecond)
	if changes, err := first.End(); err != nil || len(changes) != 1 {
		t.Error(changes, err)
	}
	if changes, err := (<-waited).End(); err != nil || changes != nil {
		t.Error(changes, err)
	}
	if text, err := os.ReadFile(g.root + "/Makefile"); string(text) != "all:\n" {
		t.Errorf("%s %v", text, err)
	}
	g.closed()
}

// What cannot be remembered is not run.
func Test_10_2_TooMuchToRemember(t *testing.T) {
	g := newGround(t)
	must(t, os.Truncate(g.root+"/Makefile", maxBytes+1))
	var much *TooMuchError
	if _, err := Begin(context.Background(), g.watch("first")); !errors.As(err, &much) || much.Path != "Makefile" {
		t.Error(err)
	}
	g.closed()
	for _, run := range []string{"", "..", "a/b"} {
		if _, err := Begin(context.Background(), g.watch(run)); err == nil {
			t.Errorf("%q named a run", run)
		}
	}
}

// Names that are no text are put back after a kill like any other: those of the workspace, of a git directory in it, of
// the user, and one that looks as if it were written so.
func Test_10_2_LeftoverWithNamesThatAreNoText(t *testing.T) {
	for _, name := range []string{"w\xff", "bytes:77", "\xc3\x28 u0041", "%ff"} {
		g := newGround(t)
		root := filepath.Dir(g.root) + "/" + name
		must(t, os.Rename(g.root, root))
		g.root = root
		g.repository(g.root + "/.git/modules/s" + name)
		must(t, add(g.root+"/.git/config", "\thooksPath = ~/"+name+"/hk\n"))
		w := g.watch("run")
		w.User = filepath.Dir(g.root)
		guard, err := Begin(context.Background(), w)
		must(t, err)
		was := picture(t, g.root)
		for _, at := range []string{"/Makefile", "/.git/hooks/post-checkout", "/hk/pre-commit", "/.git/modules/s" + name + "/config"} {
			g.write(g.root+at, "evil", 0o755)
		}
		killed(t, guard)
		left, err := Left(g.home)
		if err != nil || len(left) != 1 || left[0].Root != g.root {
			t.Fatalf("%q: %+v %v", name, left, err)
		}
		changes, _, err := left[0].Mend()
		if err != nil || len(changes) != 4 {
			t.Errorf("%q: %+v %v", name, changes, err)
		}
		must(t, os.Remove(g.root+"/hk"))
		if now := picture(t, g.root); now != was {
			t.Errorf("%q: %s", name, now)
		}
	}
}

// §8.4: who puts back after a run with a credential was killed does not know it: names that the run chose are not written.
func Test_8_4_ANameOfAKilledRun(t *testing.T) {
	g := newGround(t)
	w := g.watch("first")
	w.Mask = func(s string) string { return strings.ReplaceAll(s, "canary", "[redacted]") }
	guard, err := Begin(context.Background(), w)
	must(t, err)
	g.write(g.root+"/.git/hooks/canary", "evil", 0o755)
	g.write(g.root+"/.git/hooks/pre-commit", "evil", 0o755)
	killed(t, guard)
	left, err := Left(g.home)
	must(t, err)
	changes, _, err := left[0].Mend()
	if err != nil || len(changes) != 2 || changes[0].Path != ".git/hooks/[redacted]" || changes[1].Path != ".git/hooks/pre-commit" {
		t.Errorf("%+v %v", changes, err)
	}
	must(t, filepath.WalkDir(g.home, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(p)
		if strings.Contains(p+string(text), "canary") {
			t.Errorf("%s has it: %s", p, text)
		}
		return err
	}))
}
