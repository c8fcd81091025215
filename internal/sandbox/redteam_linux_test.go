package sandbox_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

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
	victim                   string // pid
	address                  string // of 8 bytes in this process
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
	victim := exec.Command(s.self, sandboxtest.HelperArg, "sleep")
	must(t, victim.Start())
	t.Cleanup(func() { _ = victim.Process.Kill(); _ = victim.Wait() })
	s.victim = strconv.Itoa(victim.Process.Pid)
	s.address = fmt.Sprintf("%x", uintptr(unsafe.Pointer(&memory[0])))
	return s
}

// memory is read by the attacker's control.
var memory [8]byte

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

// attempt is one row of the red team's table.
type attempt struct {
	name, attack string
	args         []string
	want         string   // part of the reason, "" = any
	lack         string   // what the control may say where this machine or user cannot do it anyway, "" = it must work
	control      []string // what the control is given instead of args, nil = the same
}

// lacks says whether a control failed for a reason that the row allows.
func (a attempt) lacks(why string) bool {
	return a.lack != "" && slices.ContainsFunc(strings.Split(a.lack, "|"), func(part string) bool { return strings.Contains(why, part) })
}

// unprivileged is the reason of a control that only root can pass.
func (s *scene) unprivileged(why string) string {
	if os.Getuid() == 0 {
		return ""
	}
	return why
}

// What the kernel answers to an attack.
const (
	denied  = "permission denied"
	refused = "operation not permitted"
	absent  = "function not implemented"
)

// onFiles are the attacks on files, programs and metadata.
func (s *scene) onFiles() []attempt {
	fresh := func(dir string) string { s.n++; return fmt.Sprintf("%s/new%d", dir, s.n) }
	return []attempt{
		{"read outside", "read", []string{s.secret}, denied, "", nil},
		{"read relative to an outside directory", "chdir-read", []string{s.secret}, denied, "", nil},
		{"RT12 read through a link in the jail", "through", []string{s.secret, fresh(s.land)}, denied, "", nil},
		{"list outside", "list", []string{s.outside}, denied, "", nil},
		{"list home", "list", []string{"/home"}, denied, "", nil},
		{"list the private directories", "list", []string{filepath.Dir(s.land) + "/scratch"}, denied, "", nil},
		{"write outside", "write", []string{s.outside + "/created"}, denied, "", nil},
		{"write a readable file", "append", []string{s.lent}, denied, "", nil},
		{"truncate outside", "truncate", []string{s.secret}, denied, "", nil},
		{"truncate a readable file", "truncate", []string{s.lent}, denied, "", nil},
		{"truncate by opening", "otrunc", []string{s.lent}, denied, "", nil},
		{"make a directory outside", "mkdir", []string{fresh(s.outside)}, denied, "", nil},
		{"remove outside", "remove", []string{s.secret}, denied, "", nil},
		{"rename out of the jail", "rename", []string{s.file, fresh(s.outside)}, "", "", nil},
		{"rename a readable file into the jail", "rename", []string{s.lent, fresh(s.land)}, "", "", nil},
		{"RT13 hard link into the jail", "hardlink", []string{s.secret, fresh(s.land)}, "", "", nil},
		{"execute an unlisted program", "exec", []string{"/bin/true"}, denied, "", nil},
		{"RT20 execute by the loader", "exec", []string{loader(), "/bin/true"}, "", "", nil},
		{"RT21 execute from memory", "memfd", []string{s.self}, denied, "", nil},
		{"RT16 chmod outside", "chmod", []string{s.secret}, refused, "", nil},
		{"RT16 chmod of a readable file", "chmod", []string{s.lent}, refused, "", nil},
		{"RT16 chmod at an outside directory", "chmod-at", []string{s.secret}, refused, "", nil},
		{"RT16 fchmodat2 outside", "chmod2", []string{s.secret}, refused, "", nil},
		{"RT16 fchmod of a readable file", "fchmod", []string{s.lent}, refused, "", nil},
		{"RT16 chmod by a descriptor's path", "proc-chmod", []string{s.secret}, refused, "", nil},
		{"RT16 chmod through a link in the jail", "link-chmod", []string{s.secret, fresh(s.land)}, refused, "", nil},
		{"RT16 chown outside", "chown", []string{s.secret}, refused, "", nil},
		{"RT16 utime outside", "utime", []string{s.secret}, refused, "", nil},
		{"RT16 xattr outside", "xattr", []string{s.secret}, refused, "not supported", nil},
		{"file attributes of a readable file", "immutable", []string{s.lent}, refused, "inappropriate ioctl|not supported", nil},
		{"RT24 setuid bit in the jail", "setuid", []string{s.file}, refused, "", nil},
		{"RT24 setuid bit at creation", "creat", []string{fresh(s.land)}, refused, "", nil},
	}
}

