package sandbox

// arch is a machine whose system calls the table knows.
type arch struct {
	name  string
	audit uint32 // AUDIT_ARCH_*, what seccomp calls it
	index int    // its column in the table
}

func amd64() arch { return arch{name: "amd64", audit: 0xc000003e, index: 0} }
func arm64() arch { return arch{name: "arm64", audit: 0xc00000b7, index: 1} }

// archOf finds the machine by Go's name for it.
func archOf(name string) (arch, bool) {
	for _, a := range []arch{amd64(), arm64()} {
		if a.name == name {
			return a, true
		}
	}
	return arch{}, false
}

// lastSyscall is the highest number known here; what is above it, x32 calls included, does not exist for the
// child. So a call of a later kernel is refused until somebody has looked at it.
const lastSyscall = 471

// verdict is what the filter does with a call.
type verdict int

const (
	allow  verdict = iota
	refuse         // EPERM
	deny           // EACCES
	absent         // ENOSYS: programs fall back
	notify         // handed to the broker
	kill           // the process dies

	// As the posture says.
	byNetwork
	bySignals
	byMetadata

	// Decided by arguments; filter.go holds the code of each.
	checkIoctl    // terminal injection and file attributes
	checkClone    // no new namespaces
	checkMemfd    // only sealed against execution
	checkPair     // anonymous unix stream and seqpacket pairs
	checkOpen     // created files carry no setuid or setgid bit
	checkOpenat   // the same, one argument later
	checkMode1    // the same, mode in argument 1
	checkMode2    // the same, mode in argument 2
	checkSelf     // argument 0, a pid, is 0
	checkTarget0  // argument 0 is not the launcher's thread
	checkTarget1  // argument 1 is not the launcher's thread
	checkFcntl    // known commands: no owner for a descriptor's signals, no lease that makes others wait, no watch
	checkPriority // of the caller itself
	checkIoprio   // of the caller itself
	checkSocket   // network full

	checkHostSocket // network hosts: TCP, and the runtime's answer to UDP
	checkSource     // the same: who sent a message is the runtime's to say
	checkFastOpen2  // no connecting by sending, flags in argument 2
	checkFastOpen3  // the same, flags in argument 3
	checkRoute      // no socket chooses its way
	checkPeer       // no socket gives a handle of the runtime
	checkSignal     // the runtime sends it, but never to itself
	checkSession    // the runtime lets a session begin; that of the launcher's own child is free
	checkNoSession  // no session begins but that of the launcher's own child

	verdicts // how many there are
)

// syscallRule is one row: the call's number on each machine (-1 = it has none) and the verdict.
type syscallRule struct {
	name         string
	amd64, arm64 int
	verdict      verdict
}

func (r syscallRule) number(a arch) int { return [...]int{r.amd64, r.arm64}[a.index] }

