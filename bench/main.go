// Command bench prints the ratios of the budget, each measured in one run: the cases of a table take turns,
// round by round, so that a busy machine slows them alike. Read the ratios, not the milliseconds.
//
//	go run ./bench [-rounds N] [-only NAME]
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// one is a case of a table: what is timed, once.
type one struct {
	name string
	run  func() error
}

// table is cases measured in turns; the first is the measure of the others.
type table struct {
	cases []one
	goals map[string]string // by case name, what the budget says
	third string            // a case that others are held against too, by the goal in shares
	share map[string]string
}

func main() {
	rounds := flag.Int("rounds", 200, "rounds of each table")
	only := flag.String("only", "", "tables whose title contains this")
	flag.Parse()
	if err := run(*rounds, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(rounds int, only string) error {
	dir, err := os.MkdirTemp("", "hcpx-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s, err := newSetup(dir)
	if err != nil {
		return err
	}
	for _, next := range []struct {
		title string
		make  func(*setup) (table, error)
	}{
		{"start-up", startTable},
		{"cold exec of a tiny static program", coldTable},
		{"sandboxed run in process", sandboxTable},
		{"cold exec by number of installed packs", packsTable},
		{"help of the face, 200 commands in the pack", faceTable},
		{"MCP: a warm call", warmTable},
		{"MCP: spawn to first answer and end", firstTable},
	} {
		if !strings.Contains(next.title, only) {
			continue
		}
		t, err := next.make(s)
		if err == nil {
			err = measure(next.title, t, rounds)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", next.title, err)
		}
	}
	return s.memory()
}

// measure runs the cases in turns and prints median, 10th percentile and both ratios to the first case.
func measure(title string, t table, rounds int) error {
	times := make([][]time.Duration, len(t.cases))
	for round := -3; round < rounds; round++ { // three rounds warm up
		for i, c := range t.cases {
			start := time.Now()
			if err := c.run(); err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			if round >= 0 {
				times[i] = append(times[i], time.Since(start))
			}
		}
	}
	fmt.Printf("\n%s (%d rounds)\n%-44s %10s %10s %8s %8s  %s\n", title, rounds, "", "median", "p10", "×median", "×p10", "budget")
	for i, c := range t.cases {
		slices.Sort(times[i])
		slices.Sort(times[0])
		med, low := times[i][rounds/2], times[i][rounds/10]
		fmt.Printf("%-44s %8.2fms %8.2fms %8.2f %8.2f  %s\n", c.name, ms(med), ms(low),
			ms(med)/ms(times[0][rounds/2]), ms(low)/ms(times[0][rounds/10]), t.goals[c.name])
	}
	t.held(times)
	return nil
}

// held prints the ratios of medians to the third case.
func (t table) held(times [][]time.Duration) {
	third := slices.IndexFunc(t.cases, func(c one) bool { return c.name == t.third })
	for i, c := range t.cases {
		if goal, ok := t.share[c.name]; ok && third >= 0 {
			half := len(times[i]) / 2
			fmt.Printf("%-44s %10s %10s %8.2f %8s  %s\n", c.name+", of "+t.third, "", "", ms(times[i][half])/ms(times[third][half]), "", goal)
		}
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// setup is what the tables share: the programs, and a store with one pack that runs hello.
type setup struct {
	dir, hcpx, hello string
}

func newSetup(dir string) (*setup, error) {
	s := &setup{dir: dir, hcpx: filepath.Join(dir, "bin", "hcpx"), hello: filepath.Join(dir, "bin", "hello")}
	for out, pkg := range map[string]string{s.hcpx: "./cmd/hcpx", s.hello: "./bench/hello"} {
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if msg, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build %s: %w: %s", pkg, err, msg)
		}
	}
	return s, s.store("one", 0)
}

// store makes a store with the pack "hello" and more installed packs beside it.
func (s *setup) store(name string, more int) error {
	home := s.home(name)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte("[identity]\nagents = \"trust-flags\"\n"), 0o600); err != nil {
		return err
	}
	dir := filepath.Join(s.dir, "src-"+name, "hello")
	if err := writePack(dir, "hello", s.hello); err != nil {
		return err
	}
	for _, args := range [][]string{{"install", dir}, {"activate", "hello"}} {
		if out, err := s.command(name, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("hcpx %s: %w: %s", strings.Join(args, " "), err, out)
		}
	}
	const batch = 500
	for from := 0; from < more; from += batch {
		args := []string{"install"}
		for i := from; i < min(from+batch, more); i++ {
			id := fmt.Sprintf("filler-%d", i)
			dir := filepath.Join(s.dir, "src-"+name, id)
			if err := writePack(dir, id, s.hello); err != nil {
				return err
			}
			args = append(args, dir)
		}
		if out, err := s.command(name, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("install of fillers: %w: %.2000s", err, out)
		}
	}
	return nil
}

func (s *setup) home(name string) string { return filepath.Join(s.dir, "home-"+name) }

func (s *setup) command(store string, args ...string) *exec.Cmd {
	cmd := exec.Command(s.hcpx, args...)
	cmd.Env = []string{"HCP_HOME=" + s.home(store), "HCP_PRINCIPAL=human:bench", "HOME=" + s.dir,
		"XDG_CONFIG_HOME=" + filepath.Join(s.dir, "config"), "PATH=" + os.Getenv("PATH")}
	cmd.Dir = s.dir
	return cmd
}

func writePack(dir, id, program string) error {
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		return err
	}
	for name, text := range map[string]string{
		"surface.json": `{"hcp":{"version":"1.1"},"id":"` + id + `","version":"1.0.0","summary":"Says hello.","adapter":"wrap",
"wrap":{"bin":"./bin/hello"},"verbs":{"say":{"summary":"Say hello","argv":[],"examples":[{"args":{}}]}}}`,
		"policy.json": `{"surface_id":"` + id + `","verbs":{"say":{"operation":"read","privacy":{"land":"personal"}}}}`,
		"HARNESS.md":  "# Hello\n\nSays hello.\n\n`hcpx exec " + id + " say`\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if strings.HasPrefix(id, "filler-") {
		program = "/bin/true" // fillers are never run; a small file keeps the disk free
	}
	body, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "bin", "hello"), body, 0o755)
}

