package sandbox

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// §10.2: the numbers that the filter compares with are the kernel's, as golang.org/x/sys takes them from its
// headers. What has no name there was read in the headers themselves.
func Test_10_2_filter_constants(t *testing.T) {
	const clones = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
		unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_PARENT
	for name, pair := range map[string][2]uint64{
		"TIOCSTI": {tiocsti, unix.TIOCSTI}, "TIOCLINUX": {tioclinux, unix.TIOCLINUX}, "CLONE_NEW*": {cloneRefused, clones},
		"MFD_NOEXEC_SEAL": {mfdNoexecSeal, unix.MFD_NOEXEC_SEAL}, "S_ISUID|S_ISGID": {setidBits, unix.S_ISUID | unix.S_ISGID},
		"AF_UNIX": {familyUnix, unix.AF_UNIX}, "AF_INET": {familyInet, unix.AF_INET}, "AF_INET6": {familyInet6, unix.AF_INET6}, "AF_NETLINK": {familyNetlink, unix.AF_NETLINK},
		"SOCK_STREAM": {sockStream, unix.SOCK_STREAM}, "SOCK_DGRAM": {sockDgram, unix.SOCK_DGRAM}, "SOCK_RAW": {sockRaw, unix.SOCK_RAW}, "SOCK_SEQPACKET": {sockSeqpacket, unix.SOCK_SEQPACKET},
		"IPPROTO_TCP": {protoTCP, unix.IPPROTO_TCP}, "IPPROTO_UDP": {protoUDP, unix.IPPROTO_UDP}, "MSG_FASTOPEN": {msgFastOpen, unix.MSG_FASTOPEN},
		"SO_DONTROUTE": {soDontRoute, unix.SO_DONTROUTE}, "SO_BINDTODEVICE": {soBindToDevice, unix.SO_BINDTODEVICE}, "SO_BINDTOIFINDEX": {soBindToIfindex, unix.SO_BINDTOIFINDEX},
		"SOL_SOCKET": {solSocket, unix.SOL_SOCKET}, "SO_LINGER": {soLinger, unix.SO_LINGER}, "SO_PASSPIDFD": {soPassPidfd, unix.SO_PASSPIDFD}, "SO_PEERPIDFD": {soPeerPidfd, unix.SO_PEERPIDFD},
		"TCP_FASTOPEN": {tcpFastOpen, unix.TCP_FASTOPEN}, "TCP_FASTOPEN_CONNECT": {tcpFastOpenConn, unix.TCP_FASTOPEN_CONNECT},
		"IP_OPTIONS": {ipOptions, unix.IP_OPTIONS}, "IP_RECVERR": {ipRecvErr, unix.IP_RECVERR}, "IP_UNICAST_IF": {ipUnicastIf, unix.IP_UNICAST_IF},
		"IPV6_RECVERR": {ipv6RecvErr, unix.IPV6_RECVERR}, "IPV6_PKTINFO": {ipv6PktInfo, unix.IPV6_PKTINFO}, "IPV6_RTHDR": {ipv6RtHdr, unix.IPV6_RTHDR},
		"IPV6_UNICAST_IF": {ipv6UnicastIf, unix.IPV6_UNICAST_IF}, "TCP_ULP": {tcpULP, unix.TCP_ULP},
		"SECCOMP_RET_ALLOW": {retAllow, unix.SECCOMP_RET_ALLOW}, "SECCOMP_RET_KILL_PROCESS": {retKill, unix.SECCOMP_RET_KILL_PROCESS},
		"SECCOMP_RET_ERRNO": {retErrno, unix.SECCOMP_RET_ERRNO}, "SECCOMP_RET_USER_NOTIF": {retNotify, unix.SECCOMP_RET_USER_NOTIF},
		"EPERM": {eperm, uint64(unix.EPERM)}, "EACCES": {eacces, uint64(unix.EACCES)}, "ENOSYS": {enosys, uint64(unix.ENOSYS)},
		"AUDIT_ARCH_X86_64": {uint64(amd64().audit), unix.AUDIT_ARCH_X86_64}, "AUDIT_ARCH_AARCH64": {uint64(arm64().audit), unix.AUDIT_ARCH_AARCH64},
		"O_CREAT and O_TMPFILE": {openCreates, uint64(unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY)},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %#x, want %#x", name, pair[0], pair[1])
		}
	}
}

// §10.2: the commands of fcntl that are allowed are these. Those that x/sys has no name for were read in the headers.
func Test_10_2_fcntl_commands(t *testing.T) {
	const getOwnerUids, createdQuery = 17, 1028
	want := []int{unix.F_DUPFD, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL, unix.F_GETLK, unix.F_SETLK, unix.F_SETLKW, unix.F_GETOWN,
		unix.F_SETSIG, unix.F_GETSIG, unix.F_GETOWN_EX, getOwnerUids, unix.F_OFD_GETLK, unix.F_OFD_SETLK, unix.F_OFD_SETLKW,
		unix.F_GETLEASE, unix.F_DUPFD_QUERY, createdQuery, unix.F_DUPFD_CLOEXEC, unix.F_SETPIPE_SZ, unix.F_GETPIPE_SZ,
		unix.F_ADD_SEALS, unix.F_GET_SEALS, unix.F_GET_RW_HINT, unix.F_GET_FILE_RW_HINT}
	var got []int
	for _, span := range fcntlCommands() {
		for command := span[0]; command <= span[1]; command++ {
			got = append(got, int(command))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d, want %d", got, want)
	}
}
