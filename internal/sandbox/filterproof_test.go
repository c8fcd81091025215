package sandbox

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// says states a verdict in Go, apart from the assembler: the answer to the arguments. It is what the documents
// print in words, and what the loaded program is compared with. A word is the low half of an argument: the kernel
// looks at no more of any number, flag or descriptor.
type says struct {
	words  string
	answer func(a [6]uint64) uint32
	probe  map[int][]uint64 // values of the arguments at which an answer could change
}

// The answers.
const (
	passes       = uint32(0x7fff0000)
	noPermission = uint32(0x00050001)
	noAccess     = uint32(0x0005000d)
	noCall       = uint32(0x00050026)
	handed       = uint32(0x7fc00000)
	dead         = uint32(0x80000000)
)

func lo(a uint64) uint32 { return uint32(a) }

func always(answer uint32) func([6]uint64) uint32 { return func([6]uint64) uint32 { return answer } }

// unless answers EPERM to an argument that is one of some codes.
func unless(arg int, codes ...uint64) says {
	return says{answer: func(a [6]uint64) uint32 {
		if slices.Contains(codes, uint64(lo(a[arg]))) {
			return noPermission
		}
		return passes
	}, probe: map[int][]uint64{arg: codes}}
}

// bits answers an argument with one of some bits, and one with none of them.
func bits(arg int, mask uint32, with, without uint32) says {
	var probe []uint64
	for i := range 32 {
		probe = append(probe, 1<<i, uint64(mask)&^(1<<i), uint64(mask)|1<<i)
	}
	return says{answer: func(a [6]uint64) uint32 {
		if lo(a[arg])&mask != 0 {
			return with
		}
		return without
	}, probe: map[int][]uint64{arg: append(probe, uint64(mask), uint64(^mask))}}
}

func (s says) in(words string) says { s.words = words; return s }

// declared are all verdicts.
func declarations() map[verdict]says {
	d := map[verdict]says{
		allow: {"allowed", always(passes), nil}, refuse: {"EPERM", always(noPermission), nil}, deny: {"EACCES", always(noAccess), nil},
		absent: {"ENOSYS", always(noCall), nil}, notify: {"hcpx decides", always(handed), nil}, kill: {"the process dies", always(dead), nil},
		checkIoctl: unless(1, 0x5412, 0x541c, 0x40086602, 0x401c5820, 0x40806685, 0x800c6613, 0x8901, 0x8902,
			0x50009401, 0x5000940e, 0x5000940f, 0x50009417, 0x50009418, 0x5000943f, 0x4008941a).
			in("EPERM for TIOCSTI, TIOCLINUX, the owner of signals, attributes, verity and encryption of files, subvolumes of btrfs; else allowed"),
		checkFcntl:     fcntlSays(),
		checkClone:     bits(0, 0x7e028000, noPermission, passes).in("EPERM for a new namespace or CLONE_PARENT; else allowed"),
		checkMemfd:     bits(1, 8, passes, noAccess).in("allowed with MFD_NOEXEC_SEAL; else EACCES"),
		checkMode1:     bits(1, 0o6000, noPermission, passes).in("EPERM for a setuid or setgid bit; else allowed"),
		checkMode2:     bits(2, 0o6000, noPermission, passes).in("EPERM for a setuid or setgid bit; else allowed"),
		checkSelf:      {"allowed for the caller itself (0); else EPERM", zero(0, passes), map[int][]uint64{0: {1, 77}}},
		checkSource:    {"allowed where no address is wanted; else hcpx decides", source, map[int][]uint64{4: {1, 1 << 31, 1 << 32, 1 << 63}}},
		checkFastOpen2: bits(2, 0x20000000, noPermission, passes).in("EPERM with MSG_FASTOPEN; else allowed"),
		checkFastOpen3: bits(3, 0x20000000, noPermission, passes).in("EPERM with MSG_FASTOPEN; else allowed"),
		checkTarget0:   unless(0, launcherTid).in("EPERM for the thread of hcpx that started the command; else allowed (a signal stays in the run)"),
		checkTarget1:   unless(1, launcherTid).in("EPERM for the thread of hcpx that started the command; else allowed (a signal stays in the run)"),
		checkSignal:    {"EPERM for hcpx itself; else hcpx decides", signalOracle, map[int][]uint64{0: {launcherTid, runtimePid, 1 << 31}}},
		checkSession:   {"hcpx decides", sessionOracle(handed), sessionProbe()},
		checkNoSession: {"EPERM", sessionOracle(noPermission), sessionProbe()},
	}
	for v, s := range moreDeclarations() {
		d[v] = s
	}
	return d
}

