package learn

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hcpx/internal/protocol"
)

// many is how many entries of a directory are proposed as the directory itself.
const many = 8

// reads fills the outside paths that were read.
func (p *proposing) reads() {
	var plain, linked []string
	for _, f := range p.seen.Files {
		switch {
		case !f.Read || p.given(f) || p.inWork(f) || within(f.Path, p.Temp) || within(f.Real, p.Temp) || p.program(f):
		case own(f.Path) || within(f.Path, "/sys") || within(f.Path, "/dev"):
			p.outOfReach(f.Path)
		case p.Closed(p.tilde(f.Path)) != "":
			p.keepClosed(f)
		case f.Dir && p.broad(f.Path):
			p.note("It lists the directory %s, which holds too much to be opened.", f.Path)
		case f.Path != f.Real:
			linked = append(linked, f.Path)
		default:
			plain = append(plain, f.Path)
		}
	}
	var list []string
	for _, path := range append(p.grouped(plain), linked...) {
		list = append(list, p.tilde(path))
	}
	slices.Sort(list)
	if p.out.Wrap.Reads = unique(list); len(list) > 0 {
		p.out.Commands = append(p.out.Commands, "hcpx allow --read PACK "+words(p.out.Wrap.Reads))
	}
}

// program says that a file is one of the programs: those are in uses.
func (p *proposing) program(f File) bool {
	return slices.ContainsFunc(p.seen.Programs, func(prog Program) bool { return prog.Real == f.Real })
}

func (p *proposing) outOfReach(path string) {
	dir := "/" + strings.SplitN(path, "/", 3)[1]
	if path != "/dev/tty" && !(dir == "/proc" && strings.HasPrefix(path, "/proc/self/fd")) {
		p.note("It reads %s, which no pack can; most programs do without %s.", path, dir)
	}
}

// keepClosed flags what no pack may read. What only holds such a place, as a home directory does, is no secret.
func (p *proposing) keepClosed(f File) {
	why := p.Closed(p.tilde(f.Path))
	if f.Dir && p.broad(f.Path) && (within(p.Home, f.Path) || strings.Count(f.Path, "/") < 2) {
		p.note("It lists the directory %s, which holds too much to be opened.", f.Path)
		return
	}
	p.out.Closed = append(p.out.Closed, Closed{p.tilde(f.Path), why + "; a credential comes through the binding (§8)"})
}

// grouped names a directory in place of many entries of it, from the deepest up.
func (p *proposing) grouped(list []string) []string {
	list = unique(list)
	for {
		dir := ""
		in := map[string]int{}
		for _, path := range list {
			parent := filepath.Dir(path)
			if in[parent]++; in[parent] >= many && !p.broad(parent) && strings.Count(parent, "/") > strings.Count(dir, "/") {
				dir = parent
			}
		}
		if dir == "" {
			return outermost(list)
		}
		list = append(slices.DeleteFunc(list, func(path string) bool { return within(path, dir) }), dir)
	}
}

// outermost drops what lies below another one.
func outermost(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.DeleteFunc(list, func(path string) bool {
		return slices.ContainsFunc(list, func(other string) bool { return other != path && within(path, other) })
	})
}

func runnable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// words are arguments of a command line.
func words(list []string) string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = protocol.Word(w)
	}
	return strings.Join(out, " ")
}
