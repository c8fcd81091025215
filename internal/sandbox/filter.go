package sandbox

import (
	"fmt"
	"slices"
)

// insn is one BPF instruction, laid out as the kernel wants it.
type insn struct {
	code   uint16
	jt, jf uint8
	k      uint32
}

// The few BPF operations that the filter uses.
const (
	opLoad = 0x20 // LD W ABS
	opAnd  = 0x54 // ALU AND K
	opGo   = 0x05 // to a place as far as it may be
	opJeq  = 0x15
	opJge  = 0x35
	opJset = 0x45
	opRet  = 0x06
)

// Offsets in struct seccomp_data. Only the low word of an argument is compared: all of them are 32 bits wide
// for the kernel, and a set high word must not slip past.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// What the filter answers.
const (
	retAllow  = 0x7fff0000
	retKill   = 0x80000000
	retErrno  = 0x00050000
	retNotify = 0x7fc00000

	eperm  = 1
	eacces = 13
	enosys = 38
)

// label is a place in the program that jumps go to; next is the instruction that follows.
type label int

const next label = 0

// line is an instruction whose jumps are still labels.
type line struct {
	code   uint16
	k      uint32
	jt, jf label
}

// mark says which value of a launcher an instruction compares with.
type mark int

const (
	markThread    mark = iota // the launcher's thread
	markProcess               // the runtime, which it is a thread of
	markKnock                 // its secret, which lets its child have a session unasked
	markKnockHigh             // the other half of it
	marks
)

// filter is a program for every launcher: the marked instructions get its values before it is loaded.
type filter struct {
	program []insn
	marked  [marks][]int
	// notifies says that some call is handed to the runtime, so that a listener must be there.
	notifies bool
}

// launcherValues are what tells a launcher from what it started. Its thread is in the same domain as its
// children, so nothing but the filter keeps them from it: a signal to that thread would kill the runtime.
// And only the launcher's child may begin a session unasked: it shows a random number where the kernel ignores it.
type launcherValues [marks]uint32

func (f filter) with(values launcherValues) []insn {
	program := slices.Clone(f.program)
	for m, places := range f.marked {
		for _, at := range places {
			program[at].k = values[m]
		}
	}
	return program
}

// assembler builds a program with forward jumps.
type assembler struct {
	lines  []line
	places []int // of each label, -1 = not placed yet
	target [verdicts]label
	marks  [marks][]int
}

func newAssembler() *assembler {
	return &assembler{lines: make([]line, 0, 256), places: append(make([]int, 0, 256), -1)}
}

func (a *assembler) label() label {
	a.places = append(a.places, -1)
	return label(len(a.places) - 1)
}

func (a *assembler) place(l label) { a.places[l] = len(a.lines) }

func (a *assembler) op(code uint16, k uint32) { a.lines = append(a.lines, line{code: code, k: k}) }

func (a *assembler) jump(code uint16, k uint32, jt, jf label) {
	a.lines = append(a.lines, line{code, k, jt, jf})
}

// marked makes the next instruction one that compares with a value of the launcher.
func (a *assembler) marked(m mark) { a.marks[m] = append(a.marks[m], len(a.lines)) }

// to is the label at which a verdict is carried out.
func (a *assembler) to(v verdict) label {
	if a.target[v] == next {
		a.target[v] = a.label()
	}
	return a.target[v]
}

// link turns labels into distances. BPF jumps reach 255 instructions forward; a longer one is a fault of
// the table and is found by the tests.
func (a *assembler) link() (filter, error) {
	program := make([]insn, len(a.lines))
	for i, l := range a.lines {
		if l.code == opGo {
			program[i] = insn{code: opGo, k: uint32(a.places[l.jt] - i - 1)}
			continue
		}
		jt, far := a.distance(i, l.jt)
		jf, farther := a.distance(i, l.jf)
		if far || farther {
			return filter{}, fmt.Errorf("filter: the jump at %d goes too far", i)
		}
		program[i] = insn{code: l.code, k: l.k, jt: jt, jf: jf}
	}
	return filter{program: program, marked: a.marks, notifies: a.target[notify] != next}, nil
}

func (a *assembler) distance(from int, to label) (uint8, bool) {
	if to == next {
		return 0, false
	}
	d := a.places[to] - from - 1
	return uint8(d), d < 0 || d > 255
}

// segment says that numbers from first upward go to a place.
type segment struct {
	first uint32
	to    label
}

// compileFilter makes the program for a machine and a posture (§10.2). Numbers are found by a balanced tree:
// the kernel walks the program once for every number when it is loaded, so short paths count.
func compileFilter(machine arch, p posture) (filter, error) {
	if !p.valid() {
		return filter{}, fmt.Errorf("filter: nothing is meant by %+v", p)
	}
	var table [lastSyscall + 1]verdict
	for _, r := range syscallTable() {
		if n := r.number(machine); n >= 0 {
			table[n] = p.verdict(r)
		}
	}
	a := newAssembler()
	segments := make([]segment, 0, 128)
	for n, v := range table {
		if to := a.to(v); len(segments) == 0 || segments[len(segments)-1].to != to {
			segments = append(segments, segment{uint32(n), to})
		}
	}
	segments = append(segments, segment{lastSyscall + 1, a.to(absent)})

	a.op(opLoad, offArch)
	own := a.label()
	a.jump(opJeq, machine.audit, own, next)
	a.op(opRet, retKill) // here, since jumps are short
	a.place(own)
	a.op(opLoad, offNumber)
	a.halves(segments)
	for v := checkIoctl; v < verdicts; v++ {
		if a.target[v] != next {
			a.place(a.target[v])
			a.check(v)
		}
	}
	for v := allow; v < checkIoctl; v++ {
		if a.target[v] != next {
			a.place(a.target[v])
			a.op(opRet, returned(v))
		}
	}
	return a.link()
}

// halves emits the search. What the lower half of it leads to stands behind the upper one, too far for a jump, so the
// lower half has its answers, and the ways to the checks, right behind itself.
func (a *assembler) halves(segments []segment) {
	mid := len(segments) / 2
	lower, upper, near := segments[:mid], a.label(), map[label]label{}
	for i, s := range lower {
		if near[s.to] == next {
			near[s.to] = a.label()
		}
		lower[i].to = near[s.to]
	}
	a.jump(opJge, segments[mid].first, upper, next)
	a.tree(lower)
	for v := range verdicts {
		here := near[a.target[v]]
		switch {
		case a.target[v] == next || here == next:
		case v >= checkIoctl:
			a.place(here)
			a.jump(opGo, 0, a.target[v], next)
		default:
			a.place(here)
			a.op(opRet, returned(v))
		}
	}
	a.place(upper)
	a.tree(segments[mid:])
}

// tree emits the search; a subtree of one segment is a jump to its place.
func (a *assembler) tree(segments []segment) {
	mid := len(segments) / 2
	side := func(part []segment) label {
		if len(part) == 1 {
			return part[0].to
		}
		return a.label()
	}
	left, right := side(segments[:mid]), side(segments[mid:])
	a.jump(opJge, segments[mid].first, right, left)
	if mid > 1 {
		a.place(left)
		a.tree(segments[:mid])
	}
	if len(segments)-mid > 1 {
		a.place(right)
		a.tree(segments[mid:])
	}
}

// returned is the return of a plain verdict; what is none kills.
func returned(v verdict) uint32 {
	switch v {
	case allow:
		return retAllow
	case refuse:
		return retErrno | eperm
	case deny:
		return retErrno | eacces
	case absent:
		return retErrno | enosys
	case notify:
		return retNotify
	}
	return retKill
}
