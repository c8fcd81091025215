package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func claimSlot(t *testing.T, scratch string) *private {
	t.Helper()
	p, err := newPrivate(scratch, &Spec{Program: Program{Name: "a", Path: "/bin/true"}})
	if err != nil {
		t.Fatal(err)
	}
	return &p
}

func inode(t *testing.T, path string) identity {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	return identity{st.Dev, st.Ino}
}

// §10.2: two runs at once never share a private directory; one that was given back serves again, empty.
func Test_10_2_slots(t *testing.T) {
	scratch := t.TempDir()
	first, second := claimSlot(t, scratch), claimSlot(t, scratch)
	if first.root == second.root {
		t.Fatal("two runs share a directory")
	}
	left := first.part(homePart) + "/left"
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := first.release(); err != nil {
		t.Fatal(err)
	}
	if third := claimSlot(t, scratch); third.root != first.root {
		t.Errorf("%s was not used again, but %s", first.root, third.root)
	} else if _, err := os.Lstat(left); err == nil {
		t.Error("the file of the run before is there")
	}
}

// §10.2: the slot of a runtime that was killed is made anew, even when it looks empty: what may still live of
// its run holds the old directories only.
func Test_10_2_slot_of_a_killed_runtime(t *testing.T) {
	scratch := t.TempDir()
	dead := claimSlot(t, scratch)
	old := inode(t, dead.part(homePart))
	held, err := os.Open(dead.part(homePart)) // keeps the number from being given out again
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := unix.Close(dead.lock); err != nil { // as the kernel does for the dead
		t.Fatal(err)
	}
	next := claimSlot(t, scratch)
	if next.root != dead.root || inode(t, next.part(homePart)) == old {
		t.Error("the directory of the killed run was used again")
	}
	entries, err := os.ReadDir(scratch)
	if err != nil || len(entries) != 1 {
		t.Errorf("left: %v %v", entries, err)
	}
}

// §10.2: links of PATH follow the Spec when a slot is used again.
func Test_10_2_slot_links(t *testing.T) {
	scratch := t.TempDir()
	for _, want := range []Program{{"a", "/bin/true"}, {"b", "/bin/false"}, {"b", "/bin/true"}} {
		p, err := newPrivate(scratch, &Spec{Program: want})
		if err != nil {
			t.Fatal(err)
		}
		links, err := filepath.Glob(p.part(binPart) + "/*")
		if err != nil || len(links) != 1 || filepath.Base(links[0]) != want.Name {
			t.Errorf("%v %v", links, err)
		}
		if target, err := os.Readlink(links[0]); err != nil || target != want.Path {
			t.Errorf("%s %v", target, err)
		}
		if err := p.release(); err != nil {
			t.Fatal(err)
		}
	}
}

