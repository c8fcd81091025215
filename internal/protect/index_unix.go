//go:build unix

package protect

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// maxLinks bounds the submodules that are looked at.
const maxLinks = 512

// gitlinks are the paths in an index that are repositories of their own: git looks into each of them when it tells
// the state of the one above, which is checked out at work. A damaged index, which git refuses, has those before the
// damage.
func gitlinks(gitDir, work string, sum int) []string {
	r := &index{sum: sum}
	r.read(filepath.Join(gitDir, "index"))
	if r.base != "" {
		// An entry without a name replaces one of the shared index by its number: any that is a directory may be it.
		shared := &index{sum: sum, links: r.links}
		if r.nameless {
			shared.work = work
		}
		shared.read(filepath.Join(gitDir, "sharedindex."+r.base))
		return shared.links
	}
	return r.links
}

func (r *index) read(at string) {
	f, err := os.OpenFile(at, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return
	}
	r.in = bufio.NewReaderSize(f, 64<<10)
	r.entries()
}

// index reads git's index, versions 2 to 4.
type index struct {
	in       *bufio.Reader
	sum      int // bytes of a hash
	version  uint32
	path     []byte // of the entry before
	links    []string
	nameless bool   // a submodule has no name
	base     string // the shared index that this one builds on
	work     string // where entries that are directories count as submodules, "" nowhere
}

func (r *index) entries() {
	var head [12]byte
	if _, err := io.ReadFull(r.in, head[:]); err != nil || string(head[:4]) != "DIRC" {
		return
	}
	r.version = binary.BigEndian.Uint32(head[4:])
	if r.version < 2 || r.version > 4 {
		return
	}
	for range binary.BigEndian.Uint32(head[8:]) {
		if r.entry() != nil || len(r.links) > maxLinks {
			return
		}
	}
	var ext [8]byte
	if _, err := io.ReadFull(r.in, ext[:]); err != nil || string(ext[:4]) != "link" {
		return // git writes it first
	}
	base := make([]byte, r.sum)
	if _, err := io.ReadFull(r.in, base); err == nil {
		r.base = hex.EncodeToString(base)
	}
}

var errIndex = errors.New("a damaged index")

func (r *index) entry() error {
	fixed := 40 + r.sum + 2
	head, err := r.in.Peek(fixed)
	if err != nil {
		return err
	}
	link := binary.BigEndian.Uint32(head[24:])&0o170000 == 0o160000
	if head[fixed-2]&0x40 != 0 { // extended flags
		fixed += 2
	}
	if _, err := r.in.Discard(fixed); err != nil {
		return err
	}
	if r.version == 4 {
		if err := r.strip(); err != nil {
			return err
		}
	} else {
		r.path = r.path[:0]
	}
	for {
		part, err := r.in.ReadSlice(0)
		r.path = append(r.path, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) || len(r.path) > 1<<16 {
			return err
		}
	}
	r.path = r.path[:len(r.path)-1]
	if r.version < 4 { // padded to eight bytes, of which one zero is read
		if pad := 7 - (fixed+len(r.path))%8; pad > 0 {
			if _, err := r.in.Discard(pad); err != nil {
				return err
			}
		}
	}
	r.nameless = r.nameless || link && len(r.path) == 0
	if !link && r.work == "" {
		return nil
	}
	name := string(r.path)
	if !link {
		info, err := os.Lstat(filepath.Join(r.work, name))
		link = err == nil && info.IsDir()
	}
	if link && filepath.IsLocal(name) && !slices.Contains(r.links, filepath.Clean(name)) {
		r.links = append(r.links, filepath.Clean(name))
	}
	return nil
}

// strip takes from the path before what this one doesn't share.
func (r *index) strip() error {
	n := 0
	for i := 0; ; i++ {
		b, err := r.in.ReadByte()
		if err != nil {
			return err
		}
		if i > 0 {
			n++
		}
		if n = n<<7 | int(b&0x7f); n > len(r.path) {
			return errIndex
		}
		if b&0x80 == 0 {
			break
		}
	}
	r.path = r.path[:len(r.path)-n]
	return nil
}
