package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"hcpx/internal/grant"
	"hcpx/internal/protocol"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func Test_11_3_OpeningAndReadingCreateNothing(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	s := openTest(home)
	_, err := s.State()
	_, err2 := s.Packs()
	_, err3 := s.Meta("demo")
	_, err4 := s.Skill("demo")
	if err != nil || err2 != nil || !errors.Is(err3, ErrNotInstalled) || !errors.Is(err4, fs.ErrNotExist) {
		t.Error(err, err2, err3, err4)
	}
	if err := errors.Join(s.Remove("demo"), s.DropSkill("demo"), s.PurgeLand("demo")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(home); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("home exists: %v", err)
	}
	if err := act(s, "flip=demo"); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]fs.FileMode{home: 0o700, filepath.Join(home, "state.json"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

func Test_11_3_AnUnsafeHomeIsRefused(t *testing.T) {
	for _, mode := range []fs.FileMode{0o777, 0o722, 0o770} {
		home := t.TempDir()
		if err := os.Chmod(home, mode); err != nil {
			t.Fatal(err)
		}
		s := openTest(home)
		var unsafe *UnsafeError
		if _, err := s.State(); !errors.As(err, &unsafe) || unsafe.Hint == "" {
			t.Errorf("%v: State: %v", mode, err)
		}
		if err := s.Install("demo", files("1"), Meta{}); !errors.As(err, &unsafe) {
			t.Errorf("%v: Install: %v", mode, err)
		}
	}
	if os.Geteuid() == 0 {
		home := t.TempDir()
		if err := os.Chown(home, 12345, 12345); err != nil {
			t.Fatal(err)
		}
		var unsafe *UnsafeError
		if _, err := openTest(home).State(); !errors.As(err, &unsafe) {
			t.Errorf("another user's home: %v", err)
		}
	}
}

func Test_11_3_ADamagedStateIsNeverOverwritten(t *testing.T) {
	cases := []struct {
		name, text   string
		line, column int
	}{
		{"empty", "", 1, 1},
		{"cut off", "{\n  \"activated\": [\"a\"", 2, 20},
		{"zeros", "\x00\x00\x00", 1, 1},
		{"two values", "{}\n{}", 2, 1},
		{"no object", "[1]", 1, 1},
		{"duplicate", "{\"native\": [],\n \"native\": []}", 2, 2},
		{"nested duplicate", "{\"x\": {\"a\": 1,\n\"a\": 2}}", 2, 1},
		{"wrong type", "{\n \"activated\": {}}", 2, 15},
		{"list in a list", `{"activated": [["a"]]}`, 1, 15},
		{"numbers", `{"connected": [1]}`, 1, 15},
		{"bad grant", "{\"grants\": [{\"principal\": \"agent:*\", \"effect\": \"maybe\", \"capabilities\": []}]}", 1, 12},
		{"unknown member of a grant", `{"grants": [{"principal": "human:*", "effect": "allow", "capabilities": ["pack.install"], "only_on": "monday"}]}`, 1, 12},
		{"bad session", "{\"sessions\": {\"ci\": {\n\"activated\": 3}}}", 2, 14},
		{"bad UTF-8", "{\"activated\": [\"\xff\"]}", 1, 17},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			home := t.TempDir()
			path := filepath.Join(home, "state.json")
			write(t, path, c.text)
			if err := os.Chmod(home, 0o700); err != nil {
				t.Fatal(err)
			}
			s := openTest(home)
			var d *DamagedError
			if _, err := s.State(); !errors.As(err, &d) {
				t.Fatalf("State: %v", err)
			}
			if d.Path != path || d.Line != c.line || d.Column != c.column {
				t.Errorf("place %s, want %d:%d", d.Error(), c.line, c.column)
			}
			if err := act(s, "flip=x"); !errors.As(err, &d) {
				t.Errorf("Update: %v", err)
			}
			if now, err := os.ReadFile(path); err != nil || string(now) != c.text {
				t.Errorf("the file became %q, %v", now, err)
			}
		})
	}
}

