package learn

import (
	"path/filepath"
	"slices"
	"strings"

	"hcpx/internal/protocol"
)

// programs fills bin and uses, with the commands that allow them. The first program is bin.
func (p *proposing) programs() {
	if len(p.seen.Programs) == 0 {
		return
	}
	first := p.seen.Programs[0]
	p.out.Wrap.Bin = p.bin(first)
	var names, paths []string // what PATH finds, and what it does not
	seen := map[string]bool{first.Real: true}
	for _, prog := range p.seen.Programs[1:] {
		switch {
		case seen[prog.Real] && prog.Path == prog.Real || seen[prog.Path]:
		case !declarable(prog.Path):
			p.note(oddProgram, prog.Path)
		case within(prog.Real, p.Temp):
			p.note("It starts %s, which it made itself. Inside, what a command writes can't be started.", prog.Path)
		case p.shipped(prog):
			names = append(names, "./bin/"+base(prog.Path))
			p.note("It starts %s of the workspace: ship it in the pack as bin/%s.", prog.Path, base(prog.Path))
		case p.found(prog) && bare(base(prog.Path)):
			if name := base(prog.Path); name != p.out.Wrap.Bin {
				names = append(names, name)
			}
		default:
			paths = append(paths, prog.Path)
		}
		seen[prog.Real], seen[prog.Path] = true, true
	}
	p.out.Wrap.Uses = append(unique(names), p.folded(unique(paths), append(names, p.out.Wrap.Bin))...)
	p.shim(first)
	p.allow()
}

// bare says whether bin and uses take a program by this name without a path.
func bare(name string) bool { return !strings.HasPrefix(name, "-") && !strings.HasPrefix(name, "~") }

const oddProgram = "It starts %s, a name that no pack can declare: it holds a control character or is not UTF-8."

// bin is the program of the command: by its name, or as a file that the pack must ship.
func (p *proposing) bin(first Program) string {
	name := base(first.Path)
	if !declarable(first.Path) {
		p.note(oddProgram, first.Path)
		return shown(name)
	}
	if p.shipped(first) {
		p.note("Ship %s in the pack as bin/%s, executable.", first.Path, name)
		return "./bin/" + name
	}
	if !bare(name) {
		p.note("It is %s, a name that no pack can declare: it begins with a dash or a tilde. Run it by a link of another name.", first.Path)
		return name
	}
	if p.found(first) {
		p.used = append(p.used, name)
	} else {
		p.used = append(p.used, first.Path)
	}
	if p.Dangerous(name) || p.Dangerous(first.Real) {
		p.note("%s runs whatever it is told. A script with its own name, shipped in the pack, says more than %s as bin.", name, name)
	}
	return name
}

// shipped says that a program is the workspace's own, or the home directory's outside PATH.
func (p *proposing) shipped(prog Program) bool {
	in := func(dir string) bool { return within(prog.Path, dir) }
	return slices.ContainsFunc(p.Work, in) && !p.found(prog)
}

// found says that PATH finds this very file under its name.
func (p *proposing) found(prog Program) bool {
	for _, dir := range p.Path {
		if candidate := filepath.Join(dir, base(prog.Path)); runnable(candidate) {
			return leads(candidate) == prog.Real
		}
	}
	return false
}

// folded names a directory in place of several programs in it, and of one whose name PATH has already.
func (p *proposing) folded(paths, names []string) (out []string) {
	in := map[string]int{}
	for _, path := range paths {
		in[filepath.Dir(path)]++
	}
	for _, path := range paths {
		dir := filepath.Dir(path)
		if (in[dir] > 1 || slices.Contains(names, base(path))) && !p.broad(dir) && leads(dir) == dir {
			path = dir + "/"
		}
		out = append(out, path)
	}
	return unique(out)
}

// shim notes a script that stands before the program of the same name, which may be a script itself, or before a binary
// of a longer one. The last one counts: what comes before it looks for it.
func (p *proposing) shim(first Program) {
	if first.Head == "" || p.shipped(first) {
		return
	}
	stem := base(first.Path)
	for _, prog := range slices.Backward(p.seen.Programs[1:]) {
		name := base(prog.Path)
		if prog.Real != first.Real && (name == stem || prog.Head == "" && strings.HasPrefix(name, stem)) {
			p.note("%s is a script that starts %s. Learn that one itself: hcpx allow --learn -- %s …", first.Path, prog.Real, protocol.Word(prog.Real))
			return
		}
	}
}

// allow lists the operator's commands for the programs.
func (p *proposing) allow() {
	if len(p.used) > 0 {
		flag := ""
		if last := p.seen.Programs[0]; p.Dangerous(base(last.Path)) || p.Dangerous(last.Real) {
			flag = "--dangerous "
		}
		p.out.Commands = append(p.out.Commands, "hcpx allow "+flag+protocol.Words(p.used...))
	}
	others := slices.DeleteFunc(slices.Clone(p.out.Wrap.Uses), func(name string) bool { return strings.HasPrefix(name, "./") })
	if len(others) > 0 {
		p.out.Commands = append(p.out.Commands, "hcpx allow "+protocol.Words(others...))
	}
}

func unique(list []string) (out []string) {
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
