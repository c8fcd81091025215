package sandbox

// Numbers of the kernel's interface, the same on every machine of the table.
const (
	tiocsti          = 0x5412
	tioclinux        = 0x541c
	fsIocSetflags    = 0x40086602
	fsIocFssetxattr  = 0x401c5820
	fsIocVerity      = 0x40806685
	fsIocEncryption  = 0x800c6613
	btrfsSnap        = 0x50009401 // subvolumes are made and removed by descriptors that need no right to write
	btrfsSubvolume   = 0x5000940e
	btrfsDestroy     = 0x5000940f
	btrfsSnapV2      = 0x50009417
	btrfsSubvolumeV2 = 0x50009418
	btrfsDestroyV2   = 0x5000943f
	btrfsFlags       = 0x4008941a
	fioSetown        = 0x8901
	siocSpgrp        = 0x8902
	cloneRefused     = 0x7e028000 // new namespaces; a child of the runtime instead of one's own
	mfdNoexecSeal    = 0x8
	openCreates      = 0x400040 // O_CREAT and the bit of O_TMPFILE
	setidBits        = 0o6000
	familyUnix       = 1
	familyInet       = 2
	familyInet6      = 10
	familyNetlink    = 16
	sockStream       = 1
	sockDgram        = 2
	sockRaw          = 3
	sockSeqpacket    = 5
	sockTypeMask     = 0xf
	protoTCP         = 6
	protoUDP         = 17
	msgFastOpen      = 0x20000000
	ioprioWhoProcess = 1
	solSocket        = 1

	soDontRoute       = 5
	soLinger          = 13
	soBindToDevice    = 25
	soBindToIfindex   = 62
	soPassPidfd       = 76
	soPeerPidfd       = 77
	ipOptions         = 4
	ipRecvErr         = 11
	ipUnicastIf       = 50
	ipv6OldPktInfo    = 2
	ipv6OldRtHdr      = 5
	ipv6OldPktOptions = 6
	ipv6RecvErr       = 25
	ipv6PktInfo       = 50
	ipv6RtHdr         = 57
	ipv6UnicastIf     = 76
	tcpFastOpen       = 23
	tcpFastOpenConn   = 30
	tcpULP            = 31
)

// arg loads the low word of an argument.
func (a *assembler) arg(n uint32) { a.op(opLoad, offArgs+8*n) }

// argHigh loads the high word of an argument that is 64 bits wide for the kernel, or ignored by it.
func (a *assembler) argHigh(n uint32) { a.op(opLoad, offArgs+8*n+4) }

// check emits the code of a verdict that depends on arguments.
func (a *assembler) check(v verdict) {
	yes, no, never := a.to(allow), a.to(refuse), a.to(deny)
	switch v {
	case checkIoctl:
		a.noneOf(1, tiocsti, tioclinux, fsIocSetflags, fsIocFssetxattr, fsIocVerity, fsIocEncryption, fioSetown, siocSpgrp,
			btrfsSnap, btrfsSubvolume, btrfsDestroy, btrfsSnapV2, btrfsSubvolumeV2, btrfsDestroyV2, btrfsFlags)
	case checkClone:
		a.arg(0)
		a.jump(opJset, cloneRefused, no, yes)
	case checkMemfd:
		a.arg(1)
		a.jump(opJset, mfdNoexecSeal, yes, never)
	case checkPair:
		a.arg(0)
		a.jump(opJeq, familyUnix, next, never)
		a.arg(1)
		a.op(opAnd, sockTypeMask)
		a.jump(opJeq, sockStream, yes, next)
		a.jump(opJeq, sockSeqpacket, yes, never)
	case checkOpen, checkOpenat:
		first := uint32(v - checkOpen + 1)
		a.arg(first)
		a.jump(opJset, openCreates, next, yes)
		a.mode(first+1, yes, no)
	case checkMode1:
		a.mode(1, yes, no)
	case checkMode2:
		a.mode(2, yes, no)
	case checkSelf:
		a.arg(0)
		a.jump(opJeq, 0, yes, no)
	case checkTarget0, checkTarget1:
		a.arg(uint32(v - checkTarget0))
		a.marked(markThread)
		a.jump(opJeq, 0, no, yes)
	case checkFcntl:
		a.oneOf(1, fcntlCommands())
	case checkPriority:
		a.own(0, yes, no)
	case checkIoprio:
		a.own(ioprioWhoProcess, yes, no)
	case checkSocket:
		a.socket(yes, never)
	case checkHostSocket, checkSource, checkFastOpen2, checkFastOpen3:
		a.hosts(v)
	case checkRoute:
		a.route(yes)
	case checkPeer: // the end of a pair that the runtime answers would show the runtime
		a.arg(1)
		a.jump(opJeq, solSocket, next, yes)
		a.noneOf(2, soPeerPidfd)
	case checkSignal, checkSession, checkNoSession:
		a.ask(v)
	}
}

