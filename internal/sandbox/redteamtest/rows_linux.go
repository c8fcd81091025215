package redteamtest

import (
	"os"
	"slices"
	"strings"
)

// Row is one attack on a scene. It must work as a control and fail inside.
type Row struct {
	ID      string // of the escape
	Name    string
	Attack  string
	Args    []string
	Control []string // what the control is given instead, nil = the same
	Want    string   // part of the reason, "" = any
	// Lack is what a control may say where this machine or user cannot do it anyway, so that the row proves
	// nothing here: parts of reasons with | between. "" = it must work.
	Lack string
	// Nobody says that the kernel lets nobody do this: the control must fail too. When one works some day, the
	// row has to become an ordinary one.
	Nobody bool
	// Promised says that this works inside, as docs/spec §10 says under "What is not promised".
	Promised bool
	// Mark says that the attack leaves a process behind with this word in its arguments: it worked when that one
	// lives after the run.
	Mark string
	Mode string // of the network, "" = none
}

// Network is the mode in which the row is run.
func (r Row) Network() string {
	if r.Mode == "" {
		return "none"
	}
	return r.Mode
}

// Lacks says whether a control failed for a reason that the row allows.
func (r Row) Lacks(why string) bool {
	return r.Lack != "" && slices.ContainsFunc(strings.Split(r.Lack, "|"), func(part string) bool { return strings.Contains(why, part) })
}

// What the kernel answers to an attack.
const (
	denied  = "permission denied"
	refused = "operation not permitted"
	absent  = "function not implemented"
	closedF = "bad file descriptor"
)

// privileged is what a control of an ordinary user may say about what only root can do.
func privileged(more string) string {
	if os.Getuid() == 0 {
		return more
	}
	return strings.TrimPrefix(more+"|"+refused+"|"+denied, "|")
}

// Rows is the whole table for a scene.
func (s *Scene) Rows() []Row {
	return slices.Concat(s.fileRows(), s.handleRows(), s.programRows(), s.metadataRows(), s.socketRows(), s.terminalRows(), s.inheritedRows(), s.signalRows(),
		s.processRows(), s.procRows(), s.kernelRows(), s.survivorRows())
}

func (s *Scene) fileRows() []Row {
	return []Row{
		{ID: "files", Name: "read outside", Attack: "read", Args: []string{s.Secret}, Want: denied},
		{ID: "files", Name: "read relative to an outside directory", Attack: "chdir-read", Args: []string{s.Secret}, Want: denied},
		{ID: "files", Name: "list outside", Attack: "list", Args: []string{s.Outside}, Want: denied},
		{ID: "files", Name: "list home", Attack: "list", Args: []string{"/home"}, Want: denied},
		{ID: "files", Name: "list the private directories", Attack: "list", Args: []string{s.Root + "/scratch"}, Want: denied},
		{ID: "files", Name: "write outside", Attack: "write", Args: []string{s.Fresh(s.Outside)}, Want: denied},
		{ID: "files", Name: "write a readable file", Attack: "append", Args: []string{s.Lent}, Want: denied},
		{ID: "files", Name: "truncate outside", Attack: "truncate", Args: []string{s.Secret}, Want: denied},
		{ID: "files", Name: "truncate a readable file", Attack: "truncate", Args: []string{s.Lent}, Want: denied},
		{ID: "files", Name: "truncate by opening", Attack: "otrunc", Args: []string{s.Lent}, Want: denied},
		{ID: "files", Name: "make a directory outside", Attack: "mkdir", Args: []string{s.Fresh(s.Outside)}, Want: denied},
		{ID: "files", Name: "make a link outside", Attack: "symlink", Args: []string{s.Fresh(s.Readable)}, Want: denied},
		{ID: "files", Name: "remove outside", Attack: "remove", Args: []string{s.Secret}, Want: denied},
		{ID: "files", Name: "remove a readable file", Attack: "remove", Args: []string{s.Lent}, Want: denied},
		{ID: "files", Name: "nameless file outside", Attack: "tmpfile", Args: []string{s.Outside}, Want: denied, Lack: "not supported"},
		{ID: "files", Name: "share the memory of an outside file", Attack: "map", Args: []string{s.Secret}, Want: denied},
		{ID: "futex", Name: "wake who waits on an outside file", Attack: "futex", Args: []string{s.Secret}, Want: denied},
		{ID: "RT12", Name: "read through a link in the jail", Attack: "through", Args: []string{s.Secret, s.Fresh(s.Land)}, Want: denied},
		{ID: "RT12", Name: "read through /proc/self/root", Attack: "read", Args: []string{"/proc/self/root" + s.Secret}, Want: denied},
		{ID: "RT12", Name: "read through /proc/self/cwd", Attack: "read", Args: []string{"/proc/self/cwd/../outside/secret"}, Want: denied},
		{ID: "RT12", Name: "the broker and a path that changes meanwhile", Attack: "broker-race", Args: []string{s.Land, "secret", s.Outside}, Want: refused},
		{ID: "RT13", Name: "hard link into the jail", Attack: "hardlink", Args: []string{s.Secret, s.Fresh(s.Land)}},
		{ID: "RT13", Name: "hard link of a readable file", Attack: "hardlink", Args: []string{s.Lent, s.Fresh(s.Land)}},
		{ID: "RT13", Name: "hard link by a handle", Attack: "link-fd", Args: []string{s.Secret, s.Fresh(s.Land)}},
		{ID: "RT13", Name: "a hard link that was there before", Attack: "append", Args: []string{s.Existing}, Promised: true},
		{ID: "RT14", Name: "rename out of the jail", Attack: "rename", Args: []string{s.File, s.Fresh(s.Outside)}},
		{ID: "RT14", Name: "rename a readable file into the jail", Attack: "rename", Args: []string{s.Lent, s.Fresh(s.Land)}},
		{ID: "RT14", Name: "rename a tree that may be read", Attack: "rename-back", Args: []string{s.Readable, s.Readable + ".moved"}, Want: denied},
		{ID: "RT14", Name: "rename the jail", Attack: "rename-back", Args: []string{s.Land, s.Land + ".moved"}, Want: denied},
		{ID: "RT14", Name: "exchange with an outside file", Attack: "swap", Args: []string{s.File, s.Secret}},
		{ID: "RT14", Name: "exchange with a readable file", Attack: "swap", Args: []string{s.File, s.Lent}},
	}
}

