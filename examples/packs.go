// Package examples carries packs inside the program: the gold packs of §14.2 (transit, ledger, echo and herald, one for
// each way a pack can be made) and packs for tools that many people have: git, git-remote, github, release, sqlite, ripgrep, jq,
// postgres and npm. The vectors of §14.3 run on them, and `hcpx add NAME` installs one of them. It refuses nothing and
// imports nothing of the project; a pack's meaning is the business of the rooms that read it.
//
// packs.zip holds the directory packs, to a third of its size (docs/decisions/0023); `go test ./examples -update` makes it.
// It keeps which files are executable, so a copy of a pack has the digest of its directory in the repository.
package examples

import (
	"archive/zip"
	_ "embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed packs.zip
var archive string

// IDs are the packs that ship with the program, in order.
func IDs() []string {
	return []string{"echo", "git", "git-remote", "github", "herald", "jq", "ledger", "npm", "postgres", "release", "ripgrep", "sqlite", "transit"}
}

// Pack is the tree of a shipped pack, read-only.
func Pack(id string) (fs.FS, error) {
	all, err := zip.NewReader(strings.NewReader(archive), int64(len(archive)))
	if err != nil {
		return nil, fmt.Errorf("the packs that ship with this program can't be read: %w", err)
	}
	sub, err := fs.Sub(all, id)
	if err != nil {
		return nil, fmt.Errorf("no pack named %q ships with this program", id)
	}
	if _, err := fs.Stat(sub, "surface.json"); err != nil {
		return nil, fmt.Errorf("no pack named %q ships with this program", id)
	}
	return sub, nil
}
