package sandbox

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// §10.2: whoever else connects in the moment in which the command's socket is awaited is turned away.
func Test_10_2_hosts_meeting(t *testing.T) {
	listener, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(listener)
	if err := unix.Bind(listener, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(listener, 16); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(listener)
	if err != nil {
		t.Fatal(err)
	}
	dial := func() net.Conn {
		c, err := net.Dial("tcp", endpoint(name).String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	strangers := []net.Conn{dial(), dial(), dial()}
	ours := dial()
	strangers = append(strangers, dial())
	fd, no := acceptFrom(listener, netip.MustParseAddrPort(ours.LocalAddr().String()), make(chan struct{}))
	if no != 0 {
		t.Fatal(no)
	}
	defer unix.Close(fd)
	if peer, err := unix.Getpeername(fd); err != nil || endpoint(peer).String() != ours.LocalAddr().String() {
		t.Errorf("%v, %v", peer, err)
	}
	for _, c := range strangers[:3] {
		_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
		if n, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a stranger is connected: %d, %v", n, err)
		}
	}
	over := make(chan struct{})
	close(over)
	if fd, no := acceptFrom(listener, netip.MustParseAddrPort("127.0.0.1:1"), over); no == 0 {
		t.Errorf("descriptor %d after the run", fd)
	}
}

// §10.2: an address is read whole or not at all.
func Test_10_2_hosts_addresses(t *testing.T) {
	four := []byte{2, 0, 0x15, 0x38, 10, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0}
	six := append([]byte{10, 0, 0x15, 0x38, 0, 0, 0, 0}, append(netip.MustParseAddr("2001:db8::1").AsSlice(), 0, 0, 0, 0)...)
	scoped := append(append([]byte{}, six[:24]...), 2, 0, 0, 0)
	for _, c := range []struct {
		domain int
		raw    []byte
		want   string
		no     unix.Errno
	}{
		{unix.AF_INET, four, "10.0.0.5:5432", 0},
		{unix.AF_INET, append(append([]byte{}, four...), make([]byte, 100)...), "10.0.0.5:5432", 0},
		{unix.AF_INET, four[:15], "", unix.EINVAL},
		{unix.AF_INET, four[:2], "", unix.EINVAL},
		{unix.AF_INET, make([]byte, 16), "", unix.EAFNOSUPPORT},
		{unix.AF_INET, six, "", unix.EAFNOSUPPORT},
		{unix.AF_INET6, six, "[2001:db8::1]:5432", 0},
		{unix.AF_INET6, six[:27], "", unix.EINVAL},
		{unix.AF_INET6, scoped, "[2001:db8::1%2]:5432", 0}, // refused as what it is,
		{unix.AF_INET6, four, "", unix.EAFNOSUPPORT},
		{unix.AF_UNIX, append([]byte{1, 0}, "/tmp/x"...), "", unix.EAFNOSUPPORT},
	} {
		got, no := (&childSocket{domain: c.domain}).address(c.raw)
		if no != c.no || no == 0 && got.String() != c.want {
			t.Errorf("%d %x: %v, %v", c.domain, c.raw, got, no)
		}
	}
}

// FuzzInetAddress: whatever the command's memory holds, an address is what the kernel would read.
func FuzzInetAddress(f *testing.F) {
	f.Add([]byte{2, 0, 0x15, 0x38, 10, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add(make([]byte, 28))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) < 2 {
			return
		}
		for _, domain := range []int{unix.AF_INET, unix.AF_INET6} {
			got, no := (&childSocket{domain: domain}).address(raw)
			if no == 0 && ((got.Addr().Zone() != "") != (domain == unix.AF_INET6 && slices.Max(raw[24:28]) > 0) || got.Addr().Is4() != (domain == unix.AF_INET) || int(raw[0])+int(raw[1])<<8 != domain) {
				t.Fatalf("%d %x: %v", domain, raw, got)
			}
		}
	})
}
