//go:build unix

package protect

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// kinds of a node.
const (
	kindFile  = "file"
	kindDir   = "directory"
	kindLink  = "link"
	kindOther = "other"    // a device, fifo or socket: never opened
	kindFull  = "overfull" // a directory with more in it than is looked at
)

// node is what was found at a name.
type node struct {
	Kind   string `json:"kind"`
	Mode   uint32 `json:"mode"` // permissions, with setuid, setgid and sticky
	UID    uint32 `json:"uid"`
	GID    uint32 `json:"gid"`
	Mtime  int64  `json:"mtime"`
	Ctime  int64  `json:"ctime"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256,omitempty"` // "" for a file that could not be read
	Offset int64  `json:"offset,omitempty"` // of its content in the journal
	Target []byte `json:"target,omitempty"`
	Dev    uint64 `json:"dev"`
	Ino    uint64 `json:"ino"`
	Born   int64  `json:"born,omitempty"`   // of a directory .git and of a tree
	Access []byte `json:"access,omitempty"` // its access list
	Heirs  []byte `json:"heirs,omitempty"`  // that of what is made in a directory
}

// view is what one look found, by key.
type view map[string]*node

// key names a place: the number of the tree, and the path in it.
func key(tree int, rel string) string { return strconv.Itoa(tree) + "/" + rel }

func unkey(k string) (tree int, rel string) {
	number, rel, _ := strings.Cut(k, "/")
	tree, _ = strconv.Atoi(number) // key wrote it
	return tree, rel
}

// looker makes one look. Before a run it copies content; afterwards it has the look before to bear with what the run
// did to hinder it.
type looker struct {
	trees   trees
	git     []gitPlace
	also    []spot // beside the list: what git's configuration names
	files   []spot // of indexes, before a run
	spare   bool   // a file needn't be kept when it is large
	far     bool   // nor at all
	before  view
	gentle  bool // changes no mode to see more
	content io.Writer
	offset  int64
	read    int64
	view    view
	absent  map[string]bool // what was looked for and not there
	strict  map[string]bool // directories that must not appear: git would look into them, or fail at them
	began   int64           // in late: what is older may stand
	buffer  []byte
}

// all looks at every name of the list.
func (l *looker) all() error {
	l.strict = map[string]bool{}
	if err := l.roots(); err != nil {
		return err
	}
	if _, err := l.node(0, ".git"); err != nil {
		return err
	}
	bare := false
	for _, g := range l.git {
		if err := l.place(g); err != nil {
			return err
		}
		bare = bare || g.Tree == 0 && g.Rel == "."
	}
	if !bare { // with it a directory becomes a git directory
		if err := l.leaf(spot{Rel: "HEAD", Nature: fileName}); err != nil {
			return err
		}
	}
	for _, s := range slices.Concat(rootSpots(), l.also) {
		if err := l.leaf(s); err != nil {
			return err
		}
	}
	for _, s := range l.files {
		if _, err := l.index(s); err != nil {
			return err
		}
	}
	return nil
}

// index looks at a file of an index. Its content is kept as far as it is small and that of this workspace.
func (l *looker) index(s spot) (*node, error) {
	l.spare, l.far = true, s.Nature == farIndex
	n, err := l.node(s.Tree, s.Rel)
	l.spare = false
	return n, err
}

// rootSpots are the names of rootGroups.
func rootSpots() []spot {
	var spots []spot
	for _, g := range rootGroups() {
		for _, name := range g.Names {
			s := spot{Rel: name, Nature: fileName}
			if slices.Contains(g.Dirs, name) {
				s.Nature = dirName
			}
			spots = append(spots, s)
		}
	}
	return spots
}

// roots looks at the trees themselves, once: who can't enter one can't look, nor put back.
func (l *looker) roots() error {
	for i, t := range l.trees {
		if l.view[key(i, ".")] != nil {
			continue
		}
		var st unix.Stat_t
		fd := int(t.handle.Fd())
		if err := unix.Fstat(fd, &st); err != nil {
			return err
		}
		n := nodeOf(&st)
		l.view[key(i, ".")] = n
		var err error
		if n.Access, n.Heirs, err = lists(fd, "", true); err != nil {
			return err
		}
		if l.before != nil && !l.gentle && n.Mode&0o700 != 0o700 && l.before[key(i, ".")].Mode != n.Mode {
			if err := unix.Fchmod(fd, n.Mode|0o700); err != nil {
				return err
			}
		}
	}
	return nil
}

