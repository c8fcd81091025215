package sandbox

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"hcpx/internal/egress"
)

// hostNet is the service of network hosts (§10.2). The command makes a TCP socket and asks for a connection; the
// runtime takes the socket out of the command, looks at what it is, reads the address once, and connects the socket
// itself, to its own copy of what was checked. The kernel never carries a connect out for the command, and what
// another thread changes meanwhile, address or descriptor, changes nothing.
//
// No datagram leaves: what the command gets for a UDP socket is one end of a pair, and at the other end its questions
// for names are answered (egress). The name server and the proxy that it sees at loopback addresses are this process
// too; nothing listens there but for the moment of one connection.
type hostNet struct {
	list   *egress.List
	lookup egress.Lookup

	mu  sync.Mutex
	run *egress.Run // begun by its first call
}

func (n *hostNet) calls() []string {
	return []string{"socket", "connect", "bind", "setsockopt", "getsockname", "getpeername", "recvfrom", "recvmsg"}
}

func (n *hostNet) blocks() bool { return true }

func (n *hostNet) act(c *call) answer {
	switch c.name {
	case "socket":
		return n.datagrams(c)
	case "connect":
		return fails(n.connect(c))
	case "bind":
		return fails(n.bind(c))
	case "setsockopt":
		return n.option(c)
	case "getsockname", "getpeername":
		return c.tellName()
	case "recvfrom", "recvmsg":
		c.showSource()
		return answer{kind: proceeds} // receiving is not what is guarded
	}
	return fails(unix.EPERM)
}

// end closes everything that was opened for the run.
func (n *hostNet) end() {
	n.mu.Lock()
	run := n.run
	n.run = nil
	n.mu.Unlock()
	if run != nil {
		run.Close()
	}
}

func (n *hostNet) close() { n.end() }

// current holds the decisions of the run that goes on.
func (n *hostNet) current(c *call) *egress.Run {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.run == nil {
		n.run = egress.NewRun(n.list, egress.Outside{Lookup: n.lookup, Deny: c.broker.deny,
			Dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", to.String())
			}})
	}
	return n.run
}

// datagrams answers socket() for UDP: one end of a pair whose other end answers for names and nothing else.
func (n *hostNet) datagrams(c *call) answer {
	kind := int(c.Args[1])
	if family := uint32(c.Args[0]); family != unix.AF_INET && family != unix.AF_INET6 || kind&sockTypeMask != unix.SOCK_DGRAM {
		return fails(unix.EACCES)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fails(number(err))
	}
	if err := unix.SetNonblock(pair[0], kind&unix.SOCK_NONBLOCK != 0); err != nil {
		closeAll([][2]int{pair})
		return fails(number(err))
	}
	ours, err := conn(pair[1])
	if err != nil {
		_ = unix.Close(pair[0])
		return fails(number(err))
	}
	n.current(c).Serve(ours, egress.Datagrams)
	if kind&unix.SOCK_CLOEXEC != 0 {
		return answer{value: int64(pair[0]), kind: lendsOnExec}
	}
	return answer{value: int64(pair[0]), kind: lends}
}

// conn makes a connection of a descriptor, which it closes in any case.
func conn(fd int) (net.Conn, error) {
	f := os.NewFile(uintptr(fd), "connection")
	c, err := net.FileConn(f)
	return c, errors.Join(err, f.Close())
}

// bind is refused but on the answerer's end, where it means nothing: some resolvers do it before they ask.
func (n *hostNet) bind(c *call) unix.Errno {
	s, no := c.socket()
	if no != 0 {
		return no
	}
	defer s.close()
	if s.answerer {
		return 0
	}
	c.deny("bind of a socket")
	return unix.EACCES
}

// option is setsockopt of what the filter asks for: lingering, and that errors of the network shall be told. The
// answerer's end has none of these.
func (n *hostNet) option(c *call) answer {
	s, no := c.socket()
	if no != 0 {
		return fails(no)
	}
	defer s.close()
	switch {
	case s.answerer:
		return answer{}
	case c.Args[1]&0xffffffff == solSocket && c.Args[2]&0xffffffff == soLinger:
		return fails(c.linger(s))
	}
	return answer{kind: proceeds}
}

// linger sets what closing the socket does. To wait for the other side is not given: whoever closes it last would
// wait, and that can be this process, whose copy outlives a killed command. Such a socket is closed like any other,
// and what was written goes out all the same.
func (c *call) linger(s *childSocket) unix.Errno {
	if int32(c.Args[4]) < 8 {
		return unix.EINVAL
	}
	raw, no := c.bytes(c.Args[3], 8)
	if no != 0 {
		return no
	}
	if no := c.waits(); no != 0 {
		return no
	}
	on, seconds := binary.NativeEndian.Uint32(raw) != 0, binary.NativeEndian.Uint32(raw[4:])
	abort := unix.Linger{}
	if on && seconds == 0 { // closing is a reset, and waits for nobody
		abort.Onoff = 1
	}
	return number(unix.SetsockoptLinger(s.fd, unix.SOL_SOCKET, unix.SO_LINGER, &abort))
}

// sizeofStorage is the size of the largest address that the kernel takes.
const sizeofStorage = 128

// connect decides and makes one connection.
func (n *hostNet) connect(c *call) unix.Errno {
	s, no := c.socket()
	if no != 0 {
		return no
	}
	defer s.close()
	size := int(int32(c.Args[2]))
	if size < 2 || size > sizeofStorage {
		return unix.EINVAL
	}
	raw, no := c.bytes(c.Args[1], size)
	if no != 0 {
		return no
	}
	// Address and socket were found by the caller's number: it must still be the one.
	if no := c.waits(); no != 0 {
		return no
	}
	if s.answerer {
		return n.ask(c, raw)
	}
	if !s.tcp() {
		c.deny("connect of a socket that is no TCP socket")
		return unix.EACCES
	}
	to, no := s.address(raw)
	if no != 0 {
		return no
	}
	if own(to.Addr()) {
		switch to.Port() {
		case namePort:
			return n.inward(c, s, to, egress.Messages)
		case proxyPort:
			return n.inward(c, s, to, egress.Proxy)
		}
	}
	if !n.current(c).Connect(to) {
		return unix.EACCES
	}
	return s.connect(to, c.over)
}

// own says that an address is where the command meets the runtime.
func own(addr netip.Addr) bool { return addr.Zone() == "" && addr.Unmap().IsLoopback() }

// ask is connect on the answerer's end: to the name server it is done already, and no datagram goes elsewhere.
// A program that tries an address only to see whether there is a way to it is not told of.
func (n *hostNet) ask(c *call, raw []byte) unix.Errno {
	family := binary.NativeEndian.Uint16(raw)
	if family == unix.AF_UNSPEC {
		return 0
	}
	to, no := inetAddress(family, raw)
	if no != 0 {
		return no
	}
	if own(to.Addr()) && to.Port() == namePort {
		return 0
	}
	if !n.current(c).Open(to) {
		c.deny("connect udp " + to.String() + ": no datagrams")
	}
	return unix.EACCES
}

// inward connects the command's socket to this process.
func (n *hostNet) inward(c *call, s *childSocket, to netip.AddrPort, serve func(*egress.Run, net.Conn)) unix.Errno {
	got, no := s.meet(to.Addr(), c.over)
	if no != 0 {
		return no
	}
	ours, err := conn(got)
	if err != nil {
		return number(err)
	}
	n.current(c).Serve(ours, serve)
	return 0
}
