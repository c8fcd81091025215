package redteamtest

import (
	"fmt"
	"os"
	"slices"
)

func (s *Scene) socketRows() []Row {
	var rows []Row
	for _, mode := range []string{"", "full", "hosts"} { // no unix socket in any
		on := func(id, name, attack string, args ...string) Row {
			if mode != "" {
				name += ", network " + mode
			}
			return Row{ID: id, Name: name, Attack: attack, Args: args, Want: denied, Mode: mode}
		}
		rows = append(rows,
			on("RT03", "named unix socket", "unix", s.Sock),
			on("RT03", "named unix socket in a readable tree", "unix", "../readable/sock"),
			on("RT03", "named unix socket in the jail", "unix", "sock"),
			on("RT04", "a descriptor from somebody outside", "take-fd", s.Sock),
			on("RT05", "abstract unix socket", "unix", s.Abstract),
			on("RT05", "listen on an abstract unix socket", "unix-listen", s.Abstract+"-in"),
			on("RT03", "listen on a named unix socket", "unix-listen", "new-sock"),
			on("RT06", "datagram pair", "dgram-pair"),
			on("RT06", "datagram pair sends to a named socket", "pair-send", s.Datagram),
			on("RT06", "datagram pair connects to a named socket", "pair-reconnect", s.Datagram),
		)
		for _, row := range []Row{on("RT33", "multipath TCP", "mptcp"), on("RT33", "SCTP", "sctp"), on("sockets", "virtual machine socket", "vsock")} {
			row.Lack = "not supported|not available"
			rows = append(rows, row)
		}
		for _, row := range []Row{on("sockets", "raw socket", "raw"), on("sockets", "packet socket", "packet")} {
			row.Lack = privileged("not supported")
			rows = append(rows, row)
		}
	}
	on := func(id, name, attack string, args ...string) Row {
		return Row{ID: id, Name: name, Attack: attack, Args: args, Want: denied}
	}
	return append(rows,
		on("sockets", "internet socket", "inet"),
		on("sockets", "netlink socket", "netlink"),
		on("sockets", "any family and type", "families"),
		Row{ID: "sockets", Name: "any other family and type, network full", Attack: "families", Args: []string{"full"}, Mode: "full", Want: denied},
		on("sockets", "listen on the machine", "listen"),
		Row{ID: "sockets", Name: "any other family and type, network hosts", Attack: "families", Args: []string{"hosts"}, Mode: "hosts", Want: denied},
		Row{ID: "sockets", Name: "netlink socket, network hosts", Attack: "netlink", Mode: "hosts", Want: denied},
		Row{ID: "sockets", Name: "listen on the machine, network hosts", Attack: "listen", Mode: "hosts", Want: denied},
		Row{ID: "RT30", Name: "datagram to a resolver, network hosts", Attack: "datagram", Args: []string{s.UDP}, Mode: "hosts"},
		Row{ID: "RT31", Name: "connect to a port that is not listed, network hosts", Attack: "dial", Args: []string{"127.0.0.1:" + s.TCP}, Mode: "hosts"},
		Row{ID: "RT34", Name: "connect to another address of the machine, network hosts", Attack: "dial", Args: []string{"127.0.0.2:" + s.TCP}, Mode: "hosts"},
		Row{ID: "RT34", Name: "connect to it by a mapped address, network hosts", Attack: "dial", Args: []string{"[::ffff:127.0.0.1]:" + s.TCP}, Mode: "hosts"},
		Row{ID: "RT33", Name: "connect by fast open, network hosts", Attack: "fast-open", Args: []string{s.TCP}, Mode: "hosts"},
		on("RT30", "datagram to a resolver", "datagram", s.UDP),
		on("RT31", "connect to a port of the machine", "dial", "127.0.0.1:"+s.TCP),
		on("RT32", "datagram socket", "udp"),
		on("RT33", "connect by fast open", "fast-open", s.TCP),
	)
}

