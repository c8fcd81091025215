package sandbox

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// usual is the posture of a kernel that can do everything.
func usual(network string) posture {
	return posture{network: network, signals: signalsScoped, metadata: metadataBrokered}
}

// What tells the launcher from others in these tests.
const (
	launcherTid = 4711
	runtimePid  = 4700
	knock0      = 0x1234
	knock1      = 0x9876fedc
)

// loaded is the program as a launcher of these tests loads it.
func loaded(f filter) []insn {
	return f.with(launcherValues{markThread: launcherTid, markProcess: runtimePid, markKnock: knock0, markKnockHigh: knock1})
}

// interpret runs a loaded program as the kernel would on one call.
func interpret(t *testing.T, program []insn, machine uint32, nr uint32, args [6]uint64) uint32 {
	t.Helper()
	load := func(off uint32) uint32 {
		switch {
		case off == offNumber:
			return nr
		case off == offArch:
			return machine
		case off >= offArgs && off < offArgs+48 && off%8 == 0:
			return uint32(args[(off-offArgs)/8])
		case off >= offArgs && off < offArgs+48 && off%4 == 0:
			return uint32(args[(off-offArgs)/8] >> 32)
		}
		t.Fatalf("load from %d", off)
		return 0
	}
	var acc uint32
	for pc := 0; pc < len(program); pc++ {
		in := program[pc]
		yes := false
		switch in.code {
		case opLoad:
			acc = load(in.k)
			continue
		case opAnd:
			acc &= in.k
			continue
		case opGo:
			pc += int(in.k)
			continue
		case opRet:
			return in.k
		case opJeq:
			yes = acc == in.k
		case opJge:
			yes = acc >= in.k
		case opJset:
			yes = acc&in.k != 0
		default:
			t.Fatalf("instruction %d has the code %#x", pc, in.code)
		}
		if yes {
			pc += int(in.jt)
		} else {
			pc += int(in.jf)
		}
	}
	t.Fatal("the program ends without an answer")
	return 0
}

// argumentCase is a call and what the filter of a network mode answers.
type argumentCase struct {
	mode, name string
	args       [6]uint64
	want       uint32
}

