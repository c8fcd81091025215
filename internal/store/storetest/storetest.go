// Package storetest is the suite that every kind of store passes (§11.3): installs are exact, read-only
// and reversible; state changes are kept, isolated and never half done; lands never share a directory.
//
// Run opens a fresh, empty store for each case. What only a store on disk promises (crashes, other
// processes, damage) is tested beside it.
package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/grant"
	"hcpx/internal/pack"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// Files is a small pack of the version: a file, a program, a link, a directory.
func Files(version string) fstest.MapFS {
	return fstest.MapFS{
		"surface.json": {Data: []byte(`{"id":"demo","version":"` + version + `"}`), Mode: 0o644},
		"policy.json":  {Data: []byte(`{}`), Mode: 0o600},
		"HARNESS.md":   {Data: []byte("# Demo\n"), Mode: 0o644},
		"bin/tool":     {Data: []byte("#!/bin/sh\n"), Mode: 0o755},
		"bin/alias":    {Data: []byte("tool"), Mode: fs.ModeSymlink | 0o777},
	}
}

// Meta is what a caller records.
func Meta(version string) store.Meta {
	return store.Meta{PackID: "demo", Version: version, Source: "/src/demo",
		InstalledAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), InstalledBy: "human:ada"}
}

// Run runs the suite.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	cases := []struct {
		name string
		run  func(*testing.T, store.Store)
	}{
		{"§11.3 an empty store has nothing and the default grants", empty},
		{"§11 an install is an exact, read-only copy with its record", install},
		{"§11 only what was linted is installed", linted},
		{"§11 a newer version replaces the older, rollback goes back one and forth", rollback},
		{"§13.3 only the version that was judged comes back", judged},
		{"§11 what cannot be copied leaves the old pack", refused},
		{"§11.1 remove removes everything and is idempotent", remove},
		{"§15.2 a shelf keeps whole records, one changer and one holder at a time", shelf},
		{"§2.4 restamp keeps the digest", restamp},
		{"§11.3 state changes are kept and unknown members preserved", state},
		{"§11.3 an error of the change leaves the old state", stateError},
		{"§11.3 no update of many at once is lost", concurrent},
		{"§9.3 sessions are apart; HCP-11.1-4 deactivate drops the connection", sessions},
		{"§5.4 skills come and go", skills},
		{"§9.2 lands are apart", lands},
		{"§3.6 what was compiled is kept with its version", compiled},
		{"§12 a result is kept for its owner, under plain names", results},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// judged: only the version that was looked at comes back; a reader sees what the store holds.
func judged(t *testing.T, s store.Store) {
	must(t, s.Install("demo", Files("1.0.0"), Meta("1.0.0")))
	must(t, s.Install("demo", Files("2.0.0"), Meta("2.0.0")))
	before, err := s.Previous("demo")
	must(t, err)
	must(t, pack.Intact(s.PreviousDir("demo"), before.Record))
	now, err := s.Reader().Meta("demo")
	must(t, err)
	if now.Version != "2.0.0" {
		t.Errorf("the reader sees %s", now.Version)
	}
	if err := s.Rollback("demo", now.Record.Digest); !errors.Is(err, store.ErrOther) {
		t.Errorf("another version came back: %v", err)
	}
	must(t, s.Rollback("demo", before.Record.Digest))
	if ids, err := s.Reader().Packs(); err != nil || !slices.Equal(ids, []string{"demo"}) {
		t.Errorf("%v %v", ids, err)
	}
	if ids, err := s.Reader().Unfinished(); err != nil || len(ids) > 0 {
		t.Errorf("%v %v", ids, err)
	}
}

func empty(t *testing.T, s store.Store) {
	ids, err := s.Packs()
	must(t, err)
	if len(ids) != 0 {
		t.Errorf("packs = %v", ids)
	}
	if _, err := s.Meta("demo"); !errors.Is(err, store.ErrNotInstalled) {
		t.Errorf("Meta: %v", err)
	}
	if _, err := s.Previous("demo"); !errors.Is(err, store.ErrNotInstalled) {
		t.Errorf("Previous: %v", err)
	}
	if err := s.Rollback("demo", ""); !errors.Is(err, store.ErrNotInstalled) {
		t.Errorf("Rollback: %v", err)
	}
	st, err := s.State()
	must(t, err)
	if diff := cmp.Diff(grant.Defaults(), st.Grants); diff != "" {
		t.Error(diff)
	}
}

func install(t *testing.T, s store.Store) {
	must(t, s.Install("demo", Files("1.0.0"), Meta("1.0.0")))
	meta, err := s.Meta("demo")
	must(t, err)
	want := Meta("1.0.0")
	want.Record = meta.Record
	if diff := cmp.Diff(want, *meta); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(meta.Record.Digest, "sha256:") {
		t.Errorf("digest %q", meta.Record.Digest)
	}
	must(t, pack.Intact(s.Dir("demo"), meta.Record))
	for name, f := range Files("1.0.0") {
		path := filepath.Join(s.Dir("demo"), name)
		if f.Mode&fs.ModeSymlink != 0 {
			if target, err := os.Readlink(path); err != nil || target != string(f.Data) {
				t.Errorf("%s → %q, %v", name, target, err)
			}
			continue
		}
		data, err := os.ReadFile(path)
		must(t, err)
		info, err := os.Stat(path)
		must(t, err)
		wantMode := fs.FileMode(0o444)
		if f.Mode&0o111 != 0 {
			wantMode = 0o555
		}
		if string(data) != string(f.Data) || info.Mode() != wantMode {
			t.Errorf("%s: %q with %v", name, data, info.Mode())
		}
	}
	ids, err := s.Packs()
	must(t, err)
	if !slices.Equal(ids, []string{"demo"}) {
		t.Errorf("packs = %v", ids)
	}
}

func linted(t *testing.T, s store.Store) {
	meta := Meta("1.0.0")
	meta.Record.Digest = "sha256:0000"
	if err := s.Install("demo", Files("1.0.0"), meta); err == nil {
		t.Error("files of another digest were installed")
	}
	if _, err := s.Meta("demo"); !errors.Is(err, store.ErrNotInstalled) {
		t.Errorf("Meta: %v", err)
	}
}

func version(t *testing.T, s store.Store) string {
	t.Helper()
	meta, err := s.Meta("demo")
	must(t, err)
	must(t, pack.Intact(s.Dir("demo"), meta.Record))
	data, err := os.ReadFile(filepath.Join(s.Dir("demo"), "surface.json"))
	must(t, err)
	if !strings.Contains(string(data), meta.Version) {
		t.Errorf("record says %s, files say %s", meta.Version, data)
	}
	return meta.Version
}

func rollback(t *testing.T, s store.Store) {
	for _, v := range []string{"1.0.0", "1.1.0", "1.2.0"} {
		must(t, s.Install("demo", Files(v), Meta(v)))
		if got := version(t, s); got != v {
			t.Errorf("installed %s, have %s", v, got)
		}
	}
	for _, want := range []string{"1.1.0", "1.2.0", "1.1.0"} {
		prev, err := s.Previous("demo")
		must(t, err)
		if prev.Version != want {
			t.Errorf("previous is %s, want %s", prev.Version, want)
		}
		must(t, s.Rollback("demo", ""))
		if got := version(t, s); got != want {
			t.Errorf("rolled back to %s, want %s", got, want)
		}
	}
}

func refused(t *testing.T, s store.Store) {
	must(t, s.Install("demo", Files("1.0.0"), Meta("1.0.0")))
	bad := Files("2.0.0")
	bad["pipe"] = &fstest.MapFile{Mode: fs.ModeNamedPipe}
	if err := s.Install("demo", bad, Meta("2.0.0")); err == nil {
		t.Error("a fifo was installed")
	}
	if got := version(t, s); got != "1.0.0" {
		t.Errorf("have %s", got)
	}
	for _, id := range []string{"", ".", "..", "a/b", ".meta"} {
		if err := s.Install(id, Files("1.0.0"), Meta("1.0.0")); err == nil {
			t.Errorf("%q was installed", id)
		}
	}
}

func remove(t *testing.T, s store.Store) {
	must(t, s.Remove("demo"))
	must(t, s.Install("demo", Files("1.0.0"), Meta("1.0.0")))
	must(t, s.Install("demo", Files("1.1.0"), Meta("1.1.0")))
	dir := s.Dir("demo")
	must(t, s.Remove("demo"))
	must(t, s.Remove("demo"))
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("files are left: %v", err)
	}
	if _, err := s.Previous("demo"); !errors.Is(err, store.ErrNotInstalled) {
		t.Errorf("Previous: %v", err)
	}
	must(t, s.Install("demo", Files("1.2.0"), Meta("1.2.0")))
	if _, err := s.Previous("demo"); !errors.Is(err, store.ErrNotInstalled) {
		t.Errorf("a removed version is a previous one: %v", err)
	}
}