func (s *Scene) terminalRows() []Row {
	return []Row{
		{ID: "RT01", Name: "type a key", Attack: "type", Args: []string{"/dev/tty"}, Lack: "input/output error|" + privileged(refused)},
		{ID: "RT01", Name: "type a key into another terminal", Attack: "type", Args: []string{s.Terminal}, Lack: "input/output error|" + privileged(refused)},
		{ID: "RT01", Name: "inject by ioctl", Attack: "tiocsti", Want: refused},
		{ID: "RT01", Name: "inject by the console's ioctl", Attack: "tioclinux", Want: refused},
		{ID: "RT01", Name: "the controlling terminal", Attack: "tty"},
		{ID: "RT01", Name: "take a terminal", Attack: "take-tty", Args: []string{s.Terminal}},
		{ID: "RT01", Name: "a new terminal", Attack: "ptmx", Want: denied},
		{ID: "RT01", Name: "list terminals", Attack: "list", Args: []string{"/dev/pts"}, Want: denied},
		{ID: "RT02", Name: "inject by a wide ioctl", Attack: "tiocsti-wide", Want: refused},
		{ID: "RT02", Name: "type a key by a wide ioctl", Attack: "type-wide", Args: []string{"/dev/tty"}, Lack: "input/output error|" + privileged(refused)},
		{ID: "session", Name: "join the runtime's process group", Attack: "join-group", Args: []string{s.Host}},
	}
}

func (s *Scene) inheritedRows() []Row {
	on := func(name, attack string, args ...string) Row {
		return Row{ID: "RT11", Name: name, Attack: attack, Args: args, Want: closedF}
	}
	reopen := on("open an inherited file anew", "reopen-fd", s.Inherited[0])
	reopen.Want = ""
	return []Row{
		on("a descriptor of the runtime", "open-fd", s.Inherited...),
		on("a descriptor of a high number", "open-fd", s.High),
		on("open below an inherited directory", "openat-fd", s.Inherited[1]),
		on("enter an inherited directory", "fchdir-fd", s.Inherited[1]),
		reopen,
		on("send an inherited file", "sendfile", s.Inherited[0]),
		on("splice an inherited file", "splice", s.Inherited[0]),
		on("copy a range of an inherited file", "copy-range", s.Inherited[0], s.Fresh(s.Land)),
		on("write to an inherited socket", "send-fd", s.Inherited[2]),
		{ID: "RT07", Name: "agents and tokens in the environment", Attack: "has-env", Args: []string{"SSH_AUTH_SOCK", "KUBECONFIG", "GITHUB_TOKEN"}, Want: "not set"},
		{ID: "RT04", Name: "the bus in the environment", Attack: "has-env", Args: []string{"DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"}, Want: "not set"},
		{ID: "RT08", Name: "code in the environment", Attack: "has-env", Args: []string{"LD_LIBRARY_PATH", "NODE_OPTIONS", "BASH_ENV"}, Want: "not set"},
	}
}

// Ambient is what the runtime's own environment holds while rows are run.
func Ambient() map[string]string {
	return map[string]string{"SSH_AUTH_SOCK": "/nonexistent", "KUBECONFIG": "/nonexistent", "GITHUB_TOKEN": "none", "XDG_RUNTIME_DIR": "/nonexistent",
		"DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent", "LD_LIBRARY_PATH": "/nonexistent", "NODE_OPTIONS": "--no-warnings", "BASH_ENV": "/nonexistent"}
}

// whom are the processes that nothing may reach: somebody else's, the runtime, what started it, another run of it.
func (s *Scene) whom() map[string]string {
	whom := map[string]string{"another process": s.Victim, "the runtime": s.Host, "the runtime's parent": s.Parent}
	if s.Other != "" {
		whom["another run"] = s.Other
	}
	return whom
}

