package gate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"hcpx/internal/adapter"
	"hcpx/internal/places"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
	"hcpx/internal/store"
)

// World is what step 8 found: the child's whole world, before anything is made.
type World struct {
	Spec *sandbox.Spec // nil: the command starts no process
	// Land is the land directory that must still be made before the run; nil when there is none to make.
	Land *store.LandKey
	// Withheld are declared reads that the operator did not allow, or that do not exist: the child runs
	// without them, and plan says so.
	Withheld []string
}

// World is step 8 without side effects (§10.2): programs resolved against the allow-list, the land's jail,
// declared reads, network, limits, and the kernel's word that all of it can be enforced. A nil call asks
// for availability, before arguments are known.
func (g *Gate) World(st *store.State, s protocol.Session, v *Verb, call *adapter.Call) (*World, *protocol.Error) {
	need := v.Adapter.Spec(call)
	if need == nil || v.ID == Bootstrap {
		return &World{}, nil
	}
	w := &World{Spec: &sandbox.Spec{Args: need.Args, Stdin: need.Stdin, Limits: g.limits(v)}}
	for _, part := range []func() *protocol.Error{
		func() *protocol.Error { return g.native(st, w, v, need) },
		func() *protocol.Error { return g.programs(st, w, v, need) },
		func() *protocol.Error { return g.land(w, s, v, need) },
	} {
		if err := part(); err != nil {
			return nil, err
		}
	}
	g.reads(st, w, v, need)
	g.network(st, w, v, need)
	for _, env := range need.Env {
		w.Spec.Env = append(w.Spec.Env, env.Name+"="+env.Value)
	}
	for _, file := range v.Loaded.Manifest.Binding.Files { // filled when the credential is minted
		w.Spec.Files = append(w.Spec.Files, sandbox.File{Env: file.Name})
	}
	if err := g.keyless(w.Spec); err != nil {
		return nil, err
	}
	if err := g.Sandbox.Check(w.existing()); err != nil {
		return nil, shown(err)
	}
	return w, nil
}

// keyless refuses a jail from which the named key of the vault could be read (§8.3), by whatever tree: an allowed directory of
// programs and what every command may read, too.
func (g *Gate) keyless(spec *sandbox.Spec) *protocol.Error {
	if g.Places.Key == "" || spec.Native {
		return nil
	}
	jail := g.Sandbox.Jail(spec, "")
	for _, a := range slices.Concat(jail.Declared, jail.Base) {
		if places.Within(places.Resolve(g.Places.Key), places.Resolve(a.Path)) {
			return protocol.Fail(protocol.JailEscape, fmt.Sprintf("HCP_VAULT_KEY_FILE names %s, which this command could read in %s.", g.Places.Key, a.Path)).
				With("path", a.Path).WithHint("mv " + protocol.Words(g.Places.Key) + " " + protocol.Words(g.Places.Own()) + "/")
		}
	}
	return nil
}

// shown gives a place that can't be opened the command that shows it: plan is refused as exec is.
func shown(err *protocol.Error) *protocol.Error {
	if path, ok := err.Details["path"].(string); ok && err.Code == protocol.JailEscape {
		return err.WithHint("ls -ld " + protocol.Word(path))
	}
	return err
}

// limits are the command's timeout within the runtime's caps (§10.4).
func (g *Gate) limits(v *Verb) sandbox.Limits {
	l := g.Limits
	if l.Wall == 0 || v.Command.Timeout < l.Wall {
		l.Wall = v.Command.Timeout
	}
	if l.Grace == 0 {
		l.Grace = 2 * time.Second
	}
	return l
}

// native is §10.3: manifest and operator must both say so; with one of them alone it never runs, in
// either way.
func (g *Gate) native(st *store.State, w *World, v *Verb, need *adapter.Need) *protocol.Error {
	if !need.NativeLocal {
		return nil
	}
	if g.Rules.NoNative {
		return protocol.Fail(protocol.SandboxUnavailable, fmt.Sprintf("Pack %q asks to run outside the sandbox, and the settings forbid that to every pack.", v.ID)).
			With("rule", "native-local").With("setting", "sandbox.native_local").WithHint("hcpx config show")
	}
	if !slices.Contains(st.Native, v.ID) {
		return protocol.Fail(protocol.SandboxUnavailable, fmt.Sprintf("Pack %q asks to run outside the sandbox, and the operator has not allowed that.", v.ID)).
			With("rule", "native-local").With("setting", "hcpx allow --native "+v.ID).WithHint("hcpx allow --native " + v.ID)
	}
	w.Spec.Native = true
	return nil
}