// place looks at a directory of git, and at those below it that git would look into.
func (l *looker) place(g gitPlace) error {
	for _, name := range g.names() {
		if err := l.leaf(spot{Tree: g.Tree, Rel: path.Join(g.Rel, name), Nature: natureOf(name)}); err != nil {
			return err
		}
	}
	for _, shelf := range g.shelves() {
		if err := l.shelf(g.Tree, shelf); err != nil {
			return err
		}
	}
	return nil
}

func (l *looker) shelf(tree int, rel string) error {
	n, err := l.node(tree, rel)
	if err != nil || n == nil || n.Kind != kindDir {
		return err
	}
	fd, err := l.trees[tree].open(rel)
	if err != nil {
		return err
	}
	dir := os.NewFile(uintptr(fd), rel)
	defer dir.Close()
	names, err := listed(dir)
	if err != nil {
		return err
	}
	if len(names) > maxNodes {
		if l.before == nil {
			return &TooMuchError{l.trees.show(key(tree, rel))}
		}
		n.Kind = kindFull
		return nil
	}
	for _, name := range names {
		var st unix.Stat_t
		if err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFDIR && kind != unix.S_IFLNK {
			continue
		}
		child := path.Join(rel, name)
		if _, err := l.node(tree, child); err != nil {
			return err
		}
		l.strict[key(tree, child)] = true
	}
	return nil
}

// late looks at places that git would look into only since the run. What is older there than the run stays, when older
// says nothing else of it, and all that only a bad index names.
func (l *looker) late(n *namer, began int64, bad map[string]bool, older func(spot) error) error {
	known := maps.Clone(l.view)
	l.began = began
	for _, s := range n.spots {
		is, err := l.node(s.Tree, s.Rel)
		if err != nil {
			return err
		}
		switch {
		case is == nil:
		case is.Kind == kindDir && cmp.Or(is.Born, is.Ctime) >= began:
			l.strict[key(s.Tree, s.Rel)] = true
		case is.Kind == kindDir || is.Ctime < began:
			if err := older(s); err != nil {
				return err
			}
		}
	}
	for _, g := range n.git {
		if bad[n.by[key(g.Tree, g.Rel)]] {
			continue // it is no submodule any more when the index is back
		}
		if err := l.place(g); err != nil {
			return err
		}
	}
	for k, is := range l.view {
		if known[k] == nil && l.before[k] == nil && !l.strict[k] && is.Ctime < began {
			delete(l.view, k)
		}
	}
	return nil
}

// leaf looks at a listed name and, if it is a directory, at all that lies in it.
func (l *looker) leaf(s spot) error {
	n, err := l.node(s.Tree, s.Rel)
	if err != nil || n == nil || n.Kind != kindDir || s.Nature == fileName && l.instead(key(s.Tree, s.Rel), n) {
		return err
	}
	start := len(l.view)
	err = l.within(s, start)
	var full *TooMuchError
	if l.before != nil && errors.As(err, &full) {
		for k := range l.view {
			if strings.HasPrefix(k, key(s.Tree, s.Rel)+"/") {
				delete(l.view, k)
			}
		}
		n.Kind = kindFull
		return nil
	}
	return err
}

// instead says that a directory came where only a file belongs. It goes as a whole, whatever lies in it.
func (l *looker) instead(k string, n *node) bool {
	if l.before == nil || l.before[k] != nil || n.Ctime < l.began {
		return false
	}
	l.strict[k] = true
	return true
}

