package lifecycle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"hcpx/internal/gate"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// A face is a link named after a pack, by which the pack's commands are typed without hcpx before them (§12.1). There is
// no record of faces: the links are the truth, and one is ours only where it leads to this program.

// FaceRequest names one face, or none for all of them.
type FaceRequest struct {
	Pack    string
	Program string // this program's file, to which links lead
	Dir     string // where; "" = chosen, or looked for
	Force   bool   // though the name is on PATH already
}

// FaceView is one face, and what became of it.
type FaceView struct {
	Changed   bool     `json:"changed"`
	PackID    string   `json:"pack_id"`
	Path      string   `json:"path"`
	Program   string   `json:"program"`   // where the link leads
	Installed bool     `json:"installed"` // the pack is
	Notes     []string `json:"notes"`
}

// FacesView answers face list.
type FacesView struct {
	Faces []FaceView `json:"faces"`
}

// InstallFace puts the link there. What is on PATH is what the user runs later, so it is a person's act, and a file that
// is none of our links is never replaced, with Force neither: that only allows a name which another directory has.
func (l *Lifecycle) InstallFace(s protocol.Session, r FaceRequest) (FaceView, *protocol.Error) {
	view := FaceView{PackID: r.Pack, Notes: []string{}}
	if err := l.mayFace(s, r, "face.install"); err != nil {
		return view, err
	}
	if _, err := l.Gate.Installed(r.Pack); err != nil {
		return view, err
	}
	if r.Pack == gate.Bootstrap {
		return view, protocol.Fail(protocol.UsageError, "The commands of hcp-cli are hcpx's own.").WithHint("hcpx help")
	}
	view.Installed = true
	dir, err := l.faceDir(r)
	if err != nil {
		return view, err
	}
	view.Path, view.Program = filepath.Join(dir, r.Pack), r.Program
	state := faceAt(view.Path, r.Program)
	if state == faceForeign {
		return view, protocol.Fail(protocol.UsageError, fmt.Sprintf("%s is no link of hcpx; it was left as it is.", view.Path)).
			WithHint("hcpx face install " + r.Pack + " --dir DIR")
	}
	if other := l.onPath(r.Pack, r.Program); other != "" {
		if !r.Force {
			return view, protocol.Fail(protocol.UsageError, fmt.Sprintf("%s is on PATH already: %s.", r.Pack, other)).
				With("path", other).WithHint("hcpx face install " + r.Pack + " --force")
		}
		view.Notes = append(view.Notes, fmt.Sprintf("%s has that name too; what stands first on PATH runs.", other))
	}
	if !slices.Contains(l.pathDirs(), dir) {
		view.Notes = append(view.Notes, dir+" is not on PATH.")
	}
	if state == faceOurs {
		return view, nil
	}
	return view, l.link(s, &view, state)
}

// mayFace admits a person that may install the pack (§9.6).
func (l *Lifecycle) mayFace(s protocol.Session, r FaceRequest, act string) *protocol.Error {
	if err := l.operator(s, "Putting a command on PATH"); err != nil {
		return err
	}
	if !manifest.ValidID(r.Pack) {
		return protocol.Fail(protocol.UsageError, fmt.Sprintf("%q cannot be the id of a pack.", r.Pack)).WithHint("hcpx list")
	}
	st, err := l.state()
	if err != nil {
		return err
	}
	return l.may(s, st, protocol.PackInstall, subject{act: act, pack: r.Pack, plane: l.plane(r.Pack)})
}

// link records what it will do, and does it (§15.4). A link of ours that leads nowhere any more is taken away first.
func (l *Lifecycle) link(s protocol.Session, view *FaceView, state faceState) *protocol.Error {
	const act = "face.install"
	if err := l.changes(s, act, view.PackID, map[string]string{"path": view.Path, "program": view.Program}); err != nil {
		return err
	}
	err := os.MkdirAll(filepath.Dir(view.Path), 0o755)
	if err == nil && state == faceStale {
		err = os.Remove(view.Path)
	}
	if err == nil {
		err = os.Symlink(view.Program, view.Path) // which replaces nothing
	}
	if err != nil {
		return l.failed(s, act, view.PackID, protocol.Fail(protocol.InternalError, "The link cannot be made: "+sentenceEnd(err.Error())+".").
			WithHint("hcpx face install "+view.PackID+" --dir DIR"))
	}
	view.Changed = true
	return nil
}

