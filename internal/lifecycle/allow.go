package lifecycle

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"hcpx/internal/egress"
	"hcpx/internal/gate"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// AllowRequest is one form of allow (§10.2, §10.3): programs, native-local for a pack, hosts for a pack,
// or paths that a pack may read.
type AllowRequest struct {
	Bins      []string
	Dangerous bool // interpreters and shells as the program of a command
	Native    string
	HostPack  string
	Hosts     []string
	ReadPack  string
	Reads     []string // as the manifest declares them
	Remove    bool     // take back instead
}

// Allow extends the allow-list. It needs pack.install, and it is a person's act.
func (l *Lifecycle) Allow(s protocol.Session, r AllowRequest) (AllowView, *protocol.Error) {
	view := AllowView{Bins: []protocol.AllowedBin{}, Reads: []protocol.AllowedRead{}, Native: []string{}, Hosts: []protocol.AllowedHost{}, Notes: []string{}}
	st, err := l.state()
	if err != nil {
		return view, err
	}
	on := subject{act: "allow", pack: r.Native + r.HostPack + r.ReadPack}
	err = l.operator(s, "Allowing") // first: no grant makes an agent a person
	switch {
	case err != nil:
	case on.pack == "":
		err = l.mayInstallSome(s, st)
	default:
		on.plane = l.plane(on.pack)
		err = l.may(s, st, protocol.PackInstall, on)
	}
	if err == nil && !r.Remove {
		err = l.Gate.Rules.Forbidden(r.Native != "", r.Dangerous)
	}
	if err != nil {
		return view, err
	}
	change, err := l.allowance(r, &view)
	if err != nil {
		return view, err
	}
	view.Changed, err = l.update(s, "allow", on.pack, func(st *store.State) (any, *protocol.Error) {
		if !change(st) {
			return nil, nil
		}
		detail := map[string]any{"bins": view.Bins, "reads": view.Reads, "native": view.Native, "hosts": view.Hosts}
		if view.Removed {
			detail["removed"] = true
		}
		return detail, nil
	})
	return view, err
}

// allowance looks at everything before the state is touched, and answers the change that is left to do.
func (l *Lifecycle) allowance(r AllowRequest, view *AllowView) (func(*store.State) bool, *protocol.Error) {
	switch {
	case r.Remove && (len(r.Bins)+len(r.Hosts)+len(r.Reads) > 0 || r.Native != ""):
		return disallow(r, view), nil
	case r.Native != "":
		return l.allowNative(r.Native, view)
	case r.HostPack != "":
		return l.allowHosts(r, view)
	case r.ReadPack != "":
		return l.allowReads(r, view)
	case len(r.Bins) > 0:
		return l.allowBins(r, view)
	}
	return nil, protocol.Fail(protocol.UsageError, "Name a program, or --native PACK, or --host PACK HOST:PORT.").WithHint("hcpx allow --help")
}

func (l *Lifecycle) allowBins(r AllowRequest, view *AllowView) (func(*store.State) bool, *protocol.Error) {
	for _, name := range r.Bins {
		bin, err := l.record(name, r.Dangerous)
		if err != nil {
			return nil, protocol.Fail(protocol.BinNotAllowed, fmt.Sprintf("%q was not allowed: %s.", name, sentenceEnd(err.Error()))).
				With("name", name).WithHint("hcpx allow --help")
		}
		if p := (program{name: name}); !r.Dangerous && p.dangerous(bin.Path) {
			view.Notes = append(view.Notes, name+" runs whatever it is told: allowed for packs that use it, not as the program of a command. That takes --dangerous.")
		}
		view.Bins = append(view.Bins, bin)
		if filepath.IsAbs(name) && !strings.HasSuffix(name, "/") {
			bin.Name = filepath.Base(name) // the operator says which file the name means
			view.Bins = append(view.Bins, bin)
		}
	}
	if err := l.noteBins(view); err != nil {
		return nil, err
	}
	return func(st *store.State) bool {
		changed := false
		for _, bin := range view.Bins {
			changed = putBin(st, bin) || changed
		}
		return changed
	}, nil
}

// noteBins says which of the programs are scripts that can't run yet, and which names mean another file now.
func (l *Lifecycle) noteBins(view *AllowView) *protocol.Error {
	st, err := l.state()
	if err != nil {
		return err
	}
	then := &store.State{Bins: slices.Clone(st.Bins)}
	for _, bin := range view.Bins {
		putBin(then, bin)
	}
	for _, bin := range view.Bins {
		if why, fix := l.scripted(then, bin); why != "" {
			view.Notes = append(view.Notes, why+": "+fix)
		}
		for _, old := range st.Bins {
			if old.Name == bin.Name && old.Path != bin.Path {
				view.Notes = append(view.Notes, fmt.Sprintf("%s was %s until now.", bin.Name, old.Path))
			}
		}
	}
	return nil
}

