package learn

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"
)

// Facts are what a proposal rests on beside the run.
type Facts struct {
	Home, Temp string   // the user's home, and the directory that was TMPDIR
	Work       []string // the workspace and its git directories
	Path       []string // the directories of PATH
	Given      []string // what every command may read (§10.2)
	// Closed says why a path stays closed to every pack, "" when it does not.
	Closed func(path string) string
	// Protected is the protected name that a path of the workspace is, lies in or, unless it is bare, holds; "" for any
	// other (§10.2).
	Protected func(rel string, bare bool) string
	// Dangerous says that a program runs whatever it is told.
	Dangerous func(name string) bool
	// Hosts are the names that the hosts file gives an address.
	Hosts map[netip.Addr][]string
	// Addresses resolves the host of a URL; empty when it has none.
	Addresses func(name string) []netip.Addr
}

// Proposal is what a pack would declare for a run like the one that was seen.
type Proposal struct {
	Wrap     Wrap     `json:"wrap"`     // a block of surface.json
	Policy   Policy   `json:"policy"`   // of the command, in policy.json
	Commands []string `json:"commands"` // the operator's, beside installing the pack
	Writes   Writes   `json:"writes"`
	Closed   []Closed `json:"closed"` // what it read and no pack may
	Notes    []string `json:"notes"`
}

// Wrap is the block of the manifest (§3.3).
type Wrap struct {
	Bin     string   `json:"bin"`
	Uses    []string `json:"uses,omitempty"`
	Reads   []string `json:"reads,omitempty"`
	Network Network  `json:"network"`
}

// Network is none, full, or hosts.
type Network struct {
	Mode  string
	Hosts []string
}

// MarshalJSON writes the form of the manifest.
func (n Network) MarshalJSON() ([]byte, error) {
	if len(n.Hosts) > 0 {
		return json.Marshal(map[string][]string{"hosts": n.Hosts})
	}
	return json.Marshal(n.Mode)
}

// Policy is the entry of the command (§4).
type Policy struct {
	Operation string  `json:"operation"`
	Privacy   Privacy `json:"privacy"`
	// Protected are the protected names that it changed.
	Protected []string `json:"protected,omitempty"`
}

// Privacy names the land.
type Privacy struct {
	Land string `json:"land"`
}

// Writes are the places that it wrote.
type Writes struct {
	Workspace []string `json:"workspace"`
	Home      []string `json:"home"`      // private and empty in each sandboxed run
	Elsewhere []string `json:"elsewhere"` // closed in the sandbox
}

// Closed is a path that stays closed, with the reason.
type Closed struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// proposing is a proposal in the making.
type proposing struct {
	Facts
	seen *Seen
	out  *Proposal
	used []string // programs with a path of their own, for the commands
}

// Propose makes a proposal of what was seen. It leaves out what every command gets, and never opens what stays closed.
func Propose(seen *Seen, f Facts) Proposal {
	p := &proposing{Facts: f, seen: seen, out: &Proposal{
		Commands: []string{}, Closed: []Closed{}, Notes: []string{}, Writes: Writes{Workspace: []string{}, Home: []string{}, Elsewhere: []string{}},
	}}
	p.programs()
	p.reads()
	p.writes()
	p.network()
	p.told()
	return *p.out
}

func (p *proposing) note(format string, a ...any) {
	if text := shown(fmt.Sprintf(format, a...)); !slices.Contains(p.out.Notes, text) {
		p.out.Notes = append(p.out.Notes, text)
	}
}

// told says what the proposal can't show.
func (p *proposing) told() {
	switch {
	case p.seen.Signal != "":
		p.note("It was ended by %s: what it did not reach is not in the proposal.", p.seen.Signal)
	case p.seen.Exit != 0:
		p.note("It ended with exit code %d: what it did not reach is not in the proposal.", p.seen.Exit)
	}
	if p.seen.Left > 0 {
		p.note("It left %d processes running, which were ended. Inside, nothing outlives the command.", p.seen.Left)
	}
	if p.seen.Unread > 0 {
		p.note("The arguments of %d calls could not be read: the proposal may lack something.", p.seen.Unread)
	}
	for _, s := range p.seen.Sockets {
		p.note("It connects to the socket %s. No socket of this machine can be reached inside.", s)
	}
}

// tilde writes a path below the home directory as the manifest does.
func (p *proposing) tilde(path string) string {
	if p.Home != "" && path != p.Home && within(path, p.Home) {
		return "~" + strings.TrimPrefix(path, strings.TrimSuffix(p.Home, "/"))
	}
	return path
}

func (p *proposing) inWork(f File) bool {
	return slices.ContainsFunc(p.Work, func(dir string) bool { return within(f.Path, dir) || within(f.Real, dir) })
}

func (p *proposing) given(f File) bool {
	return slices.ContainsFunc(p.Given, func(dir string) bool { return within(f.Path, dir) || within(f.Real, dir) })
}

// broad says that a directory holds too much to be opened whole: it is a top of the system, a directory of programs,
// lies around what the person works in, or is closed.
func (p *proposing) broad(dir string) bool {
	return strings.Count(dir, "/") < 2 || slices.Contains(p.Path, dir) || p.Closed(dir) != "" ||
		within(p.Home, dir) || within(p.Temp, dir) || slices.ContainsFunc(p.Work, func(w string) bool { return within(w, dir) })
}

// writes tells the places that were written, and what that makes of the command.
func (p *proposing) writes() {
	var work, home, elsewhere, protected []string
	land := Privacy{"personal"}
	operation := "read"
	for _, f := range p.seen.Files {
		if p.inWork(f) {
			land.Land = "local"
			if f.Write {
				operation = "write"
			}
		}
		switch {
		case f.Gone && f.Made: // a file of a moment
		case !f.Write || within(f.Path, p.Temp) || within(f.Real, p.Temp) || own(f.Path) || within(f.Path, "/dev"):
		case p.inWork(f):
			work = append(work, f.Path)
			protected = append(protected, p.protected(f)...)
		case within(f.Path, p.Home):
			home = append(home, f.Path)
		default:
			elsewhere = append(elsewhere, f.Path)
		}
	}
	group := func(list []string) []string {
		out := []string{}
		for _, g := range p.grouped(list) {
			out = append(out, shown(p.tilde(g)))
		}
		return out
	}
	p.out.Writes = Writes{group(work), group(home), group(elsewhere)}
	if p.out.Policy = (Policy{operation, land, unique(protected)}); len(protected) > 0 {
		p.note("It changes what the host may run later (%s). \"protected\" says that this is by design; without it such a run is undone.",
			some(p.out.Policy.Protected))
	}
	if len(home) > 0 {
		p.note("It writes below the home directory. Inside, HOME is another one, empty at the start of each run.")
	}
	if len(elsewhere) > 0 {
		p.note("It writes outside the workspace (%s). Inside, only the land and the private directory can be written; temporary files go to TMPDIR.",
			some(p.out.Writes.Elsewhere))
	}
}

// protected is the protected name that a file of the workspace stands for. A git directory elsewhere is .git there.
func (p *proposing) protected(f File) []string {
	for i, dir := range p.Work {
		rel, inside := strings.CutPrefix(f.Path, strings.TrimSuffix(dir, "/")+"/")
		if !inside {
			continue
		}
		if i > 0 {
			rel = ".git/" + rel
		}
		if name := p.Protected(rel, f.Bare); name != "" {
			return []string{name}
		}
	}
	return nil
}

// base is the name by which a program is called.
func base(name string) string { return path.Base(name) }