// §10.2: private directories only in a directory that nobody else can enter.
func Test_10_2_scratch_is_private(t *testing.T) {
	open := t.TempDir()
	if err := os.Chmod(open, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{open, "relative"} {
		if ownScratch(path) == nil {
			t.Errorf("%s was taken", path)
		}
	}
	made := filepath.Join(open, "a", "b")
	if err := ownScratch(made); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(made); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// §6.9: only the thread that entered a domain can kill it, and no other value can.
func Test_6_9_domain_is_a_proof(t *testing.T) {
	for name, d := range map[string]domain{"made by hand": {}, "of another thread": {tid: unix.Gettid() + 1}} {
		if d.kill(0) == nil {
			t.Errorf("%s: it could kill", name)
		}
		if d.running(os.Getppid()) >= 0 {
			t.Errorf("%s: it could look", name)
		}
	}
}

// §6.9: left-overs are found when the machine's numbers began anew, too.
func Test_6_9_candidates(t *testing.T) {
	var c pidCounter
	c.open()
	self := os.Getpid()
	for name, pid := range map[string]int{"after this process": self - 1, "numbers began anew": 1 << 22, "a wide span": self - widest - 1, "may have begun anew": self + 1} {
		if list := c.since(pid, pid == self+1); !slices.Contains(list, self) {
			t.Errorf("%s: %d candidates without this process", name, len(list))
		}
	}
}

// §10.2: what a killed run left is thrown away without following it: links lead out, directories are closed.
func Test_10_2_hostile_slot(t *testing.T) {
	base := t.TempDir()
	scratch, outside := base+"/scratch", base+"/outside"
	for _, dir := range []string{scratch, outside} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	precious := outside + "/precious"
	if err := errors.Join(os.WriteFile(precious, []byte("kept"), 0o400), os.Chmod(outside, 0o500)); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(outside, 0o700)
	dead := claimSlot(t, scratch)
	home := dead.part(homePart)
	err := errors.Join(os.MkdirAll(home+"/a/b", 0o700), os.WriteFile(home+"/a/b/file", nil, 0), os.Symlink(outside, home+"/a/b/c"),
		os.Symlink(outside, home+"/out"), os.Symlink(precious, home+"/a/file"), os.Symlink("/", home+"/root"), os.Link(precious, home+"/hard"),
		unix.Mkfifo(home+"/fifo", 0), os.Chmod(home+"/a/b", 0), os.Chmod(home+"/a", 0), os.Chmod(home, 0), unix.Close(dead.lock))
	if err != nil {
		t.Fatal(err)
	}
	next := claimSlot(t, scratch)
	if entries, err := os.ReadDir(next.part(homePart)); err != nil || len(entries) != 0 {
		t.Errorf("HOME holds %v %v", entries, err)
	}
	if entries, err := os.ReadDir(scratch); err != nil || len(entries) != 1 {
		t.Errorf("left: %v %v", entries, err)
	}
	info, err := os.Stat(outside)
	text, readErr := os.ReadFile(precious)
	if err != nil || readErr != nil || info.Mode().Perm() != 0o500 || string(text) != "kept" {
		t.Errorf("outside: %v %q %v %v", info.Mode(), text, err, readErr)
	}
}

// §10.2: removal changes no mode through a link that took a directory's place.
func Test_10_2_removal_follows_nothing(t *testing.T) {
	base := t.TempDir()
	for _, dir := range []string{"outside", "tree", "tree/z"} {
		if err := os.Mkdir(base+"/"+dir, 0o500); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(base+"/"+dir, map[bool]os.FileMode{true: 0o500, false: 0o700}[dir == "outside"]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink(base+"/outside", base+"/tree/a"), os.WriteFile(base+"/tree/z/f", nil, 0o600), os.Chmod(base+"/tree/z", 0)); err != nil {
		t.Fatal(err)
	}
	if err := removeAll(base + "/tree"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(base + "/outside"); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// §10.2: names that are no slot of ours are passed over, and a set-group-id bit from above is none of a run.
func Test_10_2_odd_slots(t *testing.T) {
	scratch := t.TempDir()
	if err := errors.Join(os.Symlink("/", scratch+"/0"), os.WriteFile(scratch+"/1", nil, 0o600), os.Chmod(scratch, 0o700|os.ModeSetgid)); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		p := claimSlot(t, scratch)
		if p.root != scratch+"/2" {
			t.Errorf("slot %s", p.root)
		}
		if err := p.release(); err != nil {
			t.Fatal(err)
		}
	}
}

// §10.2: private directories lie in no tree that every command may read.
func Test_10_2_private_place_is_clear(t *testing.T) {
	base := t.TempDir()
	every := present([]grant{{path: base, rights: rightsRead}})
	defer closeGrants(every)
	for _, scratch := range []string{base, base + "/run", base + "/not/there/run"} {
		if placeOf(scratch).clear(every) == nil {
			t.Errorf("%s was taken", scratch)
		}
	}
	if err := placeOf(t.TempDir()).clear(every); err != nil {
		t.Error(err)
	}
}
