package gate

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"hcpx/examples"
	"hcpx/internal/adapter"
	"hcpx/internal/adapter/wrap"
	"hcpx/internal/binding"
	"hcpx/internal/manifest"
	"hcpx/internal/places"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
	"hcpx/internal/stamp"
	"hcpx/internal/store"
)

// machine is a user's machine in small, with an operator who allowed too much.
type machine struct {
	root, home, workspace, git, tools string
	secrets                           []string // files that nothing may ever read
	box                               *sandbox.System
	state                             store.State
	now                               time.Time
}

func newMachine(f *testing.F) *machine {
	f.Helper()
	root, err := filepath.EvalSymlinks(f.TempDir())
	check(f, err)
	m := &machine{root: root, home: root + "/home", workspace: root + "/work", git: root + "/work.git", tools: root + "/tools", now: time.Now()}
	for _, dir := range []string{m.home + "/.ssh", m.home + "/.config/hcpx", m.home + "/.config/acme", m.home + "/.config/gh", m.workspace, m.git, m.tools + "/core", root + "/run"} {
		check(f, os.MkdirAll(dir, 0o700))
	}
	m.secrets = []string{m.home + "/.ssh/id", m.home + "/.config/hcpx/audit.key", m.home + "/.config/gh/hosts.yml", m.home + "/private", root + "/store/state.json", root + "/store/packs/other/surface.json", root + "/run/0"}
	for _, at := range append([]string{m.tools + "/tool", m.tools + "/other", m.tools + "/sh", m.tools + "/core/sub", m.home + "/.config/acme/rc"}, m.secrets...) {
		check(f, os.MkdirAll(filepath.Dir(at), 0o700))
		check(f, os.WriteFile(at, []byte("#!\n"), 0o700))
	}
	for link, to := range map[string]string{"/link-ssh": ".ssh", "/link-out": "../store", "/.config/acme/up": "../..", "/loop": "loop"} {
		check(f, os.Symlink(to, m.home+link))
	}
	for name, dangerous := range map[string]bool{"tool": false, "other": false, "sh": false} {
		s, err := stamp.Of(m.tools+"/"+name, m.now)
		check(f, err)
		m.state.Bins = append(m.state.Bins, protocol.AllowedBin{Name: name, Path: m.tools + "/" + name, Dangerous: dangerous, Stamp: s})
	}
	core := m.tools + "/core/"
	m.state.Bins = append(m.state.Bins, protocol.AllowedBin{Name: core, Path: core})
	for _, read := range m.reads() {
		m.state.Reads = append(m.state.Reads, protocol.AllowedRead{Pack: "tool", Path: read})
	}
	m.state.Hosts = []protocol.AllowedHost{{Pack: "tool", Host: "own.example:22"}, {Pack: "other", Host: "foreign.example:1"}}
	m.state.SetActivated("default", "tool", true)
	m.box = sandbox.New(sandbox.Options{Scratch: root + "/run"})
	return m
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// reads are paths that a pack might declare; the operator allowed every one of them.
func (m *machine) reads() []string {
	return []string{"~/.config/acme", "~/.config/acme/rc", "~/.config/acme/up", "~", "~/", "~/.", "~/.ssh", "~/.ssh/id", "~/link-ssh", "~/link-out", "~/loop", "~/.config", "~/.config/hcpx",
		"~/.config/acme/../../.ssh", "~/.config/acme/up/.ssh", "/", "/etc", "/proc/self/root", "/etc/shadow", "//etc", "/etc/hosts", m.home, m.home + "/.ssh", m.root, m.root + "/store", m.root + "/run",
		m.workspace, "relative", "", "~root", "~/missing", "/dev", "/sys"}
}

// generator makes a manifest out of bytes: mostly well-formed, with whatever does harm in every field that
// reaches the sandbox.
type generator struct {
	m     *machine
	bytes []byte
}

func (g *generator) next() int {
	if len(g.bytes) == 0 {
		return 0
	}
	b := g.bytes[0]
	g.bytes = g.bytes[1:]
	return int(b)
}

// one is one of the choices, or some raw text.
func (g *generator) one(choices ...string) string {
	n := g.next()
	if n == 255 {
		size := min(g.next()%16, len(g.bytes))
		raw := string(g.bytes[:size])
		g.bytes = g.bytes[size:]
		return raw
	}
	if n < 160 { // mostly what comes far
		return choices[0]
	}
	return choices[n%len(choices)]
}

// other is one of the choices, mostly the first.
func (g *generator) other(choices ...any) any {
	if n := g.next(); n >= 160 {
		return choices[n%len(choices)]
	}
	return choices[0]
}

func (g *generator) some(choices ...string) []string {
	list := []string{}
	for range g.next() % 4 {
		list = append(list, g.one(choices...))
	}
	return list
}

func (g *generator) programs() []string {
	t := g.m.tools
	return []string{"tool", "other", "sh", "./bin/tool", "./bin/plain", "./bin/none", "./../x", "./bin/../bin/tool", "./", ".", "..", "", "/bin/sh", t + "/tool", t + "/core/", t + "/core/sub",
		t + "/core//", t + "/", g.m.home + "/", "/", g.m.root + "/store/", "~/x", "-tool", "tool\x00", "tool\n", "a/b", "./bin/tool\x00", "./link", "env", "sudo"}
}

func (g *generator) manifest() string {
	env := map[string]any{}
	for range g.next() % 5 {
		env[g.one("A", "LANG", "TZ", "LD_PRELOAD", "ld_preload", "PATH", "HOME", "TMPDIR", "BASH_ENV", "GIT_SSH_COMMAND", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_COUNT", "http_proxy", "No_Proxy", "PYTHONPATH",
			"AWS_SECRET_ACCESS_KEY", "A=B", "", "A\x00", "1A", "Ä", "GLIBC_TUNABLES", "DYLD_X", "RES_OPTIONS", "LOCPATH", "IFS", "ENV")] = g.one("x", "", "a\nb", "\x00", "~", "$HOME")
	}
	block := map[string]any{"bin": g.one(g.programs()...), "uses": g.some(g.programs()...), "reads": g.some(g.m.reads()...), "env": env}
	hosts := g.some("a.example:443", "[::1]:22", "127.0.0.1:80", "169.254.169.254:80", "*:443", "a.example", ":1", "a.example:0", "a.example:99999", "a b:1", "")
	block["network"] = g.other("none", "full", "some", nil, 1, map[string]any{"hosts": hosts}, map[string]any{"hosts": hosts, "operator_hosts": true}, map[string]any{"operator_hosts": true},
		map[string]any{"hosts": "a.example:443"}, []any{"full"})
	block["isolation"] = g.other("sandbox", "native-local", "none", "", true, nil)
	block["workspace"] = g.other(nil, "read", "write", "")
	block["probe"] = g.some("--version", "-c", "")
	for key, v := range map[string]any{"workspace": block["workspace"], "isolation": block["isolation"], "network": block["network"]} {
		if v == nil {
			delete(block, key)
		}
	}
	verb := map[string]any{"summary": "V", "argv": g.some("x", "{name}", "--at={name}", "{missing}", "--", "", "\x00", "{name|json}", "-"),
		"args":    map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}},
		"timeout": g.one("30s", "1h", "0s", "-1s", "9999999h", "1ns", "x")}
	if g.next()%2 == 1 {
		verb["stdin"] = g.one("{name}", "text", "{missing}", "")
	}
	text := map[string]any{"hcp": map[string]any{"version": "1.1"}, "id": "tool", "version": "1.0.0", "summary": "T.", "adapter": "wrap", "wrap": block,
		"verbs": map[string]any{"v": verb}}
	if g.next()%3 == 1 {
		text["binding"] = map[string]any{"mode": "mock", "hub": "none", "inject": map[string]any{"env": map[string]any{g.one("TOKEN", "LD_PRELOAD", "PATH", "AWS_SECRET_ACCESS_KEY", "https_proxy", "A=B"): "{token}"}}}
	}
	out, _ := json.Marshal(text) // strings and numbers only
	return string(out)
}