func (g *Gate) programs(st *store.State, w *World, v *Verb, need *adapter.Need) *protocol.Error {
	bin, err := g.program(st, v.Loaded, need.Bin, true)
	if err != nil {
		return err
	}
	w.Spec.Program = bin
	dir := places.Resolve(v.Dir) // the sandbox takes no path with a link in it
	w.Spec.Read = append(w.Spec.Read, dir)
	w.Spec.Exec = append(w.Spec.Exec, dir)
	for _, name := range need.Uses {
		if isDir(name) {
			dir, err := Allowed(st, name, false)
			if err != nil {
				return err
			}
			w.Spec.UseDirs = append(w.Spec.UseDirs, filepath.Clean(dir.Path))
			continue
		}
		p, err := g.program(st, v.Loaded, name, false)
		if err != nil {
			return err
		}
		w.Spec.Uses = append(w.Spec.Uses, p)
	}
	if err := g.named(v, append([]string{need.Bin}, slices.DeleteFunc(slices.Clone(need.Uses), isDir)...), w.Spec); err != nil || w.Spec.Native {
		return err
	}
	return started(w.Spec)
}

// isDir says that an entry of uses is a directory of programs.
func isDir(name string) bool { return strings.HasSuffix(name, "/") }

// land opens the land of the command: readable, and writable for a write alone (§10.2).
func (g *Gate) land(w *World, s protocol.Session, v *Verb, need *adapter.Need) *protocol.Error {
	spec := w.Spec
	if v.Entry.Land == protocol.Local {
		if s.Workspace == "" {
			return nil // availability: the workspace is no part of it (§11.2)
		}
		spec.Read = append(append(spec.Read, s.Workspace), s.GitDirs...)
		if v.Entry.Operation == protocol.Write && !need.WorkspaceRead {
			spec.Write = append(append(spec.Write, s.Workspace), s.GitDirs...)
		}
		spec.Dir = s.Workspace
		if places.Within(s.Dir, s.Workspace) {
			spec.Dir = s.Dir
		}
		return nil
	}
	key := store.LandKey{Tenant: s.Tenant, Land: v.Entry.Land, Principal: s.Principal, Project: s.Project, Pack: v.ID}
	if key.Land == protocol.Brain && key.Project == "" {
		return nil // availability
	}
	dir := places.Resolve(g.Store.LandDir(key))
	w.Land = &key
	spec.Read = append(spec.Read, dir)
	if v.Entry.Operation == protocol.Write {
		spec.Write = append(spec.Write, dir)
	}
	spec.Dir = dir
	return nil
}

// reads gives the declared paths outside the jail that the operator allowed for this pack, by where they lead; the
// others are withheld, which the kernel enforces by not granting them.
func (g *Gate) reads(st *store.State, w *World, v *Verb, need *adapter.Need) {
	for _, declared := range need.Reads {
		allowed := slices.ContainsFunc(st.Reads, func(r protocol.AllowedRead) bool { return r.Pack == v.ID && r.Path == declared })
		if !allowed { // nothing else is asked of what is not: that looks at every closed place
			w.Withheld = append(w.Withheld, declared)
			continue
		}
		real, closed := g.Places.OpenRead(declared)
		link := sandbox.Link{Target: real}
		if rel, home := strings.CutPrefix(declared, "~/"); home {
			link.HomeRel = rel
		}
		if _, err := os.Lstat(real); closed != "" || err != nil {
			w.Withheld = append(w.Withheld, declared)
			continue
		}
		w.Spec.Links = append(w.Spec.Links, link)
	}
}

// network is what the manifest declares, with the operator's hosts where it lets them in (§10.2).
func (g *Gate) network(st *store.State, w *World, v *Verb, need *adapter.Need) {
	net := sandbox.Network{Mode: need.Network.Mode, Hosts: slices.Clone(need.Network.Hosts)}
	if net.Mode == "" {
		net.Mode = "none"
	}
	if need.Network.OperatorHosts {
		for _, h := range st.Hosts {
			if h.Pack == v.ID {
				net.Hosts = append(net.Hosts, h.Host)
			}
		}
	}
	w.Spec.Network = net
}

// existing is the Spec without the land directory while that was not made yet, so that asking makes nothing. Where it
// stands already there is nothing left to make.
func (w *World) existing() *sandbox.Spec {
	if w.Land == nil {
		return w.Spec
	}
	if info, err := os.Stat(w.Spec.Dir); err == nil && info.IsDir() {
		w.Land = nil
		return w.Spec
	}
	spec, dir := *w.Spec, w.Spec.Dir
	absent := func(p string) bool { return p == dir }
	spec.Read = slices.DeleteFunc(slices.Clone(spec.Read), absent)
	spec.Write = slices.DeleteFunc(slices.Clone(spec.Write), absent)
	spec.Dir = ""
	return &spec
}