// onOthers are the attacks on the network, on other processes and on the kernel.
func (s *scene) onOthers() []attempt {
	host := strconv.Itoa(os.Getpid())
	number, err := os.ReadFile("/proc/sys/kernel/pid_max")
	must(s.t, err)
	highest := []string{strings.TrimSpace(string(number))}
	return []attempt{
		{"internet socket", "inet", nil, denied, "", nil},
		{"RT32 datagram socket", "udp", nil, denied, "not supported", nil},
		{"netlink socket", "netlink", nil, denied, "not supported", nil},
		{"RT03 named unix socket", "unix", []string{s.sock}, denied, "", nil},
		{"RT05 abstract unix socket", "unix", []string{"@" + filepath.Dir(s.land)}, denied, "", nil},
		{"RT06 datagram pair", "dgram-pair", nil, denied, "", nil},
		{"RT22 signal to another process", "signal", []string{s.victim}, refused, "", nil},
		{"RT22 signal to the runtime", "signal", []string{host}, refused, "", nil},
		{"RT22 signal by pidfd", "pidfd-signal", []string{s.victim}, refused, "", nil},
		{"RT22 signal to the thread that started it", "launcher", highest, "", "", nil},
		{"RT22 signal to that thread alone", "launcher-thread", highest, "", "", nil},
		{"RT22 handle of that thread", "launcher-pidfd", highest, "", "", nil},
		{"RT09 descriptors of the runtime by that thread", "launcher-files", highest, "", "", nil},
		{"RT09 directories of the runtime by that thread", "launcher-links", highest, "", "", nil},
		{"RT22 owner of a descriptor's signals", "async-owner", []string{s.victim}, refused, "", nil},
		{"scheduling of another process", "schedule", []string{s.victim}, refused, "", nil},
		{"a child of the runtime", "clone-parent", nil, refused, "", nil},
		{"RT23 ptrace", "ptrace", []string{s.victim}, refused, "not permitted", nil},
		{"RT23 read memory", "vmread", []string{host, s.address}, refused, "not permitted", []string{s.victim, s.address}},
		{"RT23 take a descriptor", "getfd", []string{s.victim}, refused, "not permitted", nil},
		{"RT09 environment of the runtime", "read", []string{"/proc/" + host + "/environ"}, denied, "", []string{"/proc/" + s.victim + "/environ"}},
		{"RT09 environment of another process", "read", []string{"/proc/" + s.victim + "/environ"}, denied, "", nil},
		{"command lines of others", "read", []string{"/proc/" + s.victim + "/cmdline"}, denied, "", nil},
		{"limits of the runtime", "prlimit", []string{host}, refused, "", nil},
		{"priority of another process", "renice", []string{s.victim}, refused, "", nil},
		{"System V shared memory", "shm", nil, absent, "not implemented", nil},
		{"message queue", "mqueue", nil, absent, "not implemented", nil},
		{"RT17 io_uring", "io_uring", nil, absent, "not implemented|not permitted", nil},
		{"keyring", "keyring", nil, refused, "not implemented|not permitted", nil},
		{"RT19 user namespace", "userns", nil, refused, "not permitted|no space|not implemented|invalid", nil},
		{"RT19 unshare", "unshare", nil, refused, "", nil},
		{"RT19 clone3", "clone3", nil, absent, "not implemented", nil},
		{"RT01 terminal injection", "tiocsti", nil, refused, "", nil},
		{"capabilities", "regain", nil, "no capability", s.unprivileged("no capability"), nil},
		{"core dump", "core", nil, "no core dump", "", nil},
		{"RT29 add a program to PATH", "hijack", nil, denied, "", nil},
	}
}

// §10.2: each attack works outside (the control) and fails inside.
func Test_10_2_red_team(t *testing.T) {
	s := newScene(t)
	for _, a := range append(s.onFiles(), s.onOthers()...) {
		t.Run(a.name, func(t *testing.T) {
			s.reset()
			given := a.args
			if a.control != nil {
				given = a.control
			}
			if why, worked := s.control(a.attack, given...); !worked && !a.lacks(why) {
				t.Fatalf("void: the attack fails outside too: %s", why)
			}
			s.reset()
			removeNew(t, a.args)
			o := sandboxtest.Exec(t, s.sandbox, s.spec(a.attack, a.args...))
			reason := strings.TrimSpace(string(o.Stderr))
			if o.Exit != 1 || !strings.Contains(reason, a.want) {
				t.Errorf("exit %d %s, reason %q, want %q", o.Exit, o.Signal, reason, a.want)
			}
		})
	}
}

// removeNew undoes what a control made.
func removeNew(t *testing.T, args []string) {
	for _, at := range args {
		if strings.Contains(filepath.Base(at), "new") || filepath.Base(at) == "created" {
			must(t, os.RemoveAll(at))
		}
	}
}

// loader is the ELF loader of this machine, which the jail lets run.
func loader() string {
	for _, at := range []string{"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-aarch64.so.1"} {
		if _, err := os.Stat(at); err == nil {
			return at
		}
	}
	return "/nonexistent"
}

// RT11: a descriptor that the runtime holds open, not marked close-on-exec, does not arrive.
func Test_10_2_descriptors_above_2_closed(t *testing.T) {
	s := newScene(t)
	f, err := os.Open(s.secret)
	must(t, err)
	defer f.Close()
	const number = 77
	must(t, unix.Dup3(int(f.Fd()), number, 0))
	defer unix.Close(number)
	if o := sandboxtest.Exec(t, s.sandbox, s.spec("open-fd", strconv.Itoa(number))); o.Exit != 1 {
		t.Errorf("descriptor %d arrived: %+v", number, o)
	}
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

// processes are those whose arguments begin with the words.
func processes(t *testing.T, words ...string) []string {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	var found []string
	for _, file := range dirs {
		line, err := os.ReadFile(file)
		args := strings.Split(string(line), "\x00")
		if err == nil && len(args) > len(words) && slices.Equal(args[1:len(words)+1], words) {
			found = append(found, file)
		}
	}
	return found
}
