package lifecycle

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hcpx/internal/gate"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
	"hcpx/internal/stamp"
	"hcpx/internal/store"
)

// program is one entry of a pack's bin or uses that the operator must allow.
type program struct {
	name string
	uses bool
}

// programsOf lists what the operator must allow for the pack; the pack's own executables are covered by
// its digest (§10.2), and the bootstrap pack starts none.
func programsOf(m *manifest.Manifest) []program {
	if m == nil || m.Wrap == nil || m.ID == gate.Bootstrap {
		return nil
	}
	var list []program
	if !strings.HasPrefix(m.Wrap.Bin, "./") {
		list = append(list, program{name: m.Wrap.Bin})
	}
	for _, name := range m.Wrap.Uses {
		if !strings.HasPrefix(name, "./") {
			list = append(list, program{name: name, uses: true})
		}
	}
	return list
}

// dangerous says whether the entry needs hcpx allow --dangerous: an interpreter or shell as the program
// of a command.
func (p program) dangerous(path string) bool {
	return !p.uses && (gate.Interpreter(p.name) || gate.Interpreter(path))
}

// allowed says whether the gate of step 8 lets p in now.
func (p program) allowed(st *store.State) bool {
	_, err := gate.Allowed(st, p.name, !p.uses)
	return err == nil
}

// hint is the command that allows p.
func (p program) hint() string {
	if p.dangerous(p.name) {
		return "hcpx allow --dangerous " + protocol.Words(p.name)
	}
	return "hcpx allow " + protocol.Words(p.name)
}

// record makes the entry of the allow-list for a name or path as of now (§10.2): found in the operator's
// PATH, links resolved to the file itself, refused where others could swap it.
func (l *Lifecycle) record(name string, dangerous bool) (protocol.AllowedBin, error) {
	none := protocol.AllowedBin{}
	found, err := l.find(name)
	if err != nil {
		return none, err
	}
	if err := gate.GuardedDir(filepath.Dir(found)); err != nil {
		return none, err
	}
	real, err := filepath.EvalSymlinks(found)
	if err != nil {
		return none, fmt.Errorf("%s cannot be read", found)
	}
	if strings.HasSuffix(name, "/") {
		dir := protocol.AllowedBin{Name: name, Path: real}
		return dir, gate.Stands(&dir)
	}
	if err := gate.GuardedDir(filepath.Dir(real)); err != nil {
		return none, err
	}
	if info, err := os.Stat(real); err == nil && info.Mode().Perm()&0o002 != 0 {
		return none, fmt.Errorf("others can write %s", real)
	}
	sum, err := stamp.Of(real, l.Now())
	if err != nil {
		return none, fmt.Errorf("%s cannot be recorded: %s", real, plainReason(err))
	}
	return protocol.AllowedBin{Name: name, Path: real, Dangerous: dangerous, Stamp: sum}, nil
}

// find is the absolute path that a name has in PATH, or the path itself. Relative entries of PATH are
// passed over: they would mean another place for each caller.
func (l *Lifecycle) find(name string) (string, error) {
	if strings.HasSuffix(name, "/") {
		if !filepath.IsAbs(name) {
			return "", fmt.Errorf("a directory of programs is named by its absolute path")
		}
		info, err := os.Stat(name)
		if err != nil || !info.IsDir() {
			return "", fmt.Errorf("%s is no directory", name)
		}
		return filepath.Clean(name), nil
	}
	if filepath.IsAbs(name) {
		return name, runnable(name)
	}
	if name == "" || strings.ContainsAny(name, "/\x00") {
		return "", errors.New("a program is named by its bare name or its absolute path")
	}
	for _, dir := range filepath.SplitList(l.Path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if path := filepath.Join(dir, name); runnable(path) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not in your PATH: %w", name, fs.ErrNotExist)
}

func runnable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("%s cannot be read", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no file", path)
	case info.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%s is not executable", path)
	}
	return nil
}

// putBin adds or replaces the entry of a name and says whether that changed anything. An entry that
// still stands for the same file stays, and keeps its --dangerous.
func putBin(st *store.State, bin protocol.AllowedBin) bool {
	i := slices.IndexFunc(st.Bins, func(b protocol.AllowedBin) bool { return b.Name == bin.Name })
	if i < 0 {
		st.Bins = append(st.Bins, bin)
		return true
	}
	old := st.Bins[i]
	if old.Path == bin.Path && gate.Stands(&old) == nil && (old.Dangerous || !bin.Dangerous) {
		return false
	}
	st.Bins[i] = bin
	return true
}

// putRead adds a read and says whether it is new.
func putRead(st *store.State, read protocol.AllowedRead) bool {
	if slices.Contains(st.Reads, read) {
		return false
	}
	st.Reads = append(st.Reads, read)
	return true
}

// needsOf lists what the pack asks for and the operator has not allowed.
func needsOf(st *store.State, m *manifest.Manifest) []Need {
	needs := []Need{}
	for _, p := range programsOf(m) {
		if !p.allowed(st) {
			kind := "bin"
			if p.uses {
				kind = "uses"
			}
			needs = append(needs, Need{Kind: kind, Name: p.name, Hint: p.hint()})
		}
	}
	if m == nil || m.Wrap == nil || m.ID == gate.Bootstrap {
		return needs
	}
	for _, path := range m.Wrap.Reads {
		if !slices.Contains(st.Reads, protocol.AllowedRead{Pack: m.ID, Path: path}) {
			needs = append(needs, Need{Kind: "read", Name: path, Hint: "hcpx allow --read " + m.ID + " " + protocol.Words(path)})
		}
	}
	if m.Wrap.Isolation == "native-local" && !slices.Contains(st.Native, m.ID) {
		needs = append(needs, Need{Kind: "native", Name: "native-local", Hint: "hcpx allow --native " + m.ID})
	}
	return needs
}
