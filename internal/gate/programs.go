package gate

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hcpx/internal/places"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
	"hcpx/internal/stamp"
	"hcpx/internal/store"
)

// Interpreter says whether a program runs whatever it is told, in a language of its own or as a command
// that it starts: allowed as bin only by hcpx allow --dangerous, and in uses for a script (§10.2). A suffix
// for a version, a variant or a machine does not hide one.
func Interpreter(name string) bool {
	base := path.Base(name)
	if base == "ld.so" || base == "ld64.so" || strings.HasPrefix(base, "ld-") && strings.Contains(base, ".so") {
		return true // the ELF loader starts any file that it is given
	}
	if at := strings.Index(base, "-linux"); at > 0 {
		base = base[:max(strings.LastIndexByte(base[:at], '-'), 0)]
	}
	base, _, _ = strings.Cut(base, ".")
	base = strings.TrimRight(strings.TrimSuffix(base, "-static"), "0123456789-")
	switch base {
	case "sh", "bash", "rbash", "dash", "zsh", "rzsh", "ksh", "rksh", "mksh", "lksh", "posh", "yash", "fish", "csh", "tcsh", "bsd-csh", "ash", "busybox", "toybox",
		"pwsh", "powershell", "osascript", "python", "ipython", "pypy", "perl", "ruby", "node", "nodejs", "deno", "bun", "bunx", "npx", "qjs",
		"lua", "luajit", "php", "tclsh", "wish", "expect", "guile", "Rscript", "R", "julia", "octave", "java", "jshell", "groovy",
		"awk", "gawk", "mawk", "nawk", "sed", "gsed", "dc", "ed", "red", "ex", "vi", "view", "vim", "vimdiff", "rvim", "nvim", "emacs",
		"less", "more", "most", "man", "find", "make", "gmake", "bmake", "gdb", "strace", "ltrace", "perf", "valgrind":
		return true
	}
	switch path.Base(name) {
	case "m4", "i386", "x86_64": // whose digits are no version
		return true
	}
	return launcher(base)
}

// launcher says whether a program is there to start another one.
func launcher(base string) bool {
	switch base {
	case "env", "sudo", "sudo-rs", "su", "doas", "pkexec", "runuser", "setpriv", "sg", "newgrp", "capsh", "xargs", "parallel", "run-parts", "entr",
		"nohup", "nice", "ionice", "chrt", "taskset", "numactl", "prlimit", "choom", "timeout", "time", "watch", "stdbuf", "unbuffer", "setsid", "setarch", "linux",
		"flock", "script", "screen", "tmux", "ssh", "rsh", "socat", "nc", "ncat", "netcat",
		"unshare", "nsenter", "chroot", "bwrap", "firejail", "fakeroot", "systemd-run", "start-stop-daemon", "dbus-run-session", "xvfb-run":
		return true
	}
	return false
}

// Allowed is the entry of the allow-list that covers a name of bin or uses now, or why there is none: the
// same name or path, still the file or directory that was allowed, in a place that nobody else can write,
// and an interpreter as bin only where the operator said so (§10.2).
func Allowed(st *store.State, name string, asBin bool) (*protocol.AllowedBin, *protocol.Error) {
	for i := range st.Bins {
		b := &st.Bins[i]
		if b.Name != name && b.Path != name {
			continue
		}
		if asBin && !b.Dangerous && (Interpreter(name) || Interpreter(b.Path)) {
			return nil, notAllowed(name, b.Path, "it runs whatever it is told, and was not allowed as the program of a command",
				"hcpx allow --dangerous "+protocol.Words(name))
		}
		if err := Stands(b); err != nil {
			return nil, notAllowed(name, b.Path, err.Error(), "hcpx allow "+protocol.Words(name))
		}
		return b, nil
	}
	return nil, notAllowed(name, "", "the operator has not allowed it", "hcpx allow "+protocol.Words(name))
}

// program resolves one name of bin or uses for step 8: "./x" is the pack's own and covered by its digest;
// anything else must be on the operator's allow-list as recorded, never looked up in PATH (§10.2).
func (g *Gate) program(st *store.State, l *Loaded, name string, asBin bool) (sandbox.Program, *protocol.Error) {
	if rel, own := strings.CutPrefix(name, "./"); own {
		return ownProgram(l, name, rel)
	}
	b, err := Allowed(st, name, asBin)
	if err != nil {
		return sandbox.Program{}, err
	}
	return sandbox.Program{Name: path.Base(name), Path: b.Path}, nil
}

