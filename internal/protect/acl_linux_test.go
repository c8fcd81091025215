package protect

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// accessList is one that gives these rights to owner, group and others, and to another user.
func accessList(user uint32) []byte {
	const nobody = 1<<32 - 1
	list := []byte{2, 0, 0, 0}
	for _, e := range [][2]uint32{{1, nobody}, {2, user}, {4, nobody}, {0x10, nobody}, {0x20, nobody}} {
		list = binary.LittleEndian.AppendUint32(append(list, byte(e[0]), 0, 7, 0), e[1])
	}
	return list
}

func setList(t *testing.T, at, which string, list []byte) {
	t.Helper()
	err := unix.Lsetxattr(at, which, list, 0)
	if errors.Is(err, unix.ENOTSUP) {
		t.Skip("this file system has no access lists")
	}
	must(t, err)
}

func hasList(at, which string) []byte {
	buf := make([]byte, 256)
	n, err := unix.Lgetxattr(at, which, buf)
	if err != nil {
		return nil
	}
	return buf[:n]
}

// An access list that a command leaves is a change, on a directory too: what the host makes there later would be
// another's to write. One that was there stays with what is put back.
func Test_10_2_AccessLists(t *testing.T) {
	access, heirs := accessLists[0], accessLists[1]
	for name, c := range map[string]struct{ at, which string }{
		"root":            {".", heirs},
		"git":             {".git", heirs},
		"hooks":           {".git/hooks", heirs},
		"hooks' own":      {".git/hooks", access},
		"a hook":          {".git/hooks/pre-commit", access},
		"a Makefile":      {"Makefile", access},
		"a directory new": {".husky", heirs},
	} {
		g := newGround(t)
		guard := g.begin("run")
		must(t, os.MkdirAll(g.root+"/.husky", 0o755))
		setList(t, g.root+"/"+c.at, c.which, accessList(4711))
		changes, err := guard.End()
		if err != nil || len(changes) != 1 || changes[0].Path != c.at || !changes[0].Restored || hasList(g.root+"/"+c.at, c.which) != nil {
			t.Errorf("%s: %+v %v", name, changes, err)
		}
	}

	g := newGround(t)
	mine := accessList(4712)
	setList(t, g.root+"/.git/hooks", heirs, mine)
	setList(t, g.root+"/.git/hooks/pre-commit", access, mine)
	setList(t, g.root+"/Makefile", access, mine)
	guard := g.begin("run")
	must(t, os.RemoveAll(g.root+"/.git/hooks"))
	g.write(g.root+"/.git/hooks/x/y", "evil", 0o644)
	g.write(g.root+"/Makefile", "evil", 0o644)
	setList(t, g.root+"/Makefile", access, accessList(4711))
	if changes, err := guard.End(); err != nil || len(changes) == 0 {
		t.Fatalf("%+v %v", changes, err)
	}
	for at, which := range map[string]string{".git/hooks": heirs, ".git/hooks/pre-commit": access, "Makefile": access} {
		if !bytes.Equal(hasList(g.root+"/"+at, which), mine) {
			t.Error(at)
		}
	}
	must(t, os.MkdirAll(g.root+"/.claude/skills", 0o755))
	setList(t, g.root+"/.claude/skills", heirs, mine)
	guard = g.begin("next") // what is made below such a directory has the list by right
	must(t, os.Mkdir(g.root+"/.claude/skills/lib", 0o755))
	if changes, err := guard.End(); err != nil || changes != nil {
		t.Errorf("%+v %v", changes, err)
	}
}
