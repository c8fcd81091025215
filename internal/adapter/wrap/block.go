package wrap

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"hcpx/internal/adapter"
	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// block checks the "wrap" block against the files of its pack.
type block struct {
	*manifest.WrapBlock
	place  adapter.Place
	files  fs.FS
	issues []protocol.Issue
}

// CheckBlock is lint's look at the "wrap" block (§3.3, §10.2): bin, uses, reads, env and pass-through.
// fsys is the pack, and nothing outside it is read.
func (a *Adapter) CheckBlock(m *manifest.Manifest, fsys fs.FS) []protocol.Issue {
	if m.Wrap == nil || m.Wrap.Node == nil {
		return nil
	}
	b := &block{WrapBlock: m.Wrap, files: fsys, place: adapter.Place{Manifest: m, Offset: m.Wrap.Node.Offset, Pointer: "/wrap"}}
	b.bin()
	b.programs()
	b.scripts()
	b.outside()
	b.environment()
	if m.Wrap.PassThrough {
		b.report(b.at("allowedSubcommands"), "wrap.pass-through",
			"The pack passes a caller's whole argv through; that is a legacy form and no conforming destination.")
	}
	return b.issues
}

func (b *block) at(key string) adapter.Place { return b.place.Member(b.Node, key) }

func (b *block) report(at adapter.Place, code protocol.IssueCode, format string, a ...any) {
	b.issues = append(b.issues, at.Issue(code, fmt.Sprintf(format, a...)))
}

// bin is a bare name, or "./path" of an executable that the pack ships.
func (b *block) bin() {
	if b.Bin == "" {
		return // manifest.schema
	}
	if why := b.program(b.Bin); why != "" {
		b.report(b.at("bin"), "wrap.bin", "bin %q %s.", b.Bin, why)
	} else if strings.HasPrefix(b.Bin, "/") {
		b.report(b.at("bin"), "wrap.bin", "bin %q is a path outside the pack; write the bare name of an installed program, or ./path of a shipped one.", b.Bin)
	}
}

// programs checks the forms in uses: names, absolute paths, directories with a slash at the end, and
// executables of the pack.
func (b *block) programs() {
	for i, name := range b.Uses {
		why := ""
		if dir, ok := strings.CutSuffix(name, "/"); ok && strings.HasPrefix(name, "/") {
			if path.Clean(name) != dir {
				why = "is not a plain absolute directory"
			}
		} else {
			why = b.program(name)
		}
		if why != "" {
			b.report(b.item("uses", i), "wrap.uses", "%q %s.", name, why)
		}
	}
}

func (b *block) item(key string, i int) adapter.Place {
	if list := b.Node.Get(key); list != nil && list.Kind == jsondoc.Array && i < len(list.Items) {
		return b.at(key).Item(list, i)
	}
	return b.at(key)
}

// program says what is wrong with the name of a program; "" when nothing is.
func (b *block) program(name string) string {
	rel, own := strings.CutPrefix(name, "./")
	switch {
	case name == "" || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return "is not a name of a program"
	case own:
		return b.shipped(rel)
	case strings.HasPrefix(name, "/"):
		if path.Clean(name) != name || name == "/" {
			return "is not a plain absolute path"
		}
	case strings.Contains(name, "/"):
		return "is neither a bare name nor a path; one of the pack begins with ./"
	case name == "." || name == ".." || name[0] == '-' || name[0] == '~':
		return "is not a name of a program"
	}
	return ""
}

// shipped says what is wrong with a program of the pack; "" when it is there and executable.
func (b *block) shipped(rel string) string {
	if !fs.ValidPath(rel) {
		return "is a path outside the pack, or not a plain one"
	}
	info, err := fs.Stat(b.files, rel)
	switch {
	case err != nil:
		return "is not in the pack"
	case !info.Mode().IsRegular():
		return "is not a file"
	case info.Mode()&0o111 == 0:
		return "is not executable; chmod +x makes it so"
	}
	return ""
}

// scripts finds shipped scripts whose interpreter is not named (§3.3): the kernel refuses to start what is
// named neither in bin nor in uses. It reads bin, what uses names, and the executables below bin/ (§2.1).
func (b *block) scripts() {
	seen := map[string]bool{}
	look := func(rel string) {
		if seen[rel] || b.shipped(rel) != "" {
			return
		}
		seen[rel] = true
		for _, needed := range adapter.Interpreters(b.head(rel)) {
			if !b.names(needed) {
				b.report(b.usesOrBin(), "wrap.uses", "./%s is a script for %s, which uses does not name.", rel, needed)
			}
		}
	}
	for _, name := range append([]string{b.Bin}, b.Uses...) {
		if rel, own := strings.CutPrefix(name, "./"); own {
			look(rel)
		}
	}
	_ = fs.WalkDir(b.files, "bin", func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			look(p)
		}
		return nil // a pack without bin/ has nothing to look at; unreadable files are pack.unreadable
	})
}

func (b *block) usesOrBin() adapter.Place {
	if b.Node.Has("uses") {
		return b.at("uses")
	}
	return b.at("bin")
}

// head is the first line of a script.
func (b *block) head(rel string) string {
	f, err := b.files.Open(rel)
	if err != nil {
		return ""
	}
	defer f.Close()
	return adapter.FirstLine(f)
}

// names says whether bin or uses let a program run: by its path, its name, or a directory around it.
func (b *block) names(program string) bool {
	for _, name := range append([]string{b.Bin}, b.Uses...) {
		switch {
		case name == program || name == path.Base(program):
			return true
		case strings.HasSuffix(name, "/"):
			if strings.HasPrefix(program, name) {
				return true
			}
		case path.Base(name) == program: // uses names the path, env the name
			return true
		}
	}
	return false
}

// outside checks reads (§10.2).
func (b *block) outside() {
	for i, p := range b.Reads {
		if why := protocol.ClosedRead(p); why != "" {
			b.report(b.item("reads", i), "wrap.reads", "reads can't open %q: %s.", p, why)
		}
	}
}

// environment checks the static variables: their names (§10.2), and that no value is a secret (§3.3).
func (b *block) environment() {
	env := b.Node.Get("env")
	for _, v := range b.Env {
		if manifest.UnsafeEnvName(v.Name) {
			b.report(b.at("env").Key(env, v.Name), "wrap.env-name",
				"A pack can't set %q: it would change which code or which credentials the program takes.", v.Name)
			continue
		}
		if why := secret(v.Name, v.Value); why != "" {
			b.report(b.at("env").Member(env, v.Name), "wrap.env-secret", "The value of %q %s; credentials come through the binding (§8), never from the manifest.", v.Name, why)
		}
	}
}