// named refuses two programs of one name: PATH could lead to one of them only. Declared are their names in the pack.
func (g *Gate) named(v *Verb, declared []string, spec *sandbox.Spec) *protocol.Error {
	all := append([]sandbox.Program{spec.Program}, spec.Uses...)
	for i, p := range all {
		at := slices.IndexFunc(all[:i], func(other sandbox.Program) bool { return other.Name == p.Name && other.Path != p.Path })
		if at < 0 {
			continue
		}
		// A path that the operator names is what the bare name means from then on.
		hint := g.Again(v.ID)
		for _, pair := range [][2]int{{i, at}, {at, i}} {
			path, bare := declared[pair[0]], declared[pair[1]]
			if filepath.IsAbs(path) && !strings.Contains(bare, "/") {
				flag := ""
				if pair[1] == 0 && (Interpreter(bare) || Interpreter(path)) {
					flag = "--dangerous "
				}
				hint = "hcpx allow " + flag + protocol.Word(path)
			}
		}
		return notAllowed(p.Name, p.Path, fmt.Sprintf("the pack has %s under that name too, and PATH leads to one of them only", all[at].Path), hint)
	}
	return nil
}

func ownProgram(l *Loaded, name, rel string) (sandbox.Program, *protocol.Error) {
	if !fs.ValidPath(rel) {
		return sandbox.Program{}, notAllowed(name, "", "it lies outside the pack", "hcpx lint "+protocol.Words(l.Dir))
	}
	full := filepath.Join(places.Resolve(l.Dir), filepath.FromSlash(rel))
	if l.Executables[rel] {
		return sandbox.Program{Name: path.Base(rel), Path: full}, nil // as step 2 has just proved
	}
	if info, err := os.Stat(full); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return sandbox.Program{}, notAllowed(name, full, "the pack ships no such executable", "hcpx lint "+protocol.Words(l.Dir))
	}
	return sandbox.Program{Name: path.Base(rel), Path: full}, nil
}

// Stands proves that an entry of the allow-list still means what the operator allowed (§10.2): a program by
// its stamp, a directory by its place.
func Stands(b *protocol.AllowedBin) error {
	if strings.HasSuffix(b.Name, "/") {
		return placeStands(filepath.Clean(b.Path))
	}
	if err := GuardedDir(filepath.Dir(b.Path)); err != nil {
		return err
	}
	same, err := stamp.Same(b.Path, b.Stamp)
	switch {
	case err != nil:
		return fmt.Errorf("%s cannot be read", b.Path)
	case !same:
		return fmt.Errorf("%s was replaced since it was allowed", b.Path)
	}
	return nil
}

// placeStands: a directory was recorded by its real path, so one that is a link by now is another.
func placeStands(dir string) error {
	if real, err := filepath.EvalSymlinks(dir); err != nil || real != dir {
		return fmt.Errorf("%s is not the directory that was allowed", dir)
	}
	if err := GuardedDir(filepath.Dir(dir)); err != nil {
		return err
	}
	return GuardedDir(dir)
}

// GuardedDir refuses a directory that others than its owner or root can write: a program there may be
// swapped by anyone (§10.2). A group that only the caller is in is nobody else: umask 002 makes ~/.local/bin so.
func GuardedDir(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("%s cannot be read", dir)
	}
	user, group, ok := owner(info)
	if !ok {
		return fmt.Errorf("the owner of %s is not known", dir)
	}
	if uid := uint32(os.Getuid()); user != 0 && user != uid {
		return fmt.Errorf("%s belongs to another user", dir)
	}
	perm := info.Mode().Perm()
	if perm&0o002 != 0 || perm&0o020 != 0 && group != 0 && !ownGroup(group) {
		return fmt.Errorf("others can write %s", dir)
	}
	return nil
}

// ownGroup says whether a group is the caller's and has nobody else in it, as far as this machine's files
// tell; what they do not tell is refused.
func ownGroup(gid uint32) bool {
	if uint32(os.Getgid()) != gid {
		return false
	}
	groups, err := os.ReadFile("/etc/group")
	users, fault := os.ReadFile("/etc/passwd")
	return err == nil && fault == nil && privateGroup(gid, uint32(os.Getuid()), string(groups), string(users))
}

// privateGroup reads group(5) and passwd(5): the group is there once, and no user but uid is in it, neither
// as a member nor by it being his first group.
func privateGroup(gid, uid uint32, groups, users string) bool {
	own, found := "", false
	id, me := strconv.FormatUint(uint64(gid), 10), strconv.FormatUint(uint64(uid), 10)
	for line := range strings.Lines(users) {
		f := strings.Split(strings.TrimSpace(line), ":")
		switch {
		case len(f) < 4:
		case f[2] == me:
			own = f[0]
		case f[3] == id:
			return false
		}
	}
	for line := range strings.Lines(groups) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) < 4 || f[2] != id {
			continue
		}
		if found || own == "" || f[3] != "" && f[3] != own {
			return false
		}
		found = true
	}
	return found
}

func notAllowed(name, path, why, hint string) *protocol.Error {
	e := protocol.Fail(protocol.BinNotAllowed, fmt.Sprintf("The program %q may not run: %s.", name, why)).
		With("name", name).WithHint(hint)
	if path != "" {
		e = e.With("path", path)
	}
	return e
}
