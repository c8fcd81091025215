package sandbox

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"hcpx/internal/procs"
)

// childSocket is a socket of the child that this process holds too. What it is was asked of the socket that is held,
// so it does not matter what stands under the child's number later.
type childSocket struct {
	fd                     int
	domain, kind, protocol int
	answerer               bool // the end of a pair that this process made
}

// socket takes the socket that a call names in its first argument. None of the command's sockets lingers (linger), so
// to close the copy waits for nobody, also where it is the last.
func (c *call) socket() (*childSocket, unix.Errno) {
	fd, no := c.take(int(int32(c.Args[0])))
	if no != 0 {
		return nil, no
	}
	s := &childSocket{fd: fd}
	for _, o := range []struct {
		option int
		to     *int
	}{{unix.SO_DOMAIN, &s.domain}, {unix.SO_TYPE, &s.kind}, {unix.SO_PROTOCOL, &s.protocol}} {
		value, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, o.option)
		if err != nil {
			_ = unix.Close(fd)
			return nil, number(err)
		}
		*o.to = value
	}
	if s.domain == unix.AF_UNIX && s.kind == unix.SOCK_SEQPACKET {
		peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		s.answerer = err == nil && int(peer.Pid) == os.Getpid()
	}
	return s, 0
}

// take copies a descriptor of the calling thread. It asks the kernel for the right to look into the process, which a
// process that hides itself, or one that Yama guards, does not give: nothing is reached then.
func (c *call) take(n int) (int, unix.Errno) {
	process, err := unix.PidfdOpen(int(c.PID), pidfdThread)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.9 only whole processes have handles
		process, err = unix.PidfdOpen(procs.Of(int(c.PID)), 0)
	}
	if err != nil {
		return -1, number(err)
	}
	fd, err := unix.PidfdGetfd(process, n, 0)
	_ = unix.Close(process)
	if errors.Is(err, unix.EPERM) {
		c.deny(c.name + ": the process cannot be looked into")
		return -1, unix.EACCES
	}
	return fd, number(err)
}

// pidfdThread is PIDFD_THREAD: a handle of one thread.
const pidfdThread = unix.O_EXCL

func (s *childSocket) close() { _ = unix.Close(s.fd) }

func (s *childSocket) tcp() bool {
	return (s.domain == unix.AF_INET || s.domain == unix.AF_INET6) && s.kind == unix.SOCK_STREAM && s.protocol == unix.IPPROTO_TCP
}

// address reads the address for a TCP socket. Its family must be the socket's; AF_UNSPEC, which would undo a
// connection, is none.
func (s *childSocket) address(raw []byte) (netip.AddrPort, unix.Errno) {
	family := binary.NativeEndian.Uint16(raw)
	if int(family) != s.domain {
		return netip.AddrPort{}, unix.EAFNOSUPPORT
	}
	return inetAddress(family, raw)
}

// inetAddress reads a sockaddr. A zone stays with it, which no list has: such an address is refused (egress).
func inetAddress(family uint16, raw []byte) (netip.AddrPort, unix.Errno) {
	switch {
	case family == unix.AF_INET && len(raw) >= unix.SizeofSockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(raw[4:8])), binary.BigEndian.Uint16(raw[2:])), 0
	case family == unix.AF_INET6 && len(raw) >= unix.SizeofSockaddrInet6:
		addr := netip.AddrFrom16([16]byte(raw[8:24]))
		if zone := binary.NativeEndian.Uint32(raw[24:]); zone != 0 {
			addr = addr.WithZone(strconv.FormatUint(uint64(zone), 10))
		}
		return netip.AddrPortFrom(addr, binary.BigEndian.Uint16(raw[2:])), 0
	case family == unix.AF_INET, family == unix.AF_INET6:
		return netip.AddrPort{}, unix.EINVAL
	}
	return netip.AddrPort{}, unix.EAFNOSUPPORT
}

// sockaddr is an address in the form that the kernel takes for the socket's family.
func (s *childSocket) sockaddr(to netip.AddrPort) unix.Sockaddr {
	if s.domain == unix.AF_INET {
		return &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}
	}
	return &unix.SockaddrInet6{Addr: to.Addr().As16(), Port: int(to.Port())}
}

