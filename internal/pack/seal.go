package pack

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	"hcpx/internal/order"
	"hcpx/internal/protocol"
	"hcpx/internal/stamp"
)

// Digest is the pack's digest (§2.4): over the files in byte order of path, each as
// path NUL mode NUL hex(sha256) LF. Empty directories do not count.
func Digest(files []File) string {
	files = slices.Clone(files)
	sortFiles(files)
	sum := sha256.New()
	for _, f := range files {
		sum.Write([]byte(f.Path + "\x00" + string(f.Mode) + "\x00" + f.Sum + "\n"))
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

func sortFiles(files []File) {
	order.By(files, func(a, b File) int { return cmp.Compare(a.Path, b.Path) })
}

// placed refuses a pack that is no directory itself: a link in its place would lead to files elsewhere, which others
// may write.
func placed(dir string) error {
	if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
		return &Tampered{".", "is no longer a directory"}
	}
	return nil
}

// Seal records the pack that lies in dir: its digest and what each file and directory is (§2.4).
func Seal(dir string, now time.Time) (Record, error) {
	s := sealer{dir: dir, now: now, out: Record{Stamps: map[string]protocol.FileStamp{}, Links: map[string]string{}, Dirs: map[string]protocol.FileStamp{}}}
	if err := placed(dir); err != nil {
		return Record{}, err
	}
	if err := s.seal("."); err != nil {
		return Record{}, err
	}
	s.out.Digest = Digest(s.files)
	return s.out, nil
}

type sealer struct {
	dir   string
	now   time.Time
	out   Record
	files []File
}

// seal records one directory. Its stamp is taken before it is listed, so that an entry that comes later
// shows.
func (s *sealer) seal(name string) error {
	full := s.dir + "/" + name
	d, err := stamp.OfDir(full)
	if err != nil {
		return err
	}
	limit := s.now.Add(-time.Second).UnixNano()
	d.Young = d.MtimeNS > limit || d.CtimeNS > limit
	s.out.Dirs[name] = d
	entries, err := os.ReadDir(full)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := s.entry(path.Join(name, e.Name()), e.Type()); err != nil {
			return err
		}
	}
	return nil
}

// entry records one file, link or directory.
func (s *sealer) entry(name string, kind fs.FileMode) error {
	full := s.dir + "/" + name
	switch {
	case kind.IsDir():
		return s.seal(name)
	case kind&fs.ModeSymlink != 0:
		target, err := os.Readlink(full)
		if err != nil {
			return err
		}
		sum := sha256.Sum256([]byte(target))
		s.out.Links[name] = target
		s.files = append(s.files, File{Path: name, Mode: 'l', Sum: hex.EncodeToString(sum[:])})
		return nil
	case !kind.IsRegular():
		return fmt.Errorf("%s is no regular file", full)
	}
	f, err := stamp.Of(full, s.now)
	if err != nil {
		return err
	}
	s.out.Stamps[name] = f
	s.files = append(s.files, File{Path: name, Mode: modeOf(fs.FileMode(f.Mode)), Size: f.Size, Sum: f.SHA256})
	return nil
}

// Fresh says whether something of the pack changed within a second of now: stamps taken now would prove
// nothing by themselves.
func (r Record) Fresh(now time.Time) bool {
	limit := now.Add(-time.Second).UnixNano()
	for _, stamps := range []map[string]protocol.FileStamp{r.Stamps, r.Dirs} {
		for _, s := range stamps {
			if s.MtimeNS > limit || s.CtimeNS > limit {
				return true
			}
		}
	}
	return false
}

// Tampered says that a pack is no longer the one that was recorded, and where.
type Tampered struct{ Path, Reason string }

func (t *Tampered) Error() string { return t.Path + " " + t.Reason }

// Intact says whether the pack in dir is still the recorded one (§2.4); nil means that it is. Each file and
// directory is looked at by one stat; a file is hashed only when its stat differs or is too young to prove
// anything, a directory listed again for the same reasons.
func Intact(dir string, r Record) error {
	_, err := Check(dir, r)
	return err
}

// Check is Intact on the path of every exec. looked says that stat alone did not do, so that taking the stamps
// again would make the next check cheap.
func Check(dir string, r Record) (looked bool, err error) {
	if _, ok := r.Dirs["."]; !ok || r.Digest == "" {
		return false, &Tampered{".", "has no complete record"}
	}
	g := open(dir)
	defer g.close()
	if !g.sure() {
		if err := placed(dir); err != nil {
			return false, err
		}
	}
	for name, s := range r.Dirs {
		if g.same(name, s) {
			continue
		}
		looked = true
		if err := r.listed(dir, name); err != nil {
			return looked, unreadable(name, err)
		}
	}
	for name, s := range r.Stamps {
		if g.same(name, s) {
			continue
		}
		looked = true
		same, err := stamp.Same(dir+"/"+name, s)
		if err != nil {
			return looked, unreadable(name, err)
		}
		if !same {
			return looked, &Tampered{name, "was changed or removed"}
		}
	}
	for name, target := range r.Links {
		if now, err := os.Readlink(dir + "/" + name); err != nil || now != target {
			return looked, &Tampered{name, "was changed or removed"}
		}
	}
	return looked, nil
}

// listed says whether a directory holds nothing that was not recorded. What is missing is found by itself.
func (r Record) listed(dir, name string) error {
	full := dir + "/" + name
	// A link in the directory's place would lead to another one.
	if info, err := os.Lstat(full); err != nil || !info.IsDir() {
		return &Tampered{name, "is no longer a directory"}
	}
	f, err := os.Open(full)
	if err != nil {
		return err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, n := range names {
		child := n
		if name != "." {
			child = name + "/" + n
		}
		_, file := r.Stamps[child]
		_, link := r.Links[child]
		_, sub := r.Dirs[child]
		if !file && !link && !sub {
			return &Tampered{child, "was added"}
		}
	}
	return nil
}

// unreadable keeps a Tampered and makes one of any other error: what cannot be checked is not intact.
func unreadable(name string, err error) error {
	if t, ok := err.(*Tampered); ok {
		return t
	}
	return &Tampered{name, "cannot be checked: " + reason(err)}
}
