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

// assembler builds a program with forward jumps.
type assembler struct {
	lines  []line
	places map[label]int
	last   label
}

func (a *assembler) label() label { a.last++; return a.last }

func (a *assembler) place(l label) { a.places[l] = len(a.lines) }

func (a *assembler) op(code uint16, k uint32) { a.lines = append(a.lines, line{code: code, k: k}) }

func (a *assembler) jump(code uint16, k uint32, jt, jf label) {
	a.lines = append(a.lines, line{code, k, jt, jf})
}

// link turns labels into distances. BPF jumps reach 255 instructions forward; a longer one is a fault of
// the table and is found by the tests.
func (a *assembler) link() ([]insn, error) {
	program := make([]insn, len(a.lines))
	for i, l := range a.lines {
		program[i] = insn{code: l.code, k: l.k}
		if l.code != opJeq && l.code != opJge && l.code != opJset {
			continue
		}
		for side, to := range map[*uint8]label{&program[i].jt: l.jt, &program[i].jf: l.jf} {
			if to == next {
				continue
			}
			at, ok := a.places[to]
			if distance := at - i - 1; !ok || distance < 0 || distance > 255 {
				return nil, fmt.Errorf("filter: jump at %d goes too far", i)
			} else {
				*side = uint8(distance)
			}
		}
	}
	return program, nil
}

// segment says that numbers from first upward go to a place.
type segment struct {
	first uint32
	to    label
}

// compileFilter makes the program for a machine and a network mode (§10.2). Numbers are found by a balanced
// tree: the kernel walks the program once for every number when it is loaded, so short paths count.
func compileFilter(machine arch, mode string) ([]insn, error) {
	a := &assembler{places: map[label]int{}}
	targets := map[verdict]label{}
	target := func(v verdict) label {
		if targets[v] == next {
			targets[v] = a.label()
		}
		return targets[v]
	}
	verdicts := map[uint32]verdict{}
	for _, r := range syscallTable() {
		v := r.verdict
		if v == network {
			v = networkVerdict(mode, r.name)
		}
		if n := r.number(machine); n >= 0 {
			verdicts[uint32(n)] = v
		}
	}
	var segments []segment
	for n := uint32(0); n <= lastSyscall; n++ {
		if to := target(verdicts[n]); len(segments) == 0 || segments[len(segments)-1].to != to {
			segments = append(segments, segment{n, to})
		}
	}
	segments = append(segments, segment{lastSyscall + 1, target(absent)})

	a.op(opLoad, offArch)
	a.jump(opJeq, machine.audit, next, target(kill))
	a.op(opLoad, offNumber)
	a.tree(segments)
	for _, v := range sorted(targets) {
		a.check(v, target)
	}
	for _, v := range sorted(targets) {
		a.answer(v, targets[v])
	}
	return a.link()
}

func sorted(targets map[verdict]label) []verdict {
	var list []verdict
	for v := range targets {
		list = append(list, v)
	}
	slices.Sort(list)
	return list
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

// answer emits the return of a plain verdict.
func (a *assembler) answer(v verdict, at label) {
	code, ok := map[verdict]uint32{allow: retAllow, refuse: retErrno | eperm, deny: retErrno | eacces,
		absent: retErrno | enosys, broker: retNotify, kill: retKill}[v]
	if ok {
		a.place(at)
		a.op(opRet, code)
	}
}