// connect connects the socket. Whether it waits is the socket's own matter, which the child may have set; a connect
// that waits is broken off when the run is over.
func (s *childSocket) connect(to netip.AddrPort, over <-chan struct{}) unix.Errno {
	if flags, err := unix.FcntlInt(uintptr(s.fd), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK == 0 {
		runtime.LockOSThread() // for good: the thread that waits ends with the call, or a process would keep hundreds
	}
	done, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-done:
			return
		case <-over:
		}
		for { // again, for the first may come before the connect has begun
			_ = unix.Shutdown(s.fd, unix.SHUT_RDWR)
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	err := unix.Connect(s.fd, s.sockaddr(to))
	for errors.Is(err, unix.EINTR) {
		err = unix.Connect(s.fd, s.sockaddr(to))
	}
	close(done)
	<-watched
	return number(err)
}

// meet connects the socket to this process: something listens on the loopback until the socket has come, and
// whoever else came in that moment is turned away. The answer is this process' end.
func (s *childSocket) meet(at netip.Addr, over <-chan struct{}) (int, unix.Errno) {
	four := at.Unmap().Is4()
	domain, local := unix.AF_INET6, unix.Sockaddr(&unix.SockaddrInet6{Addr: netip.IPv6Loopback().As16()})
	if four {
		domain, local = unix.AF_INET, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	}
	listener, err := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, number(err)
	}
	defer unix.Close(listener)
	if err := errors.Join(unix.Bind(listener, local), unix.Listen(listener, 16)); err != nil {
		return -1, unix.ECONNREFUSED
	}
	name, err := unix.Getsockname(listener)
	if err != nil {
		return -1, number(err)
	}
	to := endpoint(name)
	if four && s.domain == unix.AF_INET6 {
		to = netip.AddrPortFrom(netip.AddrFrom16(to.Addr().As16()), to.Port()) // the mapped form
	}
	if no := s.connect(to, over); no != 0 && no != unix.EINPROGRESS {
		return -1, no
	}
	name, err = unix.Getsockname(s.fd)
	if err != nil {
		return -1, number(err)
	}
	return acceptFrom(listener, endpoint(name), over)
}

// acceptFrom takes the one connection that comes from an address, and closes all others.
func acceptFrom(listener int, from netip.AddrPort, over <-chan struct{}) (int, unix.Errno) {
	const turns, wait = 100, 20 // milliseconds
	poll := []unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}
	for range turns {
		select {
		case <-over:
			return -1, unix.ECONNABORTED
		default:
		}
		if n, err := unix.Poll(poll, wait); n <= 0 && (err == nil || errors.Is(err, unix.EINTR)) {
			continue
		}
		fd, peer, err := unix.Accept4(listener, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ECONNABORTED), errors.Is(err, unix.EINTR):
		case err != nil:
			return -1, number(err)
		case endpoint(peer) == from:
			return fd, 0
		default:
			_ = unix.Close(fd)
		}
	}
	return -1, unix.ETIMEDOUT
}

// endpoint is a kernel's address, without the mapping of one family in the other.
func endpoint(sa unix.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr).Unmap(), uint16(sa.Port))
	}
	return netip.AddrPort{}
}

// showSource writes the name server's address where a receiving call on the answerer's end wants to see who sent: the
// kernel leaves that place as it is, for its own end of the pair has no address, and resolvers drop what came from
// nobody. It is the child's memory, and only its own reading of it depends on it.
func (c *call) showSource() {
	at := c.sourcePlace()
	if at == 0 {
		return
	}
	s, no := c.socket()
	if no != 0 {
		return
	}
	defer s.close()
	if !s.answerer {
		return
	}
	_ = c.put(at, nameServer(namePort)) // a place that the child named; a bad one is its own loss
}

// nameServer is a sockaddr of the loopback.
func nameServer(port uint16) []byte {
	raw := binary.NativeEndian.AppendUint16(make([]byte, 0, unix.SizeofSockaddrInet4), unix.AF_INET)
	raw = append(binary.BigEndian.AppendUint16(raw, port), 127, 0, 0, 1)
	return raw[:unix.SizeofSockaddrInet4]
}

// put writes into the child's memory.
func (c *call) put(at uint64, what []byte) unix.Errno {
	memory, err := unix.Open("/proc/"+strconv.Itoa(int(c.PID))+"/mem", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return number(err)
	}
	defer unix.Close(memory)
	if no := c.waits(); no != 0 {
		return no // the memory may be somebody else's
	}
	if n, err := unix.Pwrite(memory, what, int64(at)); err != nil || n != len(what) {
		return unix.EFAULT
	}
	return 0
}

// tellName answers for the ends of the answerer's connection what a resolver expects: it talks to 127.0.0.1:53. Of
// any other socket the kernel tells.
func (c *call) tellName() answer {
	s, no := c.socket()
	if no != 0 {
		return answer{kind: proceeds} // it knows why
	}
	defer s.close()
	if !s.answerer {
		return answer{kind: proceeds}
	}
	name := nameServer(proxyPort)
	if c.name == "getpeername" {
		name = nameServer(namePort)
	}
	room, no := c.bytes(c.Args[2], 4)
	if no != 0 {
		return fails(no)
	}
	if no := c.put(c.Args[1], name[:min(len(name), int(binary.NativeEndian.Uint32(room)))]); no != 0 {
		return fails(no)
	}
	return fails(c.put(c.Args[2], binary.NativeEndian.AppendUint32(nil, uint32(len(name)))))
}

// sourcePlace is where a receiving call wants the sender's address, 0 when it does not or has no room for it.
func (c *call) sourcePlace() uint64 {
	at, room := c.Args[4], c.Args[5]
	if c.name == "recvmsg" {
		head, no := c.bytes(c.Args[1], 8)
		if no != 0 {
			return 0
		}
		at, room = binary.NativeEndian.Uint64(head), c.Args[1]+8
	}
	if at == 0 {
		return 0
	}
	size, no := c.bytes(room, 4)
	if no != 0 || binary.NativeEndian.Uint32(size) < unix.SizeofSockaddrInet4 {
		return 0
	}
	return at
}
