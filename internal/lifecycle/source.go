package lifecycle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hcpx/internal/grant"
	"hcpx/internal/pack"
	"hcpx/internal/places"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// source is one pack to install: its files, readable until close.
type source struct {
	compiled []byte // the summary of an openapi pack's document
	shown    string // as the person named it
	place    string // where it lies, for the record
	name     string // of its directory, for the warning pack.dir-name
	fs       fs.FS
	pack     *pack.Pack
	sum      string // digest of what was linted
	close    func() error
}

// open takes a directory or an archive (§11). What can't be read as either is pack.unreadable, as lint
// says it; registries are not built yet.
func (l *Lifecycle) open(name string) (*source, *protocol.Error) {
	if strings.HasPrefix(name, "oci://") {
		return nil, protocol.Fail(protocol.ComponentMissing, "Registries are not built yet: a pack comes from a directory, a .tgz or a .zip.").
			WithHint("hcpx install DIR")
	}
	place, err := filepath.Abs(name)
	if err == nil {
		if refusal := l.sourced(name, place); refusal != nil {
			return nil, refusal
		}
	}
	info, err := os.Stat(name)
	var src *source
	switch {
	case err != nil && l.shipped(name):
		return nil, protocol.Fail(protocol.NotFound, fmt.Sprintf("No directory or archive %s is here. The pack of that name comes with hcpx.", name)).
			WithHint("hcpx add " + name)
	case err != nil:
	case info.IsDir():
		src, err = openDir(name)
	case !info.Mode().IsRegular(): // opening a fifo would wait for its writer
		err = errors.New("it is neither a directory nor a file")
	default:
		src, err = l.openArchive(name)
	}
	if err == nil {
		src.place, err = filepath.Abs(name)
	}
	if err != nil {
		return nil, lintFailed([]protocol.Issue{notReadable(name, err)}, name)
	}
	if strings.HasPrefix(name, "-") {
		src.shown = "./" + name // in a hint it is no option
	}
	return src, nil
}

// sourced refuses a pack that comes from where the settings name no source (§9.3). A path counts by where its links
// lead, so that none in a listed directory leads elsewhere.
func (l *Lifecycle) sourced(shown, place string) *protocol.Error {
	if l.Sources == nil {
		return nil
	}
	real := place
	if place != store.Shipped {
		real = places.Resolve(place)
	}
	if slices.ContainsFunc(l.Sources, func(pattern string) bool { return grant.Glob(pattern, real) }) {
		return nil
	}
	return protocol.Fail(protocol.OperatorRequired, fmt.Sprintf("%s is none of the sources of packs that the settings name.", shown)).
		With("setting", "packs.sources").With("source", real).WithHint("hcpx config show")
}

func openDir(dir string) (*source, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &source{shown: dir, name: filepath.Base(abs), fs: root.FS(), close: root.Close}, nil
}

// load reads the files that were linted, so that the store can refuse any others.
func (src *source) load(lim pack.Limits) {
	src.pack, _ = pack.Load(src.fs, lim) // its issues are lint's
	src.sum = pack.Digest(src.pack.Files)
}

// openArchive unpacks into a directory of its own, which close removes.
func (l *Lifecycle) openArchive(name string) (*source, error) {
	unpack := archiveKind(name)
	if unpack == nil {
		return nil, errors.New("it is neither a directory nor a .tgz, .tar.gz or .zip file")
	}
	dir, err := os.MkdirTemp("", "hcpx-install-")
	if err != nil {
		return nil, err
	}
	remove := func() error { return os.RemoveAll(dir) }
	src, err := l.unpacked(name, dir, unpack)
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	closeRoot := src.close
	src.close = func() error { return errors.Join(closeRoot(), remove()) }
	src.shown = name
	return src, nil
}

func (l *Lifecycle) unpacked(name, dir string, unpack unpacker) (*source, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	x := newExtraction(root, l.Limits)
	if err := errors.Join(unpack(name, x), root.Close()); err != nil {
		return nil, err
	}
	top, err := singleTop(dir)
	if err != nil {
		return nil, err
	}
	src, err := openDir(filepath.Join(dir, top))
	if err != nil {
		return nil, err
	}
	if top == "." {
		base := filepath.Base(name)
		for _, ext := range []string{".tgz", ".tar.gz", ".zip"} {
			base = strings.TrimSuffix(base, ext)
		}
		src.name = base
	}
	return src, nil
}

// singleTop is the one directory that an archive may hold its pack in, or "." when the pack lies at its
// root.
func singleTop(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	if len(entries) == 1 && entries[0].IsDir() {
		return entries[0].Name(), nil
	}
	return ".", nil
}
