package app

import (
	"io/fs"
	"strings"

	"hcpx/examples"
)

// Shipped are the packs that come with this program, in order.
func Shipped() []string { return examples.IDs() }

// shipped is one tree with a directory for each pack that comes with this program (§11: add).
type shipped struct{}

var _ fs.SubFS = shipped{}

// Sub is the tree of one pack.
func (shipped) Sub(dir string) (fs.FS, error) { return examples.Pack(dir) }

// Open implements fs.FS below the packs; the root itself is read by ReadDir.
func (shipped) Open(name string) (fs.File, error) {
	id, rest, inside := strings.Cut(name, "/")
	pack, err := examples.Pack(id)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if !inside {
		rest = "."
	}
	return pack.Open(rest)
}

// ReadDir implements fs.ReadDirFS.
func (s shipped) ReadDir(name string) ([]fs.DirEntry, error) {
	if name != "." {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrInvalid}
	}
	var entries []fs.DirEntry
	for _, id := range examples.IDs() {
		f, err := s.Open(id)
		if err != nil {
			return nil, err
		}
		info, err := f.Stat()
		if err != nil {
			return nil, err
		}
		entries = append(entries, packDir{fs.FileInfoToDirEntry(info), id})
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

// packDir is the root of a pack under its id.
type packDir struct {
	fs.DirEntry
	id string
}

func (d packDir) Name() string { return d.id }
