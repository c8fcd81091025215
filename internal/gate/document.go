package gate

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"hcpx/internal/adapter"
	"hcpx/internal/pack"
	"hcpx/internal/places"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// documented gives the commands of an openapi pack what its document says of them (§3.6): from the summary that install
// kept, or, where that is not there or another build's, from the document itself, which takes longer.
func (g *Gate) documented(p *pack.Pack, files fs.FS, meta *store.Meta) {
	kind, ok := g.Adapters[p.Manifest.Adapter].(adapter.Documented)
	if !ok {
		return
	}
	summary, err := g.Store.Compiled(meta)
	if err == nil && kind.Adopt(p.Manifest, summary) {
		return
	}
	summary, _ = kind.Summarize(p.Manifest, files) // install and lint say what is wrong; such a command does not compile
	kind.Adopt(p.Manifest, summary)
}

// maxAttached bounds the files that one request carries.
const maxAttached = 32 << 20

// Attach reads the files of the land that a request carries (§3.6), at step 5: what is shown, approved and sent is what they
// held then. Each is named relative to the land, in a workspace to the caller's place in it; none is opened through a link
// that leads out.
func (g *Gate) Attach(s protocol.Session, v *Verb, call *adapter.Call) []protocol.Violation {
	if call.Request == nil || len(call.Request.Files) == 0 {
		return nil
	}
	files := call.Request.Files
	dir, below := g.landOf(s, v)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return []protocol.Violation{{Pointer: files[0].Pointer, Message: "The land has no files yet."}}
	}
	defer root.Close()
	var bad []protocol.Violation
	left := int64(maxAttached)
	for i := range files {
		data, err := attached(root, below, files[i].Path, left)
		if err != nil {
			bad = append(bad, protocol.Violation{Pointer: files[i].Pointer, Message: fmt.Sprintf("The file %q cannot be sent: %s.", files[i].Path, err)})
			continue
		}
		left -= int64(len(data))
		files[i].Data = data
	}
	if len(bad) == 0 {
		call.Request.Fill(call.Request)
	}
	return bad
}

// landOf is the directory of the command's land, and where in it names begin.
func (g *Gate) landOf(s protocol.Session, v *Verb) (dir, below string) {
	if v.Entry.Land == protocol.Local {
		if rel, err := filepath.Rel(s.Workspace, s.Dir); err == nil && places.Within(s.Dir, s.Workspace) {
			below = rel
		}
		return s.Workspace, below
	}
	return g.Store.LandDir(store.LandKey{Tenant: s.Tenant, Land: v.Entry.Land, Principal: s.Principal, Project: s.Project, Pack: v.ID}), ""
}

func attached(root *os.Root, below, name string, left int64) ([]byte, error) {
	switch {
	case name == "":
		return nil, errors.New("it has no name")
	case filepath.IsAbs(name):
		return nil, errors.New("it is named by its path in the land")
	}
	f, err := root.OpenFile(filepath.Join(below, name), os.O_RDONLY|syscall.O_NONBLOCK, 0) // a fifo keeps nobody waiting
	if err != nil {
		return nil, reason(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, left+1))
	if err == nil && int64(len(data)) > left {
		err = fmt.Errorf("the files of a request are %d bytes at most", maxAttached)
	}
	return data, err
}

// reason is why a file was not opened, without its path.
func reason(err error) error {
	var fault *os.PathError
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("the land has no such file")
	}
	if errors.As(err, &fault) {
		return fault.Err
	}
	return err
}