// FuzzManifestToSandbox holds §10.2 over every field of a manifest that reaches the sandbox: whatever a pack declares
// and however much the operator allowed, there is no panic, and the child's world is refused or within its bounds.
func FuzzManifestToSandbox(f *testing.F) {
	m := newMachine(f)
	for _, id := range examples.IDs() {
		pack, err := examples.Pack(id)
		check(f, err)
		text, err := fs.ReadFile(pack, manifest.File)
		check(f, err)
		f.Add(text, byte(0))
		f.Add(text, byte(255))
	}
	for n := range 96 { // most fields as they should be, and another one or two strange each time
		seed := make([]byte, 48)
		for i := range seed {
			if seed[i] = byte(1 + i*n%3); (i*n+n)%11 == 0 {
				seed[i] = byte(160 + (i*31+n*17)%95)
			}
		}
		f.Add(seed, byte(n))
	}
	for _, seed := range m.seeds() {
		f.Add([]byte(seed), byte(3))
	}
	f.Fuzz(func(t *testing.T, src []byte, how byte) {
		text := string(src)
		if !strings.HasPrefix(text, "{") {
			text = (&generator{m, src}).manifest()
		}
		m.try(t, text, how)
	})
}

// seeds are manifests that come as far as the sandbox, one for each field.
func (m *machine) seeds() (seeds []string) {
	for _, block := range []string{`"bin":"tool"`, `"bin":"./bin/tool","uses":["sh","other"]`, `"bin":"tool","uses":["` + m.tools + `/core/"]`, `"bin":"tool","reads":["~/.config/acme","~/.ssh"]`,
		`"bin":"tool","env":{"A":"b","LD_PRELOAD":"x"}`, `"bin":"tool","env":{"A":"b"}`, `"bin":"tool","network":{"hosts":["a.example:443"],"operator_hosts":true}`, `"bin":"tool","network":"full"`,
		`"bin":"tool","isolation":"native-local"`, `"bin":"tool","workspace":"read"`, `"bin":"sh"`} {
		seeds = append(seeds, `{"hcp":{"version":"1.1"},"id":"tool","version":"1.0.0","summary":"T.","adapter":"wrap","wrap":{`+block+`},"verbs":{"v":{"summary":"V","argv":["x"]}}}`)
	}
	return seeds
}

