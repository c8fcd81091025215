package sandbox_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"hcpx/internal/sandbox"
	"hcpx/internal/sandbox/redteamtest"
	"hcpx/internal/sandbox/sandboxtest"
)

// full connects to a server that reads nothing, asks for a close that waits for hours, and fills the connection.
func full(at string) (int, error) {
	family, raw := sockaddr(at, true)
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1, Linger: 100000}); err != nil {
		return -1, err
	}
	if err := connectRaw(fd, raw, len(raw)); err != nil {
		return -1, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return -1, err
	}
	for buf := make([]byte, 64<<10); ; {
		if _, err := unix.Write(fd, buf); err != nil {
			if errors.Is(err, unix.EAGAIN) {
				return fd, nil
			}
			return -1, err
		}
	}
}

// linger ends while the runtime holds copies of a socket whose last close would wait.
func linger(a []string) error {
	fd, err := full(a[0])
	if err != nil {
		return err
	}
	for range 4 {
		go func() {
			runtime.LockOSThread()
			for {
				_, _ = unix.Getpeername(fd)
			}
		}()
	}
	time.Sleep(50 * time.Millisecond)
	syscall.Exit(0)
	return nil
}

// lingerOptions is what is left of SO_LINGER: the reset, and no wait.
func lingerOptions(a []string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	for _, c := range [][2]unix.Linger{{{Onoff: 1}, {Onoff: 1}}, {{Onoff: 1, Linger: 5}, {}}, {{Onoff: 1}, {Onoff: 1}}, {{Onoff: 1, Linger: -1}, {}}, {{Onoff: 7}, {Onoff: 1}}, {{Linger: 3}, {}}} {
		if err := unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &c[0]); err != nil {
			return err
		}
		on, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_LINGER)
		if err != nil || on != int(c[1].Onoff) {
			return fmt.Errorf("%+v is %d, want %+v (%v)", c[0], on, c[1], err)
		}
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_LINGER, 1); !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("half an option: %v", err)
	}
	return stream(unix.SOCK_STREAM, a[0], true)
}

// handleOfPeer asks who is at the other end of what stands for a UDP socket.
func handleOfPeer([]string) error {
	const passPidfd, peerPidfd = 76, 77
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	if _, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		return nil // no option can be asked for: the test would prove nothing
	}
	if _, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, peerPidfd); !errors.Is(err, unix.EPERM) {
		return nil
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, passPidfd, 1); !errors.Is(err, unix.EPERM) {
		return nil
	}
	return unix.EPERM
}

// manyConnects waits for many connections at once.
func manyConnects(a []string) error {
	n, err := strconv.Atoi(a[1])
	if err != nil {
		return err
	}
	family, raw := sockaddr(a[0], true)
	for range n {
		go func() {
			runtime.LockOSThread()
			if fd, err := unix.Socket(family, unix.SOCK_STREAM, 0); err == nil {
				_ = connectRaw(fd, raw, len(raw))
			}
		}()
	}
	time.Sleep(time.Hour)
	return nil
}

// deaf is a server that accepts nothing, with a full queue: who connects waits.
func deaf(t *testing.T) string {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	must(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	must(t, unix.Listen(fd, 0))
	name, err := unix.Getsockname(fd)
	must(t, err)
	port := name.(*unix.SockaddrInet4).Port
	for range 4 {
		c, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		must(t, err)
		t.Cleanup(func() { _ = unix.Close(c) })
		if err := unix.Connect(c, name); err != nil && !errors.Is(err, unix.EINPROGRESS) {
			t.Fatal(err)
		}
	}
	return "127.0.0.1:" + strconv.Itoa(port)
}

// ownThreads are the threads of this process.
func ownThreads(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/task")
	must(t, err)
	return len(all)
}

// §6.9, §10.2: whatever a command leaves in its sockets, its run ends with its processes.
func Test_10_2_hosts_lingering_sockets_hold_nothing(t *testing.T) {
	redteamtest.Users(t, func(t *testing.T, place string) {
		w := newHostWorld(t, place)
		self, err := os.Executable()
		must(t, err)
		server := deafReader(t)
		for range 5 {
			begin := time.Now()
			o := sandboxtest.Exec(t, w.sandbox, w.spec([]string{server}, sandbox.Program{Name: "leaver", Path: self}, hostsArg, "linger", server))
			if took := time.Since(begin); o.Exit != 0 || took > 15*time.Second {
				t.Fatalf("exit %d after %v: %s", o.Exit, took, o.Stderr)
			}
		}
		o := sandboxtest.Exec(t, w.sandbox, w.spec([]string{server}, sandbox.Program{Name: "leaver", Path: self}, hostsArg, "handle"))
		if o.Exit == 0 || !strings.Contains(string(o.Stderr), "not permitted") {
			t.Errorf("a handle of the runtime: %+v", o)
		}
	})
}

// deafReader accepts and reads nothing.
func deafReader(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			defer c.Close()
		}
	}()
	return listener.Addr().String()
}

// §6.9, §10.4: a command with more waiting connects than are carried at once ends in its time, and leaves neither
// threads nor descriptors.
func Test_10_2_hosts_waiting_connects_end_in_time(t *testing.T) {
	w := newHostWorld(t, t.TempDir())
	self, err := os.Executable()
	must(t, err)
	server := deaf(t)
	spec := w.spec([]string{server}, sandbox.Program{Name: "leaver", Path: self}, hostsArg, "many", server, "600")
	spec.Limits.Wall, spec.Limits.Grace = 3*time.Second, 2*time.Second
	before := ownThreads(t)
	begin := time.Now()
	o := sandboxtest.Exec(t, w.sandbox, spec)
	if took := time.Since(begin); !o.TimedOut || took > spec.Limits.Wall+3*time.Second {
		t.Errorf("%v, %+v", took, o)
	}
	for end := time.Now().Add(10 * time.Second); ownThreads(t) > before+24; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d threads, %d before", ownThreads(t), before)
		}
	}
}