func moreDeclarations() map[verdict]says {
	open := func(flags int) says {
		mode := bits(flags+1, 0o6000, noPermission, passes)
		probe := map[int][]uint64{flags: {0x40, 0x400000, 0x400040, 0x410000, ^uint64(0x400040), 0x241}, flags + 1: {0o4000, 0o2000, 0o6000, 0o1777, 0o7777}}
		return says{"EPERM where a file with a setuid or setgid bit would be made; else allowed", func(a [6]uint64) uint32 {
			if lo(a[flags])&0x400040 == 0 {
				return passes
			}
			return mode.answer(a)
		}, probe}
	}
	families := []uint64{1, 2, 3, 10, 16, 17, 40}
	types := []uint64{1, 2, 3, 4, 5, 6, 10, 1 | 0x80000, 2 | 0x800, 3 | 0x80800, 5 | 0x80000, 0x11}
	protocols := []uint64{1, 4, 6, 17, 132, 136, 255, 262}
	socket := map[int][]uint64{0: families, 1: types, 2: protocols}
	return map[verdict]says{
		checkOpen: open(1), checkOpenat: open(2),
		checkPair:       {"allowed for a unix stream or sequenced pair; else EACCES", pairOracle, socket},
		checkSocket:     {"allowed for TCP and UDP of IPv4 and IPv6, and for the route table; else EACCES", fullOracle, socket},
		checkHostSocket: {"allowed for TCP of IPv4 and IPv6; for UDP hcpx gives its own end; else EACCES", hostOracle, socket},
		checkRoute:      {"EPERM for another interface, gateway, route or protocol above TCP, for fast open and handles of whoever sends; hcpx decides lingering and what only resolvers ask for; else allowed", routeOracle, map[int][]uint64{1: {0, 1, 6, 17, 41}, 2: {1, 2, 4, 5, 6, 11, 13, 23, 25, 30, 31, 50, 57, 62, 76}}},
		checkPeer:       {"EPERM for a handle of the other end; else allowed", peerOracle, map[int][]uint64{1: {0, 1, 6}, 2: {17, 76, 77}}},
		checkPriority:   {"allowed for the caller itself; else EPERM", ownOracle(0), map[int][]uint64{0: {1, 2}, 1: {1, 77}}},
		checkIoprio:     {"allowed for the caller itself; else EPERM", ownOracle(1), map[int][]uint64{0: {1, 2}, 1: {1, 77}}},
	}
}

// fcntlSays allows the commands by their names in the kernel's headers.
func fcntlSays() says {
	known := []uint64{0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 16, 17, 36, 37, 38, 1025, 1027, 1028, 1030, 1031, 1032, 1033, 1034, 1035, 1037}
	return says{"allowed for descriptors, locks, pipes and seals; EPERM for owners of signals, leases, delegations, watches, hints that stay, and any unknown command", func(a [6]uint64) uint32 {
		if slices.Contains(known, uint64(lo(a[1]))) {
			return passes
		}
		return noPermission
	}, map[int][]uint64{1: append([]uint64{8, 15, 1024, 1026, 1029, 1036, 1038, 1039, 1040, 2048}, known...)}}
}

func zero(arg int, answer uint32) func([6]uint64) uint32 {
	return func(a [6]uint64) uint32 {
		if lo(a[arg]) == 0 {
			return answer
		}
		return noPermission
	}
}

// source looks at both halves: the argument is an address.
func source(a [6]uint64) uint32 {
	if a[4] == 0 {
		return passes
	}
	return handed
}

func signalOracle(a [6]uint64) uint32 {
	if to := lo(a[0]); to == launcherTid || to == runtimePid {
		return noPermission
	}
	return handed
}

// sessionOracle lets pass who shows the whole secret.
func sessionOracle(other uint32) func([6]uint64) uint32 {
	return func(a [6]uint64) uint32 {
		if a[0] == knock1<<32|knock0 {
			return passes
		}
		return other
	}
}

func sessionProbe() map[int][]uint64 {
	var probe []uint64
	for bit := range 64 {
		probe = append(probe, (knock1<<32|knock0)^1<<bit)
	}
	return map[int][]uint64{0: append(probe, knock1<<32|knock0, knock0, knock1, knock1<<32, knock0<<32|knock1)}
}