// syscallTable is the content of the filter (§10.2). What is not listed is allowed up to lastSyscall:
// Landlock guards files, and the list holds what Landlock does not see.
func syscallTable() []syscallRule {
	return []syscallRule{
		// Memory, identity and descriptors of other processes.
		{"ptrace", 101, 117, refuse},
		{"process_vm_readv", 310, 270, refuse},
		{"process_vm_writev", 311, 271, refuse},
		{"kcmp", 312, 272, refuse},
		{"pidfd_getfd", 438, 438, refuse},
		{"process_madvise", 440, 440, refuse},
		{"process_mrelease", 448, 448, refuse},
		{"move_pages", 279, 239, refuse},
		{"migrate_pages", 256, 238, refuse},
		// Mounts, roots and namespaces.
		{"mount", 165, 40, refuse},
		{"umount2", 166, 39, refuse},
		{"open_tree", 428, 428, refuse},
		{"open_tree_attr", 467, 467, refuse},
		{"move_mount", 429, 429, refuse},
		{"fsopen", 430, 430, refuse},
		{"fsconfig", 431, 431, refuse},
		{"fsmount", 432, 432, refuse},
		{"fspick", 433, 433, refuse},
		{"mount_setattr", 442, 442, refuse},
		{"chroot", 161, 51, refuse},
		{"pivot_root", 155, 41, refuse},
		{"unshare", 272, 97, refuse},
		{"setns", 308, 268, refuse},
		// The kernel itself.
		{"bpf", 321, 280, refuse},
		{"perf_event_open", 298, 241, refuse},
		{"userfaultfd", 323, 282, refuse},
		{"kexec_load", 246, 104, refuse},
		{"kexec_file_load", 320, 294, refuse},
		{"create_module", 174, -1, refuse},
		{"init_module", 175, 105, refuse},
		{"finit_module", 313, 273, refuse},
		{"delete_module", 176, 106, refuse},
		{"lsm_set_self_attr", 460, 460, refuse},
		{"iopl", 172, -1, refuse},
		{"ioperm", 173, -1, refuse},
		{"modify_ldt", 154, -1, refuse},
		// Keys, handles and watches that ignore what a path is granted, quotas, swap, clocks, the machine.
		{"add_key", 248, 217, refuse},
		{"request_key", 249, 218, refuse},
		{"keyctl", 250, 219, refuse},
		{"open_by_handle_at", 304, 265, refuse},
		{"fanotify_init", 300, 262, refuse},
		{"inotify_init", 253, -1, absent},
		{"inotify_init1", 294, 26, absent},
		{"inotify_add_watch", 254, 27, refuse},
		{"statmount", 457, 457, absent},
		{"listmount", 458, 458, absent},
		{"quotactl", 179, 60, refuse},
		{"quotactl_fd", 443, 443, refuse},
		{"swapon", 167, 224, refuse},
		{"swapoff", 168, 225, refuse},
		{"reboot", 169, 142, refuse},
		{"settimeofday", 164, 170, refuse},
		{"clock_settime", 227, 112, refuse},
		{"clock_adjtime", 305, 266, refuse},
		{"adjtimex", 159, 171, refuse},
		{"acct", 163, 89, refuse},
		{"syslog", 103, 116, refuse},
		{"vhangup", 153, 58, refuse},
		{"sethostname", 170, 161, refuse},
		{"setdomainname", 171, 162, refuse},
		// Ways around this filter, or calls whose arguments it cannot see; programs fall back.
		{"io_uring_setup", 425, 425, absent},
		{"io_uring_enter", 426, 426, absent},
		{"io_uring_register", 427, 427, absent},
		{"clone3", 435, 435, absent},
		{"memfd_secret", 447, 447, absent},
		{"execveat", 322, 281, absent},
		{"openat2", 437, 437, absent},
		{"uselib", 134, -1, absent},
		// Metadata calls that programs can do without.
		{"setxattrat", 463, 463, absent},
		{"removexattrat", 466, 466, absent},
		{"file_setattr", 469, 469, absent},
		// System V and POSIX IPC reach other processes of the same user.
		{"shmget", 29, 194, absent},
		{"shmat", 30, 196, absent},
		{"shmctl", 31, 195, absent},
		{"shmdt", 67, 197, absent},
		{"msgget", 68, 186, absent},
		{"msgsnd", 69, 189, absent},
		{"msgrcv", 70, 188, absent},
		{"msgctl", 71, 187, absent},
		{"semget", 64, 190, absent},
		{"semop", 65, 193, absent},
		{"semctl", 66, 191, absent},
		{"semtimedop", 220, 192, absent},
		{"mq_open", 240, 180, absent},
		{"mq_unlink", 241, 181, absent},
		// Metadata, by path and by descriptor (§10.2).
		{"chmod", 90, -1, byMetadata},
		{"fchmod", 91, 52, byMetadata},
		{"fchmodat", 268, 53, byMetadata},
		{"fchmodat2", 452, 452, byMetadata},
		{"chown", 92, -1, byMetadata},
		{"fchown", 93, 55, byMetadata},
		{"lchown", 94, -1, byMetadata},
		{"fchownat", 260, 54, byMetadata},
		{"utime", 132, -1, byMetadata},
		{"utimes", 235, -1, byMetadata},
		{"futimesat", 261, -1, byMetadata},
		{"utimensat", 280, 88, byMetadata},
		{"setxattr", 188, 5, byMetadata},
		{"lsetxattr", 189, 6, byMetadata},
		{"fsetxattr", 190, 7, byMetadata},
		{"removexattr", 197, 14, byMetadata},
		{"lremovexattr", 198, 15, byMetadata},
		{"fremovexattr", 199, 16, byMetadata},
		// Decided by arguments.
		{"ioctl", 16, 29, checkIoctl},
		{"memfd_create", 319, 279, checkMemfd},
		{"socketpair", 53, 199, checkPair},
		{"open", 2, -1, checkOpen},
		{"openat", 257, 56, checkOpenat},
		{"creat", 85, -1, checkMode1},
		{"mknod", 133, -1, checkMode1},
		{"mknodat", 259, 33, checkMode2},
		{"prlimit64", 302, 261, checkSelf},
		{"sched_setaffinity", 203, 122, checkSelf},
		{"sched_setscheduler", 144, 119, checkSelf},
		{"sched_setparam", 142, 118, checkSelf},
		{"sched_setattr", 314, 274, checkSelf},
		{"pidfd_open", 434, 434, checkTarget0},
		{"fcntl", 72, 25, checkFcntl},
		{"setpriority", 141, 140, checkPriority},
		{"ioprio_set", 251, 30, checkIoprio},
		{"clone", 56, 220, checkClone},
		// Signals, and the groups and sessions by which a run is killed at once (§10.5).
		{"kill", 62, 129, bySignals},
		{"tkill", 200, 130, bySignals},
		{"tgkill", 234, 131, bySignals},
		{"rt_sigqueueinfo", 129, 138, bySignals},
		{"rt_tgsigqueueinfo", 297, 240, bySignals},
		{"pidfd_send_signal", 424, 424, bySignals},
		{"setsid", 112, 157, bySignals},
		{"setpgid", 109, 154, bySignals},
		// Sockets.
		{"socket", 41, 198, byNetwork},
		{"connect", 42, 203, byNetwork},
		{"bind", 49, 200, byNetwork},
		{"listen", 50, 201, byNetwork},
		{"accept", 43, 202, byNetwork},
		{"accept4", 288, 242, byNetwork},
		{"sendto", 44, 206, byNetwork},
		{"sendmsg", 46, 211, byNetwork},
		{"sendmmsg", 307, 269, byNetwork},
		{"recvfrom", 45, 207, byNetwork},
		{"recvmsg", 47, 212, byNetwork},
		{"setsockopt", 54, 208, byNetwork},
		{"getsockopt", 55, 209, byNetwork},
		{"getsockname", 51, 204, byNetwork},
		{"getpeername", 52, 205, byNetwork},
	}
}