// hosts are the checks of a network in which the runtime connects (§10.2).
func (a *assembler) hosts(v verdict) {
	yes, never := a.to(allow), a.to(deny)
	switch v {
	case checkHostSocket:
		ask, inet, datagram := a.to(notify), a.label(), a.label()
		a.arg(0)
		a.jump(opJeq, familyInet, inet, next)
		a.jump(opJeq, familyInet6, inet, never)
		a.place(inet)
		a.arg(1)
		a.op(opAnd, sockTypeMask)
		a.jump(opJeq, sockDgram, datagram, next)
		a.jump(opJeq, sockStream, next, never)
		a.arg(2)
		a.jump(opJeq, 0, yes, next)
		a.jump(opJeq, protoTCP, yes, never)
		a.place(datagram)
		a.arg(2)
		a.jump(opJeq, 0, ask, next)
		a.jump(opJeq, protoUDP, ask, never)
	case checkSource: // an address, so both words count
		ask := a.to(notify)
		a.arg(4)
		a.jump(opJeq, 0, next, ask)
		a.argHigh(4)
		a.jump(opJeq, 0, yes, ask)
	case checkFastOpen2, checkFastOpen3:
		a.arg(uint32(v-checkFastOpen2) + 2)
		a.jump(opJset, msgFastOpen, a.to(refuse), yes)
	}
}

// route refuses the options by which packets take another way than their address says: another interface, no gateway,
// a route by way of others, another protocol above, a connect that is put off. One more would show the runtime to
// whom it answers.
func (a *assembler) route(yes label) {
	levels := []struct {
		level   uint32
		options []uint32
		asked   uint32 // an option that the runtime answers for; 0 = none
	}{
		{solSocket, []uint32{soDontRoute, soBindToDevice, soBindToIfindex, soPassPidfd}, soLinger},
		{0, []uint32{ipOptions, ipUnicastIf}, ipRecvErr},
		{41, []uint32{ipv6OldPktInfo, ipv6OldRtHdr, ipv6OldPktOptions, ipv6PktInfo, ipv6RtHdr, ipv6UnicastIf}, ipv6RecvErr},
		{protoTCP, []uint32{tcpFastOpen, tcpFastOpenConn, tcpULP}, 0},
	}
	a.arg(1)
	places := make([]label, len(levels))
	for i, l := range levels {
		places[i] = a.label()
		otherwise := next
		if i == len(levels)-1 {
			otherwise = yes
		}
		a.jump(opJeq, l.level, places[i], otherwise)
	}
	for i, l := range levels {
		a.place(places[i])
		if l.asked != 0 {
			a.arg(2)
			a.jump(opJeq, l.asked, a.to(notify), next)
		}
		a.noneOf(2, l.options...)
	}
}