func Test_11_3_TheReferenceLayoutIsReadable(t *testing.T) {
	s, err := DecodeState("state.json", []byte(`{ "activated": ["a", "b"], "connected": ["b"] }`))
	if err != nil {
		t.Fatal(err)
	}
	want := &State{Activated: []string{"a", "b"}, Connected: []string{"b"}, Grants: grant.Defaults()}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Error(diff)
	}
}

func Test_11_3_RepairKeepsWhatItCan(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	s := openTest(home)
	if err := errors.Join(act(s, "install=1"), s.PutSkill("demo", []byte("# Demo")), s.Update(func(st *State) error {
		st.SetActivated("default", "demo", true)
		st.Native = []string{"demo"}
		st.Bins = []protocol.AllowedBin{{Name: "git", Path: "/usr/bin/git"}}
		st.SetActivated("ci", "demo", true)
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(home, "state.json")
	sound, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if done, err := s.Repair(); err != nil || done.Copy != "" {
		t.Errorf("repair of a sound state: %+v, %v", done, err)
	}
	// A block in the middle is lost: the grants, and what stands on the same lines.
	i := strings.Index(string(sound), `"grants"`)
	j := strings.Index(string(sound), `"bins"`)
	broken := string(sound[:i]) + strings.Repeat("\x00", j-i-3) + string(sound[j-3:])
	write(t, path, broken)
	done, err := s.Repair()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"grants"}, done.Lost); diff != "" {
		t.Error(diff)
	}
	if kept, err := os.ReadFile(done.Copy); err != nil || string(kept) != broken || !strings.HasPrefix(done.Copy, path+".damaged-") {
		t.Errorf("copy %s: %v", done.Copy, err)
	}
	st, err := s.State()
	if err != nil {
		t.Fatal(err)
	}
	if !st.IsActivated("default", "demo") || !st.IsActivated("ci", "demo") || len(st.Bins) != 1 || len(st.Native) != 1 {
		t.Errorf("state: %+v", st)
	}
	for _, g := range st.Grants {
		if !strings.HasPrefix(g.Principal, "human:") {
			t.Errorf("lost denials could have limited %s", g)
		}
	}
	write(t, path, "")
	if done, err = s.Repair(); err != nil {
		t.Fatal(err)
	}
	if st, err = s.State(); err != nil || !st.IsActivated("default", "demo") {
		t.Errorf("activation from skills: %+v, %v", st, err)
	}
}

func Test_11_3_RepairKeepsDenials(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	write(t, filepath.Join(home, "state.json"), `{"grants": [
	  {"principal": "agent:*", "effect": "allow", "capabilities": ["verb.exec.read"]},
	  {"principal": "agent:*", "effect": "deny", "capabilities": ["verb.exec.write"]},
	  {"principal": "agent:x", "effect": "deny", "capabilities": ["verb.exec.write"], "new": true},
	  {"principal": "human:ada", "effect": "allow", "capabilities": ["pack.install"]}]}`)
	s := openTest(home)
	if _, err := s.Repair(); err != nil {
		t.Fatal(err)
	}
	st, err := s.State()
	if err != nil {
		t.Fatal(err)
	}
	if len(st.Grants) != 2 || st.Grants[0].Effect != grant.Deny || st.Grants[1].Principal != "human:ada" {
		t.Errorf("grants: %v", st.Grants)
	}
}

func Test_11_3_ADamagedJournalIsSetAside(t *testing.T) {
	home := filepath.Join(t.TempDir(), "home")
	s := openTest(home)
	if err := act(s, "install=1"); err != nil {
		t.Fatal(err)
	}
	write(t, s.journalOf("demo"), "{")
	var d *DamagedError
	if err := act(s, "install=2"); !errors.As(err, &d) {
		t.Errorf("Install: %v", err)
	}
	done, err := s.Repair()
	if err != nil || len(done.Journals) != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	if err := act(s, "install=2"); err != nil {
		t.Error(err)
	}
}

func Test_11_3_AnErrorAtEveryPointLeavesOldOrNew(t *testing.T) {
	for _, name := range []string{"install=2", "rollback", "flip=x"} {
		for point, done := 1, false; !done; point++ {
			home := filepath.Join(t.TempDir(), "home")
			s := openTest(home)
			if err := errors.Join(act(s, "install=0"), act(s, "install=1"), act(s, "flip=y")); err != nil {
				t.Fatal(err)
			}
			n := 0
			full := OpenFS(home, Options{Now: time.Now, fault: func(string) error {
				if n++; n == point {
					return syscall.ENOSPC
				}
				return nil
			}})
			err := act(full, name)
			if done = n < point; !done && !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("%s, point %d: %v", name, point, err)
			}
			if v, _ := whole(t, s); v == "" {
				t.Fatalf("%s, point %d: the pack is gone", name, point)
			}
			if st, err := s.State(); err != nil || !st.IsActivated("default", "y") {
				t.Fatalf("%s, point %d: %+v, %v", name, point, st, err)
			}
		}
	}
}

