package app

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"hcpx/internal/adapter"
	"hcpx/internal/adapter/composite"
	"hcpx/internal/adapter/openapi"
	"hcpx/internal/adapter/wrap"
	"hcpx/internal/audit"
	"hcpx/internal/gate"
	"hcpx/internal/jsondoc"
	"hcpx/internal/lifecycle"
	"hcpx/internal/manifest"
	"hcpx/internal/pack"
	"hcpx/internal/pipeline"
	"hcpx/internal/places"
	"hcpx/internal/policy"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
	"hcpx/internal/session"
	"hcpx/internal/settings"
	"hcpx/internal/store"
	"hcpx/internal/vault"
)

// Options are what a process gives.
type Options struct {
	Home     string // --home; "" = $HCP_HOME, else ~/.hcp
	Dir      string // working directory, for a relative home
	UserHome string
	Managed  string // the operator's settings of this machine (§9.3), "" = the usual place
	Getenv   func(string) string
	Now      func() time.Time
	// Ready is closed when a signal would cancel what runs; no command starts before (§6.9). nil: at once.
	Ready <-chan struct{}
	// Done is closed by a signal: then no lock of the store is waited for. nil: never.
	Done  <-chan struct{}
	Keep  int    // how many of the sandbox's threads a process that stays up keeps for its next runs (§10.5)
	Watch *Watch // counts what the doors did; nil outside conformance
	// Lookup resolves the names of network hosts (§10.2); nil: as this machine does.
	Lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	// Passphrase asks a person for that of the vault (§8.3); nil: nobody can be asked.
	Passphrase func(ctx context.Context, fresh bool) ([]byte, *protocol.Error)
	// Machine evaluates the expressions of composites (§3.5); nil: none is evaluated.
	Machine composite.Machine
	// Builtin runs a command line of the bootstrap pack in process (§11.4); nil: hcp-cli is not executable.
	Builtin func(ctx context.Context, s protocol.Session, argv []string) (stdout []byte, exit int)
}

// managedPath is root's file of settings. A build may name another (-ldflags "-X hcpx/internal/app.managedPath=…"),
// as the tests of the whole program do; nothing assigns to it.
var managedPath = "/etc/hcpx/managed.toml"

// App is the wired runtime over one home.
type App struct {
	o        Options
	home     string
	places   places.Places
	settings *settings.Settings
	fault    *protocol.Error // what is wrong in the settings; then none of them holds

	wide      *settings.Settings // without any project's; nil with a fault in them
	workspace string             // whose hcp.toml the settings have

	store  func() *store.FS
	vault  func() vault.Store
	audit  func() audit.Log
	system func() *sandbox.System
	gate   func() *gate.Gate
	exec   func() *pipeline.Pipeline
	life   func() *lifecycle.Lifecycle
}

// Open reads the settings and makes nothing (§11.3: lint, version, help, completion and conformance create
// no store). Settings that cannot be used stop whoever would run or change something, and no one who looks
// (§12.1.7): see Executor, Lifecycle and Health.
func Open(o Options) (*App, *protocol.Error) {
	if o.Managed == "" {
		o.Managed = managedPath
	}
	managed := settings.ReadManaged(o.Managed)
	home, refusal := homeOf(o)
	if pinned := managed.Home(); pinned != "" {
		home, refusal = pinnedHome(o, pinned)
	}
	if refusal != nil {
		return nil, refusal
	}
	a := &App{o: o, home: home, places: placesOf(o, home)}
	set, err := settings.Load(home, managed)
	if err != nil {
		set, a.fault = settings.Default(), unusable(err)
	}
	if a.settings = set; a.fault == nil {
		a.wide = set
	}
	a.store = sync.OnceValue(func() *store.FS { return store.OpenFS(home, store.Options{Now: o.Now, Done: o.Done}) })
	a.audit = sync.OnceValue(a.newAudit)
	a.vault = sync.OnceValue(a.newVault)
	a.wire()
	return a, nil
}

// wire makes what depends on the settings, each when it is first asked for.
func (a *App) wire() {
	a.system = sync.OnceValue(a.sandbox)
	a.gate = sync.OnceValue(a.newGate)
	a.exec = sync.OnceValue(a.newPipeline)
	a.life = sync.OnceValue(a.newLifecycle)
}