// try installs a manifest as it is, unseen by lint, and asks for the world of each of its commands. The bits of how
// decide operation, land, and whether the operator agreed to native-local.
func (m *machine) try(t *testing.T, text string, how byte) {
	decoded, _ := manifest.Decode([]byte(text))
	if decoded == nil || decoded.Wrap == nil {
		return
	}
	operation, land := []string{"read", "write"}[how&1], []string{"local", "personal", "brain"}[how>>1&3%3]
	verbs := map[string]any{}
	for _, c := range decoded.Commands {
		verbs[c.Key] = map[string]any{"operation": operation, "privacy": map[string]any{"land": land}}
	}
	policy, err := json.Marshal(map[string]any{"surface_id": decoded.ID, "verbs": verbs})
	check(t, err)
	st := store.NewMemory(m.root + "/store")
	check(t, os.RemoveAll(m.root+"/store/packs/1")) // of the manifest before
	src := fstest.MapFS{"surface.json": {Data: []byte(text)}, "policy.json": {Data: policy}, "HARNESS.md": {Data: []byte("# T\n\nT.\n")},
		"bin/tool": {Data: []byte("x"), Mode: 0o755}, "bin/plain": {Data: []byte("x"), Mode: 0o644}}
	if rel, own := strings.CutPrefix(decoded.Wrap.Bin, "./"); own && fs.ValidPath(rel) && filepath.Dir(rel) == "bin" && src[rel] == nil && !strings.ContainsAny(rel, "\x00") {
		src[rel] = &fstest.MapFile{Data: []byte("x"), Mode: 0o755}
	}
	check(t, st.Install("tool", src, store.Meta{PackID: "tool", Version: "1.0.0"}))
	state := m.state
	if how&8 != 0 {
		state.Native = []string{"tool"}
	}
	g := &Gate{Store: st, Sandbox: m.box, Hub: binding.NewHub(binding.Options{}), Now: func() time.Time { return m.now }, Limits: sandbox.Limits{Wall: time.Hour},
		Places: places.Places{Home: m.home, Store: m.root + "/store"}, Adapters: map[string]adapter.Adapter{manifest.Wrap: wrap.New()}}
	s := protocol.Session{ID: "default", Principal: "human:ada", Tenant: "local", Project: "p", Dir: m.home, Workspace: m.workspace, GitDirs: []string{m.git}}
	l, refusal := g.Pack(&state, s.ID, "tool")
	if refusal != nil {
		return
	}
	for _, c := range decoded.Commands {
		v, refusal := g.Verb(&state, s.ID, l, c.Key)
		if refusal != nil || v.Adapter.Spec(nil) == nil {
			continue
		}
		w, refusal := g.World(&state, s, v, m.call(v))
		if refusal != nil {
			if refusal.Code == "" || refusal.Message == "" {
				t.Errorf("a refusal without words: %+v", refusal)
			}
			continue
		}
		b := bounds{t: t, m: m, text: text, spec: w.Spec, pack: l.Dir, write: operation == "write"}
		b.land(g, w)
		b.hold(how&8 != 0)
		if again := g.Sandbox.Check(w.existing()); again != nil {
			t.Errorf("asked again the sandbox says %v\n%s", again, text)
		}
	}
}

