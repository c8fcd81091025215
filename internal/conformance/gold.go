package conformance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"hcpx/examples"
	"hcpx/internal/jsondoc"
)

// gold makes fresh copies of gold packs, each in a directory that is named after it.
func (p *play) gold(ids []string) error {
	p.copies++
	p.packs = filepath.Join(p.dir, "packs"+strconv.Itoa(p.copies))
	for _, id := range ids {
		src, err := examples.Pack(id)
		if err != nil {
			return err
		}
		if err := copyTree(src, filepath.Join(p.packs, id)); err != nil {
			return err
		}
	}
	return nil
}

func copyTree(src fs.FS, dir string) error {
	return fs.WalkDir(src, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(name))
		if d.IsDir() {
			return os.MkdirAll(to, 0o755)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := fs.ReadFile(src, name)
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, info.Mode().Perm())
	})
}

// change makes one change to a copied pack.
func (p *play) change(l Line) error {
	if len(l.Words) < 2 || p.packs == "" {
		return errors.New("needs a file of a copied pack")
	}
	path := filepath.Join(p.packs, filepath.FromSlash(l.Words[1]))
	switch l.Words[0] {
	case "merge":
		return mergeFile(path, l.Rest)
	case "put":
		data, ok := p.vector.file(l.Rest)
		if !ok {
			return fmt.Errorf("the vector has no file %s", l.Rest)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, data, 0o644)
	case "append":
		old, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(path, append(old, l.Rest+"\n"...), 0o644)
	case "remove":
		return os.Remove(path)
	case "chmod":
		mode, err := strconv.ParseUint(l.Rest, 8, 9)
		if err != nil {
			return err
		}
		return os.Chmod(path, fs.FileMode(mode))
	default:
		return os.Symlink(l.Rest, path)
	}
}

// mergeFile changes a JSON file by a merge patch (RFC 7396): members replace, null removes.
func mergeFile(path, patch string) error {
	src, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	old, err := parseJSON(src)
	if err != nil {
		return err
	}
	change, err := parseJSON([]byte(patch))
	if err != nil {
		return err
	}
	return os.WriteFile(path, merge(old, change).Append(nil), 0o644)
}

func merge(old, patch *jsondoc.Node) *jsondoc.Node {
	if patch.Kind != jsondoc.Object {
		return patch
	}
	out := jsondoc.Obj()
	if old != nil && old.Kind == jsondoc.Object {
		for _, m := range old.Members {
			if change := patch.Get(m.Key); change == nil {
				out = out.With(m.Key, m.Value)
			} else if change.Kind != jsondoc.Null {
				out = out.With(m.Key, merge(m.Value, change))
			}
		}
	}
	for _, m := range patch.Members {
		if !out.Has(m.Key) && m.Value.Kind != jsondoc.Null {
			out = out.With(m.Key, merge(nil, m.Value))
		}
	}
	return out
}

func parseJSON(src []byte) (*jsondoc.Node, error) {
	n, faults := jsondoc.Parse(src, jsondoc.Limits{Bytes: 16 << 20})
	if len(faults) > 0 {
		line, column := jsondoc.Place(src, faults[0].Offset)
		return nil, fmt.Errorf("not one JSON value: %d:%d %s", line, column, strings.TrimSpace(faults[0].Message))
	}
	return n, nil
}