// unusable says what is wrong in the settings: a value that is not understood might be the one that forbids.
func unusable(err error) *protocol.Error {
	e := protocol.Fail(protocol.InternalError, "The settings cannot be used: "+protocol.Clause(strings.ReplaceAll(err.Error(), "\n", "; "))+".").
		WithHint("hcpx config show")
	var all *settings.Error
	if errors.As(err, &all) {
		e = e.With("problems", all.Problems)
	}
	return e
}

// homeOf finds the store: --home, else $HCP_HOME, else ~/.hcp.
func homeOf(o Options) (string, *protocol.Error) {
	home := o.Home
	if home == "" {
		home = o.Getenv("HCP_HOME")
	}
	if home == "" {
		if o.UserHome == "" {
			return "", protocol.Fail(protocol.UsageError, "There is no home directory to keep the store in.").WithHint("hcpx --home DIR …")
		}
		home = filepath.Join(o.UserHome, ".hcp")
	}
	if !filepath.IsAbs(home) {
		if o.Dir == "" {
			return "", protocol.Fail(protocol.UsageError, "The store is named by a relative path, and the working directory is gone.").WithHint("hcpx --home DIR …")
		}
		home = filepath.Join(o.Dir, home)
	}
	return filepath.Clean(home), nil
}

// pinnedHome is the store where the managed settings pin it (§9.3): who names another one is refused, since his
// command would not do what he says.
func pinnedHome(o Options, pinned string) (string, *protocol.Error) {
	if rel, own := strings.CutPrefix(pinned, "~/"); own {
		if o.UserHome == "" {
			return "", protocol.Fail(protocol.UsageError, "The managed settings pin the store to "+pinned+", and there is no home directory.")
		}
		pinned = filepath.Join(o.UserHome, rel)
	}
	if o.Home == "" && o.Getenv("HCP_HOME") == "" {
		return pinned, nil
	}
	named, refusal := homeOf(o)
	if refusal == nil && named != pinned {
		refusal = protocol.Fail(protocol.UsageError, "The managed settings pin the store to "+pinned+", and another one is named: "+named+".").
			WithHint("unset HCP_HOME, and leave --home out")
	}
	return pinned, refusal
}

// Home is the store's directory.
func (a *App) Home() string { return a.home }

// Settings are the settings in force, and what is wrong with them: then they are the defaults.
func (a *App) Settings() (*settings.Settings, *protocol.Error) { return a.settings, a.fault }

// placesOf are the closed places of this user (§10.2), for gate, session and lifecycle alike.
func placesOf(o Options, store string) places.Places {
	config := o.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(config) {
		config = ""
	}
	return places.Places{Home: o.UserHome, Config: config, Store: store, Key: keyOf(o)}
}

// keyOf is the file that HCP_VAULT_KEY_FILE names, "" for none; a relative name counts from the working directory.
func keyOf(o Options) string {
	key := o.Getenv("HCP_VAULT_KEY_FILE")
	if key == "" || filepath.IsAbs(key) {
		return key
	}
	return filepath.Join(o.Dir, key)
}

// AuditConfig says where the audit and its key lie; the key stands outside the store (§15.4).
func (a *App) AuditConfig() audit.Config {
	return audit.Config{
		Dir: filepath.Join(a.home, "audit"), KeyPath: filepath.Join(a.places.Own(), "audit.key"), Now: a.o.Now,
		Used:   func() bool { return lifecycle.Used(a.store()) },
		Anchor: a.settings.Anchor,
	}
}

func (a *App) newAudit() audit.Log {
	var log audit.Log = audit.Open(a.AuditConfig())
	if a.o.Watch != nil {
		log = watchedLog{log, a.o.Watch}
	}
	return log
}

func (a *App) newGate() *gate.Gate {
	g := &gate.Gate{
		Store:   a.store(),
		Sandbox: a.guarded(a.system()),
		Adapters: map[string]adapter.Adapter{manifest.Wrap: wrap.New(), manifest.Composite: composite.New(a.o.Machine),
			manifest.OpenAPI: openapi.New(openapi.Options{Now: a.o.Now, Resolve: a.lookup()})},
		Now: a.o.Now, Places: a.places, Limits: a.limits(), Rules: a.rules(),
	}
	if g.Hub = a.newHub(g); a.o.Watch != nil {
		g.Hub = watchedHub{g.Hub, a.o.Watch}
	}
	return g
}

