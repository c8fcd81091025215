//go:build amd64 || arm64

package learn

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// program is what the test binary does when it is watched: one thing, named by its arguments.
func program(args []string) int {
	var err error
	switch args[0] {
	case "openat2":
		var dir, fd int
		if dir, err = unix.Open(args[1], unix.O_PATH|unix.O_DIRECTORY, 0); err == nil {
			fd, err = unix.Openat2(dir, args[2], &unix.OpenHow{Flags: unix.O_RDONLY})
			_ = unix.Close(fd)
		}
	case "opath":
		_, err = unix.Open(args[1], unix.O_PATH, 0)
	case "connect":
		var c net.Conn
		if c, err = net.Dial(args[1], args[2]); err == nil {
			err = c.Close()
		}
	case "listen":
		var l net.Listener
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err == nil {
			err = l.Close()
		}
	case "creat":
		var fd int
		if fd, err = unix.Creat(args[1], 0o644); err == nil {
			err = unix.Close(fd)
		}
	case "ask":
		err = askName(args[1])
	default:
		err = errors.New("unknown")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// askName asks a name server as the C library does: it waits for the answer, then receives it.
func askName(server string) error {
	to := netip.MustParseAddrPort(server)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}); err != nil {
		return err
	}
	if _, err := unix.Write(fd, []byte("question")); err != nil {
		return err
	}
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10000); n != 1 {
		return errors.Join(err, errors.New("no answer"))
	}
	_, _, err = unix.Recvfrom(fd, make([]byte, 512), 0)
	return err
}

// watched runs a program and fails when that can't be done.
func watched(t *testing.T, dir string, argv ...string) *Seen {
	t.Helper()
	return watchedNames(t, namePort, dir, argv...)
}

func watchedNames(t *testing.T, port uint16, dir string, argv ...string) *Seen {
	t.Helper()
	path, err := exec.LookPath(argv[0])
	if err != nil {
		t.Skipf("%s is not installed", argv[0])
	}
	var out strings.Builder
	seen, err := watch(t.Context(), Trial{Path: path, Argv: argv, Env: os.Environ(), Dir: dir, Out: &out}, port)
	if err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	if seen.Exit != 0 {
		t.Logf("exit %d: %s", seen.Exit, &out)
	}
	return seen
}

// itself runs this test binary as the program.
func itself(t *testing.T, port uint16, args ...string) *Seen {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	seen := watchedNames(t, port, t.TempDir(), append([]string{self, asProgram}, args...)...)
	if seen.Exit != 0 {
		t.Fatalf("%q failed", args)
	}
	return seen
}

func (s *Seen) file(path string) *File {
	for i := range s.Files {
		if s.Files[i].Path == path {
			return &s.Files[i]
		}
	}
	return nil
}

