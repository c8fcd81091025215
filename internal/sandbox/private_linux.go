package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// private is the directory that a run has for itself (§10.2): HOME, TMPDIR, and a directory of links for
// PATH, which the command can read but not change.
//
// Making and removing directories costs more than starting a program, so the directories stand in numbered
// slots and only what a run left in them is removed afterwards. A slot is held by a lock on itself and bears a
// mark, the sticky bit, until it is given back empty. One that is marked and not locked belonged to a runtime
// that was killed: something of that run may still live in it, so it is thrown away and made anew, and the
// old run holds nothing of the new.
type private struct {
	root  string
	lock  int // the locked descriptor of root
	links []Link
	files bool // the run was given some
}

// Modes of a slot.
const (
	slotHeld = 0o1700
	slotIdle = 0o700
	slotBits = 0o1777 // a set-group-id bit comes from the directory above and says nothing
	maxSlots = 1 << 16
	maxTries = 16 // of one slot that others make and throw away meanwhile
)

// newPrivate takes the first free slot under scratch, a real path, and fills it for the Spec.
func newPrivate(scratch string, spec *Spec) (private, error) {
	for n, tries := 0, 0; n < maxSlots; {
		p := private{root: scratch + "/" + strconv.Itoa(n), links: spec.Links}
		state, err := p.claim()
		switch tries++; {
		case err != nil:
			return private{}, fmt.Errorf("%s: %w", p.root, err)
		case state == slotGone && tries < maxTries:
			continue
		case state != slotOurs:
			n, tries = n+1, 0
			continue
		}
		sweep(scratch, p.root)
		if err := p.fill(spec); err != nil {
			return private{}, closing(p.lock, err)
		}
		return p, nil
	}
	return private{}, errors.New("all private directories are in use")
}

// slotState is what a claim found.
type slotState int

const (
	slotOurs  slotState = iota
	slotTaken           // by another run
	slotGone            // it was made, replaced or thrown away meanwhile: look again
)

// claim locks the slot and makes sure that it is a clean one of this user.
func (p *private) claim() (slotState, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, p.root, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if errors.Is(err, unix.ENOENT) {
		if err := unix.Mkdir(p.root, slotIdle); err != nil && !errors.Is(err, unix.EEXIST) {
			return slotTaken, err
		}
		return slotGone, nil
	}
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EACCES) {
		return slotTaken, nil // nothing of ours
	}
	if err != nil {
		return slotTaken, err
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return slotTaken, unix.Close(fd)
	} else if err != nil {
		return slotTaken, closing(fd, err)
	}
	var held, named unix.Stat_t
	if err := errors.Join(unix.Fstat(fd, &held), unix.Lstat(p.root, &named)); err != nil || held.Ino != named.Ino || held.Dev != named.Dev {
		return slotGone, unix.Close(fd)
	}
	if int(held.Uid) != unix.Geteuid() {
		return slotTaken, unix.Close(fd)
	}
	if held.Mode&slotBits != slotIdle {
		return p.discard(fd)
	}
	if err := unix.Fchmod(fd, slotHeld); err != nil {
		return slotTaken, closing(fd, err)
	}
	p.lock = fd
	return slotOurs, nil
}

// discard throws a slot away whose run did not end in order. Something of that run may still be alive and make
// the removal fail; what is left under the name of trash is removed with the next slot that is thrown away. A
// slot that does not even give up its name is passed over.
func (p *private) discard(fd int) (slotState, error) {
	random := newSecret()
	trash := fmt.Sprintf("%s%s%x%x", p.root, trashMark, random[0], random[1])
	state := slotGone
	if err := unix.Rename(p.root, trash); err != nil {
		state = slotTaken
	}
	if err := unix.Close(fd); err != nil {
		return slotTaken, err
	}
	left, err := filepath.Glob(filepath.Dir(p.root) + "/*" + trashMark + "*")
	for _, at := range left {
		_ = removeAll(at) // tried again with the next
	}
	return state, err
}

// trashMark stands in the name of what was thrown away.
const trashMark = ".left-"

