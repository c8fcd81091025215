package main

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// namesInside says that this test runs in a network of its own.
const namesInside = "HCPX_TEST_NAMES"

// §10.2: hosts are learned by the names that a program asked for, and the names are enough inside. The network and the
// name server are this test's own.
func Test_10_2_LearnsHostsByName(t *testing.T) {
	if os.Getenv(namesInside) != "" {
		learnNames(t)
		return
	}
	c := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	c.Env = append(os.Environ(), namesInside+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := c.CombinedOutput()
	if err != nil && c.Process == nil {
		t.Skipf("this machine gives no namespaces: %v", err)
	}
	if err != nil || strings.Contains(string(out), "--- SKIP") {
		t.Errorf("%v\n%s", err, out)
	}
}

func learnNames(t *testing.T) {
	serveNames(t)
	web := serveAt(t, "127.0.0.9:8000")
	defer web()
	self := copyOf(t, "/proc/self/exe")
	for _, test := range []struct {
		argv  []string
		hosts []string
		want  string
	}{
		{[]string{"curl", "-fsS", "http://web.example.test:8000/hello"}, []string{"127.0.0.9:8000", "web.example.test:8000"}, "hello"},
		{[]string{"curl", "-fsS", "http://alias.example.test:8000/hello"}, []string{"127.0.0.9:8000", "alias.example.test:8000"}, "hello"},
		{[]string{"git", "ls-remote", "-q", "--heads", "http://git.example.test:8000/git/smart.git", "none"}, []string{"127.0.0.9:8000", "git.example.test:8000"}, ""},
		{[]string{filepath.Join(postgresDir(), "psql"), "-X", "-h", "db.example.test", "-c", "select 1"}, []string{"127.0.0.9:5432", "db.example.test:5432"}, ""},
	} {
		t.Run(filepath.Base(test.argv[0])+" "+test.hosts[1], func(t *testing.T) {
			if lookIn(test.argv[0]) == "" {
				t.Skipf("%s is not installed", test.argv[0])
			}
			w := newWorld(t, self, os.Geteuid(), nil)
			w.lay(filepath.Join(w.dir, "work"), map[string]string{"x": "x"})
			got := w.lesson(test.argv)
			var wrap struct{ Network struct{ Hosts []string } }
			if err := json.Unmarshal(got.Wrap, &wrap); err != nil || !slices.Equal(wrap.Network.Hosts, test.hosts) {
				t.Fatalf("%v: %s", err, got.Wrap)
			}
			if strings.HasSuffix(test.argv[0], "psql") || !ownsPrograms(t) {
				return // it finds no database there; in a namespace of a plain user nobody's programs may be allowed
			}
			w.wrap(got, test.argv)
			if result := w.exec("learned", "run"); result != test.want {
				t.Errorf("it answered %q, want %q", result, test.want)
			}
		})
	}
}

// ownsPrograms says whether the programs of the system belong to this user or to root, as seen from here.
func ownsPrograms(t *testing.T) bool {
	t.Helper()
	info, err := os.Stat("/usr/bin")
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Uid == uint32(os.Geteuid())
}

// serveNames gives this network a name server, and this mount namespace the files that lead to it.
func serveNames(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	up, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	up.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, up); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	dir := openDir(t)
	for name, text := range map[string]string{"resolv.conf": "nameserver 127.0.0.1\n", "hosts": "127.0.0.1 localhost\n", "nsswitch.conf": "hosts: files dns\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount(filepath.Join(dir, name), "/etc/"+name, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
	}
	server, err := net.ListenPacket("udp4", "127.0.0.1:53")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	go func() {
		buf := make([]byte, 512)
		for {
			n, from, err := server.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(nameAnswer(buf[:n]), from)
		}
	}()
}

// nameAnswer gives every name below example.test one address, by an alias.
func nameAnswer(query []byte) []byte {
	end := 12
	for end < len(query) && query[end] != 0 {
		end += 1 + int(query[end])
	}
	if end+5 > len(query) {
		return nil
	}
	question, kind := query[12:end+5], query[end+2]
	known := strings.HasSuffix(string(query[12:end]), "\x07example\x04test")
	out := append([]byte{query[0], query[1], 0x81, 0x83, 0, 1, 0, 0, 0, 0, 0, 0}, question...)
	if known {
		out[3] = 0x80
	}
	if known && kind == 1 {
		out[7] = 2
		alias := []byte{0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 60, 0, 4, 1, 'x', 0xc0, 12}
		at := len(out) + 12
		out = append(out, alias...)
		out = append(out, 0xc0|byte(at>>8), byte(at), 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 9)
	}
	return out
}

// serveAt serves the pages of webServer at an address.
func serveAt(t *testing.T, addr string) func() {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: pages(t)}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	return func() { _ = s.Close(); <-done }
}
