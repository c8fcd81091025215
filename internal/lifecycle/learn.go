package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hcpx/internal/gate"
	"hcpx/internal/learn"
	"hcpx/internal/protect"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
)

// LearnRequest is a program to be watched in a run that the caller trusts (§10.2).
type LearnRequest struct {
	Argv []string // with the program's name or path
	Env  []string // the caller's own
	In   io.Reader
	Out  io.Writer // of what the program prints
	// Agreed asks the person, who is told what will run; it is asked after the rules have let the caller past.
	Agreed func(program string) *protocol.Error
	Ready  <-chan struct{} // closed when a signal would be heard
}

// LearnView is what a watched run would need of a pack. Nothing is allowed or installed by it.
type LearnView struct {
	Program string   `json:"program"`
	Argv    []string `json:"argv"`
	Exit    int      `json:"exit_code"` // -1 when a signal ended it
	learn.Proposal
}

// Learn runs a program outside the sandbox, with all rights of the caller, and proposes what a pack that wraps it
// declares (§10.2). It is a person's act like every allow, and leaves the store as it is.
func (l *Lifecycle) Learn(ctx context.Context, s protocol.Session, r LearnRequest) (LearnView, *protocol.Error) {
	view := LearnView{Argv: r.Argv}
	st, err := l.state()
	if err == nil {
		err = l.operator(s, "Learning what a program needs")
	}
	if err == nil {
		err = l.mayInstallSome(s, st)
	}
	if err != nil {
		return view, err
	}
	path, fault := l.learnable(r.Argv[0], s.Dir)
	if fault != nil {
		return view, protocol.Fail(protocol.NotFound, fmt.Sprintf("%q can't be run: %s.", r.Argv[0], sentenceEnd(fault.Error()))).WithHint("hcpx allow --help")
	}
	view.Program = path
	if err := r.Agreed(path); err != nil {
		return view, err
	}
	temp, fault := os.MkdirTemp("", "hcpx-learn-")
	if fault != nil {
		return view, storeFault(fault, "The directory for temporary files cannot be made")
	}
	seen, fault := learn.Watch(ctx, learn.Trial{
		Path: path, Argv: r.Argv, Env: withTemp(r.Env, temp), Dir: s.Dir, In: r.In, Out: r.Out, Ready: r.Ready,
	})
	fault = errors.Join(fault, os.RemoveAll(temp))
	switch {
	case errors.Is(fault, context.Canceled):
		return view, protocol.Fail(protocol.Canceled, "The run was cancelled, and everything it started was ended.")
	case fault != nil:
		return view, protocol.Fail(protocol.SandboxUnavailable, "The program can't be watched here: "+protocol.Clause(sentenceEnd(fault.Error()))+".").
			With("rule", "learn").WithHint("hcpx allow " + protocol.Words(r.Argv[0]))
	}
	view.Exit, view.Proposal = seen.Exit, learn.Propose(seen, l.learnFacts(ctx, s, temp))
	return view, nil
}

// learnable is the absolute path of the program that a person names.
func (l *Lifecycle) learnable(name, dir string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, runnable(name)
	}
	return l.find(name)
}

// withTemp puts a directory of its own in the place of TMPDIR, as a sandboxed run has one.
func withTemp(env []string, temp string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, "TMPDIR=") })
	return append(env, "TMPDIR="+temp)
}

// lookupTime bounds one look for the addresses of a name.
const lookupTime = 3 * time.Second

// learnFacts are this machine's and this person's.
func (l *Lifecycle) learnFacts(ctx context.Context, s protocol.Session, temp string) learn.Facts {
	f := learn.Facts{
		Home: l.Gate.Places.Home, Temp: temp, Given: sandbox.Given(), Hosts: hostsFile("/etc/hosts"),
		Closed: l.Gate.Places.ClosedRead, Dangerous: gate.Interpreter, Protected: protectedName,
		Addresses: func(name string) []netip.Addr {
			ctx, cancel := context.WithTimeout(ctx, lookupTime)
			defer cancel()
			found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
			if err != nil {
				return nil // then the address stands for itself
			}
			return found
		},
	}
	for _, dir := range filepath.SplitList(l.Path) {
		if filepath.IsAbs(dir) {
			f.Path = append(f.Path, filepath.Clean(dir))
		}
	}
	if s.Workspace != "" {
		f.Work = append([]string{s.Workspace}, s.GitDirs...)
	}
	return f
}

// protectedName is the name of the closed list that covers a path of the workspace, or the path itself when it holds
// one (§10.2); "" for any other. A bare directory holds none: what is made or removed in it tells of itself.
func protectedName(rel string, bare bool) string {
	if above := path.Dir(rel); bare && (above == ".git/worktrees" || above == ".git/modules") {
		return above // git looks into each of them
	}
	known := protect.Known(rel)
	for _, g := range protect.List() {
		for _, name := range g.Names {
			switch {
			case name == rel:
				return rel
			case strings.Contains(name, "**") && protect.Covers(name, rel):
				return strings.Join(strings.Split(rel, "/")[:strings.Count(name, "/")+1], "/")
			case name != ".git" && protect.Covers(name, rel):
				return name
			case bare && protect.Covers(rel, name):
				known = false
			}
		}
	}
	if !known {
		return ""
	}
	return rel
}

// hostsFile reads hosts(5).
func hostsFile(path string) map[netip.Addr][]string {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	names := map[netip.Addr][]string{}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		if addr, err := netip.ParseAddr(fields[0]); err == nil {
			names[addr] = append(names[addr], fields[1:]...)
		}
	}
	return names
}