func (s *Scene) handleRows() []Row {
	return []Row{
		{ID: "handles", Name: "open a mere handle again", Attack: "reopen", Args: []string{s.Secret}, Want: denied},
		{ID: "handles", Name: "open a readable file's handle for writing", Attack: "reopen-write", Args: []string{s.Lent}, Want: denied},
		{ID: "handles", Name: "open below a mere handle", Attack: "openat", Args: []string{s.Secret}, Want: denied},
		{ID: "handles", Name: "open by file handle", Attack: "handle", Args: []string{s.Secret, s.Land}, Want: refused, Lack: privileged("not supported")},
		{ID: "watch", Name: "watch an outside directory", Attack: "watch", Args: []string{s.Outside}},
		{ID: "watch", Name: "watch an outside directory by signals", Attack: "notify", Args: []string{s.Outside}, Want: denied, Lack: "invalid argument"},
		{ID: "watch", Name: "watch an outside file", Attack: "watch", Args: []string{s.Secret}},
		{ID: "locks", Name: "lease of an outside file", Attack: "lease", Args: []string{s.Secret}, Want: denied},
		{ID: "locks", Name: "lease of a readable file", Attack: "lease", Args: []string{s.Lent}, Want: refused},
		{ID: "locks", Name: "lock of an inherited file", Attack: "flock", Args: s.Inherited[:1], Want: closedF},
		{ID: "locks", Name: "record lock of an inherited file", Attack: "ofd-lock", Args: s.Inherited[:1], Want: closedF},
		{ID: "devices", Name: "memory", Attack: "open", Args: []string{"/dev/mem"}, Want: denied, Lack: privileged("no such")},
		{ID: "devices", Name: "kernel log", Attack: "open", Args: []string{"/dev/kmsg"}, Want: denied, Lack: privileged("no such")},
		{ID: "devices", Name: "full", Attack: "open", Args: []string{"/dev/full"}, Want: denied},
		{ID: "devices", Name: "write to a device that may be read", Attack: "open-write", Args: []string{"/dev/zero"}, Want: denied},
		{ID: "devices", Name: "fuse", Attack: "open", Args: []string{"/dev/fuse"}, Want: denied, Lack: privileged("no such")},
		{ID: "devices", Name: "make a character device", Attack: "mknod", Args: []string{"char", s.Fresh(s.Land)}, Lack: privileged("")},
		{ID: "devices", Name: "make a block device", Attack: "mknod", Args: []string{"block", s.Fresh(s.Land)}, Lack: privileged("")},
		{ID: "devices", Name: "make a named socket", Attack: "mknod", Args: []string{"socket", s.Fresh(s.Land)}, Want: denied},
		{ID: "devices", Name: "make a fifo outside", Attack: "mknod", Args: []string{"fifo", s.Fresh(s.Outside)}, Want: denied},
		{ID: "devices", Name: "shared memory by name", Attack: "write", Args: []string{"/dev/shm/" + strings.ReplaceAll(s.Fresh("hcpx"), "/", "-") + s.Host}, Want: denied, Lack: "no such"},
		{ID: "kernel files", Name: "pattern of core dumps", Attack: "open-write", Args: []string{"/proc/sys/kernel/core_pattern"}, Want: denied, Lack: privileged("read-only")},
		{ID: "kernel files", Name: "magic key", Attack: "open-write", Args: []string{"/proc/sysrq-trigger"}, Want: denied, Lack: privileged("no such|read-only")},
		{ID: "kernel files", Name: "settings", Attack: "read", Args: []string{"/proc/sys/kernel/random/boot_id"}, Want: denied},
		{ID: "kernel files", Name: "devices of the machine", Attack: "list", Args: []string{"/sys/class"}, Want: denied},
	}
}

