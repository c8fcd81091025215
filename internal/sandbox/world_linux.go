package sandbox

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"hcpx/internal/egress"
	"hcpx/internal/protocol"
)

// identity is what a path means to the kernel: Landlock rules are bound to it, whatever the path says later.
type identity struct {
	dev, ino uint64
}

// grant is one Landlock rule to be: the rights on a file or on everything beneath a directory.
type grant struct {
	path   string
	rights uint64
	id     identity
	dir    bool
	// private marks the run's own directories, whose attributes must not outlive the run.
	private bool
	fd      int // an open O_PATH handle, 0 = none
}

// world is a Spec whose every path was found. It is what check answers from and prepare builds.
type world struct {
	spec   *Spec
	grants []grant      // declared ones, in the order of the Spec
	dir    string       // working directory, "" = the private HOME
	hosts  *egress.List // for network hosts
}

// newWorld looks at every declared path once (§10.2). A path that is missing refuses the run; it is never
// left out. Programs may be links: the rule holds the file at their end.
func newWorld(spec *Spec) (*world, *protocol.Error) {
	w := &world{spec: spec, dir: spec.Dir, grants: declared(spec)}
	for i := range w.grants {
		look := w.tree
		if i <= len(spec.Uses) {
			look = w.program
		}
		if err := look(i); err != nil {
			return nil, err
		}
	}
	for _, l := range spec.Links {
		if l.HomeRel != "" && !filepath.IsLocal(l.HomeRel) {
			return nil, escape(l.HomeRel, "it is no place below the private home directory")
		}
	}
	if w.mode() == "hosts" {
		var err error
		if w.hosts, err = hostList(spec.Network); err != nil {
			return nil, unavailable("network-hosts", "The network of this command cannot be kept: "+err.Error()+".")
		}
	}
	return w, w.workdir()
}

// declared are the grants of a Spec as it names them, before anything is looked at: the program and those that it
// uses, then trees. Plan shows these very grants, and the jail is built from them (§10.2).
func declared(spec *Spec) []grant {
	all := make([]grant, 0, 8+len(spec.Uses)+len(spec.Read)+len(spec.Write))
	all = append(all, grant{path: spec.Program.Path, rights: rightsProgram})
	for _, p := range spec.Uses {
		all = append(all, grant{path: p.Path, rights: rightsProgram})
	}
	for _, trees := range []struct {
		paths  []string
		rights uint64
	}{{spec.UseDirs, rightsExec}, {spec.Exec, rightsExec}, {spec.Read, rightsRead}, {spec.Write, rightsWrite}} {
		for _, path := range trees.paths {
			all = append(all, grant{path: path, rights: trees.rights})
		}
	}
	for _, l := range spec.Links {
		all = append(all, grant{path: l.Target, rights: rightsRead})
	}
	return all
}

// nth is the program itself for 0, else one that it uses.
func (w *world) nth(i int) Program {
	if i == 0 {
		return w.spec.Program
	}
	return w.spec.Uses[i-1]
}

func (w *world) program(i int) *protocol.Error {
	p := w.nth(i)
	bad := func(why string) *protocol.Error {
		return protocol.Fail(protocol.BinNotAllowed, fmt.Sprintf("The program %q cannot be used: %s.", p.Name, why)).
			With("name", p.Name).With("path", p.Path).WithHint("hcpx allow " + protocol.Words(p.Name))
	}
	switch {
	case p.Name == "" || strings.ContainsAny(p.Name, "/\x00") || p.Name == "." || p.Name == "..":
		return bad("its name is no file name")
	case !filepath.IsAbs(p.Path):
		return bad("its path is not absolute")
	}
	for earlier := range i {
		if other := w.nth(earlier); other.Name == p.Name && other.Path != p.Path {
			return bad("another program of this command has the same name")
		}
	}
	st, err := w.lookProgram(p.Path)
	if err != nil {
		return bad(p.Path + " is not there (" + cause(err) + ")")
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Mode&0o111 == 0 {
		return bad(p.Path + " is not an executable file")
	}
	w.grants[i].id = identity{st.Dev, st.Ino}
	return nil
}

func (w *world) tree(i int) *protocol.Error {
	g := &w.grants[i]
	if !filepath.IsAbs(g.path) {
		return escape(g.path, "it is not absolute")
	}
	st, err := lookReal(g.path)
	if errors.Is(err, unix.ELOOP) {
		return escape(g.path, "a link stands in its path, and might lead elsewhere by now")
	}
	if err != nil {
		return escape(g.path, "it is not there ("+cause(err)+")")
	}
	if g.path == "/" {
		return escape(g.path, "the whole machine is no jail")
	}
	g.id, g.dir = identity{st.Dev, st.Ino}, st.Mode&unix.S_IFMT == unix.S_IFDIR
	if !g.dir {
		g.rights &= rightsFile
	}
	return nil
}

// lookReal looks at a path that has no link in it. Whoever made the Spec has resolved it and judged where it leads; a
// link that stands there now was put there since.
func lookReal(path string) (st unix.Stat_t, err error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return st, err
	}
	err = unix.Fstat(fd, &st)
	return st, errors.Join(err, unix.Close(fd))
}