// ask are the checks of a tree that the runtime holds together (§10.5).
func (a *assembler) ask(v verdict) {
	yes, no, ask := a.to(allow), a.to(refuse), next
	if v != checkNoSession {
		ask = a.to(notify) // only then somebody must listen
	}
	switch v {
	case checkSignal:
		// Nothing of the launcher's own may wait for an answer: Go sends signals to its threads while it holds
		// the world still, and whoever answers would stand still too. So these are decided here.
		a.arg(0)
		a.marked(markProcess)
		a.jump(opJeq, 0, no, next)
		a.marked(markThread)
		a.jump(opJeq, 0, no, ask)
	case checkSession, checkNoSession:
		// The launcher waits for its child's exec meanwhile, so nobody may have to answer: the child shows a secret
		// in an argument that the call does not have.
		other := ask
		if v == checkNoSession {
			other = no
		}
		a.arg(0)
		a.marked(markKnock)
		a.jump(opJeq, 0, next, other)
		a.argHigh(0)
		a.marked(markKnockHigh)
		a.jump(opJeq, 0, yes, other)
	}
}

// noneOf refuses a call whose argument is one of the codes.
func (a *assembler) noneOf(arg uint32, codes ...uint32) {
	a.arg(arg)
	for _, code := range codes[:len(codes)-1] {
		a.jump(opJeq, code, a.to(refuse), next)
	}
	a.jump(opJeq, codes[len(codes)-1], a.to(refuse), a.to(allow))
}

// fcntlCommands are what fcntl may be asked for, as pairs of a first and a last one: descriptors and their flags,
// locks, which signal is sent (nobody is made its owner), pipes, seals. What is not here is refused, a later kernel's
// command too: owners of signals, leases and delegations that make others wait, watches of a directory (F_NOTIFY),
// hints that stay with a file.
func fcntlCommands() [][2]uint32 {
	return [][2]uint32{
		{0, 7},       // F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GETLK, F_SETLK, F_SETLKW
		{9, 11},      // F_GETOWN, F_SETSIG, F_GETSIG
		{16, 17},     // F_GETOWN_EX, F_GETOWNER_UIDS
		{36, 38},     // F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW
		{1025, 1025}, // F_GETLEASE
		{1027, 1028}, // F_DUPFD_QUERY, F_CREATED_QUERY
		{1030, 1035}, // F_DUPFD_CLOEXEC, F_SETPIPE_SZ, F_GETPIPE_SZ, F_ADD_SEALS, F_GET_SEALS, F_GET_RW_HINT
		{1037, 1037}, // F_GET_FILE_RW_HINT
	}
}

// oneOf allows a call whose argument lies in one of the spans, which ascend from 0, and refuses any other.
func (a *assembler) oneOf(arg uint32, spans [][2]uint32) {
	var segments []segment
	for _, span := range spans {
		segments = append(segments, segment{span[0], a.to(allow)}, segment{span[1] + 1, a.to(refuse)})
	}
	a.arg(arg)
	a.tree(segments)
}

// mode refuses a mode with a setuid or setgid bit.
func (a *assembler) mode(arg uint32, yes, no label) {
	a.arg(arg)
	a.jump(opJset, setidBits, no, yes)
}

// own allows a call whose first argument names a process and whose second, 0, means the caller.
func (a *assembler) own(which uint32, yes, no label) {
	a.arg(0)
	a.jump(opJeq, which, next, no)
	a.arg(1)
	a.jump(opJeq, 0, yes, no)
}

// socket is network full: TCP and UDP over IPv4 and IPv6, and the route table; no raw, packet, unix or
// multipath sockets.
func (a *assembler) socket(yes, never label) {
	inet, route := a.label(), a.label()
	a.arg(0)
	a.jump(opJeq, familyInet, inet, next)
	a.jump(opJeq, familyInet6, inet, next)
	a.jump(opJeq, familyNetlink, route, never)
	a.place(route)
	a.arg(2)
	a.jump(opJeq, 0, next, never)
	a.arg(1)
	a.op(opAnd, sockTypeMask)
	a.jump(opJeq, sockRaw, yes, next)
	a.jump(opJeq, sockDgram, yes, never)
	a.place(inet)
	protocol := a.label()
	a.arg(1)
	a.op(opAnd, sockTypeMask)
	a.jump(opJeq, sockStream, protocol, next)
	a.jump(opJeq, sockDgram, protocol, never)
	a.place(protocol)
	a.arg(2)
	a.jump(opJeq, 0, yes, next)
	a.jump(opJeq, protoTCP, yes, next)
	a.jump(opJeq, protoUDP, yes, never)
}
