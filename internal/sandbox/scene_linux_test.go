package sandbox_test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hcpx/internal/sandbox"
	"hcpx/internal/sandbox/sandboxtest"
)

// scene is a machine in small: a jail, something readable, something outside, and a victim process.
type scene struct {
	t                        *testing.T
	sandbox                  sandbox.Sandbox
	self                     string
	land, readable, outside  string
	file, lent, secret, sock string // in land, readable and outside
	n                        int
}

func newScene(t *testing.T) *scene {
	t.Helper()
	root := t.TempDir()
	s := &scene{t: t, land: root + "/land", readable: root + "/readable", outside: root + "/outside"}
	s.sandbox = confining(t, sandbox.Options{Scratch: root + "/scratch"})
	for _, dir := range []string{s.land, s.readable, s.outside} {
		must(t, os.Mkdir(dir, 0o755))
	}
	must(t, os.Mkdir(root+"/scratch", 0o700))
	s.file, s.lent, s.secret = s.land+"/file", s.readable+"/lent", s.outside+"/secret"
	s.reset()
	var err error
	s.self, err = os.Executable()
	must(t, err)
	s.sock = filepath.Join(short(t), "s")
	listener, err := net.Listen("unix", s.sock)
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	abstract, err := net.Listen("unix", "@"+root)
	must(t, err)
	t.Cleanup(func() { _ = abstract.Close() })
	return s
}

// short is a directory whose path fits into a socket address.
func short(t *testing.T) string {
	dir, err := os.MkdirTemp("", "hcpx")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// reset makes the files as they were, so that control and attack meet the same.
func (s *scene) reset() {
	for _, at := range []string{s.file, s.lent, s.secret} {
		_ = os.Remove(at)
		must(s.t, os.WriteFile(at, []byte("content"), 0o644))
	}
}

func (s *scene) spec(attack string, args ...string) *sandbox.Spec {
	return &sandbox.Spec{
		Program: sandbox.Program{Name: "attacker", Path: s.self},
		Args:    append([]string{attackArg, attack}, args...),
		Read:    []string{s.readable}, Write: []string{s.land}, Dir: s.land,
		Network: sandbox.Network{Mode: "none"}, Limits: sandbox.Limits{Wall: time.Minute, Grace: 100 * time.Millisecond},
	}
}

// control does the same without a sandbox.
func (s *scene) control(attack string, args ...string) (string, bool) {
	c := exec.Command(s.self, append([]string{attackArg, attack}, args...)...)
	c.Dir, c.Env = s.land, append(os.Environ(), "PATH="+s.outside, "HOME="+s.outside)
	var text bytes.Buffer
	c.Stderr = &text
	err := c.Run()
	return strings.TrimSpace(text.String()), err == nil
}

// §10.2: inside the jail metadata changes work, by every call.
func Test_10_2_metadata_inside_works(t *testing.T) {
	s := newScene(t)
	for _, attack := range []string{"chmod", "chmod-at", "chmod2", "fchmod", "proc-chmod", "chown", "utime", "xattr"} {
		t.Run(attack, func(t *testing.T) {
			s.reset()
			if why, worked := s.control(attack, s.file); !worked {
				t.Logf("void: it does not work outside either: %s", why) // a file system without attributes
				if attack != "xattr" {
					t.Fail()
				}
				return
			}
			s.reset()
			if o := sandboxtest.Exec(t, s.sandbox, s.spec(attack, s.file)); o.Exit != 0 {
				t.Errorf("%s", o.Stderr)
			}
			if attack == "xattr" || attack == "chown" {
				return
			}
			info, err := os.Stat(s.file)
			must(t, err)
			if attack == "utime" && info.ModTime().Unix() != 1 || attack != "utime" && info.Mode().Perm() != 0o640 {
				t.Errorf("%v %v", info.Mode(), info.ModTime())
			}
		})
	}
	t.Run("relative", func(t *testing.T) {
		s.reset()
		if o := sandboxtest.Exec(t, s.sandbox, s.spec("chmod", "../land/file")); o.Exit != 0 {
			t.Errorf("%s", o.Stderr)
		}
	})
	if postureOf(t).spacious() {
		return // there the kernel refuses, and tells nobody else
	}
	t.Run("an attribute of HOME would outlive the run", func(t *testing.T) {
		if o := sandboxtest.Exec(t, s.sandbox, s.spec("xattr-home")); o.Exit != 1 {
			t.Errorf("exit %d", o.Exit)
		}
	})
	t.Run("a refusal is reported", func(t *testing.T) {
		if o := sandboxtest.Exec(t, s.sandbox, s.spec("chmod", s.secret)); len(o.Denied) != 1 || !strings.Contains(o.Denied[0], s.secret) {
			t.Errorf("denied: %v", o.Denied)
		}
	})
}

// §6.9, RT25, RT26: a fork bomb whose processes ignore SIGTERM, leave the session and hold the output.
func Test_6_9_fork_bomb_leaves_no_survivor(t *testing.T) {
	s := newScene(t)
	spec := s.spec("bomb", "120")
	spec.Limits.Wall, spec.Limits.Grace = 2*time.Second, 200*time.Millisecond
	begin := time.Now()
	o := sandboxtest.Exec(t, s.sandbox, spec)
	if !o.TimedOut || time.Since(begin) > spec.Limits.Wall+3*time.Second {
		t.Errorf("%+v", o)
	}
	if left := processes(t, attackArg, "bomb"); len(left) > 0 {
		t.Errorf("survivors: %v", left)
	}
}

// foreign says that a process is one of another test binary, which may run beside this one. Who may not see its program
// goes by the name that it was called with.
func foreign(dir string) bool {
	self, err := os.Executable()
	if err != nil {
		return false
	}
	exe, err := os.Readlink(dir + "/exe")
	if err != nil {
		line, _ := os.ReadFile(dir + "/cmdline") // of one that is gone there is none
		called, _, _ := strings.Cut(string(line), "\x00")
		if exe = called; !filepath.IsAbs(exe) {
			return false
		}
	}
	exe = strings.TrimSuffix(exe, " (deleted)")
	return exe != self && (strings.HasSuffix(exe, ".test") || filepath.Base(exe) == "attacker")
}

// processes are those whose arguments begin with the words; one whose first thread has ended is asked by another.
func processes(t *testing.T, words ...string) []string {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	var found []string
	for _, file := range dirs {
		line, err := os.ReadFile(file)
		if err == nil && len(line) == 0 {
			others, _ := filepath.Glob(filepath.Dir(file) + "/task/[0-9]*/cmdline") // the pattern is sound
			for _, other := range others {
				if line, err = os.ReadFile(other); len(line) > 0 {
					break
				}
			}
		}
		args := strings.Split(string(line), "\x00")
		if err == nil && len(args) > len(words) && slices.Equal(args[1:len(words)+1], words) && !foreign(filepath.Dir(file)) {
			found = append(found, file)
		}
	}
	return found
}