func restamp(t *testing.T, s store.Store) {
	if err := s.Restamp("demo"); !errors.Is(err, store.ErrNotInstalled) {
		t.Errorf("Restamp: %v", err)
	}
	must(t, s.Install("demo", Files("1.0.0"), Meta("1.0.0")))
	before, err := s.Meta("demo")
	must(t, err)
	must(t, s.Restamp("demo"))
	after, err := s.Meta("demo")
	must(t, err)
	if before.Record.Digest != after.Record.Digest {
		t.Errorf("digest %s → %s", before.Record.Digest, after.Record.Digest)
	}
	version(t, s)
}

func state(t *testing.T, s store.Store) {
	want := &store.State{
		Activated: []string{"demo", "tränen-\"quoted\"\n"}, Connected: []string{"demo"}, Native: []string{"demo"},
		Grants: []grant.Grant{{Principal: "agent:*", Effect: grant.Deny, Capabilities: []protocol.Capability{protocol.VerbExecWrite},
			Args: map[string][]json.RawMessage{"n": {json.RawMessage("12345678901234567890")}}}},
		Bins:  []protocol.AllowedBin{{Name: "git", Path: "/usr/bin/git", Stamp: protocol.FileStamp{Ino: 1 << 63, MtimeNS: -1}}},
		Reads: []protocol.AllowedRead{{Pack: "git", Path: "~/.gitconfig"}},
		Hosts: []protocol.AllowedHost{{Pack: "git", Host: "git.example.org:443"}},
		Sessions: map[string]store.SessionState{"ci": {Activated: []string{"demo"},
			Extra: map[string]json.RawMessage{"note": json.RawMessage(`"<kept>"`)}}},
		Extra: map[string]json.RawMessage{"x-other": json.RawMessage("1.00000000000000000001")},
	}
	must(t, s.Update(func(st *store.State) error { *st = *want; return nil }))
	got, err := s.State()
	must(t, err)
	if diff := cmp.Diff(want, got, nilIsEmpty()); diff != "" {
		t.Error(diff)
	}
	must(t, s.Update(func(st *store.State) error { st.Grants = nil; return nil }))
	got, err = s.State()
	must(t, err)
	if len(got.Grants) != 0 {
		t.Errorf("no grants became %v", got.Grants)
	}
	got.Activated[0] = "mine"
	again, err := s.State()
	must(t, err)
	if again.Activated[0] != "demo" {
		t.Error("a reader's change reached the store")
	}
}

