// Package gate holds the checks of §6.3 that show and do alike: step 2 (installed, intact, activated),
// step 3 (declared, runnable in this build), step 4 (grants), the connected check of step 7 and the checks
// of step 8 (allow-list, jail, kernel). The pipeline asks them in its fixed order; availability asks the
// same functions, so that what is listed as executable is what exec lets past (§11.2).
//
// A gate runs nothing, mints nothing and writes nothing. Every unknown is refused.
package gate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"hcpx/internal/adapter"
	"hcpx/internal/binding"
	"hcpx/internal/grant"
	"hcpx/internal/manifest"
	"hcpx/internal/pack"
	"hcpx/internal/places"
	"hcpx/internal/policy"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
	"hcpx/internal/store"
)

// Bootstrap is the pack that manages the runtime itself (§11.4). Its argv runs in process.
const Bootstrap = "hcp-cli"

// Gate asks the rules on behalf of one store. It is safe for concurrent use.
type Gate struct {
	Store    store.Store
	Sandbox  sandbox.Sandbox
	Hub      binding.Hub
	Adapters map[string]adapter.Adapter // by the manifest's adapter name
	Now      func() time.Time
	Places   places.Places  // what no read opens (§10.2)
	Limits   sandbox.Limits // the runtime's caps (§10.4)
	Rules    Rules          // what settings and a project take away (§9.3)

	mu    sync.Mutex
	packs map[string]*Loaded // by id, reused while digest and stats hold
	last  standing           // the state that was asked last
}

// Over is the same gate over another view of the store.
func (g *Gate) Over(st store.Store) *Gate {
	if st == g.Store {
		return g
	}
	return &Gate{Store: st, Sandbox: g.Sandbox, Hub: g.Hub, Adapters: g.Adapters, Now: g.Now, Places: g.Places, Limits: g.Limits, Rules: g.Rules}
}

// Loaded is a pack that is installed and intact.
type Loaded struct {
	ID       string
	Dir      string
	Digest   string
	Version  string
	Manifest *manifest.Manifest
	Policy   *policy.Policy
	// Executables are the pack's plain files that may be executed, by path in the pack; links are not among them.
	Executables map[string]bool

	ripe  atomic.Bool
	mu    sync.Mutex
	verbs map[string]*compiled
}

// Verb is one command that passed step 3.
type Verb struct {
	*Loaded
	Command *manifest.Command
	Entry   *policy.Entry
	Adapter adapter.Command
}

// Installed is the first half of step 2: the pack is in the store and its files are those of the recorded
// digest (§2.4).
func (g *Gate) Installed(id string) (*Loaded, *protocol.Error) {
	meta, err := g.Store.Meta(id)
	switch {
	case errors.Is(err, store.ErrNotInstalled):
		return nil, protocol.Fail(protocol.PackNotInstalled, fmt.Sprintf("No pack %q is installed.", id)).
			WithHint("hcpx list")
	case err != nil:
		return nil, protocol.Fail(protocol.PackTampered, fmt.Sprintf("The record of pack %q cannot be read: %s.", id, strings.TrimRight(err.Error(), "."))).
			WithHint("hcpx repair")
	}
	dir := g.Store.Dir(id)
	looked, err := pack.Check(dir, meta.Record)
	if err != nil {
		return nil, protocol.Fail(protocol.PackTampered, fmt.Sprintf("Pack %q differs from what was installed: %s.", id, strings.TrimRight(err.Error(), "."))).
			WithHint(mendHint(id, meta))
	}
	l, refusal := g.load(id, dir, meta)
	if refusal == nil {
		l.ripe.Store(looked && !meta.Record.Fresh(g.Now()))
	}
	return l, refusal
}

// mendHint is how the files of a pack come back: from where they were installed.
func mendHint(id string, meta *store.Meta) string {
	switch {
	case id == Bootstrap:
		return "hcpx repair"
	case meta.Source == store.Shipped:
		return "hcpx add " + id
	}
	return "hcpx install " + protocol.Words(meta.Source)
}

// Again is the command that installs a pack anew from where it came from, for what only a change of the pack mends.
func (g *Gate) Again(id string) string {
	meta, err := g.Store.Meta(id)
	if err != nil {
		return "hcpx list"
	}
	return mendHint(id, meta)
}

// Ripe says that the pack's stamps did not prove it by themselves, and would if they were taken again:
// whoever may write renews them, so that later checks need no hash (§2.4).
func (l *Loaded) Ripe() bool { return l.ripe.Load() }

