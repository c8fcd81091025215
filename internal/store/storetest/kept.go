package storetest

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"hcpx/internal/store"
)

// compiled: each version has its own text, through an upgrade and a rollback; one without has none.
func compiled(t *testing.T, s store.Store) {
	at := func(want string) {
		t.Helper()
		m, err := s.Meta("demo")
		must(t, err)
		text, err := s.Compiled(m)
		if want == "" && !errors.Is(err, fs.ErrNotExist) || want != "" && (err != nil || string(text) != want) {
			t.Fatalf("%q %v, want %q", text, err, want)
		}
	}
	for _, version := range []string{"1.0.0", "1.1.0"} {
		m := Meta(version)
		m.Compiled = []byte("compiled " + version)
		must(t, s.Install("demo", Files(version), m))
		at("compiled " + version)
	}
	must(t, s.Rollback("demo", ""))
	at("compiled 1.0.0")
	must(t, s.Install("demo", Files("2.0.0"), Meta("2.0.0")))
	at("")
	must(t, s.Rollback("demo", ""))
	at("compiled 1.0.0")
}

func results(t *testing.T, s store.Store) {
	path, err := s.KeepResult("local", "run-1", "answer.bin", []byte{0, 255})
	must(t, err)
	info, err := os.Stat(path)
	must(t, err)
	if info.Size() != 2 || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v", info)
	}
	for _, names := range [][3]string{{"local", "run-1", "answer.bin"}, {"..", "run", "a"}, {"local", "../run", "a"}, {"local", "run", "a/b"}, {"local", "run", ""}, {"local", "", "a"}} {
		if path, err := s.KeepResult(names[0], names[1], names[2], nil); err == nil {
			t.Errorf("%v: kept at %s", names, path)
		}
	}
}