// call is one that the command takes; nil, as availability asks, where its schema has no example.
func (m *machine) call(v *Verb) *adapter.Call {
	schema, err := v.Command.Args()
	if err != nil {
		return nil
	}
	call, _ := v.Adapter.Render(schema.Defaults(schema.Example()))
	return call
}

// bounds is what a world must keep to.
type bounds struct {
	t          *testing.T
	m          *machine
	text, pack string
	own        string // the directory of the land, "" for land local
	spec       *sandbox.Spec
	write      bool
}

func (b *bounds) land(g *Gate, w *World) {
	if w.Land != nil {
		b.own = g.Store.LandDir(*w.Land)
	} else if !places.Within(w.Spec.Dir, b.m.workspace) {
		b.own = w.Spec.Dir
	}
}

func (b *bounds) wrong(format string, a ...any) {
	b.t.Helper()
	b.t.Errorf(format+"\n%s", append(a, b.text)...)
}

// hold compares the world with the manifest as another parser reads it, and with what the operator allowed.
func (b *bounds) hold(nativeAllowed bool) {
	var told struct {
		Wrap struct {
			Network   any
			Isolation any
			Reads     any
		}
	}
	if err := json.Unmarshal([]byte(b.text), &told); err != nil {
		b.wrong("another parser cannot read it: %v", err)
	}
	if b.spec.Native != (told.Wrap.Isolation == "native-local" && nativeAllowed) {
		b.wrong("native: %v", b.spec.Native)
	}
	b.programs()
	b.trees()
	b.environment()
	b.network(told.Wrap.Network)
	if l := b.spec.Limits; l.Wall <= 0 || l.Wall > time.Hour {
		b.wrong("limits: %+v", l)
	}
	for _, arg := range b.spec.Args {
		if strings.Contains(arg, "\x00") {
			b.wrong("argument %q", arg)
		}
	}
}

func (b *bounds) programs() {
	t := b.m.tools
	for i, p := range append([]sandbox.Program{b.spec.Program}, b.spec.Uses...) {
		allowed := slices.Contains([]string{t + "/tool", t + "/other", t + "/sh"}, p.Path) || filepath.Dir(p.Path) == b.pack+"/bin" && p.Path != b.pack+"/bin/plain"
		if !allowed || i == 0 && p.Path == t+"/sh" {
			b.wrong("program %d: %+v", i, p)
		}
	}
	for _, dir := range b.spec.UseDirs {
		if dir != t+"/core" {
			b.wrong("programs of %s", dir)
		}
	}
	if !slices.Equal(b.spec.Exec, []string{b.pack}) {
		b.wrong("executes %v", b.spec.Exec)
	}
}