// fill makes the parts, as far as they are missing, and the links.
func (p *private) fill(spec *Spec) error {
	for _, part := range []string{homePart, tempPart, binPart} {
		if err := unix.Mkdir(p.held(part), 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
	want := map[string]string{spec.Program.Name: spec.Program.Path}
	for _, use := range spec.Uses {
		want[use.Name] = use.Path
	}
	entries, err := os.ReadDir(p.held(binPart))
	if err != nil {
		return err
	}
	bin := p.held(binPart) + "/"
	for _, e := range entries {
		if target, err := os.Readlink(bin + e.Name()); err == nil && target == want[e.Name()] {
			delete(want, e.Name())
		} else if err := os.Remove(bin + e.Name()); err != nil {
			return err
		}
	}
	for name, path := range want {
		if err := os.Symlink(path, bin+name); err != nil {
			return err
		}
	}
	if err := p.give(spec); err != nil {
		return err
	}
	return p.link()
}

// give writes the files of a run that is about to begin (§8.2).
func (p *private) give(spec *Spec) error {
	p.files = len(spec.Files) > 0
	return give(p.held(filePart), spec.Files)
}

func (p *private) part(name string) string { return p.root + "/" + name }

// held is a part by the descriptor that is locked, whatever its path means by now: what the runtime makes, looks at and
// removes is in the directory that it claimed.
func (p *private) held(name string) string { return handle(p.lock) + "/" + name }

// link puts the declared reads under ~ at their place in HOME.
func (p *private) link() error { return linkReads(p.held(homePart), p.links) }

// parts are the rules of a private directory at root: HOME and TMPDIR writable, the links readable, and what was given.
func parts(root string, files bool) []grant {
	list := []grant{
		{path: root + "/" + homePart, rights: rightsWrite, private: true},
		{path: root + "/" + tempPart, rights: rightsWrite, private: true},
		{path: root + "/" + binPart, rights: rightsRead},
	}
	if files {
		list = append(list, grant{path: root + "/" + filePart, rights: rightsRead})
	}
	return list
}

// grants are the parts as they were made.
func (p *private) grants() ([]grant, error) {
	list, held := parts(p.root, p.files), parts(handle(p.lock), p.files)
	for i := range list {
		var st unix.Stat_t
		if err := unix.Lstat(held[i].path, &st); err != nil {
			return nil, fmt.Errorf("%s: %w", list[i].path, err)
		}
		list[i].id, list[i].dir = identity{st.Dev, st.Ino}, true
	}
	return list, nil
}

// empty removes what a run left, for the next one, what it was given first.
func (p *private) empty() error {
	if p.files {
		if err := takeBack(p.held(filePart)); err != nil {
			return err
		}
		p.files = false
	}
	for _, part := range []string{homePart, tempPart} {
		at := p.held(part)
		var st unix.Stat_t
		if err := unix.Lstat(at, &st); err != nil {
			return err
		}
		if st.Mode&0o7777 != 0o700 {
			if err := os.Chmod(at, 0o700); err != nil {
				return err
			}
		}
		if err := clearAttributes(at); err != nil {
			return err
		}
		entries, err := os.ReadDir(at)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := removeAll(at + "/" + e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// clearAttributes takes the attributes off a directory that a run could give it: where nothing stands between a command and
// its own files, they would outlive the run.
func clearAttributes(at string) error {
	var buf [4 << 10]byte
	n, err := unix.Llistxattr(at, buf[:])
	if errors.Is(err, unix.ENOTSUP) || n == 0 && err == nil {
		return nil
	}
	for _, name := range strings.Split(strings.TrimSuffix(string(buf[:max(n, 0)]), "\x00"), "\x00") {
		if err == nil && (strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "system.posix_acl")) {
			err = unix.Lremovexattr(at, name)
		}
	}
	return err
}

// release gives the slot back empty; one that cannot be emptied stays marked as held, and is thrown away by
// whoever finds it.
func (p *private) release() error {
	err := p.empty()
	if err == nil {
		err = unix.Fchmod(p.lock, slotIdle)
	}
	return errors.Join(err, p.unlock())
}

func (p *private) unlock() error {
	// Closing alone would not unlock while another start is between fork and exec.
	return errors.Join(unix.Flock(p.lock, unix.LOCK_UN), unix.Close(p.lock))
}

// sweepSlot throws away the slot of a runtime that was killed, and what was thrown away before and not removed.
func sweepSlot(at string, e fs.DirEntry) {
	if strings.Contains(e.Name(), trashMark) {
		_ = removeAll(at)
		return
	}
	if info, err := e.Info(); err != nil || info.Mode()&fs.ModeSticky == 0 {
		return
	}
	p := private{root: at}
	if state, err := p.claim(); err == nil && state == slotOurs { // it was given back meanwhile
		_ = errors.Join(unix.Fchmod(p.lock, slotIdle), p.unlock())
	}
}

// ownScratch makes the directory of private directories and holds it to mode 0700.
func ownScratch(path string) error {
	if !filepath.IsAbs(path) {
		return fmt.Errorf("the directory for private directories is not absolute: %q", path)
	}
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	if errors.Is(err, unix.ENOENT) {
		err = errors.Join(os.MkdirAll(path, 0o700), unix.Stat(path, &st))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if st.Mode&0o077 != 0 || int(st.Uid) != unix.Geteuid() {
		return fmt.Errorf("%s is open to others; it must be yours with mode 0700", path)
	}
	return nil
}