// sandbox is the one that confines this store's commands; its private directories lie in run/, its proof in canary/.
func (a *App) sandbox() *sandbox.System {
	canary := a.canary()
	canary.Dir = filepath.Dir(canary.Proof)
	return sandbox.New(sandbox.Options{Scratch: filepath.Join(a.home, "run"), Keep: a.o.Keep, Now: a.o.Now, Canary: canary, Accept: a.settings.Accept, Lookup: a.lookup()})
}

// canary is how a sandbox proves itself (§10.5), for every sandbox of this process: a proof holds for the machine.
func (a *App) canary() *sandbox.Canary {
	return &sandbox.Canary{Proof: filepath.Join(a.home, "canary", "passed"), Ready: a.o.Ready}
}

// probe is the sandbox of a health check: the same, but all that it makes lies in dir, away from the store (§12.1.9).
func (a *App) probe(dir string) sandbox.Sandbox {
	canary := a.canary()
	canary.Dir, canary.ReadOnly = filepath.Join(dir, "canary"), true
	return a.guarded(sandbox.New(sandbox.Options{Scratch: filepath.Join(dir, "run"), Now: a.o.Now, Canary: canary, Accept: a.settings.Accept, Lookup: a.lookup()}))
}

// guarded starts nothing before a signal would be heard, and is watched where somebody counts.
func (a *App) guarded(s sandbox.Sandbox) sandbox.Sandbox {
	if a.o.Ready != nil {
		s = readySandbox{s, a.o.Ready}
	}
	if a.o.Watch != nil {
		s = watchedSandbox{s, a.o.Watch}
	}
	return s
}

// limits are the runtime's caps (§10.4).
func (a *App) limits() sandbox.Limits {
	l := a.settings.Limits
	return sandbox.Limits{
		Wall: l.WallMax, CPU: l.CPU, Files: uint64(max(l.Files, 0)), FileSize: uint64(max(l.FileSize, 0)), Output: int(l.Output),
		Memory: uint64(max(l.Memory, 0)), Processes: int(l.Processes),
	}
}

func (a *App) newPipeline() *pipeline.Pipeline {
	return pipeline.New(pipeline.Deps{
		Gate: a.gate(), Audit: a.audit(), Now: a.o.Now, NewID: ids(a.o.Now), Builtin: a.o.Builtin,
		AgentEnvelope: a.settings.ConfirmAgent == "envelope", NoSelfConfirm: a.settings.ConfirmAgent == "approval",
		OutputCap: a.limits().Output,
	})
}

func (a *App) newLifecycle() *lifecycle.Lifecycle {
	return &lifecycle.Lifecycle{
		Store: a.store(), Audit: a.audit(), Gate: a.gate(), Now: a.o.Now, NewID: ids(a.o.Now),
		Limits:  pack.Limits{Files: int(a.settings.PackFiles), Bytes: a.settings.PackBytes},
		Shipped: shipped{}, Path: a.o.Getenv("PATH"), Versions: "/usr/lib/*/*/bin", AuditHealth: a.auditHealth, Settings: a.fault, Scratch: a.probe, Keeper: a.vault(),
		Run: func(ctx context.Context, s protocol.Session, envelope []byte) protocol.Result {
			return a.exec().Exec(ctx, s, envelope)
		},
		AgentEnvelope: a.settings.ConfirmAgent == "envelope", NoSelfConfirm: a.settings.ConfirmAgent == "approval", Sources: a.settings.Sources,
		Machine: a.o.Machine,
	}
}

// auditHealth looks at the head and at what must be writable; audit verify reads the whole chain.
func (a *App) auditHealth() error { return audit.Look(a.AuditConfig()) }

// Executor is the one way to run a command; the bootstrap pack is there from first use (§11.4).
func (a *App) Executor(s protocol.Session) (protocol.Executor, *protocol.Error) {
	if a.fault != nil {
		return nil, a.fault
	}
	a.system().Warm()
	if err := a.life().EnsureBootstrap(s); err != nil {
		return nil, err
	}
	return a.exec(), nil
}

// Refuse answers a request that cannot run, through the steps before why.Step and into the audit (§9.7).
func (a *App) Refuse(ctx context.Context, s protocol.Session, envelope []byte, why *protocol.Error) protocol.Result {
	return a.exec().Refuse(ctx, s, envelope, why)
}