func nilIsEmpty() cmp.Option {
	return cmp.FilterValues(func(a, b []string) bool { return len(a)+len(b) == 0 }, cmp.Ignore())
}

func stateError(t *testing.T, s store.Store) {
	stop := errors.New("stop")
	err := s.Update(func(st *store.State) error { st.SetActivated("default", "demo", true); return stop })
	if !errors.Is(err, stop) {
		t.Errorf("err = %v", err)
	}
	err = s.Update(func(st *store.State) error {
		st.Grants = append(st.Grants, grant.Grant{Principal: "nobody", Effect: "perhaps"})
		return nil
	})
	if err == nil {
		t.Error("a state that cannot be read again was written")
	}
	st, err := s.State()
	must(t, err)
	if st.IsActivated("default", "demo") || len(st.Grants) != len(grant.Defaults()) {
		t.Errorf("half a change: %+v", st)
	}
}

func concurrent(t *testing.T, s store.Store) {
	var wg sync.WaitGroup
	const n = 32
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() {
			errs[i] = s.Update(func(st *store.State) error {
				st.SetActivated("default", fmt.Sprint("pack-", i), true)
				return nil
			})
			_, err := s.State()
			errs[i] = errors.Join(errs[i], err)
		})
	}
	wg.Wait()
	must(t, errors.Join(errs...))
	st, err := s.State()
	must(t, err)
	if len(st.Activated) != n {
		t.Errorf("%d of %d updates are left", len(st.Activated), n)
	}
}

func sessions(t *testing.T, s store.Store) {
	change := func(fn func(*store.State) bool, want bool) {
		t.Helper()
		must(t, s.Update(func(st *store.State) error {
			if got := fn(st); got != want {
				t.Errorf("changed = %v, want %v", got, want)
			}
			return nil
		}))
	}
	for _, id := range []string{"default", "ci"} {
		change(func(st *store.State) bool { return st.SetActivated(id, "demo", true) }, true)
		change(func(st *store.State) bool { return st.SetActivated(id, "demo", true) }, false)
		change(func(st *store.State) bool { return st.SetConnected(id, "demo", true) }, true)
	}
	change(func(st *store.State) bool { return st.SetActivated("ci", "demo", false) }, true)
	change(func(st *store.State) bool { return st.SetActivated("ci", "demo", false) }, false)
	st, err := s.State()
	must(t, err)
	if st.IsActivated("ci", "demo") || st.IsConnected("ci", "demo") || !st.IsConnected("default", "demo") {
		t.Errorf("state: %+v", st)
	}
	if _, left := st.Sessions["ci"]; left {
		t.Error("an empty session is kept")
	}
	if got := st.SessionsOf("demo"); !slices.Equal(got, []string{"default"}) {
		t.Errorf("sessions of demo: %v", got)
	}
	if got := st.DropPack("demo"); !slices.Equal(got, []string{"default"}) || st.IsConnected("default", "demo") {
		t.Errorf("dropped in %v: %+v", got, st)
	}
}

