package pack

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"hcpx/internal/order"
	"hcpx/internal/protocol"
)

// maxPath bounds the bytes of a path, so that a deep tree costs no more than a wide one.
const maxPath = 1024

// walker goes through a pack, links not followed, and stops at the first limit.
type walker struct {
	fsys     fs.FS
	lim      Limits
	files    []File
	dirs     int
	bytes    int64
	content  map[string][]byte // of the required files
	seen     map[string]bool   // the required files that exist, in whatever form
	issues   []protocol.Issue
	unlisted bool // the walk did not see everything
}

// issue reports something about one path.
func (w *walker) issue(code protocol.IssueCode, name, message string) {
	w.issues = append(w.issues, protocol.NewIssue(code, shown(name), message))
}

// stop reports a passed limit; the walk ends.
func (w *walker) stop(name, message string) bool {
	w.issue("pack.too-large", name, message)
	w.unlisted = true
	return false
}

// dir walks one directory; false means that the walk has ended.
func (w *walker) dir(name string) bool {
	if w.dirs++; w.dirs > w.lim.Files {
		return w.stop(".", fmt.Sprintf("The pack has more than %d directories.", w.lim.Files))
	}
	entries, err := list(w.fsys, name, w.lim.Files+w.lim.Files)
	if errors.Is(err, errTooMany) {
		return w.stop(".", fmt.Sprintf("The pack has more than %d files.", w.lim.Files))
	}
	if err != nil {
		w.issue("pack.unreadable", name, "The directory cannot be read: "+reason(err)+".")
		w.unlisted = w.unlisted || name == "."
		return true
	}
	for _, e := range entries {
		if !w.entry(path.Join(name, e.Name()), e) {
			return false
		}
	}
	return true
}

var errTooMany = errors.New("too many entries")

// list reads a directory in byte order of name, up to a number of entries.
func list(fsys fs.FS, name string, most int) ([]fs.DirEntry, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	d, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, errors.New("it is no directory")
	}
	entries, err := d.ReadDir(most + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(entries) > most {
		return nil, errTooMany
	}
	order.By(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// entry takes one entry of a directory.
func (w *walker) entry(name string, e fs.DirEntry) bool {
	if slices.Contains(required[:], name) {
		w.seen[name] = true
		if !e.Type().IsRegular() {
			w.issue("pack.irregular-file", name, name+" is "+kind(e.Type())+"; it must be a regular file.")
			return true
		}
	}
	switch {
	case len(name) > maxPath:
		return w.stop(name[:80]+"…", fmt.Sprintf("A path is longer than %d bytes.", maxPath))
	case !utf8.ValidString(name) || strings.ContainsFunc(e.Name(), unicode.IsControl):
		w.issue("pack.irregular-file", name, "The name holds a control character or is not UTF-8.")
		return true
	case e.IsDir():
		return w.dir(name)
	case e.Type()&fs.ModeSymlink == 0 && !e.Type().IsRegular():
		w.issue("pack.irregular-file", name, "This is "+kind(e.Type())+"; a pack holds files, directories and links only.")
		return true
	case len(w.files) >= w.lim.Files:
		return w.stop(".", fmt.Sprintf("The pack has more than %d files.", w.lim.Files))
	case e.Type()&fs.ModeSymlink != 0:
		w.link(name)
		return true
	}
	return w.file(name)
}

// file reads one regular file.
func (w *walker) file(name string) bool {
	f, err := w.fsys.Open(name)
	if err != nil {
		w.issue("pack.unreadable", name, "The file cannot be read: "+reason(err)+".")
		return true
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		w.issue("pack.unreadable", name, "The file changes while it is read.")
		return true
	}
	keep := slices.Contains(required[:], name)
	if keep && info.Size() > MaxRequired {
		w.issue("pack.too-large", name, fmt.Sprintf("%s has more than %d bytes.", name, MaxRequired))
		return true
	}
	left := w.lim.Bytes - w.bytes
	sum := sha256.New()
	var n int64
	if keep {
		var src []byte
		src, err = io.ReadAll(io.LimitReader(f, left+1))
		n = int64(len(src))
		sum.Write(src)
		w.content[name] = src
	} else {
		n, err = io.Copy(sum, io.LimitReader(f, left+1))
	}
	if err != nil {
		delete(w.content, name)
		w.issue("pack.unreadable", name, "The file cannot be read: "+reason(err)+".")
		return true
	}
	if n > left {
		return w.stop(".", fmt.Sprintf("The files of the pack have more than %d bytes together.", w.lim.Bytes))
	}
	w.bytes += n
	w.files = append(w.files, File{Path: name, Mode: modeOf(info.Mode()), Size: n, Sum: hex.EncodeToString(sum.Sum(nil))})
	return true
}

// modeOf is the part of a mode that the digest covers (§2.4).
func modeOf(m fs.FileMode) byte {
	switch {
	case m&fs.ModeSymlink != 0:
		return 'l'
	case m&0o111 != 0:
		return 'x'
	}
	return '-'
}

// kind names a file's type for a person.
func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	case m&fs.ModeNamedPipe != 0:
		return "a fifo"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// reason is an error without the path that the issue names already.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		err = p.Err
	}
	return err.Error()
}

// shown is a path that can be printed.
func shown(name string) string {
	q := strconv.Quote(name)
	if plain := q[1 : len(q)-1]; strings.ContainsFunc(name, unicode.IsControl) || !utf8.ValidString(name) {
		return plain
	}
	return name
}
