package gate

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
	"hcpx/internal/stamp"
	"hcpx/internal/store"
)

// Interpreter says whether a program runs whatever it is told: allowed as bin only by hcpx allow
// --dangerous, and in uses for a script (§10.2). A version suffix does not hide one.
func Interpreter(name string) bool {
	base := strings.TrimRight(path.Base(name), "0123456789.-")
	switch base {
	case "sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "ash", "busybox", "toybox",
		"python", "pypy", "perl", "ruby", "node", "nodejs", "deno", "bun", "lua", "luajit", "php", "tclsh", "wish", "expect",
		"awk", "gawk", "mawk", "nawk", "env", "sudo", "su", "doas", "pkexec", "xargs", "nohup", "nice", "timeout", "setsid",
		"time", "watch", "parallel", "script", "ssh", "unshare", "nsenter", "chroot", "gdb", "strace", "ltrace",
		"pwsh", "powershell", "osascript", "Rscript", "julia", "java", "make", "find":
		return true
	}
	return false
}

// program resolves one name of bin or uses for step 8: "./x" is the pack's own and covered by its digest;
// anything else must be on the operator's allow-list as recorded, never looked up in PATH (§10.2).
func (g *Gate) program(st *store.State, l *Loaded, name string, asBin bool) (sandbox.Program, *protocol.Error) {
	if rel, own := strings.CutPrefix(name, "./"); own {
		return ownProgram(l, name, rel)
	}
	for i := range st.Bins {
		b := &st.Bins[i]
		if b.Name != name && b.Path != name {
			continue
		}
		if asBin && !b.Dangerous && (Interpreter(name) || Interpreter(b.Path)) {
			return sandbox.Program{}, notAllowed(name, b.Path, "it runs whatever it is told, and was not allowed as the program of a command",
				"hcpx allow --dangerous "+name)
		}
		if err := recorded(b); err != nil {
			return sandbox.Program{}, notAllowed(name, b.Path, err.Error(), "hcpx allow "+name)
		}
		return sandbox.Program{Name: path.Base(name), Path: b.Path}, nil
	}
	return sandbox.Program{}, notAllowed(name, "", "the operator has not allowed it", "hcpx allow "+name)
}

func ownProgram(l *Loaded, name, rel string) (sandbox.Program, *protocol.Error) {
	if !fs.ValidPath(rel) {
		return sandbox.Program{}, notAllowed(name, "", "it lies outside the pack", "hcpx lint "+l.Dir)
	}
	full := filepath.Join(l.Dir, filepath.FromSlash(rel))
	if info, err := os.Stat(full); err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return sandbox.Program{}, notAllowed(name, full, "the pack ships no such executable", "hcpx lint "+l.Dir)
	}
	return sandbox.Program{Name: path.Base(rel), Path: full}, nil
}

// recorded proves that a program is still the one that the operator allowed.
func recorded(b *protocol.AllowedBin) error {
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

// GuardedDir refuses a directory that others than its owner or root can write: a program there may be
// swapped by anyone (§10.2).
func GuardedDir(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("%s cannot be read", dir)
	}
	sys, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("the owner of %s is not known", dir)
	}
	if uid := uint32(os.Getuid()); sys.Uid != 0 && sys.Uid != uid {
		return fmt.Errorf("%s belongs to another user", dir)
	}
	if perm := info.Mode().Perm(); perm&0o002 != 0 || (perm&0o020 != 0 && sys.Gid != 0) {
		return fmt.Errorf("others can write %s", dir)
	}
	return nil
}

func notAllowed(name, path, why, hint string) *protocol.Error {
	e := protocol.Fail(protocol.BinNotAllowed, fmt.Sprintf("The program %q may not run: %s.", name, why)).
		With("name", name).WithHint(hint)
	if path != "" {
		e = e.With("path", path)
	}
	return e
}