// trees: nothing but pack, land and allowed reads, and none of them lies over or under a secret.
func (b *bounds) trees() {
	writable := []string{b.m.workspace, b.m.git, b.own}
	readable := append([]string{b.pack}, writable...)
	for _, dir := range b.spec.Read {
		if !slices.Contains(readable, dir) {
			b.wrong("reads %s", dir)
		}
	}
	for _, dir := range b.spec.Write {
		if !b.write || !slices.Contains(writable, dir) {
			b.wrong("writes %s", dir)
		}
	}
	all := slices.Concat(b.spec.Read, b.spec.Write, b.spec.Exec, b.spec.UseDirs, []string{b.spec.Program.Path})
	for _, l := range b.spec.Links {
		all = append(all, l.Target)
		if l.HomeRel != "" && !filepath.IsLocal(l.HomeRel) {
			b.wrong("link %+v", l)
		}
	}
	for _, p := range all {
		real := places.Resolve(p)
		for _, secret := range b.m.secrets {
			if places.Within(secret, real) || places.Within(real, secret) {
				b.wrong("%s opens %s", p, secret)
			}
		}
	}
}

// refusedNames are the beginnings of what no manifest sets (§10.2), written down once more.
var refusedNames = []string{"LD_", "DYLD_", "GCONV_PATH", "GLIBC_TUNABLES", "BASH_ENV", "NODE_OPTIONS", "PYTHONSTARTUP", "PYTHONPATH", "PERL5", "RUBYOPT",
	"JAVA_TOOL_OPTIONS", "GIT_SSH", "GIT_EXEC_PATH", "SSH_", "GPG_AGENT_INFO", "DBUS_", "XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY", "DOCKER_HOST",
	"CONTAINER_HOST", "KUBECONFIG", "AWS_SECRET", "GITHUB_TOKEN"}

func (b *bounds) environment() {
	for _, entry := range b.spec.Env {
		name, value, ok := strings.Cut(entry, "=")
		bad := !ok || name == "" || strings.ContainsAny(entry, "\x00") || slices.Contains([]string{"PATH", "HOME", "TMPDIR", "ENV", "IFS"}, name) ||
			strings.HasSuffix(strings.ToUpper(name), "_PROXY") || strings.HasPrefix(name, "GIT_CONFIG_") && name != "GIT_CONFIG_GLOBAL" && name != "GIT_CONFIG_NOSYSTEM" ||
			slices.ContainsFunc(refusedNames, func(p string) bool { return strings.HasPrefix(name, p) })
		if bad {
			b.wrong("environment %q = %q", name, value)
		}
	}
	seen := map[string]bool{}
	for _, entry := range b.m.box.Environ(b.spec, "/private") {
		name, _, _ := strings.Cut(entry, "=")
		if seen[name] {
			b.wrong("%s is twice in %v", name, entry)
		}
		seen[name] = true
	}
}

func (b *bounds) network(told any) {
	got := b.spec.Network
	var hosts []string
	want := "none"
	switch told := told.(type) {
	case string:
		if told == "full" {
			want = told
		}
	case map[string]any:
		want = "hosts"
		list, _ := told["hosts"].([]any)
		for _, h := range list {
			hosts = append(hosts, fmt.Sprint(h))
		}
		if told["operator_hosts"] == true {
			hosts = append(hosts, "own.example:22")
		}
	}
	if got.Mode != want {
		b.wrong("network %q, want %q", got.Mode, want)
	}
	for _, h := range got.Hosts {
		if !slices.Contains(hosts, h) || want != "hosts" {
			b.wrong("host %q", h)
		}
	}
}