func pairOracle(a [6]uint64) uint32 {
	if kind := lo(a[1]) & 0xf; lo(a[0]) == 1 && (kind == 1 || kind == 5) {
		return passes
	}
	return noAccess
}

func fullOracle(a [6]uint64) uint32 {
	kind, protocol := lo(a[1])&0xf, lo(a[2])
	switch lo(a[0]) {
	case 2, 10:
		if (kind == 1 || kind == 2) && (protocol == 0 || protocol == 6 || protocol == 17) {
			return passes
		}
	case 16:
		if (kind == 2 || kind == 3) && protocol == 0 {
			return passes
		}
	}
	return noAccess
}

func hostOracle(a [6]uint64) uint32 {
	kind, protocol := lo(a[1])&0xf, lo(a[2])
	switch internet := lo(a[0]) == 2 || lo(a[0]) == 10; {
	case internet && kind == 1 && (protocol == 0 || protocol == 6):
		return passes
	case internet && kind == 2 && (protocol == 0 || protocol == 17):
		return handed
	}
	return noAccess
}

func routeOracle(a [6]uint64) uint32 {
	refused := map[uint32][]uint32{1: {5, 25, 62, 76}, 0: {4, 50}, 41: {2, 5, 6, 50, 57, 76}, 6: {23, 30, 31}}
	level, option := lo(a[1]), lo(a[2])
	switch {
	case level == 0 && option == 11, level == 1 && option == 13, level == 41 && option == 25:
		return handed
	case slices.Contains(refused[level], option):
		return noPermission
	}
	return passes
}

func peerOracle(a [6]uint64) uint32 {
	if lo(a[1]) == 1 && lo(a[2]) == 77 {
		return noPermission
	}
	return passes
}

func ownOracle(which uint32) func([6]uint64) uint32 {
	return func(a [6]uint64) uint32 {
		if lo(a[0]) == which && lo(a[1]) == 0 {
			return passes
		}
		return noPermission
	}
}

// allPostures are the postures that a filter can be made for.
func allPostures() []posture {
	var all []posture
	for _, network := range []string{"none", "full", "hosts"} {
		for signals := signalsScoped; signals <= signalsRefused; signals++ {
			for metadata := metadataBrokered; metadata <= metadataMounts; metadata++ {
				all = append(all, posture{network, signals, metadata})
			}
		}
	}
	return all
}

// vectors are arguments at which an answer could change, each value with its neighbours, alone and under a high
// half that the kernel does not look at.
func vectors(probe map[int][]uint64, random *rand.Rand) [][6]uint64 {
	all := [][6]uint64{{}, {^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}}
	for range 4 {
		all = append(all, [6]uint64{random.Uint64(), random.Uint64(), random.Uint64(), random.Uint64(), random.Uint64(), random.Uint64()})
	}
	product := [][6]uint64{{}}
	for arg := range 6 {
		if probe[arg] == nil {
			continue
		}
		values := []uint64{0, 0xffffffff, 1 << 32, ^uint64(0)}
		for _, v := range probe[arg] {
			values = append(values, v-1, v, v+1, v|0xdeadbeef<<32, v|1<<63)
		}
		slices.Sort(values)
		var wider [][6]uint64
		for _, a := range product {
			for _, v := range slices.Compact(values) {
				a[arg] = v
				wider = append(wider, a)
			}
		}
		product = wider
	}
	for _, a := range product {
		for arg := range 6 { // what an answer does not depend on is anything
			if probe[arg] == nil {
				a[arg] = random.Uint64()
			}
		}
		all = append(all, a)
	}
	return all
}

// foreign are the other machines and conventions by which a call could come in, and some that do not exist.
func foreign(machine arch) []uint32 {
	all := []uint32{0, 0xffffffff, 0x40000003, 0x40000028, 0x80000015, 0xc0000015, 0x80000016, 0x16, 0xc00000f3, 0x400000f3, 0xc0000102,
		0x40000008, 0x80000008, 0xc0000008, 0xe0000008, amd64().audit ^ arm64().audit ^ machine.audit}
	for bit := range 32 {
		all = append(all, machine.audit^1<<bit)
	}
	return all
}

