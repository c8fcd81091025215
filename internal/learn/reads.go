package learn

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"hcpx/internal/protocol"
)

// many is how many entries of a directory are proposed as the directory itself.
const many = 8

// reads fills the outside paths that were read.
func (p *proposing) reads() {
	var plain, linked, never, odd []string
	for _, f := range p.seen.Files {
		switch {
		case !f.Read || p.given(f) || p.inWork(f) || within(f.Path, p.Temp) || within(f.Real, p.Temp) || p.program(f):
		case !declarable(f.Path):
			odd = append(odd, f.Path)
		case own(f.Path) || within(f.Path, "/sys") || within(f.Path, "/dev"):
			if f.Path != "/dev/tty" && !strings.HasPrefix(f.Path, "/proc/self/fd/") && !strings.HasPrefix(f.Path, "/dev/fd/") {
				never = append(never, f.Path)
			}
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
	if len(never) > 0 {
		p.note("It reads %s, which no pack can; most programs do without.", some(never))
	}
	if len(odd) > 0 {
		p.note("It reads %s, a name that no pack can declare: it holds a control character or is not UTF-8. Declare the directory that holds it.",
			some(odd))
	}
	var list []string
	for _, path := range append(p.grouped(plain), linked...) {
		list = append(list, p.tilde(path))
	}
	slices.Sort(list)
	if p.out.Wrap.Reads = unique(list); len(list) > 0 {
		p.out.Commands = append(p.out.Commands, "hcpx allow --read PACK "+protocol.Words(p.out.Wrap.Reads...))
	}
}

// program says that a file is one of the programs: those are in uses.
func (p *proposing) program(f File) bool {
	return slices.ContainsFunc(p.seen.Programs, func(prog Program) bool { return prog.Real == f.Real })
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

// grouped names a directory in place of many entries of it, from the deepest up. Entries of entries count where the
// directory lies deep enough to be one thing.
func (p *proposing) grouped(list []string) []string {
	list = unique(list)
	for {
		entries := map[string]map[string]bool{}
		for _, path := range list {
			for child, dir := path, filepath.Dir(path); dir != child; child, dir = dir, filepath.Dir(dir) {
				if child != path && strings.Count(dir, "/") < 3 {
					break
				}
				if entries[dir] == nil {
					entries[dir] = map[string]bool{}
				}
				entries[dir][child] = true
			}
		}
		deepest := ""
		for dir, inside := range entries {
			deeper := strings.Count(dir, "/") - strings.Count(deepest, "/")
			if len(inside) >= many && (deepest == "" || deeper > 0 || deeper == 0 && dir < deepest) && !p.broad(dir) {
				deepest = dir
			}
		}
		if deepest == "" {
			return outermost(list)
		}
		list = append(slices.DeleteFunc(list, func(path string) bool { return within(path, deepest) }), deepest)
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

// declarable says whether a manifest can hold a name: others would stand there as something else.
func declarable(name string) bool {
	return utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

// shown writes what is not declarable in a text by numbers.
func shown(text string) string {
	if declarable(text) {
		return text
	}
	var out strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && size == 1 || unicode.IsControl(r) {
			for _, c := range []byte(text[:size]) {
				fmt.Fprintf(&out, `\x%02x`, c)
			}
		} else {
			out.WriteString(text[:size])
		}
		text = text[size:]
	}
	return out.String()
}

func runnable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// some names the first few.
func some(list []string) string {
	const few = 3
	if len(list) <= few+1 {
		return strings.Join(list, ", ")
	}
	return strings.Join(list[:few], ", ") + fmt.Sprintf(" and %d more", len(list)-few)
}