// lookProgram looks at a program: one of the pack's own without leaving the pack, whatever stands at its path by now.
func (w *world) lookProgram(path string) (st unix.Stat_t, err error) {
	for _, tree := range w.spec.Exec {
		rest, own := strings.CutPrefix(path, tree+"/")
		if !own {
			continue
		}
		dir, err := unix.Openat2(unix.AT_FDCWD, tree, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
		if err != nil {
			return st, err
		}
		fd, err := unix.Openat2(dir, rest, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS})
		if err != nil {
			return st, closing(dir, err)
		}
		err = unix.Fstat(fd, &st)
		return st, errors.Join(err, unix.Close(fd), unix.Close(dir))
	}
	err = unix.Stat(path, &st)
	return st, err
}

// workdir holds the working directory inside the readable and writable trees (§10.2): its real ancestors
// are compared by identity, so no link leads out.
func (w *world) workdir() *protocol.Error {
	if w.dir == "" {
		return nil
	}
	if !filepath.IsAbs(w.dir) {
		return escape(w.dir, "a working directory must be absolute")
	}
	for _, tree := range w.grants {
		if tree.dir && tree.path == w.dir {
			return nil
		}
	}
	real, err := filepath.EvalSymlinks(w.dir)
	if err != nil {
		return escape(w.dir, "it cannot be reached ("+cause(err)+")")
	}
	for _, id := range ancestors(real) {
		for _, tree := range w.grants {
			if tree.dir && tree.id == id {
				return nil
			}
		}
	}
	return escape(w.dir, "it lies outside every directory that the command may have")
}

// ancestors are the identities of a real path and of everything above it.
func ancestors(path string) []identity {
	var ids []identity
	for {
		var st unix.Stat_t
		if unix.Stat(path, &st) == nil {
			ids = append(ids, identity{st.Dev, st.Ino})
		}
		up := filepath.Dir(path)
		if up == path {
			return ids
		}
		path = up
	}
}

// place is where the private directories lie: its real path, and the identities of it and of everything
// above it, as far as they exist.
type place struct {
	path  string
	above []identity
}

// placeOf looks at the directory itself when it is there, else at the nearest one above it that is.
func placeOf(path string) place {
	for at := path; ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return place{filepath.Join(real, strings.TrimPrefix(path, at)), ancestors(real)}
		}
		if at == filepath.Dir(at) {
			return place{path: path}
		}
	}
}

// apart refuses a Spec that could read the private directories of other runs: they lie in none of its trees,
// and by their names no tree lies among them (§10.2).
func (w *world) apart(scratch place) *protocol.Error {
	for _, g := range w.grants {
		if g.dir && slices.Contains(scratch.above, g.id) {
			return escape(g.path, "the private directories of other runs lie in it")
		}
		if scratch.holds(filepath.Clean(g.path)) { // no link stands in it
			return escape(g.path, amongPrivate)
		}
	}
	return nil
}

const amongPrivate = "it lies among the private directories of runs"

// outside is the other half of apart, for a jail that is about to be built: no tree leads there by a link.
func (w *world) outside(scratch place) *protocol.Error {
	for _, g := range w.grants {
		real, err := filepath.EvalSymlinks(g.path)
		if err != nil {
			return escape(g.path, "it cannot be reached ("+cause(err)+")")
		}
		if scratch.holds(real) {
			return escape(g.path, amongPrivate)
		}
	}
	return nil
}

// clear holds the private directories out of the trees that every command may read.
func (p place) clear(every []grant) error {
	for _, g := range every {
		if g.dir && slices.Contains(p.above, g.id) {
			return fmt.Errorf("private directories cannot lie in %s, which every command may read", g.path)
		}
	}
	return nil
}

func (p place) holds(path string) bool {
	rest, ok := strings.CutPrefix(path, p.path)
	return ok && p.path != "" && (rest == "" || rest[0] == '/')
}

// escape makes the answer to a path that a command may not have (§6.3 step 8).
func escape(path, why string) *protocol.Error {
	return protocol.Fail(protocol.JailEscape, fmt.Sprintf("%s cannot be in the jail: %s.", path, why)).
		With("path", path).WithHint("ls -ld " + protocol.Word(path))
}

// cause is the kernel's own word for a failure, without the path that the sentence already has.
func cause(err error) string {
	var no unix.Errno
	if errors.As(err, &no) {
		return no.Error()
	}
	return err.Error()
}

// mode is the network mode; a Spec that names none has no network.
func (w *world) mode() string {
	if w.spec.Network.Mode == "" {
		return "none"
	}
	return w.spec.Network.Mode
}

// key names the policy: everything that a launcher's thread has entered and its private directory holds.
// A path that means another file now gives another key.
func (w *world) key() string {
	var b strings.Builder
	b.WriteString(w.mode())
	for _, g := range w.grants {
		fmt.Fprintf(&b, "\x00%s\x00%x\x00%x:%x", g.path, g.rights, g.id.dev, g.id.ino)
	}
	for _, p := range append([]Program{w.spec.Program}, w.spec.Uses...) {
		b.WriteString("\x00" + p.Name)
	}
	for _, l := range w.spec.Links {
		b.WriteString("\x00" + l.HomeRel)
	}
	if len(w.spec.Files) > 0 {
		b.WriteString("\x00" + filePart)
	}
	if w.hosts != nil {
		b.WriteString("\x00" + strings.Join(w.spec.Network.Hosts, "\x00"))
	}
	return b.String()
}

// writable are the trees in which the broker may change metadata.
func writable(grants []grant) []grant {
	var trees []grant
	for _, g := range grants {
		if g.rights&unix.LANDLOCK_ACCESS_FS_WRITE_FILE != 0 {
			trees = append(trees, g)
		}
	}
	return trees
}
