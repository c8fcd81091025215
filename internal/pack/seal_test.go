package pack

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func Test_2_4_Digest(t *testing.T) {
	hash := func(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) }
	// Byte order of path: "B" before "a", "a-b" before "a/b".
	files := []File{{Path: "a/b", Mode: '-', Sum: hash("1")}, {Path: "B", Mode: 'x', Sum: hash("2")}, {Path: "a-b", Mode: 'l', Sum: hash("B")}}
	text := "B\x00x\x00" + hash("2") + "\n" + "a-b\x00l\x00" + hash("B") + "\n" + "a/b\x00-\x00" + hash("1") + "\n"
	if got, want := Digest(files), "sha256:"+hash(text); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if files[0].Path != "a/b" {
		t.Error("Digest reorders the caller's files")
	}
}

func Test_2_4_LoadAndSealAgreeOnTheDigest(t *testing.T) {
	dir := onDisk(t)
	must(t, os.MkdirAll(filepath.Join(dir, "empty/dir"), 0o755))
	p, issues := Load(rooted(t, dir), Limits{})
	r, err := Seal(dir, time.Now())
	if err != nil || len(issues) > 0 {
		t.Fatal(err, issues)
	}
	if r.Digest != Digest(p.Files) {
		t.Error("the digests differ")
	}
	must(t, os.RemoveAll(filepath.Join(dir, "empty")))
	again, err := Seal(dir, time.Now())
	if err != nil || again.Digest != r.Digest {
		t.Errorf("an empty directory counts: %v", err)
	}
}

// changes are all ways in which a pack may stop to be the one that was recorded.
var changes = map[string]struct {
	path   string
	change func(dir string) error
}{
	"changed": {"HARNESS.md", func(d string) error { return os.WriteFile(d+"/HARNESS.md", []byte(harness+"x"), 0o644) }},
	"changed, same size": {"policy.json", func(d string) error {
		return os.WriteFile(d+"/policy.json", []byte(" "+rules[1:]), 0o644)
	}},
	"removed":               {"docs/a/b", func(d string) error { return os.Remove(d + "/docs/a/b") }},
	"added":                 {"new", func(d string) error { return os.WriteFile(d+"/new", nil, 0o644) }},
	"added below":           {"docs/a/new", func(d string) error { return os.WriteFile(d+"/docs/a/new", nil, 0o644) }},
	"empty directory added": {"new", func(d string) error { return os.Mkdir(d+"/new", 0o755) }},
	"link added":            {"new", func(d string) error { return os.Symlink("b", d+"/new") }},
	"made executable":       {"policy.json", func(d string) error { return os.Chmod(d+"/policy.json", 0o755) }},
	"no longer executable":  {"bin/tool", func(d string) error { return os.Chmod(d+"/bin/tool", 0o644) }},
	"link leads elsewhere":  {"b", func(d string) error { return errors.Join(os.Remove(d+"/b"), os.Symlink("policy.json", d+"/b")) }},
	"link became a file":    {"b", func(d string) error { return errors.Join(os.Remove(d+"/b"), os.WriteFile(d+"/b", []byte("b"), 0o644)) }},
	"link removed":          {"b", func(d string) error { return os.Remove(d + "/b") }},
	"file became a link": {"docs/a/b", func(d string) error {
		return errors.Join(os.Rename(d+"/docs/a/b", d+"/../x"), os.Symlink("../../../x", d+"/docs/a/b"))
	}},
	"directory became a link": {"docs", func(d string) error {
		return errors.Join(os.Rename(d+"/docs", d+"/../docs"), os.Symlink("../docs", d+"/docs"))
	}},
	"file became a directory": {"policy.json", func(d string) error {
		return errors.Join(os.Remove(d+"/policy.json"), os.Mkdir(d+"/policy.json", 0o755))
	}},
	"everything is gone": {"", func(d string) error { return os.RemoveAll(d) }},
	"another file in its place": {"HARNESS.md", func(d string) error {
		return errors.Join(os.WriteFile(d+"/../x", []byte("x"), 0o644), os.Rename(d+"/../x", d+"/HARNESS.md"))
	}},
}