// allowNative is the operator's half of §10.3; the manifest must say the other.
func (l *Lifecycle) allowNative(id string, view *AllowView) (func(*store.State) bool, *protocol.Error) {
	m, err := l.wrapOf(id)
	if err != nil {
		return nil, err
	}
	if m.Wrap.Isolation != "native-local" {
		return nil, protocol.Fail(protocol.UsageError, fmt.Sprintf("Pack %q runs in the sandbox and does not ask for native-local.", id)).WithHint("hcpx availability " + id)
	}
	view.Native = append(view.Native, id)
	return func(st *store.State) bool {
		if slices.Contains(st.Native, id) {
			return false
		}
		st.Native = append(st.Native, id)
		return true
	}, nil
}

// allowHosts adds hosts to a pack that declares operator_hosts (§10.2).
func (l *Lifecycle) allowHosts(r AllowRequest, view *AllowView) (func(*store.State) bool, *protocol.Error) {
	m, err := l.wrapOf(r.HostPack)
	if err != nil {
		return nil, err
	}
	if !m.Wrap.Network.OperatorHosts {
		return nil, protocol.Fail(protocol.UsageError, fmt.Sprintf("Pack %q takes no hosts from its operator.", r.HostPack)).WithHint("hcpx availability " + r.HostPack)
	}
	for _, h := range r.Hosts {
		host, err := egress.ParseHost(h)
		if err != nil {
			return nil, protocol.Fail(protocol.UsageError, fmt.Sprintf("%q is not HOST:PORT: %v.", h, err)).WithHint("hcpx allow --host " + r.HostPack + " api.example.org:443")
		}
		view.Hosts = append(view.Hosts, protocol.AllowedHost{Pack: r.HostPack, Host: host.String()})
	}
	return func(st *store.State) bool {
		changed := false
		for _, h := range view.Hosts {
			if !slices.Contains(st.Hosts, h) {
				st.Hosts, changed = append(st.Hosts, h), true
			}
		}
		return changed
	}, nil
}

// allowReads lets a pack read paths that its manifest declares, no other, and none that stays closed (§10.2).
func (l *Lifecycle) allowReads(r AllowRequest, view *AllowView) (func(*store.State) bool, *protocol.Error) {
	m, err := l.wrapOf(r.ReadPack)
	if err != nil {
		return nil, err
	}
	for _, path := range r.Reads {
		if !slices.Contains(m.Wrap.Reads, path) {
			return nil, protocol.Fail(protocol.UsageError, fmt.Sprintf("Pack %q does not declare that it reads %q.", r.ReadPack, path)).WithHint("hcpx availability " + r.ReadPack)
		}
		if why := l.Gate.Places.ClosedRead(path); why != "" {
			return nil, protocol.Fail(protocol.UsageError, fmt.Sprintf("No pack may read %s: %s.", path, why)).WithHint("hcpx availability " + r.ReadPack)
		}
		view.Reads = append(view.Reads, protocol.AllowedRead{Pack: r.ReadPack, Path: path})
	}
	return func(st *store.State) bool {
		changed := false
		for _, read := range view.Reads {
			changed = putRead(st, read) || changed
		}
		return changed
	}, nil
}

// wrapOf is the manifest of an installed wrap pack.
func (l *Lifecycle) wrapOf(id string) (*manifest.Manifest, *protocol.Error) {
	loaded, err := l.Gate.Installed(id)
	if err != nil {
		return nil, err
	}
	if loaded.Manifest.Wrap == nil || id == gate.Bootstrap {
		return nil, protocol.Fail(protocol.UsageError, fmt.Sprintf("Pack %q starts no program.", id)).WithHint("hcpx availability " + id)
	}
	return loaded.Manifest, nil
}

// letIn records the programs and paths of a pack that is being installed (§10.2). What can't be allowed
// is left out and answered with its reason: the install stands, and the pack needs it.
func (in *installing) letIn(m *manifest.Manifest, out *InstalledPack, bins, reads bool) (refused map[string]string, failure *protocol.Error) {
	refused = map[string]string{}
	st, failure := in.state()
	if failure != nil {
		return refused, failure
	}
	var list []protocol.AllowedBin
	for _, p := range programsOf(m) {
		if !bins || p.allowed(st) {
			continue
		}
		bin, err := in.record(p.name, false)
		switch {
		case err != nil:
			refused[p.name] = err.Error()
		case p.dangerous(bin.Path):
			refused[p.name] = "it runs whatever it is told"
		default:
			list = append(list, bin)
		}
	}
	changed, failure := in.update(in.s, "allow", m.ID, func(st *store.State) (any, *protocol.Error) {
		out.Allowed = []string{}
		for _, bin := range list {
			if putBin(st, bin) {
				out.Allowed = append(out.Allowed, bin.Name)
			}
		}
		if reads && m.Wrap != nil {
			for _, path := range m.Wrap.Reads {
				if why := in.Gate.Places.ClosedRead(path); why != "" {
					refused[path] = why
					continue
				}
				if putRead(st, protocol.AllowedRead{Pack: m.ID, Path: path}) {
					out.Allowed = append(out.Allowed, path)
				}
			}
		}
		if len(out.Allowed) == 0 {
			return nil, nil
		}
		return map[string]any{"allowed": out.Allowed}, nil
	})
	out.Changed = out.Changed || changed
	return refused, failure
}