// RemoveFace takes links of ours away, and never anything else.
func (l *Lifecycle) RemoveFace(s protocol.Session, r FaceRequest) (FacesView, *protocol.Error) {
	view := FacesView{Faces: []FaceView{}}
	const act = "face.remove"
	if err := l.mayFace(s, r, act); err != nil {
		return view, err
	}
	for _, dir := range l.faceDirs(r) {
		path := filepath.Join(dir, r.Pack)
		switch faceAt(path, r.Program) {
		case faceNone:
			continue
		case faceForeign:
			if r.Dir != "" {
				return view, protocol.Fail(protocol.UsageError, fmt.Sprintf("%s is no link of hcpx; it was left as it is.", path)).WithHint("hcpx face list")
			}
			continue
		}
		if err := l.changes(s, act, r.Pack, map[string]string{"path": path}); err != nil {
			return view, err
		}
		if err := os.Remove(path); err != nil {
			return view, l.failed(s, act, r.Pack, protocol.Fail(protocol.InternalError, "The link cannot be removed: "+sentenceEnd(err.Error())+"."))
		}
		view.Faces = append(view.Faces, FaceView{Changed: true, PackID: r.Pack, Path: path, Notes: []string{}})
	}
	if len(view.Faces) == 0 {
		return view, protocol.Fail(protocol.NotFound, fmt.Sprintf("No link of hcpx is called %q where hcpx looks: on PATH and in ~/.local/bin.", r.Pack)).WithHint("hcpx face list")
	}
	return view, nil
}

// Faces lists the links of ours; it writes nothing.
func (l *Lifecycle) Faces(_ protocol.Session, r FaceRequest) (FacesView, *protocol.Error) {
	view := FacesView{Faces: []FaceView{}}
	for _, dir := range l.faceDirs(r) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // a directory of PATH that is not there has no face
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			state := faceNone
			if e.Type()&fs.ModeSymlink != 0 && manifest.ValidID(e.Name()) && !manifest.Reserved(e.Name()) {
				state = faceAt(path, r.Program)
			}
			if state != faceOurs && state != faceStale {
				continue
			}
			f := FaceView{PackID: e.Name(), Path: path, Notes: []string{}}
			if f.Program, err = os.Readlink(path); err != nil || state == faceStale {
				f.Notes = append(f.Notes, "It leads nowhere any more: hcpx face install "+f.PackID+" makes it again.")
			}
			_, refusal := l.Gate.Installed(f.PackID)
			f.Installed = refusal == nil
			view.Faces = append(view.Faces, f)
		}
	}
	return view, nil
}

// faceDir is where a new link goes: the named directory, else ~/.local/bin, else the program's own, where that is on PATH.
func (l *Lifecycle) faceDir(r FaceRequest) (string, *protocol.Error) {
	if r.Dir != "" {
		return filepath.Clean(r.Dir), nil
	}
	for _, dir := range l.usualDirs(r) {
		if slices.Contains(l.pathDirs(), dir) {
			return dir, nil
		}
	}
	return "", protocol.Fail(protocol.UsageError, "Neither ~/.local/bin nor the directory of hcpx is on PATH, so the place of the link must be named.").
		WithHint("hcpx face install " + r.Pack + " --dir DIR")
}

func (l *Lifecycle) usualDirs(r FaceRequest) []string {
	var dirs []string
	if l.Gate.Places.Home != "" {
		dirs = append(dirs, filepath.Join(l.Gate.Places.Home, ".local", "bin"))
	}
	return append(dirs, filepath.Dir(r.Program))
}

// faceDirs are the directories in which links are looked for.
func (l *Lifecycle) faceDirs(r FaceRequest) []string {
	if r.Dir != "" {
		return []string{filepath.Clean(r.Dir)}
	}
	dirs := l.pathDirs()
	for _, dir := range l.usualDirs(r) {
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// pathDirs are the directories of PATH, each once.
func (l *Lifecycle) pathDirs() []string {
	var dirs []string
	for _, dir := range filepath.SplitList(l.Path) {
		if dir = filepath.Clean(dir); filepath.IsAbs(dir) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// onPath is a program of that name on PATH that is no link of ours.
func (l *Lifecycle) onPath(name, program string) string {
	for _, dir := range l.pathDirs() {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0 && faceAt(path, program) == faceForeign {
			return path
		}
	}
	return ""
}

// faceState is what stands at a path where a face would.
type faceState int

const (
	faceNone    faceState = iota
	faceOurs              // a link to this program
	faceStale             // a link to where an hcpx was
	faceForeign           // anything else
)

// faceAt looks at a path. What can't be seen is not ours.
func faceAt(path, program string) faceState {
	target, err := os.Readlink(path)
	if errors.Is(err, fs.ErrNotExist) {
		return faceNone
	}
	if err != nil {
		return faceForeign
	}
	there, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && slices.Contains([]string{"hcp", "hcpx", "hcpxd"}, filepath.Base(target)) {
		return faceStale
	}
	if err != nil {
		return faceForeign
	}
	if here, err := os.Stat(program); err != nil || !os.SameFile(here, there) {
		return faceForeign
	}
	return faceOurs
}
