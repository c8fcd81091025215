package gate

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"hcpx/internal/adapter"
	"hcpx/internal/places"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
	"hcpx/internal/store"
)

// Script is a program of a pack that is a script, and that the pack can't start: what runs it must be allowed,
// and named by the pack (§10.2).
type Script struct {
	Program sandbox.Program
	Missing []string // what runs it, as its first line says
	// Instead is the program that the pack names and the operator allowed for the first of Missing, but another
	// file; "" when the pack names none.
	Instead string
}

// Scripts are those programs of a pack that are allowed and can't be started, its bin first.
func (g *Gate) Scripts(st *store.State, l *Loaded) []Script {
	block := l.Manifest.Wrap
	if block == nil || l.ID == Bootstrap || block.Isolation == "native-local" {
		return nil
	}
	own := starts{dirs: []string{places.Resolve(l.Dir)}}
	for i, name := range append([]string{block.Bin}, block.Uses...) {
		if isDir(name) {
			if dir, err := Allowed(st, name, false); err == nil {
				own.dirs = append(own.dirs, filepath.Clean(dir.Path))
			}
		} else if p, err := g.program(st, l, name, i == 0); err == nil {
			own.programs = append(own.programs, p)
		}
	}
	var scripts []Script
	for _, p := range own.programs {
		if s := own.script(p); s != nil {
			scripts = append(scripts, *s)
		}
	}
	return scripts
}

// started refuses a command whose program the kernel would not start.
func started(spec *sandbox.Spec) *protocol.Error {
	own := starts{append([]sandbox.Program{spec.Program}, spec.Uses...), append(slices.Clone(spec.UseDirs), spec.Exec...)}
	s := own.script(spec.Program)
	if s == nil {
		return nil
	}
	return notAllowed(s.Program.Name, s.Program.Path, s.Why(), s.Fix("hcpx doctor"))
}

// Why is a clause.
func (s Script) Why() string {
	why := "it is a script that " + strings.Join(s.Missing, " and ") + " runs, which is not allowed to this pack: its uses must name it"
	if s.Instead != "" {
		why = fmt.Sprintf("it is a script that %s runs, and the %s of this pack is %s", s.Missing[0], path.Base(s.Missing[0]), s.Instead)
	}
	return why
}

// Fix is the command by which the name that the pack uses means the right file, or else the other one.
func (s Script) Fix(other string) string {
	if s.Instead != "" {
		return "hcpx allow " + protocol.Words(s.Missing[0])
	}
	return other
}

// starts are the programs that a command may start.
type starts struct {
	programs []sandbox.Program
	dirs     []string
}

// nested is how deep an interpreter may be a script itself, as Linux counts.
const nested = 4

func (own starts) script(p sandbox.Program) *Script {
	missing := own.missing(p.Path, 0)
	if len(missing) == 0 {
		return nil
	}
	s := &Script{Program: p, Missing: missing}
	for _, other := range own.programs {
		if filepath.IsAbs(missing[0]) && other.Name == path.Base(missing[0]) {
			s.Instead = other.Path
		}
	}
	return s
}

// missing are the interpreters of a file that can't be started; none for what is no script.
func (own starts) missing(file string, depth int) []string {
	var missing []string
	for i, name := range InterpretersOf(file) {
		at, ok := own.find(name, i == 0)
		switch {
		case !ok:
			missing = append(missing, name)
		case depth < nested:
			missing = append(missing, own.missing(at, depth+1)...)
		}
	}
	return missing
}

// find is the program behind the first word of a script, which the kernel takes for a path, or behind a name that env
// looks up in PATH, which holds nothing but the programs.
func (own starts) find(name string, first bool) (string, bool) {
	if !filepath.IsAbs(name) {
		i := slices.IndexFunc(own.programs, func(p sandbox.Program) bool { return p.Name == name })
		if first || i < 0 {
			return "", false
		}
		return own.programs[i].Path, true
	}
	real := places.Resolve(name)
	info, err := os.Stat(real)
	if err != nil {
		return "", false
	}
	for _, p := range own.programs { // a program may have several names, as perl has
		if other, err := os.Stat(p.Path); err == nil && os.SameFile(info, other) {
			return p.Path, true
		}
	}
	return real, info.Mode().IsRegular() && slices.ContainsFunc(own.dirs, func(dir string) bool { return places.Within(real, dir) })
}

// InterpretersOf are the programs that run a program which is a script (§10.2); none for any other. Managers
// of versions put such scripts, named like the program that they look for, in front of it in PATH.
func InterpretersOf(file string) []string {
	f, err := os.Open(file)
	if err != nil {
		return nil // whoever starts it is told
	}
	defer f.Close()
	return adapter.Interpreters(adapter.FirstLine(f))
}