func put(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func realTemp(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// §10.2: files are told by what was done to them, wherever the path stands and however it is written.
func Test_10_2_LearnSeesFiles(t *testing.T) {
	dir := realTemp(t)
	in := func(name string) string { return filepath.Join(dir, name) }
	put(t, in("a"), "1\n")
	put(t, in("sub/b"), "2\n")
	put(t, in("old"), "3\n")
	if err := os.Symlink("a", in("link")); err != nil {
		t.Fatal(err)
	}
	seen := watched(t, dir, "sh", "-c", "cat a sub/../sub/b link; cat none; echo x >new; cat new; echo y >>old; mkdir made; mv old made/old; rm a; ls made; exit 3")
	if seen.Exit != 3 || seen.Signal != "" {
		t.Errorf("it ended with %d %s", seen.Exit, seen.Signal)
	}
	for name, want := range map[string]File{
		"a":        {Read: true, Write: true, Gone: true},
		"sub/b":    {Read: true},
		"new":      {Write: true, Made: true},
		"old":      {Write: true, Gone: true},
		"made":     {Write: true, Made: true, Bare: true},
		"made/old": {Write: true, Made: true},
	} {
		want.Path, want.Real = in(name), in(name)
		if f := seen.file(in(name)); f == nil || *f != want {
			t.Errorf("%s: %+v, want %+v", name, f, want)
		}
	}
	if f := seen.file(in("link")); f == nil || f.Real != in("a") || !f.Read || f.Write {
		t.Errorf("link: %+v", f)
	}
	if f := seen.file(in("none")); f != nil {
		t.Errorf("what is not there was read: %+v", f)
	}
}

// §10.2: a call that the kernel refuses changes nothing: what is made must not be there, what is removed must be, a
// directory must be empty, and the rights must be there.
func Test_10_2_LearnSeesNoRefusedWrite(t *testing.T) {
	dir := realTemp(t)
	in := func(name string) string { return filepath.Join(dir, name) }
	put(t, in("full/f"), "1\n")
	put(t, in("there"), "2\n")
	if err := os.Mkdir(in("hollow"), 0o755); err != nil {
		t.Fatal(err)
	}
	seen := watched(t, dir, "sh", "-c", `mkdir -p full full/new; rmdir full; ln -s x there; ln full/f there; set -C; echo >there
		rm -f none; mv none full; rmdir hollow; true`)
	for _, f := range seen.Files {
		switch f.Path {
		case in("full/new"), in("hollow"):
			if !f.Write || !f.Bare {
				t.Errorf("%+v", f)
			}
		default:
			if f.Write && within(f.Path, dir) {
				t.Errorf("nothing wrote %+v", f)
			}
		}
	}
	if seen.file(in("full/new")) == nil || seen.file(in("hollow")) == nil {
		t.Errorf("%+v", seen.Files)
	}
	seen = itself(t, namePort, "creat", in("there"))
	if f := seen.file(in("there")); f == nil || !f.Write || f.Made {
		t.Errorf("what is emptied is written: %+v", f)
	}
	seen = watched(t, dir, "sh", "-c", "mkdir d; echo x >d/f; mv d e; mv -f e/f there; ln there second")
	for name, bare := range map[string]bool{"d": false, "e": false, "there": false, "second": false} {
		if f := seen.file(in(name)); f == nil || !f.Write || f.Bare != bare {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// §10.2: what the rights refuse is no write either. Root is refused nothing here.
func Test_10_2_LearnSeesNoWriteWithoutRights(t *testing.T) {
	if os.Geteuid() == 0 {
		return
	}
	dir := realTemp(t)
	closed := put(t, filepath.Join(dir, "closed/f"), "1\n")
	if err := errors.Join(os.Chmod(closed, 0o444), os.Chmod(filepath.Dir(closed), 0o555)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Dir(closed), 0o755) })
	seen := watched(t, dir, "sh", "-c", "(echo >closed/f); (echo >closed/new); mkdir closed/d; rm -f closed/f; true")
	for _, f := range seen.Files {
		if f.Write && within(f.Path, filepath.Dir(closed)) {
			t.Errorf("nothing wrote %+v", f)
		}
	}
}

// §10.2: the forms of open.
func Test_10_2_LearnSeesEveryOpen(t *testing.T) {
	dir := realTemp(t)
	path := put(t, filepath.Join(dir, "d/f"), "x")
	seen := itself(t, namePort, "openat2", filepath.Join(dir, "d"), "f")
	if f := seen.file(path); f == nil || !f.Read {
		t.Errorf("openat2 beneath a descriptor: %+v", f)
	}
	seen = itself(t, namePort, "opath", path)
	if f := seen.file(path); f != nil {
		t.Errorf("a path that was opened for nothing: %+v", f)
	}
}

// §10.2: programs are told with the interpreters that the kernel starts for them.
func Test_10_2_LearnSeesPrograms(t *testing.T) {
	dir := realTemp(t)
	inner := put(t, filepath.Join(dir, "inner"), "#!/bin/sh\nexec true\n")
	outer := put(t, filepath.Join(dir, "outer"), "#!"+inner+"\n")
	seen := watched(t, dir, outer)
	var names []string
	for _, p := range seen.Programs {
		names = append(names, filepath.Base(p.Path))
	}
	want := []string{"outer", "inner", "sh", "true"}
	if !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if seen.Programs[0].Head != "#!"+inner || seen.Programs[2].Head != "" {
		t.Errorf("heads: %+v", seen.Programs)
	}
}

// §10.2: connections, with the sockets of this machine apart.
func Test_10_2_LearnSeesConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	seen := itself(t, namePort, "connect", "tcp", l.Addr().String())
	if len(seen.Reached) != 1 || seen.Reached[0].To.String() != l.Addr().String() || seen.Listens || len(seen.Datagrams) > 0 {
		t.Errorf("tcp: %+v", seen)
	}
	seen = itself(t, namePort, "connect", "udp", l.Addr().String())
	if len(seen.Reached) != 0 || len(seen.Datagrams) != 1 {
		t.Errorf("udp: %+v", seen)
	}
	path := filepath.Join(realTemp(t), "s")
	u, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	if seen = itself(t, namePort, "connect", "unix", path); !slices.Equal(seen.Sockets, []string{path}) || len(seen.Reached) > 0 {
		t.Errorf("unix: %+v", seen)
	}
	if seen = itself(t, namePort, "listen"); !seen.Listens {
		t.Errorf("listen: %+v", seen)
	}
}

// §10.2: what a name server answers is read without being taken.
func Test_10_2_LearnReadsNames(t *testing.T) {
	server, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		buf := make([]byte, 512)
		if _, from, err := server.ReadFrom(buf); err == nil {
			_, _ = server.WriteTo(message("db.example.org", netip.MustParseAddr("203.0.113.9")), from)
		}
	}()
	addr := netip.MustParseAddrPort(server.LocalAddr().String())
	seen := itself(t, addr.Port(), "ask", addr.String())
	if len(seen.Answers) != 1 || seen.Answers[0].Name != "db.example.org" || !slices.Equal(seen.Answers[0].At, []netip.Addr{netip.MustParseAddr("203.0.113.9")}) {
		t.Errorf("%+v", seen.Answers)
	}
	if len(seen.Datagrams) > 0 {
		t.Errorf("a name server counts as reached: %v", seen.Datagrams)
	}
}

// message is an answer with an alias before the addresses.
func message(name string, addrs ...netip.Addr) []byte {
	msg := []byte{0, 1, 0x81, 0x80, 0, 1, 0, byte(1 + len(addrs)), 0, 0, 0, 0}
	for _, label := range strings.Split(name, ".") {
		msg = append(append(msg, byte(len(label))), label...)
	}
	msg = append(msg, 0, 0, 1, 0, 1)
	msg = append(msg, 0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 60, 0, 2, 0xc0, 12)
	for _, a := range addrs {
		kind := byte(1)
		if a.Is6() {
			kind = 28
		}
		msg = append(msg, 0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 60)
		msg = append(binary.BigEndian.AppendUint16(msg, uint16(len(a.AsSlice()))), a.AsSlice()...)
	}
	return msg
}

// §10.2: what is left running at the end is ended, whatever session it fled to, and counted.
func Test_10_2_LearnLeavesNothingRunning(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("setsid is not installed")
	}
	dir := realTemp(t)
	seen := watched(t, dir, "sh", "-c", "setsid sh -c 'echo $$ >pid; exec sleep 1000' </dev/null >/dev/null 2>&1 & while ! test -s pid; do :; done")
	pid, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/" + strings.TrimSpace(string(pid))); err == nil || seen.Left != 1 {
		t.Errorf("%d were left, and %s is there: %v", seen.Left, pid, err)
	}
}