// program is a case that starts a program and throws its output away.
func program(name string, cmd func() *exec.Cmd) one {
	return one{name, func() error {
		c := cmd()
		var stderr bytes.Buffer
		c.Stderr = &stderr
		if out, err := c.Output(); err != nil {
			return fmt.Errorf("%w: %s%s", err, out, stderr.Bytes())
		}
		return nil
	}}
}

func startTable(s *setup) (table, error) {
	return table{cases: []one{
		program("hello world", func() *exec.Cmd { return exec.Command(s.hello) }),
		program("hcpx version", func() *exec.Cmd { return s.command("one", "version") }),
	}, goals: map[string]string{"hcpx version": "≤ 2.0"}}, nil
}

func coldTable(s *setup) (table, error) {
	t := table{cases: []one{
		program("bare fork and exec", func() *exec.Cmd { return exec.Command(s.hello) }),
		program("hcpx exec hello say", func() *exec.Cmd { return s.command("one", "exec", "hello", "say", "--json") }),
	}, goals: map[string]string{"hcpx exec hello say": "≤ 3.5, and below bwrap", bwrapCase: "for comparison"}}
	t.cases = append(t.cases, s.bwrap()...)
	return t, nil
}

const bwrapCase = "bwrap --unshare-all"

// bwrap starts hello in namespaces of every kind, where that program is there.
func (s *setup) bwrap() []one {
	path, err := exec.LookPath("bwrap")
	if err != nil {
		return nil
	}
	return []one{program(bwrapCase, func() *exec.Cmd { return exec.Command(path, "--ro-bind", "/", "/", "--unshare-all", s.hello) })}
}

