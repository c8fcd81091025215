package redteamtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Scene is a machine in small. A run may write Land, read Readable and execute Programs; everything else of it is
// outside.
type Scene struct {
	Root, Self               string // where it lies, and the attacker's program
	Land, Readable, Outside  string
	File, Lent, Secret       string // in each of the three
	Existing                 string // in the land: another name of a file outside, which was there before
	Programs                 []string
	Foreign32, Foreign64     string   // of the programs: they use the 32-bit door on Secret
	Setuid                   string   // of the programs: the attacker's, with root's setuid bit; "" = nobody could make it
	Sock, Datagram, Abstract string   // sockets of somebody outside; Sock hands out a descriptor of Secret
	Near, Own                string   // sockets that lie in Readable and in Land
	TCP, UDP                 string   // ports on loopback
	Inherited                []string // descriptors of this process that a child would get: a file, its directory, a socket
	High                     string   // one more, of a high number
	Terminal                 string   // one that belongs to no session
	Victim                   string   // a process of the same user
	Address                  string   // of 8 bytes in it
	Host, Parent             string   // this process, which is the runtime, and what started it
	Highest                  string   // process number
	Other                    string   // a process of another run of the same runtime; "" = runs wait for each other
	fresh                    int
}

// memory is read by an attacker's control; it lies at the same place in every process of this program.
var memory [8]byte

// New builds a scene below a directory, which the caller removes.
func New(t testing.TB, root string) *Scene {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	s := &Scene{Root: root, Self: self, Land: root + "/land", Readable: root + "/readable", Outside: root + "/outside",
		Setuid: os.Getenv(setuidVar), Host: strconv.Itoa(os.Getpid()), Parent: strconv.Itoa(os.Getppid()),
		Address: fmt.Sprintf("%x", uintptr(unsafe.Pointer(&memory[0])))}
	for _, dir := range []string{s.Land, s.Readable, s.Outside} {
		must(t, os.Mkdir(dir, 0o755))
	}
	s.File, s.Lent, s.Secret, s.Existing = s.Land+"/file", s.Readable+"/lent", s.Outside+"/secret", s.Land+"/existing"
	s.Foreign32, s.Foreign64 = s.Outside+"/foreign32", s.Outside+"/foreign64"
	s.Programs = []string{s.Outside + "/listed", s.Foreign32, s.Foreign64}
	if s.Setuid != "" {
		s.Programs = append(s.Programs, s.Setuid)
	}
	number, err := os.ReadFile("/proc/sys/kernel/pid_max")
	must(t, err)
	s.Highest = strings.TrimSpace(string(number))
	s.Reset(t)
	s.sockets(t)
	s.inherited(t)
	s.people(t)
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Reset makes the files as they were, so that a control and its attack meet the same.
func (s *Scene) Reset(t testing.TB) {
	t.Helper()
	entries, err := os.ReadDir(s.Land)
	must(t, err)
	for _, e := range entries {
		if at := s.Land + "/" + e.Name(); at != s.Own {
			must(t, os.RemoveAll(at))
		}
	}
	made, err := filepath.Glob(s.Root + "/*/new*")
	must(t, err)
	for _, at := range append(made, s.File, s.Lent, s.Secret) {
		must(t, os.RemoveAll(at))
	}
	text := []byte(strings.Repeat("content\n", 600)) // more than a page
	for _, at := range []string{s.File, s.Lent, s.Secret} {
		must(t, os.WriteFile(at, text, 0o644))
	}
	must(t, os.Link(s.Secret, s.Existing))
	for _, fd := range append(s.Inherited, s.High) { // a run marks them all to be closed
		if fd != "" {
			_, err := unix.FcntlInt(uintptr(pid(fd)), unix.F_SETFD, 0)
			must(t, err)
		}
	}
	must(t, os.WriteFile(s.Land+"/shadow", []byte("#!/bin/sh\n"), 0o755))
	for at, code := range map[string][]byte{s.Programs[0]: []byte("#!/bin/sh\n"), s.Foreign32: Foreign(32, s.Secret), s.Foreign64: Foreign(64, s.Secret)} {
		if have, err := os.ReadFile(at); err != nil || string(have) != string(code) {
			must(t, os.WriteFile(at, code, 0o755))
		}
	}
}

// Fresh is a name in a directory that nothing has yet; Reset removes what was made there.
func (s *Scene) Fresh(dir string) string { s.fresh++; return fmt.Sprintf("%s/new%d", dir, s.fresh) }

// sockets are what somebody outside listens on.
func (s *Scene) sockets(t testing.TB) {
	short, err := os.MkdirTemp("", "s") // a socket's path must be short
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	s.Sock, s.Datagram, s.Abstract = short+"/stream", short+"/dgram", "@"+short
	s.Near, s.Own = s.Readable+"/sock", s.Land+"/sock"
	for _, name := range []string{s.Sock, s.Near, s.Own, s.Abstract} {
		l, err := listenUnix(name)
		must(t, err)
		t.Cleanup(func() { _ = l.Close() })
		go s.handOut(l)
	}
	d, err := net.ListenPacket("unixgram", s.Datagram)
	must(t, err)
	tcp, err := net.Listen("tcp", ":0")
	must(t, err)
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = errors.Join(d.Close(), tcp.Close(), udp.Close()) })
	go func() {
		for c, err := tcp.Accept(); err == nil; c, err = tcp.Accept() {
			_ = c.Close()
		}
	}()
	go func() {
		buffer := make([]byte, 64)
		for n, from, err := udp.ReadFrom(buffer); err == nil; n, from, err = udp.ReadFrom(buffer) {
			_, _ = udp.WriteTo(buffer[:n], from)
		}
	}()
	_, s.TCP, _ = net.SplitHostPort(tcp.Addr().String())
	_, s.UDP, _ = net.SplitHostPort(udp.LocalAddr().String())
}