func (s *Scene) signalRows() []Row {
	var rows []Row
	for _, name := range []string{"another process", "the runtime", "the runtime's parent", "another run"} {
		target, ok := s.whom()[name]
		if !ok {
			continue
		}
		for _, attack := range []string{"signal", "pidfd-signal", "tkill", "tgkill", "killpg", "queue", "queue-thread"} {
			row := Row{ID: "RT22", Name: attack + " to " + name, Attack: attack, Args: []string{target}}
			if target != s.Victim {
				row.Control = []string{s.Victim} // the parent may be of another user, and a run is out of sight
			}
			rows = append(rows, row)
		}
	}
	on := func(id, name, attack string, args ...string) Row {
		return Row{ID: id, Name: name, Attack: attack, Args: args}
	}
	return append(rows,
		on("RT22", "signal to the thread that started it", "launcher", s.Highest),
		on("RT22", "signal to that thread alone", "launcher-thread", s.Highest),
		on("RT22", "handle of that thread", "launcher-pidfd", s.Highest),
		on("RT22", "owner of a descriptor's signals", "async-owner", s.Victim),
		on("RT22", "owner of a descriptor's signals, extended", "own-ex", s.Victim),
		on("RT22", "owner of a socket's signals", "own-ioctl", s.Victim),
		on("RT22", "owner of a socket's signals by its other name", "own-socket", s.Victim),
		on("RT22", "a child of the runtime", "clone-parent"),
		on("RT22", "signal from a domain of one's own", "layers", s.Victim, "15"),
		Row{ID: "RT22", Name: "timer of somebody else's thread", Attack: "timer", Args: []string{s.Victim}, Nobody: true},
	)
}

// processRows reach into processes and change how they are run.
func (s *Scene) processRows() []Row {
	var rows []Row
	for _, name := range []string{"another process", "the runtime", "another run"} {
		target, ok := s.whom()[name]
		if !ok {
			continue
		}
		add := func(id, attack string, lack string, more ...string) {
			row := Row{ID: id, Name: attack + " of " + name, Attack: attack, Args: append([]string{target}, more...), Lack: lack}
			if target != s.Victim {
				row.Control = append([]string{s.Victim}, more...)
			}
			rows = append(rows, row)
		}
		for _, attack := range []string{"ptrace", "attach", "getfd", "kcmp", "robust"} {
			add("RT23", attack, refused) // where the machine keeps all processes apart
		}
		add("RT23", "vmread", refused, s.Address)
		for _, attack := range []string{"vmwrite", "move-pages", "madvise"} {
			add("RT23", attack, refused)
		}
		add("RT23", "setns", privileged(""))
		for _, attack := range []string{"prlimit", "renice", "schedule", "policy", "param", "attr", "ioprio"} {
			add("scheduling", attack, "")
		}
		add("scheduling", "migrate", "not implemented|"+privileged(""))
	}
	return rows
}

// procRows look at processes.
func (s *Scene) procRows() []Row {
	var rows []Row
	for _, name := range []string{"another process", "the runtime", "the runtime's parent", "another run"} {
		target, ok := s.whom()[name]
		if !ok {
			continue
		}
		add := func(attack, what string, more ...string) {
			row := Row{ID: "RT09", Name: attack + " /proc " + what + " of " + name, Attack: attack, Args: append([]string{"/proc/" + target + "/" + what}, more...), Want: denied}
			if target != s.Victim {
				row.Control = append([]string{"/proc/" + s.Victim + "/" + what}, more...)
			}
			rows = append(rows, row)
		}
		for _, what := range []string{"environ", "maps", "cmdline", "status", "stat", "auxv", "cgroup", "mountinfo"} {
			add("read", what)
		}
		for _, what := range []string{"exe", "cwd", "root"} {
			add("readlink", what)
		}
		for _, what := range []string{"fd", "task", "root"} {
			add("list", what)
		}
		add("open", "exe")
		add("open-write", "fd/1")
		add("peek", "mem", s.Address)
		add("open-write", "mem")
		add("oom", "oom_score_adj", "900")
	}
	own := func(name, attack string, args ...string) Row {
		return Row{ID: "own proc", Name: name, Attack: attack, Args: args, Want: denied}
	}
	return append(rows,
		Row{ID: "RT09", Name: "descriptors of the runtime by the thread that started it", Attack: "launcher-files", Args: []string{s.Highest}},
		Row{ID: "RT09", Name: "directories of the runtime by that thread", Attack: "launcher-links", Args: []string{s.Highest}},
		Row{ID: "command lines", Name: "command lines of anybody", Attack: "lines", Args: []string{"victim"}},
		own("own memory score", "oom", "/proc/self/oom_score_adj", "900"),
		own("own memory score by its old name", "oom", "/proc/self/oom_adj", "10"),
		own("own groups of resources", "read", "/proc/self/cgroup"),
		own("own memory", "open-write", "/proc/self/mem"),
		own("own mounts", "read", "/proc/self/mountinfo"),
		own("filter of own core dumps", "open-write", "/proc/self/coredump_filter"),
		own("map of own users", "open", "/proc/self/uid_map"),
		own("list all processes", "list", "/proc"),
		Row{ID: "own proc", Name: "move to another group of resources", Attack: "open-write", Args: []string{"/sys/fs/cgroup/cgroup.procs"}, Want: denied, Lack: privileged("no such|read-only")},
		Row{ID: "own proc", Name: "groups of resources", Attack: "list", Args: []string{"/sys/fs/cgroup"}, Want: denied, Lack: "no such"},
	)
}

