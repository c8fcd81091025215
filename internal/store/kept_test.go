package store_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"hcpx/internal/store"
	"hcpx/internal/store/storetest"
)

// §3.6: a text that is not the record's is never given, and what no version names any more is removed.
func Test_3_6_ACompiledTextIsTheRecords(t *testing.T) {
	home := t.TempDir()
	s := store.OpenFS(home, store.Options{Now: time.Now})
	for _, version := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		m := storetest.Meta(version)
		m.Compiled = []byte("compiled " + version)
		if err := s.Install("demo", storetest.Files(version), m); err != nil {
			t.Fatal(err)
		}
	}
	left, err := filepath.Glob(filepath.Join(home, "packs", ".compiled", "*"))
	if err != nil || len(left) != 2 {
		t.Fatalf("%v %v", left, err)
	}
	m, err := s.Meta("demo")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range left {
		if err := os.WriteFile(file, []byte("another"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := s.Compiled(m); err == nil {
		t.Errorf("given: %s", text)
	}
	if err := s.Remove("demo"); err != nil {
		t.Fatal(err)
	}
	if left, err = filepath.Glob(filepath.Join(home, "packs", ".compiled", "*")); err != nil || len(left) != 0 {
		t.Errorf("%v %v", left, err)
	}
}

// §12: a result lies for a day, and goes when the next one is kept, or a server looks.
func Test_12_AResultLiesForADay(t *testing.T) {
	now := time.Now()
	s := store.OpenFS(t.TempDir(), store.Options{Now: func() time.Time { return now }})
	old, err := s.KeepResult("local", "run-1", "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(25 * time.Hour)
	next, err := s.KeepResult("local", "run-2", "a", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("it lies still: %v", err)
	}
	if _, err := os.Stat(next); err != nil {
		t.Error(err)
	}
	now = now.Add(25 * time.Hour)
	s.SweepResults()
	if _, err := os.Stat(next); !os.IsNotExist(err) {
		t.Errorf("it lies still: %v", err)
	}
}
