package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hcpx/internal/pack"
	"hcpx/internal/protocol"
)

// forms are what can stand in a file's place and is none.
var forms = map[string]func(t *testing.T, path string) error{
	"fifo":          func(_ *testing.T, path string) error { return syscall.Mkfifo(path, 0o600) },
	"dangling link": func(_ *testing.T, path string) error { return os.Symlink("nowhere", path) },
	"link to a file": func(t *testing.T, path string) error {
		other := filepath.Join(t.TempDir(), "other")
		write(t, other, "{}")
		return os.Symlink(other, path)
	},
	"directory": func(_ *testing.T, path string) error { return os.Mkdir(path, 0o700) },
}

// full is a store with one pack, activated, and a skill.
func full(t *testing.T) *FS {
	t.Helper()
	s := openTest(filepath.Join(t.TempDir(), "home"))
	for _, a := range []string{"install=1", "flip=demo", "skill=x"} {
		if err := act(s, a); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func Test_11_3_WhatIsNoFileIsDamageAndNeverWaitedFor(t *testing.T) {
	reads := map[string]func(*FS) error{
		"state.json": func(s *FS) error {
			_, err := s.State()
			if fault := s.Update(func(*State) error { return nil }); (fault == nil) != (err == nil) {
				return errors.Join(errors.New("read and change differ"), fault)
			}
			return err
		},
		"packs/.meta/demo.json":     func(s *FS) error { _, err := s.Meta("demo"); return err },
		"packs/.meta/demo.journal":  func(s *FS) error { _, err := s.Reader().Meta("demo"); return err },
		"packs/.meta/other.journal": func(s *FS) error { _, err := s.Packs(); return err },
		"skills/demo/SKILL.md":      func(s *FS) error { _, err := s.Skill("demo"); return err },
		".state.lock":               func(s *FS) error { return s.Update(func(*State) error { return nil }) },
		"packs/.lock":               func(s *FS) error { return s.Restamp("demo") },
	}
	for form, put := range forms {
		for name, read := range reads {
			t.Run(form+" "+name, func(t *testing.T) {
				s := full(t)
				path := filepath.Join(s.Home(), name)
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
				if err := put(t, path); err != nil {
					t.Fatal(err)
				}
				var d *DamagedError
				if err := read(s); !errors.As(err, &d) || d.Path != path || d.Reason == "" {
					t.Errorf("%v", err)
				}
				if info, err := os.Lstat(path); err != nil || info.Mode().IsRegular() {
					t.Errorf("it was replaced: %v", err)
				}
			})
		}
	}
}

// §11.3: repair puts such things aside and keeps them.
func Test_11_3_RepairPutsAsideWhatIsNoFile(t *testing.T) {
	for form, put := range forms {
		for _, name := range []string{"state.json", ".state.lock", "packs/.lock", "packs/.meta/other.journal"} {
			if form == "directory" && name == "state.json" {
				continue // nothing of it can be kept beside a new state: a person moves it
			}
			s := full(t)
			path := filepath.Join(s.Home(), name)
			if err := os.RemoveAll(path); err != nil {
				t.Fatal(err)
			}
			if err := put(t, path); err != nil {
				t.Fatal(err)
			}
			done, err := s.Repair()
			if err != nil || done.Copy == "" && len(done.Journals) == 0 {
				t.Errorf("%s for %s: %+v %v", form, name, done, err)
			}
			if err := act(s, "flip=other"); err != nil {
				t.Errorf("%s for %s: %v", form, name, err)
			}
			if st, err := s.State(); err != nil || !st.IsActivated("default", "demo") {
				t.Errorf("%s for %s: %+v %v", form, name, st, err)
			}
		}
	}
}

func Test_2_4_APackBehindALinkIsNotIntact(t *testing.T) {
	s := full(t)
	moved := filepath.Join(t.TempDir(), "moved")
	if err := errors.Join(os.Rename(s.Dir("demo"), moved), os.Symlink(moved, s.Dir("demo"))); err != nil {
		t.Fatal(err)
	}
	meta, err := s.Meta("demo")
	if err != nil {
		t.Fatal(err)
	}
	var tampered *pack.Tampered
	if err := pack.Intact(s.Dir("demo"), meta.Record); !errors.As(err, &tampered) {
		t.Errorf("%v", err)
	}
	if err := s.Restamp("demo"); !errors.As(err, &tampered) {
		t.Errorf("restamp: %v", err)
	}
}

// holding takes the lock as another process would.
func holding(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}

func Test_11_3_ALockThatIsHeldIsNotWaitedForForEver(t *testing.T) {
	for name, change := range map[string]func(*FS) error{
		".state.lock": func(s *FS) error { return act(s, "flip=other") },
		"packs/.lock": func(s *FS) error { return act(s, "install=3") },
	} {
		s := full(t)
		path := filepath.Join(s.Home(), name)
		holding(t, path)
		impatient := OpenFS(s.Home(), Options{Now: time.Now, patience: time.Millisecond})
		var e *protocol.Error
		if err := change(impatient); !errors.As(err, &e) || !strings.Contains(e.Message, path) || !strings.Contains(e.Hint, path) {
			t.Errorf("%s: %v", name, err)
		}
		gone := make(chan struct{})
		close(gone)
		if err := change(OpenFS(s.Home(), Options{Now: time.Now, Done: gone})); !errors.As(err, &e) || e.Code != protocol.Canceled {
			t.Errorf("%s, cancelled: %v", name, err)
		}
	}
}

func Test_11_3_TheNextChangeClearsWhatACrashStaged(t *testing.T) {
	for name, change := range map[string]func(*FS) error{
		"a change of the state": func(s *FS) error { return act(s, "flip=other") },
		"repair":                func(s *FS) error { _, err := s.Repair(); return err },
	} {
		s := full(t)
		left := filepath.Join(s.Home(), "packs", staging+"1")
		write(t, filepath.Join(left, "bin", "tool"), "x")
		lock, err := os.Open(filepath.Join(s.Home(), "packs", ".lock"))
		if err != nil {
			t.Fatal(err)
		}
		if name != "repair" { // a living process stages: it is left alone and not waited for
			if err := errors.Join(syscall.Flock(int(lock.Fd()), syscall.LOCK_EX), change(s)); err != nil || !exists(left) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := errors.Join(lock.Close(), change(s)); err != nil || exists(left) {
			t.Errorf("%s: it is still there, %v", name, err)
		}
	}
}