// §10.2: the proof of the filter. For every posture and machine, each number from 0 to 600 is answered by the
// loaded program as the table declares, at all arguments where an answer could change; x32 numbers and numbers
// that nobody knows do not exist; every other machine's entry kills.
func Test_10_2_filter_proof(t *testing.T) {
	said := declarations()
	random := rand.New(rand.NewPCG(1, 2))
	cases := map[verdict][][6]uint64{}
	for v, s := range said {
		cases[v] = vectors(s.probe, random)
	}
	for _, machine := range []arch{amd64(), arm64()} {
		for i, p := range allPostures() {
			t.Run(fmt.Sprint(machine.name, p), func(t *testing.T) {
				f, err := compileFilter(machine, p)
				if err != nil {
					t.Fatal(err)
				}
				program, table := loaded(f), map[uint32]verdict{}
				wellFormed(t, program)
				for _, r := range syscallTable() {
					if n := r.number(machine); n >= 0 {
						if _, twice := table[uint32(n)]; twice {
							t.Errorf("%s: number %d is listed twice", r.name, n)
						}
						table[uint32(n)] = p.verdict(r)
					}
				}
				for nr := uint32(0); nr <= 600; nr++ {
					v := table[nr]
					if nr > lastSyscall {
						v = absent
					}
					// Calls do not depend on each other, so each is asked everything in three postures, and part of it else.
					step := 1
					if i%9 != 0 && len(cases[v]) > 1000 {
						step = 97
					}
					for at := i % step; at < len(cases[v]); at += step {
						args := cases[v][at]
						if got, want := interpret(t, program, machine.audit, nr, args), said[v].answer(args); got != want {
							t.Fatalf("call %d %x: %#x, want %#x", nr, args, got, want)
						}
					}
				}
				for nr := uint32(0); nr <= 600; nr++ {
					for _, high := range []uint32{0x40000000, 0x80000000, 0xc0000000, 0xfffffda7 - 600, 601} {
						if got := interpret(t, program, machine.audit, high+nr, [6]uint64{}); got != noCall {
							t.Fatalf("call %#x: %#x", high+nr, got)
						}
					}
				}
				if i%9 != 0 {
					return // the entry is the same for all postures; three of them are enough
				}
				for _, other := range foreign(machine) {
					for nr := uint32(0); nr <= 600; nr++ {
						if got := interpret(t, program, other, nr, [6]uint64{}); got != dead {
							t.Fatalf("machine %#x, call %d: %#x", other, nr, got)
						}
						if got := interpret(t, program, other, nr|0x40000000, [6]uint64{}); got != dead {
							t.Fatalf("machine %#x, call %#x: %#x", other, nr|0x40000000, got)
						}
					}
				}
			})
		}
	}
}

// wellFormed is what the kernel asks of a program before it loads it: its length, and that every jump lands
// within it and some answer ends it.
func wellFormed(t *testing.T, program []insn) {
	t.Helper()
	if len(program) == 0 || len(program) > 4096 || program[len(program)-1].code != opRet {
		t.Fatalf("%d instructions, the last is %+v", len(program), program[len(program)-1])
	}
	for at, in := range program {
		jump := in.code == opJeq || in.code == opJge || in.code == opJset
		if jump && at+1+int(max(in.jt, in.jf)) >= len(program) {
			t.Errorf("the jump at %d leaves the program", at)
		}
		if in.code == opGo && at+1+int(in.k) >= len(program) {
			t.Errorf("the jump at %d leaves the program", at)
		}
		if in.code == opLoad && (in.k%4 != 0 || in.k > offArgs+44) {
			t.Errorf("the load at %d is from %d", at, in.k)
		}
	}
}

// §10.5: a listener is asked for exactly where anything is handed over; a posture that nobody meant has no
// filter.
func Test_10_5_filter_listens_only_when_it_asks(t *testing.T) {
	for _, p := range allPostures() {
		f, err := compileFilter(amd64(), p)
		if err != nil {
			t.Fatal(err)
		}
		if want := p.network == "hosts" || p.signals == signalsBrokered || p.metadata == metadataBrokered; f.notifies != want {
			t.Errorf("%+v: listens %v", p, f.notifies)
		}
	}
	for _, p := range []posture{{}, {"none", 0, metadataBrokered}, {"none", signalsScoped, 0}, {"None", signalsScoped, metadataBrokered},
		{"none", signalsRefused + 1, metadataBrokered}, {"none", signalsScoped, metadataMounts + 1}} {
		if _, err := compileFilter(amd64(), p); err == nil {
			t.Errorf("%+v has a filter", p)
		}
	}
}