// within looks at what lies in a directory. git never runs a hook whose name ends in .sample.
func (l *looker) within(s spot, start int) error {
	names, err := l.list(s.Tree, s.Rel)
	if err != nil {
		return err
	}
	if len(l.view)-start+len(names) > maxNodes || strings.Count(s.Rel, "/") > maxDepth {
		return &TooMuchError{l.trees.show(key(s.Tree, s.Rel))}
	}
	for _, name := range names {
		if s.Nature == hooksDir && strings.HasSuffix(name, ".sample") {
			continue
		}
		child := spot{Tree: s.Tree, Rel: path.Join(s.Rel, name), Nature: dirName}
		n, err := l.node(child.Tree, child.Rel)
		if err == nil && n != nil && n.Kind == kindDir && (s.Nature != hooksDir || !l.instead(key(child.Tree, child.Rel), n)) {
			err = l.within(child, start)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const maxDepth = 64

// list names what lies in a directory, sorted.
func (l *looker) list(tree int, rel string) ([]string, error) {
	fd, err := l.trees[tree].open(rel)
	if err != nil {
		return nil, err
	}
	dir := os.NewFile(uintptr(fd), rel)
	names, err := listed(dir)
	return names, errors.Join(err, dir.Close())
}

func listed(dir *os.File) ([]string, error) {
	names, err := dir.Readdirnames(maxNodes + 1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	slices.Sort(names)
	return names, err
}

// node looks at one name, its parents first. It is nil when nothing is there; a parent that is no directory
// has a node of its own, and nothing lies below it.
func (l *looker) node(tree int, rel string) (*node, error) {
	k := key(tree, rel)
	if n, ok := l.view[k]; ok || l.absent[k] {
		return n, nil
	}
	n, err := l.find(tree, rel, k)
	if err != nil {
		return nil, err
	}
	if n == nil {
		if l.absent == nil {
			l.absent = map[string]bool{}
		}
		l.absent[k] = true
		return nil, nil
	}
	l.view[k] = n
	return n, nil
}

func (l *looker) find(tree int, rel, k string) (*node, error) {
	cut := strings.LastIndexByte(rel, '/')
	if cut < 0 {
		return l.at(int(l.trees[tree].handle.Fd()), rel, k)
	}
	n, err := l.node(tree, rel[:cut])
	if err != nil || n == nil || n.Kind != kindDir {
		return nil, err
	}
	parent, err := l.trees[tree].open(rel[:cut])
	if err != nil {
		return nil, err
	}
	n, err = l.at(parent, rel[cut+1:], k)
	return n, errors.Join(err, unix.Close(parent))
}

// at looks at a name in an open directory.
func (l *looker) at(dir int, name, k string) (*node, error) {
	var st unix.Stat_t
	err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.trees.show(k), err)
	}
	n := nodeOf(&st)
	if err = nil; n.Kind == kindFile || n.Kind == kindDir {
		n.Access, n.Heirs, err = lists(dir, name, n.Kind == kindDir)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.trees.show(k), err)
	}
	switch n.Kind {
	case kindFile:
		err = l.file(dir, name, k, n)
	case kindLink:
		n.Target, err = target(dir, name)
	case kindDir:
		if name == ".git" {
			n.Born = born(dir, name)
		}
		if was := l.before[k]; l.before != nil && !l.gentle && n.Mode&0o700 != 0o700 && (was == nil || was.Mode != n.Mode) {
			err = chmodAt(dir, name, n.Mode|0o700) // else nobody could look into it
		}
	}
	if full := (*TooMuchError)(nil); err != nil && !errors.As(err, &full) {
		err = fmt.Errorf("%s: %w", l.trees.show(k), err)
	}
	return n, err
}

// file hashes a file, and before the run keeps its content. One that can't be read has no hash.
func (l *looker) file(dir int, name, k string, n *node) error {
	if l.spare && l.content != nil && (l.far || n.Size > maxKept || l.offset+n.Size > maxBytes/2) {
		return nil
	}
	if l.content != nil && l.offset+n.Size > maxBytes {
		return &TooMuchError{l.trees.show(k)}
	}
	if l.content == nil && (n.Size > maxBytes || l.read > 4*maxBytes) {
		return nil // it is longer than anything that was there before
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
		return nil
	}
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), name)
	sum := sha256.New()
	var to io.Writer = sum
	if l.content != nil {
		to = io.MultiWriter(sum, l.content)
	}
	if l.buffer == nil {
		l.buffer = make([]byte, 32<<10)
	}
	// One byte more than there was shows that it grew meanwhile.
	size, err := io.CopyBuffer(struct{ io.Writer }{to}, io.LimitReader(f, maxBytes+1), l.buffer)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	switch {
	case size <= maxBytes:
	case l.content == nil:
		return nil
	default:
		return &TooMuchError{l.trees.show(k)}
	}
	n.Size, n.Offset, n.SHA256 = size, l.offset, hex.EncodeToString(sum.Sum(nil))
	l.offset, l.read = l.offset+size, l.read+size
	return nil
}

func nodeOf(st *unix.Stat_t) *node {
	n := &node{Mode: uint32(st.Mode) & 0o7777, UID: st.Uid, GID: st.Gid, Size: st.Size, Dev: uint64(st.Dev), Ino: st.Ino,
		Mtime: mtime(st), Ctime: ctime(st), Kind: kindOther}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		n.Kind = kindFile
	case unix.S_IFDIR:
		n.Kind = kindDir
	case unix.S_IFLNK:
		n.Kind = kindLink
	}
	return n
}

func target(dir int, name string) ([]byte, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(dir, name, buf)
	if err != nil {
		return nil, err
	}
	return buf[:n:n], nil
}
