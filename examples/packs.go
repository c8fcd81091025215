// Package examples carries the gold packs of §14.2 inside the program: transit, ledger, echo and herald, one for
// each way a pack can be made, git, for the tool that everybody has, and git-remote, which gives it a network and a
// credential. The vectors of §14.3 run on them, and `hcpx add NAME` installs one of them. It refuses nothing and
// imports nothing of the project; a pack's meaning is the business of the rooms that read it.
//
// An embedded file has no executable bit. Pack therefore gives each file below bin/ that bit, so that a copy of
// a pack has the digest of its directory in the repository.
package examples

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"
)

//go:embed all:packs
var files embed.FS

// IDs are the packs that ship with the program, in order.
func IDs() []string {
	return []string{"echo", "git", "git-remote", "herald", "jq", "ledger", "npm", "postgres", "ripgrep", "sqlite", "transit"}
}

// Pack is the tree of a shipped pack, read-only.
func Pack(id string) (fs.FS, error) {
	sub, err := fs.Sub(files, "packs/"+id)
	if err != nil {
		return nil, fmt.Errorf("no pack named %q ships with this program", id)
	}
	if _, err := fs.Stat(sub, "surface.json"); err != nil {
		return nil, fmt.Errorf("no pack named %q ships with this program", id)
	}
	return tree{sub}, nil
}

// tree is an embedded pack whose shipped programs are executable.
type tree struct{ fs.FS }

// Open implements fs.FS.
func (t tree) Open(name string) (fs.File, error) {
	f, err := t.FS.Open(name)
	if err != nil {
		return nil, err
	}
	if d, ok := f.(fs.ReadDirFile); ok {
		return dir{file{f, name}, d}, nil
	}
	return file{f, name}, nil
}

// program says whether a file of a pack is one that runs: below bin/, and no script of another interpreter.
func program(name string) bool {
	return strings.HasPrefix(name, "bin/") && !strings.Contains(name, ".")
}

type file struct {
	fs.File
	name string
}

func (f file) Stat() (fs.FileInfo, error) {
	i, err := f.File.Stat()
	if err != nil {
		return nil, err
	}
	return info{i, f.name}, nil
}

type dir struct {
	file
	list fs.ReadDirFile
}

func (d dir) ReadDir(n int) ([]fs.DirEntry, error) {
	entries, err := d.list.ReadDir(n)
	for i, e := range entries {
		entries[i] = entry{e, path.Join(d.name, e.Name())}
	}
	return entries, err
}

type entry struct {
	fs.DirEntry
	name string
}

func (e entry) Info() (fs.FileInfo, error) {
	i, err := e.DirEntry.Info()
	if err != nil {
		return nil, err
	}
	return info{i, e.name}, nil
}

type info struct {
	fs.FileInfo
	name string
}

func (i info) Mode() fs.FileMode {
	switch {
	case i.IsDir():
		return fs.ModeDir | 0o755
	case program(i.name):
		return 0o755
	default:
		return 0o644
	}
}

// ModTime is fixed: an embedded file has none.
func (i info) ModTime() time.Time { return time.Unix(0, 0) }