func (s *Scene) programRows() []Row {
	rows := []Row{
		{ID: "programs", Name: "execute an unlisted program", Attack: "exec", Args: []string{"/bin/true"}, Want: denied},
		{ID: "programs", Name: "execute a file that the jail wrote", Attack: "plant", Args: []string{s.Self, s.Fresh(s.Land)}, Want: denied},
		{ID: "programs", Name: "execute from shared memory", Attack: "shm-exec", Args: []string{s.Self, "hcpx-" + s.Host}, Want: denied, Lack: "no such|permission denied"},
		{ID: "programs", Name: "execute a mere handle", Attack: "exec-fd", Args: []string{"/bin/true"}, Want: denied},
		{ID: "programs", Name: "execveat of a mere handle", Attack: "execveat", Args: []string{"/bin/true"}, Want: absent},
		{ID: "programs", Name: "change a listed program", Attack: "append", Args: []string{s.Programs[0]}, Want: denied},
		{ID: "programs", Name: "map an outside file to be executed", Attack: "mmap-exec", Args: []string{s.Secret}, Want: denied, Lack: refused},
		{ID: "RT20", Name: "execute by the loader", Attack: "exec", Args: []string{Loader(), "/bin/true"}},
		{ID: "RT21", Name: "execute from memory", Attack: "memfd", Args: []string{s.Self}, Want: denied},
		{ID: "RT21", Name: "execute from memory that says it may", Attack: "memfd", Args: []string{s.Self, "16"}, Want: denied, Lack: "invalid argument"},
		{ID: "RT21", Name: "execute from memory that is sealed", Attack: "memfd", Args: []string{s.Self, "8"}, Control: []string{s.Self, "0"}, Want: denied},
		{ID: "RT24", Name: "setuid bit in the jail", Attack: "setuid", Args: []string{s.File}, Want: refused},
		{ID: "RT24", Name: "setuid bit at creation", Attack: "creat", Args: []string{s.Fresh(s.Land)}, Want: refused},
		{ID: "RT24", Name: "capabilities", Attack: "regain", Want: "no capability", Lack: unless(os.Getuid() == 0, "no capability")},
		{ID: "RT24", Name: "another user", Attack: "change-uid", Want: refused, Lack: privileged("")},
		{ID: "RT24", Name: "other groups", Attack: "change-gid", Want: refused, Lack: privileged("")},
		{ID: "RT29", Name: "add a program to PATH", Attack: "hijack", Want: denied},
		{ID: "RT29", Name: "a program of the workspace by its name", Attack: "by-name", Args: []string{"shadow"}, Want: "not found"},
	}
	if os.Getuid() != 0 { // to root such a program gives nothing that it has not
		rows = append(rows, Row{ID: "RT24", Name: "a setuid program gains nothing", Attack: "setuid-program", Args: []string{s.Setuid}, Want: "exit status 1",
			Lack: unless(s.Setuid != "", "no command")})
	}
	return rows
}

// unless is a lack that holds only where the condition does not.
func unless(condition bool, lack string) string {
	if condition {
		return ""
	}
	return lack
}

// Loader is the ELF loader of this machine, which the jail lets run.
func Loader() string {
	for _, at := range []string{"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1", "/lib/ld-musl-x86_64.so.1", "/lib/ld-musl-aarch64.so.1"} {
		if _, err := os.Stat(at); err == nil {
			return at
		}
	}
	return "/nonexistent"
}

func (s *Scene) metadataRows() []Row {
	on := func(name, attack string, args ...string) Row {
		return Row{ID: "RT16", Name: name, Attack: attack, Args: args, Want: refused}
	}
	attribute := func(r Row) Row { r.Lack = "not supported|inappropriate ioctl"; return r }
	return []Row{
		on("chmod outside", "chmod", s.Secret),
		on("chmod of a readable file", "chmod", s.Lent),
		on("chmod at an outside directory", "chmod-at", s.Secret),
		on("fchmodat2 outside", "chmod2", s.Secret),
		on("fchmod of a readable file", "fchmod", s.Lent),
		on("chmod by a descriptor's path", "proc-chmod", s.Secret),
		on("chmod through a link in the jail", "link-chmod", s.Secret, s.Fresh(s.Land)),
		on("chown outside", "chown", s.Secret),
		on("utime outside", "utime", s.Secret),
		attribute(on("xattr outside", "xattr", s.Secret)),
		attribute(on("xattr by a descriptor's path", "xattr-path", s.Secret)),
		attribute(Row{ID: "RT16", Name: "access list outside", Attack: "acl", Args: []string{s.Secret}}),
		attribute(on("file attributes of a readable file", "immutable", s.Lent)),
		{ID: "RT16", Name: "utime by an inherited descriptor", Attack: "utime-fd", Args: s.Inherited[:1]},
		{ID: "RT16", Name: "xattr by an inherited descriptor", Attack: "xattr-fd", Args: s.Inherited[:1], Lack: "not supported"},
	}
}
