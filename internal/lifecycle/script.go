package lifecycle

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hcpx/internal/gate"
	"hcpx/internal/order"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// scripted says that an allowed program is a script which can't run, and the command that mends it; "" when it can.
// The packs that name it are asked, as exec asks them (§10.2); where no pack names it, the allow-list.
func (l *Lifecycle) scripted(st *store.State, b protocol.AllowedBin) (why, fix string) {
	if strings.HasSuffix(b.Name, "/") || len(gate.InterpretersOf(b.Path)) == 0 {
		return "", ""
	}
	ids, err := l.Store.Packs()
	if err != nil {
		return fmt.Sprintf("%s is a script (%s), and which packs use it cannot be read", b.Name, b.Path), "hcpx repair"
	}
	named := false
	var packs []string
	for _, id := range ids {
		loaded, refusal := l.Gate.Installed(id)
		if refusal != nil {
			continue // said elsewhere; it runs nothing
		}
		if !slices.ContainsFunc(programsOf(loaded.Manifest), func(p program) bool { return p.name == b.Name }) {
			continue
		}
		named = true
		for _, s := range l.Gate.Scripts(st, loaded) {
			if s.Program.Path != b.Path {
				continue
			}
			packs = append(packs, id)
			ban := "is not allowed to " + strings.Join(packs, ", ")
			if s.Instead == "" && !l.embedded(id) {
				ban += ", whose uses must name it"
			}
			why, fix = notRun(b, ban, s.Missing), l.unscripted(b, s.Fix(l.remake(b, id, "")))
		}
	}
	if missing := l.missing(st.Bins, b.Path); !named && len(missing) > 0 {
		return notRun(b, "is not allowed", missing), l.unscripted(b, "hcpx allow "+protocol.Words(missing...))
	}
	return why, fix
}

// missing are the interpreters of an allowed program that the allow-list does not have: without them no pack starts it.
func (l *Lifecycle) missing(bins []protocol.AllowedBin, file string) []string {
	return slices.DeleteFunc(gate.InterpretersOf(file), func(name string) bool {
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

func notRun(b protocol.AllowedBin, why string, missing []string) string {
	return fmt.Sprintf("%s is a script (%s), and what runs it %s (%s)", b.Name, b.Path, why, strings.Join(missing, ", "))
}

// unscripted is the command that allows the program itself: the first of its name in PATH that is no script, else the
// newest of those that Debian keeps by version; the other one where there is none.
func (l *Lifecycle) unscripted(b protocol.AllowedBin, other string) string {
	for _, dir := range append(filepath.SplitList(l.Path), versions(l.Versions)...) {
		file := filepath.Join(dir, filepath.Base(b.Name))
		if filepath.IsAbs(dir) && runnable(file) == nil && len(gate.InterpretersOf(file)) == 0 {
			return "hcpx allow " + dangerousFlag(b) + protocol.Words(file)
		}
	}
	return other
}

// versions are the directories of a pattern, the newest version first: 16 before 9.6.
func versions(pattern string) []string {
	dirs, err := filepath.Glob(pattern)
	if err != nil {
		return nil // no directory is found by no pattern
	}
	number := func(dir string) float64 {
		n, _ := strconv.ParseFloat(filepath.Base(filepath.Dir(dir)), 64) // what is no number comes last
		return n
	}
	order.By(dirs, func(a, b string) int { return cmp.Compare(number(b), number(a)) })
	return dirs
}

// embedded says whether an installed pack came with the program.
func (l *Lifecycle) embedded(id string) bool {
	meta, err := l.Store.Meta(id)
	return err == nil && meta.Source == store.Shipped
}

// remake is the command for what only another uses of the pack would mend. Nobody edits a pack that ships: there the
// program behind the script is to be allowed, by whoever knows where it lies. first is what a pack's author does before.
func (l *Lifecycle) remake(b protocol.AllowedBin, id, first string) string {
	if l.embedded(id) {
		return "hcpx allow " + dangerousFlag(b) + "/PATH/TO/" + filepath.Base(b.Name)
	}
	return first + l.Gate.Again(id)
}

// scripts notes the programs of a pack that are scripts which it can't run.
func (l *Lifecycle) scripts(st *store.State, loaded *gate.Loaded, out *InstalledPack) {
	for _, s := range l.Gate.Scripts(st, loaded) {
		b := protocol.AllowedBin{Name: s.Program.Name, Path: s.Program.Path}
		if i := slices.IndexFunc(st.Bins, func(a protocol.AllowedBin) bool { return a.Path == b.Path && a.Dangerous }); i >= 0 {
			b.Dangerous = true
		}
		out.say(notRun(b, "is not allowed to this pack", s.Missing) + ": " + l.unscripted(b, s.Fix(l.remake(b, loaded.ID, "name it in uses, then "))) + ".")
	}
}
