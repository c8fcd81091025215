package sandbox

// posture is what a filter depends on beside the machine: how the network, signals and metadata are held (§10.2,
// §10.5). It is a value, so that filters can be kept by it. The zero posture compiles to nothing.
type posture struct {
	network  string // none | full | hosts
	signals  signalMode
	metadata metadataMode
}

// signalMode is what keeps signals inside the tree of a run.
type signalMode int

const (
	signalsScoped   signalMode = iota + 1 // the kernel: a Landlock scope, or a process namespace
	signalsBrokered                       // the runtime sends each one, and lets groups and sessions of processes begin, so that each is known
	signalsRefused                        // nothing can be signalled at all, and no group or session begins
)

// metadataMode is what keeps modes, owners, times and attributes outside the writable trees as they are.
type metadataMode int

const (
	metadataBrokered metadataMode = iota + 1 // the runtime makes each change
	metadataRefused                          // nothing can be changed at all
	metadataMounts                           // the kernel: what is not writable is mounted read-only
)

// valid says whether a filter for the posture means something; a value that nobody set refuses the run.
func (p posture) valid() bool {
	return (p.network == "none" || p.network == "full" || p.network == "hosts") &&
		p.signals >= signalsScoped && p.signals <= signalsRefused && p.metadata >= metadataBrokered && p.metadata <= metadataMounts
}

// verdict resolves a row that a posture decides; any other row says it itself.
func (p posture) verdict(r syscallRule) verdict {
	switch r.verdict {
	case byNetwork:
		return networkVerdict(p.network, r.name)
	case bySignals:
		return signalVerdict(p.signals, r.name)
	case byMetadata:
		return metadataVerdict(p.metadata, r.name)
	}
	return r.verdict
}

// networkVerdict is how a mode answers a socket call (§10.2). None knows no socket at all. Full knows internet
// sockets and no unix socket. Hosts knows a TCP socket that only the runtime can connect, and what the runtime
// gives for a UDP socket; nothing listens. Wherever there is TCP, fast open would connect beside connect.
func networkVerdict(mode, name string) verdict {
	sends := name == "sendto" || name == "sendmsg" || name == "sendmmsg"
	names := name == "getsockname" || name == "getpeername"
	local := name == "recvfrom" || name == "recvmsg" || name == "setsockopt" || name == "getsockopt" || names
	switch mode {
	case "full":
		switch {
		case name == "socket":
			return checkSocket
		case name == "sendmsg":
			return checkFastOpen2
		case sends:
			return checkFastOpen3
		}
		return allow
	case "hosts":
		switch {
		case name == "socket":
			return checkHostSocket
		case name == "connect", name == "bind", name == "recvmsg", names:
			return notify
		case name == "setsockopt":
			return checkRoute
		case name == "getsockopt":
			return checkPeer
		case name == "recvfrom":
			return checkSource
		case name == "sendmsg":
			return checkFastOpen2
		case sends:
			return checkFastOpen3
		}
		return deny
	case "none":
		if sends || local { // on an anonymous pair
			return allow
		}
	}
	return deny
}

// signalVerdict is how a mode answers a signal, or the making of a group or session (§10.5).
func signalVerdict(mode signalMode, name string) verdict {
	switch mode {
	case signalsScoped:
		switch name {
		case "pidfd_send_signal", "setsid", "setpgid":
			return allow
		case "tgkill", "rt_tgsigqueueinfo":
			return checkTarget1
		}
		return checkTarget0
	case signalsBrokered:
		switch name {
		case "pidfd_send_signal", "setpgid":
			return notify
		case "setsid":
			return checkSession
		}
		return checkSignal
	case signalsRefused:
		if name == "setsid" {
			return checkNoSession
		}
	}
	return refuse
}

// metadataVerdict is how a mode answers a change of metadata (§10.2). No mode sets a setuid or setgid bit.
func metadataVerdict(mode metadataMode, name string) verdict {
	switch mode {
	case metadataBrokered:
		return notify
	case metadataMounts:
		switch name {
		case "chmod", "fchmod":
			return checkMode1
		case "fchmodat", "fchmodat2":
			return checkMode2
		}
		return allow
	}
	return refuse
}
