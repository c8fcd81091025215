package sandbox

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"hcpx/internal/protocol"
)

// Sabotage is a hole made in the sandbox of a test, and what a canary can do then.
type Sabotage struct {
	Name   string
	Worked []string
	make   func(t *testing.T, c *confiner, dir string)
}

// Sabotages are one for each attempt that a single hole lets through. The others need several at once, and work
// without any sandbox: the memory and the environment of the runtime have three guards, privileges two, and a
// launcher whose own signals leave the jail refuses before the canary.
func Sabotages() []Sabotage {
	program, err := filepath.EvalSymlinks(others()[0][0])
	if err != nil {
		program = others()[0][0]
	}
	hole := func(rights uint64) func(*testing.T, *confiner, string) {
		return func(t *testing.T, c *confiner, dir string) { granted(t, c, dir, rights) }
	}
	call := func(names ...string) func(*testing.T, *confiner, string) {
		return func(t *testing.T, c *confiner, _ string) {
			var rules []exception
			for _, name := range names {
				rules = append(rules, exception{name: name, arg: -1, answer: retAllow})
			}
			excepted(t, c, rules...)
		}
	}
	return []Sabotage{
		{"a readable directory", []string{"read"}, hole(unix.LANDLOCK_ACCESS_FS_READ_FILE)},
		{"files made anywhere", []string{"create"}, hole(unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_WRITE_FILE)},
		{"files cut short", []string{"truncate"}, hole(unix.LANDLOCK_ACCESS_FS_TRUNCATE)},
		// What may get a name there is made before its opening is refused.
		{"files renamed", []string{"create", "rename"}, hole(unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_REG)},
		{"another program", []string{"exec"}, func(t *testing.T, c *confiner, _ string) { granted(t, c, program, rightsProgram) }},
		{"modes past the filter", []string{"chmod"}, call("chmod", "fchmodat")},
		{"times past the filter", []string{"utime"}, call("utime", "utimes", "utimensat")},
		{"internet sockets", []string{"inet"}, func(t *testing.T, c *confiner, _ string) {
			excepted(t, c, exception{"socket", 0, unix.AF_INET, retAllow})
		}},
		{"unix sockets", []string{"unix"}, func(t *testing.T, c *confiner, _ string) {
			excepted(t, c, exception{"socket", 0, unix.AF_UNIX, retAllow}, exception{"connect", -1, 0, retAllow})
		}},
		{"a kill that does nothing", []string{"survive"}, func(t *testing.T, c *confiner, _ string) {
			excepted(t, c, exception{"kill", 0, 1<<32 - 1, retErrno})
		}},
	}
}

// granted opens a path to every command.
func granted(t *testing.T, c *confiner, path string, rights uint64) {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	base := c.base
	c.base = func() []grant {
		return append(base()[:len(base()):len(base())], grant{path: path, rights: rights, id: identity{st.Dev, st.Ino}})
	}
}

// exception is answered before the filter looks: a call, where arg is not -1 only with that value in it.
type exception struct {
	name   string
	arg    int
	value  uint32
	answer uint32
}

func excepted(t *testing.T, c *confiner, rules ...exception) {
	t.Helper()
	machine, ok := hostArch()
	if !ok {
		t.Fatal("no table for this machine")
	}
	numbers := map[string]int{}
	for _, r := range syscallTable() {
		numbers[r.name] = r.number(machine)
	}
	numbers["kill"], numbers["connect"] = unix.SYS_KILL, unix.SYS_CONNECT // where no row is needed, none stands
	var before []insn
	for _, x := range rules {
		if numbers[x.name] < 0 {
			continue
		}
		rule := []insn{{opLoad, 0, 0, offNumber}, {opJeq, 0, 1, uint32(numbers[x.name])}, {opRet, 0, 0, x.answer}}
		if x.arg >= 0 {
			rule = []insn{{opLoad, 0, 0, offNumber}, {opJeq, 0, 3, uint32(numbers[x.name])},
				{opLoad, 0, 0, uint32(offArgs + 8*x.arg)}, {opJeq, 0, 1, x.value}, {opRet, 0, 0, x.answer}}
		}
		before = append(before, rule...)
	}
	whole := c.filters["none"]
	c.filters["none"] = func() (filter, error) {
		f, err := whole()
		f.program = append(before[:len(before):len(before)], f.program...)
		for m, places := range f.marked {
			moved := make([]int, len(places))
			for i, at := range places {
				moved[i] = at + len(before)
			}
			f.marked[m] = moved
		}
		return f, err
	}
}

// Make makes the hole in a System that has not run anything.
func (x Sabotage) Make(t *testing.T, s *System) {
	if err := ownDir(s.options.Canary.Dir); err != nil {
		t.Fatal(err)
	}
	x.make(t, &s.confine, s.options.Canary.Dir)
}

// Fly runs the canary; bare runs it without any sandbox.
func Fly(s *System, bare bool) (worked, undecided []string, refusal *protocol.Error) {
	program, err := canaryProgram("")
	if err != nil {
		return nil, nil, noProof(err.Error())
	}
	f := flight{dir: s.options.Canary.Dir, program: program, prepare: s.confine.prepare, apart: s.kernel().spaces()}
	if bare {
		f.prepare = func(spec *Spec) (Box, *protocol.Error) { return &bareBox{spec: spec}, nil }
	}
	got, refusal := f.fly(context.Background())
	return got.worked, got.undecided, refusal
}

// Attempts are the names of all attempts.
func Attempts() []string {
	var names []string
	for _, a := range attempts() {
		names = append(names, a.name)
	}
	return append(names, "survive")
}

// bareBox confines nothing and kills nothing.
type bareBox struct{ spec *Spec }

func (b *bareBox) Run(context.Context) (*Outcome, *protocol.Error) {
	c := exec.Cmd{Path: b.spec.Program.Path, Args: append([]string{b.spec.Program.Name}, b.spec.Args...), Dir: b.spec.Dir, Env: []string{}}
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, protocol.Fail(protocol.CommandFailed, err.Error())
	}
	return &Outcome{Stdout: out}, nil
}

func (b *bareBox) Close() error { return nil }

// CanaryOf is how a System proves itself.
func CanaryOf(s *System) *Canary { return s.options.Canary }