// §6.9: a cancelled run is ended with all that it started.
func Test_6_9_LearnIsCancelled(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("sh is not installed")
	}
	_, err = Watch(ctx, Trial{Path: sh, Argv: []string{"sh", "-c", "trap '' TERM; sleep 1000; sleep 1000"}, Env: os.Environ(), Dir: t.TempDir()})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// §10.2: by number nobody but a member is killed: the number may have become another process's.
func Test_10_2_LearnKillsMembersAlone(t *testing.T) {
	if _, err := exec.LookPath("sleep"); err != nil {
		t.Skip("sleep is not installed")
	}
	begin := func() *exec.Cmd {
		c := exec.Command("sleep", "1000")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		return c
	}
	stranger, member := begin(), begin()
	tr := &tree{before: map[int]bool{}}
	for pid, parent := range parents() {
		if parent == os.Getpid() && pid != member.Process.Pid {
			tr.before[pid] = true
		}
	}
	tr.kill([]int{stranger.Process.Pid, member.Process.Pid})
	for range 1000 {
		if unix.Kill(member.Process.Pid, 0) != nil {
			break
		}
		tr.kill([]int{stranger.Process.Pid, member.Process.Pid})
		time.Sleep(time.Millisecond)
	}
	if unix.Kill(member.Process.Pid, 0) == nil {
		t.Error("the member lives")
	}
	if unix.Kill(stranger.Process.Pid, 0) != nil {
		t.Error("the stranger was killed")
	}
}
