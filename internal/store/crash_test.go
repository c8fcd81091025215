package store

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"hcpx/internal/pack"
)

// TestMain lets the test binary stand for another process that works on the same store.
func TestMain(m *testing.M) {
	if os.Getenv("STORE_CHILD") != "" {
		if err := child(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child runs one act; args are home, act and the number of the point at which to die (0 = never).
func child(args []string) error {
	die, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	fmt.Println("ready")
	n := 0
	s := OpenFS(args[0], Options{Now: time.Now, fault: func(string) error {
		if n++; n == die {
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return nil
	}})
	return act(s, args[1])
}

func act(s *FS, name string) error {
	op, arg, _ := strings.Cut(name, "=")
	switch op {
	case "install":
		return s.Install("demo", files(arg), Meta{Version: arg})
	case "rollback":
		return s.Rollback("demo", "")
	case "remove":
		return s.Remove("demo")
	case "flip": // activates and deactivates, and leaves activated
		for _, on := range []bool{true, false, true} {
			if err := s.Update(func(st *State) error { st.SetActivated("default", arg, on); return nil }); err != nil {
				return err
			}
		}
		return nil
	case "shelve":
		k := s.Shelf("things")
		return k.Locked(func() error { return k.Put("a", []byte(arg)) })
	case "skill":
		return s.PutSkill("demo", []byte(arg))
	}
	return errors.New("unknown act " + op)
}

func files(version string) fstest.MapFS {
	return fstest.MapFS{"surface.json": {Data: []byte(version)}, "bin/tool": {Data: []byte("tool " + version), Mode: 0o755}}
}

func process(t *testing.T, home, act string, die int) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, home, act, strconv.Itoa(die))
	cmd.Env = append(os.Environ(), "STORE_CHILD=1")
	cmd.Stderr = os.Stderr
	return cmd
}

// killed runs an act in a process that dies at a point and says whether it did.
func killed(t *testing.T, home, act string, die int) bool {
	t.Helper()
	err := process(t, home, act, die).Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
		return true
	}
	if err != nil {
		t.Fatalf("%s: %v", act, err)
	}
	return false
}

func openTest(home string) *FS { return OpenFS(home, Options{Now: time.Now}) }

// whole reads the installed version and checks that record, files and previous version fit; "" is none.
func whole(t *testing.T, s *FS) (version, previous string) {
	t.Helper()
	meta, err := s.Meta("demo")
	if errors.Is(err, ErrNotInstalled) {
		return "", ""
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := pack.Intact(s.Dir("demo"), meta.Record); err != nil {
		t.Fatalf("half a pack: %v", err)
	}
	data, err := os.ReadFile(filepath.Join(s.Dir("demo"), "surface.json"))
	if err != nil || string(data) != meta.Version {
		t.Fatalf("record says %q, files say %q, %v", meta.Version, data, err)
	}
	prev, err := s.Previous("demo")
	if errors.Is(err, ErrNotInstalled) {
		return meta.Version, ""
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := pack.Intact(filepath.Join(s.previousDir(), "demo"), prev.Record); err != nil {
		t.Fatalf("half a previous pack: %v", err)
	}
	return meta.Version, prev.Version
}

// §15.2: a record is the old one or the new one, and what a kill left is swept by the next change.
func Test_15_2_AKilledPutLeavesOldOrNew(t *testing.T) {
	for old := range 2 {
		for die := 1; ; die++ {
			home := t.TempDir()
			want := map[string]bool{"": old == 0, "new": true, "old": old == 1}
			if old == 1 && killed(t, home, "shelve=old", 0) {
				t.Fatal("killed")
			}
			dead := killed(t, home, "shelve=new", die)
			k := openTest(home).Shelf("things")
			data, err := k.Get("a")
			if err != nil && !errors.Is(err, fs.ErrNotExist) || !want[string(data)] || !dead && string(data) != "new" {
				t.Fatalf("killed at %d: %q %v", die, data, err)
			}
			if err := k.Locked(func() error { return nil }); err != nil {
				t.Fatal(err)
			}
			if entries, err := os.ReadDir(filepath.Join(home, "things")); err != nil || len(entries) > 1 {
				t.Fatalf("killed at %d: %v are left, %v", die, entries, err)
			}
			if !dead {
				break
			}
		}
	}
}

func Test_11_3_KilledAtEveryPointLeavesOldOrNew(t *testing.T) {
	cases := []struct {
		name, act string
		before    []string
		old, new  [2]string
	}{
		{"first install", "install=1", nil, [2]string{"", ""}, [2]string{"1", ""}},
		{"second install", "install=2", []string{"install=1"}, [2]string{"1", ""}, [2]string{"2", "1"}},
		{"third install", "install=3", []string{"install=1", "install=2"}, [2]string{"2", "1"}, [2]string{"3", "2"}},
		{"rollback", "rollback", []string{"install=1", "install=2"}, [2]string{"2", "1"}, [2]string{"1", "2"}},
		{"remove", "remove", []string{"install=1", "install=2"}, [2]string{"2", "1"}, [2]string{"", ""}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			sawOld, sawNew := false, false
			for point := 1; ; point++ {
				home := filepath.Join(t.TempDir(), "home")
				s := openTest(home)
				for _, a := range c.before {
					if err := act(s, a); err != nil {
						t.Fatal(err)
					}
				}
				if !killed(t, home, c.act, point) {
					break
				}
				seen := untouched(t, s)
				v, p := whole(t, s)
				got := [2]string{v, p}
				if got != seen {
					t.Errorf("point %d: a reader saw %q, and it became %q", point, seen, got)
				}
				if got != c.old && got != c.new {
					t.Fatalf("point %d: version and previous are %q, want %q or %q", point, got, c.old, c.new)
				}
				sawOld, sawNew = sawOld || got == c.old, sawNew || got == c.new
				clean(t, s)
			}
			if !sawOld || !sawNew {
				t.Errorf("the points prove nothing: old %v, new %v", sawOld, sawNew)
			}
		})
	}
}

// untouched is what a reader sees after a crash, while it changes nothing (§12.1.9).
func untouched(t *testing.T, s *FS) [2]string {
	t.Helper()
	before := tree(t, s.home)
	r := s.Reader()
	seen := [2]string{}
	ids, err := r.Packs()
	if err != nil {
		t.Fatal(err)
	}
	if meta, err := r.Meta("demo"); err == nil {
		seen[0] = meta.Version
		if err := pack.Intact(r.Dir("demo"), meta.Record); err != nil {
			t.Errorf("a reader finds half a pack: %v", err)
		}
	} else if !errors.Is(err, ErrNotInstalled) {
		t.Fatal(err)
	}
	if prev, err := r.Previous("demo"); err == nil {
		seen[1] = prev.Version
	}
	if (len(ids) > 0) != (seen[0] != "") {
		t.Errorf("listed %v, installed %q", ids, seen[0])
	}
	if after := tree(t, s.home); !slices.Equal(before, after) {
		t.Errorf("a reader changed the store:\n%v\n%v", before, after)
	}
	return seen
}

// tree names everything below dir.
func tree(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		names = append(names, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// clean proves that the next write removes every leftover of a crash.
func clean(t *testing.T, s *FS) {
	t.Helper()
	if err := s.Install("other", files("9"), Meta{}); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"packs", "packs/.meta"} {
		entries, err := os.ReadDir(s.path(dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.Contains(e.Name(), ".staging") || strings.HasSuffix(e.Name(), journalEnd) || dir == "packs/.meta" && e.Name()[0] == '.' {
				t.Errorf("%s/%s is left", dir, e.Name())
			}
		}
	}
	if _, err := os.Stat(s.path("packs", "other", "surface.json")); err != nil {
		t.Error(err)
	}
}

func Test_11_3_KilledAtEveryPointKeepsState(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	s := openTest(home)
	if err := act(s, "flip=first"); err != nil {
		t.Fatal(err)
	}
	for point := 1; killed(t, home, "flip=second", point); point++ {
		st, err := s.State()
		if err != nil || !st.IsActivated("default", "first") {
			t.Fatalf("point %d: %+v, %v", point, st, err)
		}
	}
	for point := 1; killed(t, home, "skill=# "+strconv.Itoa(point), point); point++ {
		if text, err := s.Skill("demo"); err == nil && !strings.HasPrefix(string(text), "# ") {
			t.Fatalf("point %d: half a skill %q", point, text)
		}
	}
	if err := act(s, "flip=third"); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(home, ".state.json-*")); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}

func Test_11_3_KilledAtRandomMoments(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	s := openTest(home)
	if err := act(s, "install=0"); err != nil {
		t.Fatal(err)
	}
	acts := []string{"rollback", "flip=x", "install=7", "install=8"}
	for i := range 40 {
		cmd := process(t, home, acts[i%len(acts)], 0)
		cmd.Stderr = nil
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil { // it has begun
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(20_000)) * time.Microsecond) // the moment of death is what is tried
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed, or done, or nothing to roll back to
		if v, _ := whole(t, s); v == "" {
			t.Fatal("the pack is gone")
		}
		if _, err := s.State(); err != nil {
			t.Fatal(err)
		}
	}
}

func Test_11_3_200ProcessesLoseNoUpdate(t *testing.T) {
	const n = 200
	home := filepath.Join(t.TempDir(), "home")
	limit := make(chan struct{}, 50) // alive at once: enough to collide, not to exhaust a small machine
	errs := make(chan error, n)
	for i := range n {
		limit <- struct{}{}
		cmd := process(t, home, fmt.Sprintf("flip=pack-%d", i), 0)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() {
			errs <- cmd.Wait()
			<-limit
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	st, err := openTest(home).State()
	if err != nil {
		t.Fatal(err)
	}
	if len(st.Activated) != n {
		t.Errorf("%d of %d are activated", len(st.Activated), n)
	}
}

func Test_11_3_CleanUpSparesLivingStaging(t *testing.T) {
	s := openTest(filepath.Join(t.TempDir(), "home"))
	staging, resume := make(chan struct{}), make(chan struct{})
	slow := OpenFS(s.home, Options{Now: time.Now, fault: func(point string) error {
		if point == "stage:seal" {
			close(staging)
			<-resume
		}
		return nil
	}})
	first, second := make(chan error), make(chan error)
	go func() { first <- slow.Install("demo", files("1"), Meta{Version: "1"}) }()
	<-staging
	go func() { second <- s.Install("other", files("2"), Meta{Version: "2"}) }()
	if _, err := s.Meta("demo"); !errors.Is(err, ErrNotInstalled) { // a reader does not wait
		t.Errorf("Meta while staging: %v", err)
	}
	close(resume)
	if err := errors.Join(<-first, <-second); err != nil {
		t.Fatal(err)
	}
	if v, _ := whole(t, s); v != "1" {
		t.Errorf("version %q", v)
	}
}
