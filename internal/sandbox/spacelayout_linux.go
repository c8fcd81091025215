package sandbox

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// spot is a place in the new root where something of the machine is mounted, at the same name.
type spot struct {
	path    string // real, absolute
	id      identity
	dir     bool
	rights  uint64 // its own and those of every spot above it, as Landlock would add them up
	library bool   // code in it may be loaded, though not executed as a program
}

// layout is the root of a jail of namespaces before it is built (§10.2): what is mounted where, the links on the
// way there, and the empty directories that lead to it. It is found by looking; nothing is made.
type layout struct {
	spots   map[string]*spot
	links   map[string]string // where a link stands → what it says
	plain   map[string]bool   // what was looked at and is no link
	ordered []*spot           // those that need a mount of their own, what lies above first
	dirs    []string          // made empty, what lies above first
	files   []string          // made empty, to be mounted on
}

// maxLinks is how many links the kernel follows in one path.
const maxLinks = 40

func newLayout() *layout {
	return &layout{spots: map[string]*spot{}, links: map[string]string{}, plain: map[string]bool{"/": true}}
}

// add takes a grant in. A path that means something else than when it was looked at first refuses the run.
func (l *layout) add(g grant, library bool) error {
	real, err := l.resolve(g.path)
	if err != nil {
		return fmt.Errorf("%s: %w", g.path, err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(real, &st); err != nil {
		return fmt.Errorf("%s: %w", real, err)
	}
	id := identity{st.Dev, st.Ino}
	if g.id != (identity{}) && g.id != id {
		return fmt.Errorf("%s: %w", g.path, errors.New("it was replaced while the jail was built"))
	}
	if real == "/" {
		return errors.New("the whole machine is no jail")
	}
	s := l.spots[real]
	if s == nil {
		s = &spot{path: real, id: id, dir: st.Mode&unix.S_IFMT == unix.S_IFDIR}
		l.spots[real] = s
	}
	s.rights, s.library = s.rights|g.rights, s.library || library
	return nil
}

// addPresent takes in those of the grants that this machine has.
func (l *layout) addPresent(list []grant) error {
	for _, g := range list {
		err := l.add(g, isLibrary(g.path))
		if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.EACCES) {
			return err
		}
	}
	return nil
}

// isLibrary says whether a base path holds code that every program loads.
func isLibrary(at string) bool { return strings.HasPrefix(path.Base(at), "lib") }

// resolve finds the real path, and keeps every link on the way: inside, the same names lead to the same places.
func (l *layout) resolve(at string) (string, error) {
	if !filepath.IsAbs(at) {
		return "", errors.New("it is not absolute")
	}
	real, rest := "/", strings.Split(at, "/")
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		if part == "" || part == "." {
			continue
		}
		if part == ".." {
			real = path.Dir(real)
			continue
		}
		here := path.Join(real, part)
		target, err := l.look(here)
		if err != nil {
			return "", err
		}
		if target == "" {
			real = here
			continue
		}
		if links++; links > maxLinks {
			return "", unix.ELOOP
		}
		rest = append(strings.Split(target, "/"), rest...)
		if target[0] == '/' {
			real = "/"
		}
	}
	return real, nil
}

// look answers what a link says, "" for anything else.
func (l *layout) look(at string) (string, error) {
	if l.plain[at] {
		return "", nil
	}
	if target, known := l.links[at]; known {
		return target, nil
	}
	var buf [unix.PathMax]byte
	n, err := unix.Readlink(at, buf[:])
	switch {
	case errors.Is(err, unix.EINVAL):
		l.plain[at] = true
		return "", nil
	case err != nil:
		return "", err
	case n == 0 || n == len(buf):
		return "", unix.ENAMETOOLONG
	}
	l.links[at] = string(buf[:n])
	return l.links[at], nil
}

// finish decides which spots need a mount of their own, and what has to be made for them. abi is Landlock's.
func (l *layout) finish(abi int) {
	paths := make([]string, 0, len(l.spots))
	for at := range l.spots {
		paths = append(paths, at)
	}
	slices.Sort(paths) // what lies above comes first
	made := map[string]bool{"/": true}
	for _, at := range paths {
		s := l.spots[at]
		above := l.above(at)
		if above != nil {
			s.rights, s.library = s.rights|above.rights, s.library || above.library
			if above.attributes(abi) == s.attributes(abi) {
				continue
			}
		} else {
			l.make(path.Dir(at), made)
			if s.dir {
				l.make(at, made)
			} else {
				l.files = append(l.files, at)
			}
		}
		l.ordered = append(l.ordered, s)
	}
	for at := range l.links {
		if l.above(at) != nil {
			delete(l.links, at) // what is mounted there has it
			continue
		}
		l.make(path.Dir(at), made)
	}
}

// above is the nearest spot that a path lies beneath.
func (l *layout) above(at string) *spot {
	for at != "/" {
		at = path.Dir(at)
		if s := l.spots[at]; s != nil {
			return s
		}
	}
	return nil
}

func (l *layout) make(dir string, made map[string]bool) {
	if made[dir] {
		return
	}
	made[dir] = true
	l.make(path.Dir(dir), made)
	l.dirs = append(l.dirs, dir)
}

// attributes are those of a spot's mount. Nothing is executed but where the Spec says so. Code that is no program,
// a library, is loaded from the system's directories, and where Landlock can tell a program from it from every
// tree that cannot be written.
func (s *spot) attributes(abi int) uint64 {
	if !s.dir && strings.HasPrefix(s.path, "/dev/") {
		return unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC | unix.MOUNT_ATTR_RDONLY // a device is written to all the same
	}
	attrs := uint64(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	writes := s.rights&unix.LANDLOCK_ACCESS_FS_WRITE_FILE != 0
	if !writes {
		attrs |= unix.MOUNT_ATTR_RDONLY
	}
	loads := !writes && (s.library || abi >= 1)
	if s.rights&unix.LANDLOCK_ACCESS_FS_EXECUTE == 0 && !loads {
		attrs |= unix.MOUNT_ATTR_NOEXEC
	}
	return attrs
}
