//go:build unix

package protect

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// maxIndex bounds the indexes that are read, together; what is larger counts as not understood.
const maxIndex = 256 << 20

// maxSparse bounds what is looked through of directories that a sparse index leaves out.
const maxSparse = 16 * maxNodes

var errIndex = errors.New("git's index cannot be understood")

// gitlinks is what an index says of repositories within the one that it belongs to, which is checked out at work: git
// looks into each of them when it tells the state of the one above.
type gitlinks struct {
	work  string
	sum   int             // bytes of a hash
	dirs  []string        // where they are, beneath work
	files []string        // what was read, in the git directory
	known map[string]bool // dirs as a set
	whole bool            // every directory counts: an entry without a name may stand for any
	look  int             // how many names were looked at in sparse directories
	spent int64           // bytes that were read
	err   error           // of an entry
	bare  bool            // a submodule has no name
	far   bool            // work is nowhere in the workspace
}

// read takes the index of a git directory, and the shared one that it builds on. It fails at all that git would read
// in another way, or could.
func (g *gitlinks) read(gitDir string) error {
	g.known, g.files = map[string]bool{}, []string{"index"}
	base, err := g.file(filepath.Join(gitDir, "index"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil || len(bytes.Trim(base, "\x00")) == 0 {
		return err
	}
	// An entry without a name replaces one of the shared index by its number: any that is a directory may be it.
	g.whole = g.bare
	shared := "sharedindex." + hex.EncodeToString(base)
	g.files = append(g.files, shared)
	_, err = g.file(filepath.Join(gitDir, shared))
	return err
}

func (g *gitlinks) file(at string) (base []byte, err error) {
	f, err := os.OpenFile(at, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if g.spent += info.Size(); !info.Mode().IsRegular() || g.spent > maxIndex {
		return nil, errIndex
	}
	text := make([]byte, info.Size())
	if _, err := io.ReadFull(f, text); err != nil {
		return nil, err
	}
	base, err = parseIndex(text, g.sum, g.entry)
	return base, errors.Join(err, g.err)
}

// entry takes an entry of the index.
func (g *gitlinks) entry(mode uint32, name []byte) {
	switch mode & unix.S_IFMT {
	case 0o160000:
		if len(name) == 0 {
			g.bare = true
			return
		}
		g.add(string(name))
	case unix.S_IFDIR: // all of a directory that isn't checked out, submodules of it too
		dir, slash := strings.CutSuffix(string(name), "/")
		if !slash || !clean(dir) {
			g.err = errIndex
			return
		}
		if !g.far {
			g.sparse(dir)
		}
	case unix.S_IFREG, unix.S_IFLNK:
		if g.whole && !g.far && clean(string(name)) {
			if info, err := os.Lstat(filepath.Join(g.work, string(name))); err == nil && info.IsDir() {
				g.add(string(name))
			}
		}
	default:
		g.err = errIndex
	}
}

// clean says that a path leads nowhere else by how it is written.
func clean(name string) bool { return filepath.IsLocal(name) && path.Clean(name) == name }

func (g *gitlinks) add(dir string) {
	switch {
	case !clean(dir):
		g.err = errIndex
	case g.known[dir]:
	case len(g.dirs) >= maxNodes:
		g.err = &TooMuchError{filepath.Join(g.work, dir)}
	default:
		g.known[dir] = true
		g.dirs = append(g.dirs, dir)
	}
}

// sparse looks for repositories in a directory that git leaves out of the work tree: what stands there all the same
// may be a submodule.
func (g *gitlinks) sparse(dir string) {
	names, err := os.ReadDir(filepath.Join(g.work, dir))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return
	}
	if g.look += len(names); err == nil && g.look > maxSparse {
		err = fmt.Errorf("%s, which git leaves out of the work tree, holds more than %d files", filepath.Join(g.work, dir), maxSparse)
	}
	if err != nil {
		g.err = err
		return
	}
	for _, d := range names {
		switch {
		case d.Name() == ".git":
			g.add(dir)
		case d.IsDir() && g.err == nil:
			g.sparse(path.Join(dir, d.Name()))
		}
	}
}

// entries reads the entries of an index, versions 2 to 4, as git does: the flags tell the length of a name.
type entries struct {
	text    []byte
	sum     int
	version uint32
	at      int
	name    []byte
	starts  []int // of entries; negative when the name builds on the one before
}

// parseIndex hands over each entry, and says which shared index this one builds on.
func parseIndex(text []byte, sum int, each func(mode uint32, name []byte)) (base []byte, err error) {
	if len(text) < 12+sum || string(text[:4]) != "DIRC" {
		return nil, errIndex
	}
	r := &entries{text: text[:len(text)-sum], sum: sum, version: binary.BigEndian.Uint32(text[4:]), at: 12}
	count := int(binary.BigEndian.Uint32(text[8:]))
	if r.version < 2 || r.version > 4 || count > len(text)/(42+sum) {
		return nil, errIndex
	}
	r.starts = make([]int, 0, count)
	for range count {
		mode, err := r.next()
		if err != nil {
			return nil, err
		}
		each(mode, r.name)
	}
	return r.extensions()
}

func (r *entries) next() (mode uint32, err error) {
	start, flags := r.at, r.at+40+r.sum
	if flags+4 > len(r.text) {
		return 0, errIndex
	}
	mode = binary.BigEndian.Uint32(r.text[start+24:])
	bits := binary.BigEndian.Uint16(r.text[flags:])
	text, size, shared := flags+2, int(bits&0xfff), 0
	if bits&0x4000 != 0 { // extended flags
		text += 2
	}
	if r.version == 4 {
		if text, shared, err = r.strip(text); err != nil {
			return 0, err
		}
	}
	end := bytes.IndexByte(r.text[text:], 0)
	if end < 0 || size < 0xfff && end+shared != size || size == 0xfff && end+shared < size {
		return 0, errIndex
	}
	if shared > 0 {
		r.starts = append(r.starts, -start)
	} else {
		r.starts = append(r.starts, start)
	}
	r.name = append(r.name[:shared], r.text[text:text+end]...)
	if r.at = text + end + 1; r.version < 4 {
		r.at = start + (text-start+end+8)&^7
	}
	if r.at > len(r.text) {
		return 0, errIndex
	}
	return mode, nil
}

// strip is where the rest of a name stands, and how much of the one before it begins with.
func (r *entries) strip(at int) (text, shared int, err error) {
	n := 0
	for i := 0; at < len(r.text); i++ {
		b := r.text[at]
		at++
		if i > 0 {
			n++
		}
		if n = n<<7 | int(b&0x7f); n > len(r.name) {
			break
		}
		if b&0x80 == 0 {
			return at, len(r.name) - n, nil
		}
	}
	return 0, 0, errIndex
}

// extensions reads what stands behind the entries. Two of them tell git's threads where to begin; they must say what
// reading from the start finds.
func (r *entries) extensions() (base []byte, err error) {
	rest := r.text[r.at:]
	for len(rest) >= 8 {
		name, size := string(rest[:4]), int(binary.BigEndian.Uint32(rest[4:]))
		if rest = rest[8:]; size > len(rest) {
			return nil, errIndex
		}
		data := rest[:size]
		rest = rest[size:]
		ok := true
		switch name {
		case "link":
			if ok = base == nil && size >= r.sum; ok {
				base = data[:r.sum]
			}
		case "EOIE":
			ok = size >= 4 && int(binary.BigEndian.Uint32(data)) == r.at
		case "IEOT":
			ok = r.blocks(data)
		case "sdir":
		default:
			ok = name[0] >= 'A' && name[0] <= 'Z' // git refuses others
		}
		if !ok {
			return nil, fmt.Errorf("%w: its extension %q", errIndex, name)
		}
	}
	if len(rest) > 0 {
		return nil, errIndex
	}
	return base, nil
}

// blocks says whether a table of blocks has every entry once, where it is.
func (r *entries) blocks(data []byte) bool {
	if len(data) < 4 || len(data)%8 != 4 {
		return false
	}
	i := 0
	for data = data[4:]; len(data) > 0; data = data[8:] {
		if i >= len(r.starts) || int(binary.BigEndian.Uint32(data)) != r.starts[i] {
			return false
		}
		i += int(binary.BigEndian.Uint32(data[4:]))
	}
	return i == len(r.starts)
}