func argumentCases() []argumentCase {
	const high = 0xdeadbeef00000000
	yes, no, never := uint32(retAllow), uint32(retErrno|eperm), uint32(retErrno|eacces)
	return []argumentCase{
		{"none", "ioctl", [6]uint64{0, 0x5401}, yes},
		{"none", "ioctl", [6]uint64{0, 0x5412}, no},
		{"none", "ioctl", [6]uint64{0, high | 0x5412}, no},
		{"none", "ioctl", [6]uint64{0, 0x541c}, no},
		{"none", "ioctl", [6]uint64{0, 0x40086602}, no},
		{"none", "ioctl", [6]uint64{0, 0x401c5820}, no},
		{"none", "clone", [6]uint64{0x4111}, yes},
		{"none", "clone", [6]uint64{0x10000011}, no},
		{"none", "clone", [6]uint64{high | 0x20000011}, no},
		{"none", "memfd_create", [6]uint64{0, 1}, never},
		{"none", "memfd_create", [6]uint64{0, 9}, yes},
		{"none", "socket", [6]uint64{1, 1}, never},
		{"none", "socket", [6]uint64{2, 1}, never},
		{"none", "connect", [6]uint64{3}, never},
		{"none", "socketpair", [6]uint64{1, 1 | 0x80000}, yes},
		{"none", "socketpair", [6]uint64{1, 5}, yes},
		{"none", "socketpair", [6]uint64{1, 2}, never},
		{"none", "socketpair", [6]uint64{2, 1}, never},
		{"full", "socket", [6]uint64{2, 1 | 0x80800, 6}, yes},
		{"full", "socket", [6]uint64{10, 2, 17}, yes},
		{"full", "socket", [6]uint64{2, 1, 262}, never},
		{"full", "socket", [6]uint64{2, 3, 1}, never},
		{"full", "socket", [6]uint64{1, 1}, never},
		{"full", "socket", [6]uint64{high | 1, 1}, never},
		{"full", "socket", [6]uint64{16, 3, 0}, yes},
		{"full", "socket", [6]uint64{16, 3, 4}, never},
		{"full", "socket", [6]uint64{17, 3, 0}, never},
		{"full", "connect", [6]uint64{3}, yes},
		{"none", "openat", [6]uint64{0, 0, 0, 0o4755}, yes},
		{"none", "openat", [6]uint64{0, 0, 0x41, 0o755}, yes},
		{"none", "openat", [6]uint64{0, 0, 0x41, 0o4755}, no},
		{"none", "openat", [6]uint64{0, 0, 0x410001, 0o2755}, no},
		{"none", "mknodat", [6]uint64{0, 0, 0o102755}, no},
		{"none", "mknodat", [6]uint64{0, 0, 0o100755}, yes},
		{"none", "prlimit64", [6]uint64{0, 7, 0, 0}, yes},
		{"none", "prlimit64", [6]uint64{77, 7, 1, 0}, no},
		{"none", "prlimit64", [6]uint64{77, 7, 1, 0, 0x1234, 0x5678}, no},
		{"none", "sched_setaffinity", [6]uint64{0}, yes},
		{"none", "sched_setaffinity", [6]uint64{77}, no},
		{"none", "kill", [6]uint64{77, 9}, yes},
		{"none", "kill", [6]uint64{launcherTid, 9}, no},
		{"none", "kill", [6]uint64{high | launcherTid, 9}, no},
		{"none", "tkill", [6]uint64{launcherTid, 9}, no},
		{"none", "tgkill", [6]uint64{launcherTid, 77, 9}, yes},
		{"none", "tgkill", [6]uint64{77, launcherTid, 9}, no},
		{"none", "rt_sigqueueinfo", [6]uint64{launcherTid, 9}, no},
		{"none", "rt_tgsigqueueinfo", [6]uint64{77, launcherTid, 9}, no},
		{"none", "pidfd_open", [6]uint64{launcherTid, 0x80}, no},
		{"none", "pidfd_open", [6]uint64{77}, yes},
		{"none", "fcntl", [6]uint64{0, 3}, yes},
		{"none", "fcntl", [6]uint64{0, 8, 77}, no},
		{"none", "fcntl", [6]uint64{0, high | 15, 77}, no},
		{"none", "fcntl", [6]uint64{0, high | 1030, 77}, yes},
		{"none", "fcntl", [6]uint64{0, 1026, 1}, no},
		{"none", "fcntl", [6]uint64{0, 1040, 1}, no},
		{"none", "fcntl", [6]uint64{0, 4096, 1}, no},
		{"none", "ioctl", [6]uint64{0, 0x8901}, no},
		{"none", "clone", [6]uint64{0x8011}, no},
		{"hosts", "socket", [6]uint64{2, 1 | 0x80800, 6}, yes},
		{"hosts", "socket", [6]uint64{10, 2, 0}, retNotify},
		{"hosts", "socket", [6]uint64{2, 1, 262}, never},
		{"hosts", "socket", [6]uint64{2, 2, 136}, never},
		{"hosts", "socket", [6]uint64{16, 3, 0}, never},
		{"hosts", "connect", [6]uint64{3}, retNotify},
		{"hosts", "listen", [6]uint64{3}, never},
		{"hosts", "recvfrom", [6]uint64{3, 1, 1, 0, 0}, yes},
		{"hosts", "recvfrom", [6]uint64{3, 1, 1, 0, 1 << 32}, retNotify},
		{"hosts", "sendto", [6]uint64{3, 1, 1, high | 0x20000000}, no},
		{"full", "sendmsg", [6]uint64{3, 1, 0x20004000}, no},
		{"full", "sendmsg", [6]uint64{3, 1, 0x4000}, yes},
		{"none", "sendto", [6]uint64{3, 1, 1, 0x20000000}, yes},
		{"none", "setpriority", [6]uint64{0, 0, 5}, yes},
		{"none", "setpriority", [6]uint64{0, 77, 5}, no},
		{"none", "setpriority", [6]uint64{2, 0, 5}, no},
		{"none", "ioprio_set", [6]uint64{1, 0, 5}, yes},
		{"none", "ioprio_set", [6]uint64{1, 9, 5}, no},
	}
}

