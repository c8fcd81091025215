package lifecycle

import (
	"fmt"
	"io/fs"
	"os"
	"strings"

	"hcpx/internal/manifest"
	"hcpx/internal/policy"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// AddOptions are the caller's answers. Yes is the consent given beforehand.
type AddOptions struct {
	Yes bool
	InstallOptions
}

// Add lints, installs, allows and activates one pack behind one consent (§11). The name is a pack that
// ships with the program, or a directory or archive. It changes no grants.
func (l *Lifecycle) Add(s protocol.Session, name string, o AddOptions) (AddView, *protocol.Error) {
	view := AddView{Session: s.ID, Pack: InstalledPack{Network: []string{}, Changes: []policy.Change{}, Allowed: []string{}, Needs: []Need{}, Issues: []protocol.Issue{}}}
	in := &installing{l, s, o.InstallOptions}
	st, err := l.addAdmitted(in)
	if err != nil {
		return view, err
	}
	src, err := l.addSource(name)
	if err != nil {
		return view, err
	}
	defer closeAll([]*source{src})
	issues, err := in.lintAll([]*source{src})
	if err != nil {
		return view, err
	}
	if err := l.consented(in, st, src, o, &view); err != nil {
		return view, err
	}
	in.o.AllowBin, in.o.AllowRead, in.o.AcceptPolicyChange, in.o.Ask = true, true, true, nil
	view.Pack = in.one(src)
	view.Pack.Issues = issuesOf(issues, src, 1)
	view.Changed = view.Pack.Changed
	if view.Pack.Error != nil {
		return view, view.Pack.Error
	}
	session, err := l.Activate(s, []string{view.Pack.PackID})
	view.Changed = view.Changed || session.Changed
	if view.Activated = err == nil; view.Activated {
		view.Connect = l.unconnected(s, view.Pack.PackID)
	}
	return view, err
}

// unconnected is the command that connects a pack of the session, "" where nothing is missing.
func (l *Lifecycle) unconnected(s protocol.Session, id string) string {
	st, err := l.state()
	if err != nil {
		return ""
	}
	loaded, err := l.Gate.Pack(st, s.ID, id)
	if err != nil {
		return ""
	}
	if err := l.Gate.Connected(st, s.ID, loaded); err != nil && err.Code == protocol.NotConnected {
		return err.Hint
	}
	return ""
}

// addAdmitted: allowing needs a person, which no grant replaces, and installing needs its capability.
func (l *Lifecycle) addAdmitted(in *installing) (*store.State, *protocol.Error) {
	st, err := l.state()
	if err != nil {
		return nil, err
	}
	if err := l.operator(in.s, "Adding a pack with its programs"); err != nil {
		return nil, err
	}
	return st, in.mayInstallSome(st)
}

// addSource opens a shipped pack by its name, or a directory or archive by its path.
func (l *Lifecycle) addSource(name string) (*source, *protocol.Error) {
	var src *source
	switch {
	case l.shipped(name):
		if refusal := l.sourced(name, store.Shipped); refusal != nil {
			return nil, refusal
		}
		sub, fault := fs.Sub(l.Shipped, name)
		if fault != nil {
			return nil, storeFault(fault, "The shipped pack cannot be read")
		}
		src = &source{shown: name, place: store.Shipped, name: name, fs: sub, close: func() error { return nil }}
	case manifest.ValidID(name):
		return nil, l.unshipped(name)
	default:
		var err *protocol.Error
		if src, err = l.open(name); err != nil {
			return nil, err
		}
	}
	src.load(l.Limits)
	return src, nil
}

// unshipped names the packs that come with the program, and what was likely meant: a directory that is there, else a
// pack of nearly that name.
func (l *Lifecycle) unshipped(name string) *protocol.Error {
	message := fmt.Sprintf("No pack %q comes with hcpx; these do: %s. A directory is named with a slash, as ./%s.", name, strings.Join(l.ShippedNames(), ", "), name)
	if _, absent := os.Stat(name); absent == nil {
		return protocol.Fail(protocol.NotFound, message).WithHint("hcpx add " + protocol.Word("./"+name))
	}
	near := protocol.Nearest(name, l.ShippedNames())
	if near == "" {
		return protocol.Fail(protocol.NotFound, message).WithHint("hcpx add --help")
	}
	return protocol.Fail(protocol.NotFound, message).With("nearest", []string{near}).WithHint("hcpx add " + near)
}

// consented shows everything once. When nothing would change nobody is asked.
func (l *Lifecycle) consented(in *installing, st *store.State, src *source, o AddOptions, view *AddView) *protocol.Error {
	m := src.pack.Manifest
	if old, err := l.Store.Meta(m.ID); err == nil && old.Record.Digest == src.sum && st.IsActivated(in.s.ID, m.ID) && l.nothingToAllow(st, m) {
		return nil
	}
	c := l.consentPack(st, in.s, m, src.pack.Policy)
	c.Source = src.shown
	if old, err := l.Store.Meta(m.ID); err == nil && old.Record.Digest != src.sum {
		c.Changes = l.changesTo(src.pack)
		c.Loosened = widening(c.Changes)
	}
	consent := Consent{Question: "add", Packs: []ConsentPack{c}}
	if o.Yes || o.Ask != nil && o.Ask(consent) {
		view.Consent = &consent
		return nil
	}
	if o.Ask != nil {
		return protocol.Fail(protocol.Canceled, "Nothing was added.").WithHint("hcpx add " + protocol.Word(src.shown))
	}
	return protocol.Fail(protocol.ConfirmRequired, fmt.Sprintf("Adding %s needs a person's consent.", m.ID)).
		With("consent", consent).WithHint("hcpx add " + protocol.Word(src.shown) + " --yes")
}

// nothingToAllow says whether only needs stay that add never covers.
func (l *Lifecycle) nothingToAllow(st *store.State, m *manifest.Manifest) bool {
	for _, n := range needsOf(st, m) {
		if n.Kind != "native" {
			return false
		}
	}
	return true
}

// ShippedNames are the packs that come with the program, sorted.
func (l *Lifecycle) ShippedNames() []string {
	names := []string{}
	if l.Shipped == nil {
		return names
	}
	entries, err := fs.ReadDir(l.Shipped, ".")
	if err != nil {
		return names
	}
	for _, e := range entries {
		if l.shipped(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}

// shipped says whether a pack of that id comes with the program.
func (l *Lifecycle) shipped(id string) bool {
	if l.Shipped == nil || !manifest.ValidID(id) {
		return false
	}
	_, err := fs.Stat(l.Shipped, id+"/"+manifest.File)
	return err == nil
}