// load parses manifest and policy, or reuses them while the digest is the same.
func (g *Gate) load(id, dir string, meta *store.Meta) (*Loaded, *protocol.Error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if l := g.packs[id]; l != nil && l.Digest == meta.Record.Digest && l.Dir == dir {
		return l, nil
	}
	broken := func(err error) *protocol.Error {
		return protocol.Fail(protocol.PackTampered, fmt.Sprintf("Pack %q cannot be read: %s.", id, strings.TrimRight(err.Error(), "."))).WithHint("hcpx doctor")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, broken(err)
	}
	defer root.Close()
	p, err := pack.Open(root.FS())
	if err != nil {
		return nil, broken(err)
	}
	g.documented(p, root.FS(), meta)
	l := &Loaded{ID: id, Dir: dir, Digest: meta.Record.Digest, Version: meta.Version,
		Manifest: p.Manifest, Policy: p.Policy, Executables: map[string]bool{}, verbs: map[string]*compiled{}}
	for name, s := range meta.Record.Stamps {
		if fs.FileMode(s.Mode).IsRegular() && s.Mode&0o111 != 0 {
			l.Executables[name] = true
		}
	}
	if g.packs == nil {
		g.packs = map[string]*Loaded{}
	}
	g.packs[id] = l
	return l, nil
}

// Activated is the second half of step 2 (HCP-11.1-1): a runtime never executes a command of a pack that
// is not activated. The bootstrap pack is activated in each session from first use (§11.4).
func (g *Gate) Activated(st *store.State, session, id string) *protocol.Error {
	if id == Bootstrap || st.IsActivated(session, id) {
		return nil
	}
	return protocol.Fail(protocol.PackNotActivated, fmt.Sprintf("Pack %q is not activated in session %q.", id, session)).
		WithHint(protocol.InSession("hcpx activate "+id, session))
}

// Pack is step 2 whole.
func (g *Gate) Pack(st *store.State, session, id string) (*Loaded, *protocol.Error) {
	l, err := g.Installed(id)
	if err != nil {
		return nil, err
	}
	if err := g.Activated(st, session, id); err != nil {
		return nil, err
	}
	return l, nil
}

// Ask is the request of step 4 for a command; Args nil asks before arguments are known. Scope false leaves
// project and workspace out, as availability does.
func (g *Gate) Ask(s protocol.Session, v *Verb, project string, scope bool) grant.Request {
	return grant.Request{
		Principal: s.Principal, Tenant: s.Tenant,
		Capability: protocol.ExecCapability(v.Entry.Operation),
		Pack:       v.ID, Verb: v.Command.Key, Plane: v.Manifest.Plane, Land: v.Entry.Land,
		Project: project, Workspace: s.Workspace, WorkspaceReason: s.WorkspaceReason,
		Now: g.Now(), Scope: scope,
	}
}

// consented: the source is still the one that was consented to at connect (§8.3), and what is kept for it lies where
// the pack and its family say. An upgrade that changes them is connected again.
func (g *Gate) consented(st *store.State, session string, l *Loaded) *protocol.Error {
	b := &l.Manifest.Binding
	if !binding.Sourced(b) {
		return nil
	}
	bound, ok := st.Bound(session, l.ID)
	key := binding.Scope{Pack: l.ID, Family: l.Manifest.Family}.Key()
	if ok && bound.Source == binding.Consent(b) && (bound.Secret == "" || strings.HasSuffix(bound.Secret, "/"+bound.Owner+"/"+key)) {
		return nil
	}
	return protocol.Fail(protocol.NotConnected, fmt.Sprintf("The credential of pack %q comes from another source now than when it was connected in session %q.", l.ID, session)).
		WithHint(protocol.InSession("hcpx connect "+l.ID, session))
}

// Connected is the check of step 7 before anything is minted (§8.5): public is always connected, a mode
// that this runtime cannot mint never is, whatever the state says.
func (g *Gate) Connected(st *store.State, session string, l *Loaded) *protocol.Error {
	b := &l.Manifest.Binding
	if err := g.Hub.Supported(b); err != nil {
		return err
	}
	if _, err := g.Rules.Endpoint(b); err != nil {
		return err
	}
	if binding.Connected(b, l.ID == Bootstrap || st.IsConnected(session, l.ID)) {
		return g.consented(st, session, l)
	}
	return protocol.Fail(protocol.NotConnected, fmt.Sprintf("Pack %q needs a %s binding and is not connected in session %q.", l.ID, b.Mode, session)).
		WithHint(protocol.InSession("hcpx connect "+l.ID, session))
}

// Arguments is the schema of an installed command's arguments, for a face that types what it was given; nil when there
// is none that can be read. It judges nothing: that is step 5.
func (g *Gate) Arguments(packID, verbKey string) *manifest.Schema {
	l, refusal := g.Installed(packID)
	if refusal != nil {
		return nil
	}
	c := l.Manifest.Command(verbKey)
	if c == nil {
		return nil
	}
	schema, err := c.Args()
	if err != nil {
		return nil
	}
	return schema
}
