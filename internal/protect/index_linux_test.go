package protect

import (
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// indexItem is an entry of version 2.
func indexItem(name string, mode uint32, oid, end string) string {
	head := make([]byte, 40)
	binary.BigEndian.PutUint32(head[24:], mode)
	item := string(head) + oid + string(binary.BigEndian.AppendUint16(nil, uint16(min(len(name), 0xfff)))) + name
	return item + strings.Repeat(end, 8-len(item)%8)
}

func indexOf(version uint32, rest string, items ...string) string {
	text := "DIRC" + string(binary.BigEndian.AppendUint32(nil, version)) + string(binary.BigEndian.AppendUint32(nil, uint32(len(items)))) + strings.Join(items, "") + rest
	sum := sha1.Sum([]byte(text))
	return text + string(sum[:])
}

func extension(name, data string) string {
	return name + string(binary.BigEndian.AppendUint32(nil, uint32(len(data)))) + data
}

// snare is a repository of the real git with a directory sub that becomes a repository: whoever asks git for the state
// of it makes a mark.
type snare struct {
	*ground
	mark, oid string
}

func newSnare(t *testing.T) *snare {
	g := newGround(t)
	must(t, os.RemoveAll(g.root+"/.git"))
	s := &snare{ground: g, mark: g.host + "/mark"}
	s.git(g.root, "init", "-q")
	s.git(g.root, "add", "Makefile")
	s.git(g.root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")
	return s
}

func (s *snare) git(dir string, args ...string) string {
	s.t.Helper()
	out, err := git(s.t, s.home, dir, args...)
	if err != nil {
		s.t.Fatal(args, err)
	}
	return out
}

// trap makes the repository.
func (s *snare) trap(at string) {
	s.git(s.root, "init", "-q", at)
	s.git(s.root+"/"+at, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x")
	raw, err := hex.DecodeString(s.git(s.root+"/"+at, "rev-parse", "HEAD"))
	must(s.t, err)
	s.oid = string(raw)
	must(s.t, add(s.root+"/"+at+"/.git/config", "[core]\n\tfsmonitor = touch "+s.mark+"; false\n"))
}

// sprung says whether the host's git runs what the repository says.
func (s *snare) sprung() bool {
	_, _ = git(s.t, s.home, s.root, "status")
	_, _ = git(s.t, s.home, s.root, "diff")
	return os.Remove(s.mark) == nil
}

// indexes are what a command makes of the index so that git looks into sub. work is whether git reads it so.
var indexes = map[string]struct {
	text func(s *snare) string
	work bool
}{
	"one": {func(s *snare) string { return indexOf(2, "", indexItem("sub", 0o160000, s.oid, "\x00")) }, true},
	"behind many": {func(s *snare) string {
		var items []string
		for i := range 600 {
			items = append(items, indexItem(fmt.Sprintf("a%04d", i), 0o160000, s.oid, "\x00"))
		}
		return indexOf(2, "", append(items, indexItem("sub", 0o160000, s.oid, "\x00"))...)
	}, true},
	"behind too many": {func(s *snare) string {
		var items []string
		for i := range maxNodes + 1 {
			items = append(items, indexItem(fmt.Sprintf("a%05d", i), 0o160000, s.oid, "\x00"))
		}
		return indexOf(2, "", append(items, indexItem("sub", 0o160000, s.oid, "\x00"))...)
	}, true},
	"a name without its end": {func(s *snare) string {
		return indexOf(2, "", indexItem("Makefile", 0o100644, s.oid, "!"), indexItem("sub", 0o160000, s.oid, "\x00"))
	}, true},
	"zero in a name": {func(s *snare) string {
		return indexOf(2, "", indexItem("Make\x00ile", 0o100644, s.oid, "\x00"), indexItem("sub", 0o160000, s.oid, "\x00"))
	}, true},
	"other padding": {func(s *snare) string {
		item := indexItem("Makefile2", 0o100644, s.oid, "\x00")
		return indexOf(2, "", item[:len(item)-1]+"x", indexItem("sub", 0o160000, s.oid, "\x00"))
	}, true},
	"bits above the mode": {func(s *snare) string { return indexOf(2, "", indexItem("sub", 0o1160000, s.oid, "\x00")) }, true},
	"an absolute name":    {func(s *snare) string { return indexOf(2, "", indexItem(s.root+"/sub", 0o160000, s.oid, "\x00")) }, true},
	"a slash behind":      {func(s *snare) string { return indexOf(2, "", indexItem("sub/", 0o160000, s.oid, "\x00")) }, true},
	"dots before":         {func(s *snare) string { return indexOf(2, "", indexItem("./sub", 0o160000, s.oid, "\x00")) }, true},
	"up and down":         {func(s *snare) string { return indexOf(2, "", indexItem("src/../sub", 0o160000, s.oid, "\x00")) }, true},
	"no kind": {func(s *snare) string {
		return indexOf(2, "", indexItem("Makefile", 0o170000, s.oid, "\x00"), indexItem("sub", 0o160000, s.oid, "\x00"))
	}, false},
	"an extension first": {func(s *snare) string {
		shared := indexOf(2, "", indexItem("sub", 0o160000, s.oid, "\x00"))
		s.write(s.root+"/.git/sharedindex."+hex.EncodeToString([]byte(shared[len(shared)-20:])), shared, 0o644)
		none := "\x00\x00\x00\x00\x00\x00\x00\x01" + strings.Repeat("\x00", 12) // a bitmap
		return indexOf(2, extension("XXXX", "")+extension("link", shared[len(shared)-20:]+none+none))
	}, true},
	"an extension nobody knows": {func(s *snare) string {
		return indexOf(2, extension("xxxx", ""), indexItem("sub", 0o160000, s.oid, "\x00"))
	}, false},
	"version 5": {func(s *snare) string { return indexOf(5, "", indexItem("sub", 0o160000, s.oid, "\x00")) }, false},
	"another place of extensions": {func(s *snare) string {
		item := indexItem("sub", 0o160000, s.oid, "\x00")
		return indexOf(2, extension("EOIE", "\x00\x00\x00\x0c"+s.oid), item)
	}, true},
	"blocks elsewhere": {func(s *snare) string {
		return indexOf(2, extension("IEOT", "\x00\x00\x00\x01\x00\x00\x00\x0d\x00\x00\x00\x01"), indexItem("sub", 0o160000, s.oid, "\x00"))
	}, true},
	"cut off": {func(s *snare) string { return indexOf(2, "", indexItem("sub", 0o160000, s.oid, "\x00"))[:90] }, true},
}

// However a command writes the index, the host's git looks into no repository that it made, and into none of an earlier
// run (§10.2).
func Test_10_2_CraftedIndexes(t *testing.T) {
	for name, c := range indexes {
		for _, earlier := range []bool{false, true} {
			t.Run(fmt.Sprint(name, earlier), func(t *testing.T) {
				t.Parallel()
				s := newSnare(t)
				if earlier {
					s.trap("sub")
					time.Sleep(20 * time.Millisecond) // by the clock of files
				}
				guard := s.begin("run")
				if !earlier {
					s.trap("sub")
				}
				s.write(s.root+"/.git/index", c.text(s), 0o644)
				if works := s.sprung(); works != c.work {
					t.Errorf("git looks there: %v", works)
				}
				changes, err := guard.End()
				if err != nil || len(changes) == 0 {
					t.Fatalf("%+v %v", changes, err)
				}
				for _, c := range changes {
					if !c.Restored {
						t.Errorf("%+v", c)
					}
				}
				if s.sprung() {
					t.Errorf("git still looks there: %+v", changes)
				}
				w := s.watch("next")
				w.Patience = time.Minute // a program that another test begins has the locks until it runs
				next, err := Begin(t.Context(), w)
				must(t, err)
				if changes, err := next.End(); err != nil || changes != nil {
					t.Error(changes, err)
				}
			})
		}
	}
}

// More repositories than are looked through, or larger indexes, are no way around: the index goes back.
func Test_10_2_MoreSubmodulesThanAreRead(t *testing.T) {
	for name, size := range map[string]int64{"many": 0, "large": maxIndex} {
		g := newGround(t)
		guard := g.begin("run")
		var items []string
		for i := range maxNodes/8 + 10 {
			sub := fmt.Sprintf("a%04d", i)
			if size == 0 || i == 0 {
				g.write(g.root+"/"+sub+"/.git/config", "[core]\n\tfsmonitor = evil\n", 0o644)
				g.write(g.root+"/"+sub+"/.git/index", "DIRC", 0o644)
				must(t, os.Truncate(g.root+"/"+sub+"/.git/index", size))
			}
			items = append(items, indexItem(sub, 0o160000, strings.Repeat("x", 20), "\x00"))
		}
		g.write(g.root+"/.git/index", indexOf(2, "", items...), 0o644)
		changes, err := guard.End()
		if err != nil || exists(g.root+"/.git/index") || !slices.ContainsFunc(changes, func(c Change) bool { return c.Path == ".git/index" && c.Restored }) {
			t.Errorf("%s: %d changes, %v", name, len(changes), err)
		}
	}
}

// What git leaves out of the work tree may hold submodules, though no entry names them.
func Test_10_2_SparseIndex(t *testing.T) {
	for _, earlier := range []bool{false, true} {
		s := newSnare(t)
		s.write(s.root+"/d/x", "x", 0o644)
		s.git(s.root, "add", "src", "d")
		s.trap("evil")
		s.git(s.root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x")
		s.git(s.root, "sparse-checkout", "init", "--cone", "--sparse-index")
		s.git(s.root, "sparse-checkout", "set", "src")
		if !strings.Contains(s.git(s.root, "ls-files", "--sparse")+"\n", "d/\n") {
			t.Skip("this git has no sparse index")
		}
		s.write(s.host+"/tree", "160000 commit "+hex.EncodeToString([]byte(s.oid))+"\tsub\n", 0o644)
		tree := s.git(s.root, "-c", "alias.tree=!git mktree --missing < "+s.host+"/tree", "tree")
		index, err := os.ReadFile(s.root + "/.git/index")
		must(t, err)
		old, err := hex.DecodeString(s.git(s.root, "rev-parse", "HEAD:d"))
		must(t, err)
		raw, err := hex.DecodeString(tree)
		must(t, err)
		s.write(s.root+"/.git/index", strings.ReplaceAll(string(index), string(old), string(raw)), 0o644)
		time.Sleep(20 * time.Millisecond)
		guard := s.begin("run")
		if !earlier {
			must(t, os.RemoveAll(s.root+"/evil"))
			s.trap("evil")
		}
		must(t, os.Mkdir(s.root+"/d", 0o755))
		must(t, os.Rename(s.root+"/evil", s.root+"/d/sub"))
		if !s.sprung() {
			t.Fatal("git doesn't look there")
		}
		if changes, err := guard.End(); err != nil || len(changes) == 0 || s.sprung() {
			t.Errorf("%+v %v", changes, err)
		}
	}
}

// A submodule that was checked out before and comes back with another branch stays: its git directory was looked at.
func Test_10_2_SubmoduleComesBack(t *testing.T) {
	s := newSnare(t)
	s.trap("sub")
	must(t, os.MkdirAll(s.root+"/.git/modules", 0o755))
	must(t, os.Rename(s.root+"/sub/.git", s.root+"/.git/modules/sub"))
	s.write(s.root+"/sub/.git", "gitdir: ../.git/modules/sub\n", 0o644)
	time.Sleep(20 * time.Millisecond)
	guard := s.begin("run")
	s.write(s.root+"/.git/index", indexOf(2, "", indexItem("sub", 0o160000, s.oid, "\x00")), 0o644)
	if changes, err := guard.End(); err != nil || changes != nil {
		t.Errorf("%+v %v", changes, err)
	}
}

// The index of a worktree elsewhere can't lead that one into this workspace. It isn't remembered, so that it goes.
func Test_10_2_IndexOfAWorktreeElsewhere(t *testing.T) {
	s := newSnare(t)
	other := s.host + "/other"
	s.git(s.root, "worktree", "add", "-q", other)
	guard := s.begin("run")
	s.trap("sub")
	index := indexOf(2, "", indexItem(s.root+"/sub", 0o160000, s.oid, "\x00"))
	s.write(s.root+"/.git/worktrees/other/index", index, 0o644)
	s.git(other, "status")
	must(t, os.Remove(s.mark))
	changes, err := guard.End()
	if err != nil || len(changes) != 1 || changes[0].Restored || changes[0].Path != ".git/worktrees/other/index" {
		t.Errorf("%+v %v", changes, err)
	}
	if text, err := os.ReadFile(changes[0].Kept); string(text) != index {
		t.Error(err)
	}
	s.git(other, "status")
	if exists(s.mark) {
		t.Error("git still looks there")
	}
}

// An index that can't be understood lets nothing run: which submodules it has is not known.
func Test_10_2_IndexNotUnderstood(t *testing.T) {
	g := newGround(t)
	g.write(g.root+"/.git/index", indexOf(5, ""), 0o644)
	if err := Look(g.watch("run")); !errors.Is(err, errIndex) {
		t.Error(err)
	}
}

// A table of blocks, which git's threads go by, is read: this is what git writes with index.threads.
func Test_10_2_IndexWithBlocks(t *testing.T) {
	s := newSnare(t)
	var list strings.Builder
	for i := range 20_001 {
		fmt.Fprintf(&list, "160000 %040x 0\tdir/%d\n", 1, i%4000)
	}
	for i := range 20_001 {
		fmt.Fprintf(&list, "100644 %040x 0\tfile/%d\n", 1, i)
	}
	s.write(s.host+"/list", list.String(), 0o644)
	for _, version := range []string{"2", "4"} {
		s.git(s.root, "config", "index.threads", "2")
		s.git(s.root, "config", "index.version", version)
		must(t, os.RemoveAll(s.root+"/.git/index"))
		s.git(s.root, "-c", "alias.fill=!git update-index --index-info < "+s.host+"/list", "fill")
		text, err := os.ReadFile(s.root + "/.git/index")
		must(t, err)
		if !strings.Contains(string(text), "IEOT") {
			t.Skip("this git writes none")
		}
		links := gitlinks{work: s.root, sum: 20}
		if err := links.read(s.root + "/.git"); err != nil || len(links.dirs) != 4000 {
			t.Error(version, len(links.dirs), err)
		}
	}
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte(gitlinkIndex("sub")), 20)
	f.Add([]byte(indexOf(4, extension("IEOT", "\x00\x00\x00\x01\x00\x00\x00\x0d\x00\x00\x00\x01"))), 32)
	f.Fuzz(func(t *testing.T, text []byte, sum int) {
		g := gitlinks{work: t.TempDir(), sum: 20 + 12*(sum&1), known: map[string]bool{}}
		_, _ = parseIndex(text, g.sum, g.entry)
	})
}