func packsTable(s *setup) (table, error) {
	if err := s.store("many", 10000); err != nil {
		return table{}, err
	}
	return table{cases: []one{
		program("1 pack", func() *exec.Cmd { return s.command("one", "exec", "hello", "say", "--json") }),
		program("10,001 packs", func() *exec.Cmd { return s.command("many", "exec", "hello", "say", "--json") }),
	}, goals: map[string]string{"10,001 packs": "≤ 1.05"}}, nil
}

// faceTable holds what a person waits for when asking a large pack for help, and what completion takes.
func faceTable(s *setup) (table, error) {
	const most = 200
	dir := filepath.Join(s.dir, "src-face", "mail")
	if err := writePack(dir, "mail", s.hello); err != nil {
		return table{}, err
	}
	var verbs, policies, skill strings.Builder
	for i := range most {
		key := fmt.Sprintf("mail.list%d", i)
		fmt.Fprintf(&verbs, `,%q:{"summary":"List mail, way %d.","args":{"type":"object","properties":{"unread":{"type":"boolean"},"limit":{"type":"integer","minimum":1},"folder":{"type":"string","enum":["inbox","sent"]}}},"argv":[],"examples":[{"args":{"unread":true}}]}`, key, i)
		fmt.Fprintf(&policies, `,%q:{"operation":"read","privacy":{"land":"personal"}}`, key)
		fmt.Fprintf(&skill, "`hcpx exec mail %s`\n", key)
	}
	for name, text := range map[string]string{
		"surface.json": `{"hcp":{"version":"1.1"},"id":"mail","version":"1.0.0","summary":"Reads mail.","adapter":"wrap","wrap":{"bin":"./bin/hello"},"verbs":{` + verbs.String()[1:] + `}}`,
		"policy.json":  `{"surface_id":"mail","verbs":{` + policies.String()[1:] + `}}`,
		"HARNESS.md":   "# Mail\n\nReads mail.\n\n" + skill.String(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return table{}, err
		}
	}
	if err := s.store("face", 0); err != nil {
		return table{}, err
	}
	for _, args := range [][]string{{"install", dir}, {"activate", "mail"}} {
		if out, err := s.command("face", args...).CombinedOutput(); err != nil {
			return table{}, fmt.Errorf("hcpx %s: %w: %.2000s", strings.Join(args, " "), err, out)
		}
	}
	return table{cases: []one{
		program("hello world", func() *exec.Cmd { return exec.Command(s.hello) }),
		program("hcpx mail list7 --help", func() *exec.Cmd { return s.command("face", "mail", "list7", "--help") }),
		program("hcpx mail --help", func() *exec.Cmd { return s.command("face", "mail", "--help") }),
		program("completion of hcpx mail list7 --", func() *exec.Cmd { return s.command("face", "__complete", "mail", "list7", "--") }),
		program("hcpx mail list7 --limit 3 --json", func() *exec.Cmd { return s.command("face", "mail", "list7", "--limit", "3", "--json") }),
		program("hcpx exec mail mail.list7 --json -- limit=3", func() *exec.Cmd {
			return s.command("face", "exec", "mail", "mail.list7", "--json", "--", "limit=3")
		}),
	}, goals: map[string]string{"hcpx mail list7 --help": "< 30 ms, an absolute"}}, nil
}

// memory prints the peak memory of one cold exec.
func (s *setup) memory() error {
	cmd := s.command("one", "exec", "hello", "say", "--json")
	if err := cmd.Run(); err != nil {
		return err
	}
	kb, ok := peak(cmd.ProcessState)
	if !ok {
		return errors.New("this platform does not say how much memory a process used")
	}
	fmt.Printf("\npeak memory of a cold exec: %.1f MB (budget ≤ 25)\n", float64(kb)/1024)
	return nil
}