// listenUnix listens at a path of any length: it is named from its directory.
func listenUnix(name string) (net.Listener, error) {
	if len(name) < 100 {
		return net.Listen("unix", name)
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(name)))
	return l, errors.Join(err, dir.Close())
}

// handOut gives a descriptor of the secret to whoever connects.
func (s *Scene) handOut(l net.Listener) {
	for c, err := l.Accept(); err == nil; c, err = l.Accept() {
		if f, err := os.Open(s.Secret); err == nil {
			_, _, _ = c.(*net.UnixConn).WriteMsgUnix([]byte("x"), unix.UnixRights(int(f.Fd())), nil)
			_ = f.Close()
		}
		_ = c.Close()
	}
}

// inherited leaves descriptors open that a child gets when nobody closes them.
func (s *Scene) inherited(t testing.TB) {
	file, err := unix.Open(s.Secret, unix.O_RDWR|unix.O_CLOEXEC, 0)
	must(t, err)
	dir, err := unix.Open(s.Outside, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	must(t, err)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	var limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	high := int(min(limit.Cur, 5000)) - 1
	for number, fd := range map[int]int{77: file, 78: dir, 79: pair[0], high: file} {
		must(t, unix.Dup3(fd, number, 0))
		t.Cleanup(func() { _ = unix.Close(number) })
	}
	for _, fd := range append(pair[:0:0], file, dir, pair[0]) {
		must(t, unix.Close(fd))
	}
	t.Cleanup(func() { _ = unix.Close(pair[1]) })
	s.Inherited, s.High = []string{"77", "78", "79"}, strconv.Itoa(high)
	master, slave, err := terminal()
	must(t, err)
	t.Cleanup(func() { _ = errors.Join(master.Close(), slave.Close()) })
	s.Terminal = slave.Name()
}

// terminal makes a new pair; nothing is its controlling terminal yet.
func terminal() (master, slave *os.File, err error) {
	if master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, master.Close())
	}
	return master, slave, nil
}

// people are processes that might be hurt.
func (s *Scene) people(t testing.TB) {
	c := exec.Command(s.Self, Arg, "victim")
	c.Env = append(os.Environ(), "VICTIM=1")
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	_, err = io.ReadFull(out, make([]byte, len(ready)))
	must(t, err)
	s.Victim = strconv.Itoa(c.Process.Pid)
}

const ready = "ready\n"

// victim waits to be hurt.
func victim([]string) error {
	fmt.Print(ready)
	time.Sleep(time.Hour)
	return nil
}

// Control runs an attack without a sandbox, as this user, in the land; the reason is what it says.
func (s *Scene) Control(t testing.TB, attack string, args ...string) (reason string, worked bool) {
	t.Helper()
	said, err := os.CreateTemp(s.Root, "said")
	must(t, err)
	defer os.Remove(said.Name())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, s.Self, append([]string{Arg, attack}, args...)...)
	c.Dir, c.Stderr = s.Land, said // no pipe: what an attack leaves behind must not hold the test up
	c.Env = append(os.Environ(), "PATH="+s.Land, "HOME="+s.Outside, "TMPDIR="+s.Outside)
	err = c.Run()
	text, fault := os.ReadFile(said.Name())
	must(t, errors.Join(fault, said.Close()))
	reason = strings.TrimSpace(string(text))
	if reason == "" && err != nil {
		reason = err.Error()
	}
	return reason, err == nil
}