func Test_11_3_AFullDiskKeepsTheOldState(t *testing.T) {
	if byNamespaceRoot(t) {
		return
	}
	home := filepath.Join(t.TempDir(), "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := mountSmall(home); err != nil {
		t.Skipf("a small file system can't be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(home, 0) })
	s := openTest(home)
	if err := errors.Join(act(s, "install=1"), act(s, "flip=y")); err != nil {
		t.Fatal(err)
	}
	big := files("2")
	big["blob"] = &fstest.MapFile{Data: make([]byte, 1<<20)}
	if err := s.Install("demo", big, Meta{Version: "2"}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Install: %v", err)
	}
	err := s.Update(func(st *State) error { st.Native = []string{strings.Repeat("x", 1<<20)}; return nil })
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Update: %v", err)
	}
	if v, _ := whole(t, s); v != "1" {
		t.Errorf("version %q", v)
	}
	if st, err := s.State(); err != nil || !st.IsActivated("default", "y") {
		t.Errorf("%+v, %v", st, err)
	}
	if err := act(s, "install=3"); err != nil {
		t.Errorf("the failed install left no room: %v", err)
	}
}

func FuzzDecodeState(f *testing.F) {
	f.Add([]byte(`{"activated": ["a"], "sessions": {"ci": {"connected": []}}, "x": 1}`))
	f.Add([]byte(`{"grants": [{"principal": "human:*", "effect": "allow", "capabilities": ["pack.install"]}]}`))
	f.Add([]byte("{\"native\": [\"\\u0041\", \"b\"]"))
	f.Fuzz(func(t *testing.T, src []byte) {
		var done Repaired
		salvaged, err := EncodeState(salvage(src, &done))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeState("state.json", salvaged); err != nil {
			t.Fatalf("what repair writes is damaged: %v\n%s", err, salvaged)
		}
		s, err := DecodeState("state.json", src)
		if err != nil {
			return
		}
		text, err := EncodeState(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeState("state.json", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		text2, err := EncodeState(again)
		if err != nil || string(text) != string(text2) {
			t.Fatalf("not stable: %v\n%s\n%s", err, text, text2)
		}
	})
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"pack_id": "demo", "digest": "sha256:0", "stats": {"files": {"a": {"size": 1}}}, "previous": {"version": "1"}}`))
	f.Add([]byte(`{"installed_at": "now"}`))
	f.Fuzz(func(t *testing.T, src []byte) {
		r, err := decodeRecord("demo.json", src)
		if err != nil {
			var d *DamagedError
			if !errors.As(err, &d) || d.Line < 1 || d.Column < 1 {
				t.Errorf("without a place: %v", err)
			}
			return
		}
		text, err := encode(r)
		if err != nil {
			t.Skip(err) // a year that JSON does not write
		}
		again, err := decodeRecord("demo.json", text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, again, cmpopts.EquateEmpty()); diff != "" {
			t.Error(diff)
		}
	})
}

func BenchmarkState(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		b.Run(fmt.Sprintf("activated=%d", n), func(b *testing.B) {
			s := openTest(filepath.Join(b.TempDir(), "home"))
			if err := s.Update(func(st *State) error {
				for i := range n {
					st.Activated = append(st.Activated, fmt.Sprintf("some-pack-%d", i))
				}
				return nil
			}); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.State(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