func (s *Scene) kernelRows() []Row {
	rows := []Row{
		{ID: "RT17", Name: "a ring", Attack: "io_uring", Want: absent, Lack: absent + "|" + refused},
		{ID: "RT18", Name: "x32 call", Attack: "x32", Args: []string{s.Secret}, Want: absent, Lack: absent},
		{ID: "RT18", Name: "number with a set bit above", Attack: "wide-number", Args: []string{s.Secret}, Want: refused, Lack: absent},
		{ID: "RT18", Name: "32-bit program", Attack: "foreign", Args: []string{s.Foreign32}, Want: "bad system call", Lack: "exec format error"},
		{ID: "RT18", Name: "32-bit door", Attack: "foreign", Args: []string{s.Foreign64}, Want: "bad system call", Lack: "exec format error|segmentation fault|bad system call"},
		{ID: "RT19", Name: "user namespace", Attack: "userns", Want: refused, Lack: "not permitted|no space|not implemented|invalid"},
		{ID: "RT19", Name: "unshare", Attack: "unshare", Want: refused},
		{ID: "RT19", Name: "clone3", Attack: "clone3", Want: absent, Lack: absent},
		{ID: "keys", Name: "key of the process", Attack: "keyring", Want: refused, Lack: "not implemented|not permitted"},
		{ID: "mounts", Name: "list the mounts of the machine", Attack: "mounts", Want: absent, Lack: absent},
		{ID: "mounts", Name: "make a subvolume", Attack: "subvolume", Args: []string{s.Readable}, Want: refused},
		{ID: "ipc", Name: "System V shared memory", Attack: "shm", Want: absent, Lack: absent},
		{ID: "ipc", Name: "message queue", Attack: "mqueue", Want: absent, Lack: absent},
		{ID: "personality", Name: "another personality", Attack: "personality", Args: []string{s.Secret}, Want: denied},
		{ID: "stacking", Name: "filter of one's own", Attack: "own-filter", Args: []string{s.Secret}, Want: refused},
		{ID: "stacking", Name: "broker of one's own", Attack: "listener", Args: []string{s.Secret}},
		{ID: "core dumps", Name: "limit of core dumps", Attack: "core", Want: "no core dump"},
		{ID: "core dumps", Name: "crash", Attack: "crash", Want: "no core dump", Lack: "no core dump"},
	}
	for flag, name := range map[string]string{"20000": "mount", "20000000": "process", "40000000": "network", "8000000": "ipc", "4000000": "host name", "2000000": "cgroup", "80": "time"} {
		row := Row{ID: "RT19", Name: "unshare the " + name + " namespace", Attack: "namespace", Args: []string{flag}, Want: refused, Lack: "invalid argument|no space"}
		row.Lack = privileged(row.Lack)
		rows = append(rows, row)
	}
	for _, c := range calls() {
		row := Row{ID: "calls", Name: "call " + c.name, Attack: "call", Args: []string{c.name}, Lack: c.lack}
		if c.root {
			row.Lack = privileged(c.lack)
		}
		rows = append(rows, row)
	}
	return rows
}

// survivorRows leave processes behind.
func (s *Scene) survivorRows() []Row {
	var rows []Row
	for _, how := range []string{"plain", "session", "group", "orphan", "pipe", "stopped", "reaper", "layers", "own-filter", "undumpable"} {
		id := "RT25"
		if how == "pipe" {
			id = "RT26"
		}
		mark := fmt.Sprintf("mark-%s-%d", how, os.Getpid())
		rows = append(rows, Row{ID: id, Name: "a survivor: " + how, Attack: "leave", Args: []string{how, mark}, Mark: mark})
	}
	return slices.Clip(rows)
}