func Test_2_4_ChangesAreFound(t *testing.T) {
	// A record made "now" is young and proved by hashes; one made "later" by stat.
	for age, after := range map[string]time.Duration{"young": 0, "settled": time.Hour} {
		for name, c := range changes {
			t.Run(age+"/"+name, func(t *testing.T) {
				dir := onDisk(t)
				r, err := Seal(dir, time.Now().Add(after))
				must(t, err)
				must(t, Intact(dir, r))
				must(t, c.change(dir))
				var found *Tampered
				if err := Intact(dir, r); !errors.As(err, &found) {
					t.Fatalf("not found: %v", err)
				}
				if c.path != "" && found.Path != c.path {
					t.Errorf("found in %q, want %q", found.Path, c.path)
				}
			})
		}
	}
}

func Test_2_4_WhatKeepsTheDigestIsIntact(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"touched":             func(d string) error { return os.Chtimes(d+"/HARNESS.md", time.Unix(1, 0), time.Unix(1, 0)) },
		"rewritten":           func(d string) error { return os.WriteFile(d+"/HARNESS.md", []byte(harness), 0o644) },
		"read-only":           func(d string) error { return os.Chmod(d+"/HARNESS.md", 0o444) },
		"added and removed":   func(d string) error { return errors.Join(os.WriteFile(d+"/x", nil, 0o644), os.Remove(d+"/x")) },
		"moved to elsewhere":  func(d string) error { return errors.Join(os.Rename(d, d+"2"), os.CopyFS(d, os.DirFS(d+"2"))) },
		"same link once more": func(d string) error { return errors.Join(os.Remove(d+"/b"), os.Symlink("docs/a/b", d+"/b")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := onDisk(t)
			r, err := Seal(dir, time.Now().Add(time.Hour))
			must(t, err)
			must(t, change(dir))
			if err := Intact(dir, r); err != nil {
				t.Error(err)
			}
		})
	}
}

func Test_2_4_NoRecordIsNotIntact(t *testing.T) {
	dir := onDisk(t)
	r, err := Seal(dir, time.Now())
	must(t, err)
	for name, r := range map[string]Record{"none": {}, "no digest": {Stamps: r.Stamps, Dirs: r.Dirs}, "no directories": {Digest: r.Digest, Stamps: r.Stamps}} {
		if Intact(dir, r) == nil {
			t.Errorf("%s: intact", name)
		}
	}
}

func Test_2_4_SealHasStampsOfEveryFileAndDirectory(t *testing.T) {
	r, err := Seal(onDisk(t), time.Now())
	must(t, err)
	keys := map[string]bool{}
	for k := range r.Stamps {
		keys[k] = true
	}
	for k := range r.Dirs {
		keys[k] = true
	}
	want := map[string]bool{".": true, "bin": true, "bin/tool": true, "docs": true, "docs/a": true, "docs/a/b": true, "HARNESS.md": true, "policy.json": true, "surface.json": true}
	if diff := cmp.Diff(want, keys); diff != "" || r.Links["b"] != "docs/a/b" {
		t.Error(diff, r.Links)
	}
}

// BenchmarkIntact is the cost of §2.4 on the path of an exec, settled (stat) and young (hash).
func BenchmarkIntact(b *testing.B) {
	for name, after := range map[string]time.Duration{"young": 0, "settled": time.Hour} {
		for _, files := range []int{0, 200} {
			b.Run(name+"/"+strconv.Itoa(5+files), func(b *testing.B) {
				dir := onDisk(b)
				for i := range files {
					write(b, filepath.Join(dir, "more", strconv.Itoa(i)), "some text")
				}
				r, err := Seal(dir, time.Now().Add(after))
				must(b, err)
				b.ReportAllocs()
				for b.Loop() {
					must(b, Intact(dir, r))
				}
			})
		}
	}
}