// Lifecycle is §11's operations; the bootstrap pack is there from first use.
func (a *App) Lifecycle(s protocol.Session) (*lifecycle.Lifecycle, *protocol.Error) {
	if a.fault != nil {
		return nil, a.fault
	}
	if err := a.life().EnsureBootstrap(s); err != nil {
		return nil, err
	}
	return a.life(), nil
}

// Health is the Lifecycle for what must work on a damaged store and write nothing: doctor, status, repair,
// whoami, lint (§11, §12.1.9).
func (a *App) Health() *lifecycle.Lifecycle { return a.life() }

// Caller is what a command line says of who acts.
type Caller struct {
	Session, As, Project, Workspace string
	Nobody                          session.Nobody // what was to name a Principal and is empty
	Dir                             string
	User                            func() string // asked only when nothing else names a Principal
	Parent                          int           // the process above this one; 0 = its ancestors are not looked at (§9.3)
}

// Session makes the Session, in the one place of this face (§9.3).
func (a *App) Session(c Caller) (protocol.Session, *protocol.Error) {
	in := a.inputs(c)
	if c.As == "" && a.o.Getenv("HCP_PRINCIPAL") == "" {
		in.User = c.User()
	}
	s, refusal := session.Resolve(in)
	a.narrow(s.Workspace)
	return s, refusal
}

// Pack is an installed pack as its author wrote it, for its face and for help (§12.1).
func (a *App) Pack(id string) (*Pack, *protocol.Error) {
	l, refusal := a.gate().Installed(id)
	if refusal != nil {
		return nil, refusal
	}
	return &Pack{l.Manifest, l.Policy}, nil
}

// Pack is what faces read of a pack.
type Pack struct {
	*manifest.Manifest
	Policy *policy.Policy
}

// Activated is the second half of step 2, for a face that has no command to send yet.
func (a *App) Activated(session, id string) *protocol.Error {
	st, err := a.store().Reader().State()
	if err != nil {
		return protocol.Fail(protocol.InternalError, "The state cannot be read: "+protocol.Clause(err.Error())+".").WithHint("hcpx doctor")
	}
	return a.gate().Activated(a.gate().InForce(st), session, id)
}

func (a *App) inputs(c Caller) session.Inputs {
	return session.Inputs{
		Flags:  session.Flags{Session: c.Session, As: c.As, Project: c.Project, Workspace: c.Workspace},
		Getenv: a.o.Getenv, Dir: c.Dir, Closed: a.places, Nobody: c.Nobody,
		Detect: a.settings.Agents == "detect", Parent: c.Parent, Proc: "/proc",
	}
}

// Verb is an installed command and its policy, for help.
func (a *App) Verb(packID, verb string) (*manifest.Command, *policy.Entry, *protocol.Error) {
	p, refusal := a.Pack(packID)
	if refusal != nil {
		return nil, nil, refusal
	}
	cmd, entry := p.Command(verb), p.Policy.Verb(verb)
	if cmd == nil || entry == nil {
		return nil, nil, protocol.Fail(protocol.UnknownCommand, fmt.Sprintf("Pack %q has no command %q.", packID, verb)).
			WithHint("hcpx availability " + packID)
	}
	return cmd, entry, nil
}

// ArgsSchema is the args schema of an installed command, nil when there is none that can be read. It only
// types words; the pipeline judges them.
func (a *App) ArgsSchema(packID, verb string) *jsondoc.Node {
	schema := a.gate().Arguments(packID, verb)
	if schema == nil {
		return nil
	}
	return schema.Node()
}

// PackIDs are the installed packs, for completion: none when the store can't be read.
func (a *App) PackIDs() []string {
	ids, err := a.store().Packs()
	if err != nil {
		return nil
	}
	return ids
}

// VerbKeys are the commands of an installed pack, for completion.
func (a *App) VerbKeys(packID string) []string {
	p, err := a.Pack(packID)
	if err != nil {
		return nil
	}
	keys := make([]string, len(p.Commands))
	for i, c := range p.Commands {
		keys[i] = c.Key
	}
	return keys
}

// ActivePacks are the packs that a session has activated, for completion: none when the state can't be read. The
// bootstrap pack is not among them: its commands are the program's own words.
func (a *App) ActivePacks(session string) []string {
	st, err := a.store().Reader().State()
	if err != nil {
		return nil
	}
	return a.gate().InForce(st).Session(session).Activated
}
