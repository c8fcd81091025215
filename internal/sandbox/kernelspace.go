package sandbox

// spaces says that a run gets namespaces of its own: Landlock cannot hold files here, and they are to be had (§10.5).
func (k Kernel) spaces() bool { return k.ABI < abiTruncate && k.Namespaces }

// backend is what confines on this kernel, where something does.
func (k Kernel) backend() string {
	if k.Seatbelt {
		return "seatbelt"
	}
	if k.spaces() {
		return "namespace"
	}
	return "landlock"
}

// instead is the rest of the sentence about a kernel without enough of Landlock: why namespaces do not serve either,
// and what would help.
func (k Kernel) instead() string {
	why := k.Barrier
	if why == "" {
		why = "not tried"
	}
	return " Namespaces, which would do instead, are not to be had (" + why + "): Linux 6.2 or later with landlock in its lsm= list helps, or unprivileged user namespaces with mounts in them."
}

// spaceNeeds are the rules of §10.2 where namespaces keep them.
func spaceNeeds() []need {
	return []need{
		{"system-calls", "seccomp filter with an architecture check", missFilter, ""},
		{"files", "a mount namespace: a root of its own with what is listed, read-only or writable", missOpenat2, ""},
		besideLandlock("programs", "nothing else is there; noexec where nothing may be executed, and Landlock; memfd without a no-exec seal refused",
			"a program that lies in a directory of libraries can be executed, since libraries must load"),
		besideLandlock("devices", "nodev mounts, of the listed devices alone; Landlock: only /dev/null is written to, no named socket is made",
			"/dev/zero, random and urandom can be written to, which changes nothing, and a socket file can be made, which nothing can listen on"),
		besideLandlock("proc", "a process namespace with its own /proc; Landlock: nothing in it but own descriptors opens",
			"a command reads in /proc what there is about its own processes: mounts, users, groups of resources, and, with network hosts or full, the sockets and routes of this machine"),
		{"signals", "a process namespace: no other process has a number in it", never, ""},
		{"abstract-sockets", "a network namespace, and no unix socket but an anonymous pair", never, ""},
		{"metadata", "read-only mounts; seccomp refuses setuid and setgid bits", never, ""},
		{"descriptors", "close_range before every start", missCloseRange, ""},
	}
}

func never(Kernel) string { return "" }

func missOpenat2(k Kernel) string {
	if !k.Openat2 {
		return "This kernel or container has no openat2, so what is mounted into the jail cannot be held to what was listed."
	}
	return ""
}

// besideLandlock is a rule that namespaces keep whole only beside some Landlock, and what can be done without any.
func besideLandlock(name, mechanism, without string) need {
	return need{name, mechanism, func(k Kernel) string {
		if k.ABI > 0 {
			return ""
		}
		return "This kernel has no Landlock (or it is not in its lsm= list), and without it " + without + "."
	}, "Accepted: without Landlock " + without + "."}
}

// spaceMechanism is what keeps a rule there that needs nothing of its own.
func spaceMechanism(row Rule) string {
	switch row.Name {
	case "privileges":
		return "no_new_privs, no capabilities, an empty bounding set; no user but the own one in the namespace"
	case "runtime":
		return "a process namespace: the command has no number for it, and a /proc of its own"
	case "launcher":
		return "the first process of the namespace: not dumpable, hidden in /proc; seccomp refuses signals to it and handles of it"
	case "setid-files":
		return "seccomp: no setuid or setgid bit is set; nosuid mounts"
	case "survivors":
		return "the kernel kills a process namespace with its first process"
	}
	return row.Mechanism
}
