package lifecycle

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hcpx/internal/adapter"
	"hcpx/internal/gate"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// interpretersOf are the programs that run a program which is a script (§10.2); none for any other. Managers
// of versions put such scripts, named like the program that they look for, in front of it in PATH.
func interpretersOf(file string) []string {
	f, err := os.Open(file)
	if err != nil {
		return nil // whoever starts it is told
	}
	defer f.Close()
	return adapter.Interpreters(adapter.FirstLine(f))
}

// missing are the interpreters of an allowed program that the allow-list does not have: without them the
// kernel starts no script.
func (l *Lifecycle) missing(bins []protocol.AllowedBin, file string) []string {
	return slices.DeleteFunc(interpretersOf(file), func(name string) bool {
		return slices.ContainsFunc(bins, func(b protocol.AllowedBin) bool { return l.same(b, name) && gate.Stands(&b) == nil })
	})
}

// same says whether an entry of the allow-list is the program of a name or path.
func (l *Lifecycle) same(b protocol.AllowedBin, name string) bool {
	if b.Name == name || b.Path == name {
		return true
	}
	found, err := l.find(name)
	if err != nil {
		return false
	}
	real, err := filepath.EvalSymlinks(found)
	return err == nil && real == b.Path
}

// scripted says that a program is a script which can't run, and the command that mends it; "" when it can.
func (l *Lifecycle) scripted(bins []protocol.AllowedBin, b protocol.AllowedBin) (why, fix string) {
	missing := l.missing(bins, b.Path)
	if strings.HasSuffix(b.Name, "/") || len(missing) == 0 {
		return "", ""
	}
	return notRun(b, "is not allowed", missing), l.unscripted(b, missing)
}

func notRun(b protocol.AllowedBin, why string, missing []string) string {
	return fmt.Sprintf("%s is a script (%s), and what runs it %s (%s)", b.Name, b.Path, why, strings.Join(missing, ", "))
}

// unscripted is the command that allows the program itself: the first of its name in PATH that is no script.
// Where there is none, it allows what the script needs, which the pack must name in its uses too.
func (l *Lifecycle) unscripted(b protocol.AllowedBin, missing []string) string {
	allow := "hcpx allow " + dangerousFlag(b)
	for _, dir := range filepath.SplitList(l.Path) {
		file := filepath.Join(dir, filepath.Base(b.Name))
		if filepath.IsAbs(dir) && runnable(file) == nil && len(interpretersOf(file)) == 0 {
			return allow + protocol.Words(file)
		}
	}
	return "hcpx allow " + protocol.Words(missing...)
}

// scripts notes the allowed programs of a pack that are scripts which this pack can't run: their interpreter
// must be allowed, and among the pack's uses.
func (l *Lifecycle) scripts(st *store.State, m *manifest.Manifest, out *InstalledPack) {
	for _, p := range programsOf(m) {
		b, err := gate.Allowed(st, p.name, !p.uses)
		if err != nil || strings.HasSuffix(b.Name, "/") {
			continue
		}
		missing := slices.DeleteFunc(interpretersOf(b.Path), func(name string) bool {
			return slices.ContainsFunc(programsOf(m), func(own program) bool {
				entry, err := gate.Allowed(st, own.name, false)
				return err == nil && l.same(*entry, name)
			})
		})
		if len(missing) > 0 {
			out.say(notRun(*b, "is not allowed to this pack", missing) + ": " + l.unscripted(*b, missing) + ".")
		}
	}
}
