package lifecycle

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"hcpx/internal/pack"
)

// unpacker reads one kind of archive into an extraction.
type unpacker func(name string, x *extraction) error

func archiveKind(name string) unpacker {
	switch {
	case strings.HasSuffix(name, ".tgz"), strings.HasSuffix(name, ".tar.gz"):
		return unpackTar
	case strings.HasSuffix(name, ".zip"):
		return unpackZip
	}
	return nil
}

// extraction writes the entries of an archive below one root and nowhere else (§2.1): names are plain
// relative paths, links are made last and checked by lint, limits hold while reading, so that a small
// archive can't grow without end.
type extraction struct {
	root  *os.Root
	files int
	bytes int64
	links [][2]string // name, target
}

func newExtraction(root *os.Root, lim pack.Limits) *extraction {
	x := &extraction{root: root, files: pack.DefaultFiles, bytes: pack.DefaultBytes}
	if lim.Files > 0 {
		x.files = lim.Files
	}
	if lim.Bytes > 0 {
		x.bytes = lim.Bytes
	}
	return x
}

// entry is one member of an archive.
type entry struct {
	name   string
	mode   fs.FileMode
	target string // of a link
	body   io.Reader
}

func (x *extraction) add(e entry) error {
	name := path.Clean(e.name)
	if !fs.ValidPath(name) || strings.ContainsAny(name, "\\\x00") {
		return fmt.Errorf("the archive names %q, which is no path inside a pack", e.name)
	}
	if name == "." {
		return nil
	}
	if x.files--; x.files < 0 {
		return errors.New("the archive holds more files than a pack may have")
	}
	switch {
	case e.mode.IsDir():
		return x.root.MkdirAll(name, 0o700)
	case e.mode&fs.ModeSymlink != 0:
		x.links = append(x.links, [2]string{name, e.target})
		return nil
	case e.mode.IsRegular():
		return x.file(name, e)
	}
	return fmt.Errorf("the archive holds %q, which is neither a file nor a directory nor a link", e.name)
}

func (x *extraction) file(name string, e entry) error {
	if dir := path.Dir(name); dir != "." {
		if err := x.root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	mode := fs.FileMode(0o600)
	if e.mode&0o111 != 0 {
		mode = 0o700
	}
	f, err := x.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("the archive holds %q twice", name)
	}
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(e.body, x.bytes+1))
	if x.bytes -= n; x.bytes < 0 && err == nil {
		err = errors.New("the archive holds more bytes than a pack may have")
	}
	return errors.Join(err, f.Close())
}

// finish makes the links, once no file can be written through one.
func (x *extraction) finish() error {
	for _, l := range x.links {
		if dir := path.Dir(l[0]); dir != "." {
			if err := x.root.MkdirAll(dir, 0o700); err != nil {
				return err
			}
		}
		if err := x.root.Symlink(l[1], l[0]); err != nil {
			return err
		}
	}
	return nil
}

func unpackTar(name string, x *extraction) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return x.finish()
		}
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		e := entry{name: h.Name, mode: h.FileInfo().Mode(), target: h.Linkname, body: r}
		if h.Typeflag == tar.TypeLink {
			e.mode = fs.ModeIrregular // a second name for a file: lint could not say what it is
		}
		if err := x.add(e); err != nil {
			return err
		}
	}
}

// maxTarget is the longest target of a link.
const maxTarget = 4096

func unpackZip(name string, x *extraction) error {
	z, err := zip.OpenReader(name)
	if err != nil {
		return err
	}
	defer z.Close()
	for _, f := range z.File {
		if err := zipEntry(f, x); err != nil {
			return err
		}
	}
	return x.finish()
}

func zipEntry(f *zip.File, x *extraction) error {
	e := entry{name: f.Name, mode: f.Mode()}
	if e.mode.IsDir() {
		return x.add(e)
	}
	body, err := f.Open()
	if err != nil {
		return err
	}
	defer body.Close()
	e.body = body
	if e.mode&fs.ModeSymlink != 0 {
		target, err := io.ReadAll(io.LimitReader(body, maxTarget))
		if err != nil {
			return err
		}
		e.target = string(target)
	}
	return x.add(e)
}