func skills(t *testing.T, s store.Store) {
	if _, err := s.Skill("demo"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Skill: %v", err)
	}
	must(t, s.PutSkill("demo", []byte("# One\n")))
	must(t, s.PutSkill("demo", []byte("# Two\n")))
	text, err := s.Skill("demo")
	must(t, err)
	if string(text) != "# Two\n" {
		t.Errorf("skill = %q", text)
	}
	must(t, s.DropSkill("demo"))
	must(t, s.DropSkill("demo"))
	if _, err := s.Skill("demo"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Skill: %v", err)
	}
}

func shelf(t *testing.T, s store.Store) {
	k := s.Shelf("things")
	if names, err := k.Names(); err != nil || len(names) != 0 {
		t.Fatalf("a fresh shelf has %q, %v", names, err)
	}
	if _, err := k.Get("a"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("nothing is there, and Get says %v", err)
	}
	const workers, turns = 4, 25
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range turns { // read, add, write: without the lock some would be lost
				if err := s.Shelf("things").Locked(func() error {
					old, err := k.Get("count")
					if err != nil && !errors.Is(err, fs.ErrNotExist) {
						return err
					}
					return k.Put("count", append(old, '.'))
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if data, err := k.Get("count"); err != nil || len(data) != workers*turns {
		t.Errorf("%d of %d changes stand, %v", len(data), workers*turns, err)
	}
	hold := func() (release func() error) {
		if err := k.Locked(func() (err error) { release, err = k.Hold("a"); return err }); err != nil {
			t.Fatal(err)
		}
		return release
	}
	first := hold()
	if first == nil || hold() != nil {
		t.Fatal("a hold is nobody's, or two have it")
	}
	if err := first(); err != nil || hold() == nil {
		t.Errorf("a released hold cannot be taken: %v", err)
	}
	if names, err := k.Names(); err != nil || !slices.Equal(names, []string{"count"}) {
		t.Errorf("the records are %q, %v", names, err)
	}
	if err := k.Locked(func() error {
		if k.Put("../state.json", nil) == nil || k.Put(".a", nil) == nil || k.Put("a/b", nil) == nil {
			t.Error("a record can leave its shelf")
		}
		return errors.Join(k.Drop("count"), k.Drop("count"), k.Drop("a"))
	}); err != nil {
		t.Error(err)
	}
	if names, err := k.Names(); err != nil || len(names) != 0 {
		t.Errorf("what was dropped stands: %q, %v", names, err)
	}
}

func lands(t *testing.T, s store.Store) {
	keys := []store.LandKey{
		{Tenant: "local", Land: protocol.Personal, Principal: "human:ada", Pack: "demo"},
		{Tenant: "local", Land: protocol.Personal, Principal: "agent:ada", Pack: "demo"},
		{Tenant: "local", Land: protocol.Brain, Project: "human~ada", Pack: "demo"},
		{Tenant: "local", Land: protocol.Brain, Project: "apollo", Pack: "demo"},
		{Tenant: "other", Land: protocol.Brain, Project: "apollo", Pack: "demo"},
		{Tenant: "local", Land: protocol.Brain, Project: "apollo", Pack: "keep"},
	}
	seen := map[string]bool{}
	for _, k := range keys {
		dir := s.LandDir(k)
		if dir == "" || seen[dir] {
			t.Fatalf("%+v shares %q", k, dir)
		}
		seen[dir] = true
		must(t, s.MakeLand(k))
		must(t, s.MakeLand(k))
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", dir, info, err)
		}
		must(t, os.WriteFile(filepath.Join(dir, "data"), nil, 0o600))
	}
	if want := filepath.Join(s.Home(), "data/local/personal/human~ada/demo"); !seen[want] {
		t.Errorf("no %s", want)
	}
	for _, k := range []store.LandKey{
		{Tenant: "local", Land: protocol.Local, Pack: "demo"},
		{Tenant: "local", Land: protocol.Brain, Project: "..", Pack: "demo"},
		{Tenant: "local", Land: protocol.Personal, Principal: "human:../x", Pack: "demo"},
		{Tenant: "a/b", Land: protocol.Brain, Project: "apollo", Pack: "demo"},
	} {
		if dir := s.LandDir(k); dir != "" || s.MakeLand(k) == nil {
			t.Errorf("%+v has %q", k, dir)
		}
	}
	must(t, s.PurgeLand("demo"))
	must(t, s.PurgeLand("demo"))
	for _, k := range keys {
		if _, err := os.Stat(s.LandDir(k)); (err == nil) != (k.Pack == "keep") {
			t.Errorf("%+v after purge: %v", k, err)
		}
	}
}