// §10.2: calls that are decided by their arguments. A set high word changes nothing.
func Test_10_2_filter_arguments(t *testing.T) {
	for _, machine := range []arch{amd64(), arm64()} {
		for _, c := range argumentCases() {
			program, err := compileFilter(machine, usual(c.mode))
			if err != nil {
				t.Fatal(err)
			}
			if got := interpret(t, loaded(program), machine.audit, uint32(numberOf(t, c.name, machine)), c.args); got != c.want {
				t.Errorf("%s, network %s: %s%x: %#x, want %#x", machine.name, c.mode, c.name, c.args, got, c.want)
			}
		}
	}
}

func numberOf(t *testing.T, name string, machine arch) int {
	t.Helper()
	for _, r := range syscallTable() {
		if r.name == name {
			return r.number(machine)
		}
	}
	t.Fatalf("%s is not in the table", name)
	return -1
}

// numbersFile holds the numbers of golang.org/x/sys, which takes them from the kernel's headers: one call a
// line with its number on each machine, -1 where it has none.
//
//go:embed testdata/syscalls.txt
var numbersFile string

var update = flag.Bool("update", false, "write testdata anew")

// §10.2: the numbers of the table are the kernel's.
func Test_10_2_table_numbers(t *testing.T) {
	if at, err := exec.LookPath("go"); err == nil {
		numbersAreCurrent(t, at)
	}
	numbers := map[string][2]int{}
	for line := range strings.Lines(numbersFile) {
		var name string
		var n [2]int
		if _, err := fmt.Sscan(line, &name, &n[0], &n[1]); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		numbers[name] = n
	}
	for _, r := range syscallTable() {
		if want, ok := numbers[r.name]; !ok || want != [2]int{r.amd64, r.arm64} {
			t.Errorf("%s: %d and %d, want %v", r.name, r.amd64, r.arm64, want)
		}
	}
	for name, n := range numbers {
		if max(n[0], n[1]) > lastSyscall {
			t.Errorf("%s = %v is above the last known number", name, n)
		}
	}
}

// numbersAreCurrent holds the file against the module's own sources, where they are at hand.
func numbersAreCurrent(t *testing.T, goTool string) {
	t.Helper()
	list := exec.Command(goTool, "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys")
	list.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off")
	out, err := list.Output()
	if err != nil {
		t.Log("this binary runs outside its module: the numbers are those that it was built with")
		return
	}
	form := regexp.MustCompile(`(?m)^\s+SYS_(\w+)\s+=\s+(\d+)`)
	numbers := map[string]*[2]int{}
	for i, machine := range []arch{amd64(), arm64()} {
		source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "unix", "zsysnum_linux_"+machine.name+".go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range form.FindAllStringSubmatch(string(source), -1) {
			name := strings.ToLower(m[1])
			if numbers[name] == nil {
				numbers[name] = &[2]int{-1, -1}
			}
			numbers[name][i], _ = strconv.Atoi(m[2])
		}
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		fmt.Fprintln(&text, name, numbers[name][0], numbers[name][1])
	}
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile("testdata/syscalls.txt", []byte(text.String()), 0o644)); err != nil {
			t.Fatal(err)
		}
		numbersFile = text.String()
	}
	if text.String() != numbersFile {
		t.Error("testdata/syscalls.txt is not what golang.org/x/sys says; run with -update")
	}
}
