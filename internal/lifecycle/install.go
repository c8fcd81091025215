package lifecycle

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/mod/semver"

	"hcpx/internal/adapter"
	"hcpx/internal/audit"
	"hcpx/internal/grant"
	"hcpx/internal/lint"
	"hcpx/internal/pack"
	"hcpx/internal/policy"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// InstallOptions are the answers that the caller gives beforehand. Those that let something in count
// for a person only, and so does Ask; nil never asks.
type InstallOptions struct {
	AllowBin, AllowRead, AllowPassThrough bool
	Force                                 bool // the same version with other content
	AcceptPolicyChange                    bool
	Ask                                   Ask
}

// installing is one call of Install.
type installing struct {
	*Lifecycle
	s protocol.Session
	o InstallOptions
}

// Install places packs in the store (§11.1). All sources are linted before any is installed, and one
// error refuses the whole call; then each is installed on its own, and the first that can't be is the
// call's error, with all results in its details.
func (l *Lifecycle) Install(s protocol.Session, names []string, o InstallOptions) (InstallView, *protocol.Error) {
	in := &installing{l, s, o}
	view := InstallView{Packs: []InstalledPack{}}
	if err := in.admitted(); err != nil {
		return view, err
	}
	sources, err := in.openAll(names)
	if err != nil {
		return view, err
	}
	defer closeAll(sources)
	issues, err := in.lintAll(sources)
	if err != nil {
		return view, err
	}
	var first *protocol.Error
	for _, src := range sources {
		one := in.one(src)
		one.Issues = issuesOf(issues, src, len(sources))
		view.Packs = append(view.Packs, one)
		view.Changed = view.Changed || one.Changed
		if first == nil {
			first = one.Error
		}
	}
	if first != nil && len(view.Packs) > 1 {
		return view, notAll(first.Code, view.Packs)
	}
	return view, first
}

// notAll is the error of a call with several packs; what became of each stands with the pack.
func notAll(code protocol.Code, packs []InstalledPack) *protocol.Error {
	var left []string
	for _, p := range packs {
		if p.Error != nil {
			left = append(left, p.PackID)
		}
	}
	return protocol.Fail(code, fmt.Sprintf("%d of %d packs were not installed as asked: %s.", len(left), len(packs), strings.Join(left, ", "))).
		With("packs", packs).WithHint("hcpx list")
}

// admitted is what can be told before a source is read: whether the caller may install anything at all,
// and whether he may let programs in.
func (in *installing) admitted() *protocol.Error {
	st, err := in.state()
	if err != nil {
		return err
	}
	if err := in.mayInstallSome(st); err != nil {
		return err
	}
	if in.o.AllowBin || in.o.AllowRead {
		return in.operator(in.s, "Allowing programs and paths")
	}
	return nil
}

// mayInstallSome refuses whoever could install no pack whatever. Which pack it is is asked again once
// its id is known.
func (l *Lifecycle) mayInstallSome(s protocol.Session, st *store.State) *protocol.Error {
	some := make([]grant.Grant, 0, len(st.Grants))
	for _, g := range st.Grants {
		if g.Effect == grant.Allow || len(g.Packs) == 0 || slices.Contains(g.Packs, "*") {
			g.Packs = nil
			some = append(some, g)
		}
	}
	r := grant.Request{Principal: s.Principal, Tenant: s.Tenant, Capability: protocol.PackInstall, Now: l.Now()}
	d := grant.Evaluate(some, r)
	if r.Plane = grant.PlaneControl; d.Err == nil || grant.Evaluate(some, r).Err == nil {
		return nil
	}
	return l.refuse(s, audit.Entry{Act: "install", Grant: d.Path}, d.Err)
}

func (in *installing) mayInstallSome(st *store.State) *protocol.Error {
	return in.Lifecycle.mayInstallSome(in.s, st)
}

func (in *installing) openAll(names []string) ([]*source, *protocol.Error) {
	var sources []*source
	var unreadable []protocol.Issue
	for _, name := range names {
		src, err := in.open(name)
		switch {
		case err == nil:
			src.load(in.Limits)
			sources = append(sources, src)
		case err.Code == protocol.LintFailed:
			unreadable = append(unreadable, err.Details["issues"].([]protocol.Issue)...)
		default:
			closeAll(sources)
			return nil, err
		}
	}
	if len(unreadable) > 0 {
		unreadable = append(unreadable, in.lintSources(sources)...)
		closeAll(sources)
		return nil, lintFailed(sortedIssues(unreadable), names...)
	}
	return sources, nil
}

func shownOf(sources []*source) []string {
	names := make([]string, len(sources))
	for i, src := range sources {
		names[i] = src.shown
	}
	return names
}

func closeAll(sources []*source) {
	for _, src := range sources {
		_ = src.close() // a temporary directory; nothing depends on it any more
	}
}

// lintAll is HCP-11.1-2a and HCP-11.1-2b: lint is never skipped, and a pack that fails it is not
// installed, nor is any other of the call.
func (in *installing) lintAll(sources []*source) ([]protocol.Issue, *protocol.Error) {
	issues := in.lintSources(sources)
	if protocol.HasErrors(issues) {
		return nil, lintFailed(issues, shownOf(sources)...)
	}
	seen := map[string]bool{}
	for _, src := range sources {
		if src.pack.ID == "" || src.pack.Manifest == nil || src.pack.Policy == nil {
			return nil, lintFailed([]protocol.Issue{notReadable(src.shown, errors.New("it changed while it was read"))}, src.shown)
		}
		if seen[src.pack.ID] {
			return nil, protocol.Fail(protocol.UsageError, fmt.Sprintf("Two sources of this call are the pack %q.", src.pack.ID)).
				WithHint("hcpx install " + protocol.Word(src.shown))
		}
		seen[src.pack.ID] = true
		in.compile(src)
		if w := src.pack.Manifest.Wrap; w != nil && w.PassThrough && !in.o.AllowPassThrough {
			return nil, protocol.Fail(protocol.LintFailed, fmt.Sprintf("Nothing was installed: the pack %q passes any argument through to its program.", src.pack.ID)).
				With("issues", issues).WithHint("hcpx install " + protocol.Word(src.shown) + " --allow-pass-through")
		}
	}
	return issues, nil
}

func issuesOf(all []protocol.Issue, src *source, sources int) []protocol.Issue {
	mine := []protocol.Issue{}
	for _, i := range all {
		if sources == 1 || i.Dir == src.shown {
			mine = append(mine, i)
		}
	}
	return mine
}

// one installs one linted source and answers what became of it.
func (in *installing) one(src *source) InstalledPack {
	m := src.pack.Manifest
	out := InstalledPack{PackID: m.ID, Version: m.Version, Digest: src.sum, Source: src.shown, Network: networkOf(m), Changes: []policy.Change{},
		Allowed: []string{}, Needs: []Need{}, Issues: []protocol.Issue{}}
	st, err := in.state()
	if err == nil {
		err = in.may(in.s, st, protocol.PackInstall, subject{"install", m.ID, planeOf(m)})
	}
	if err == nil {
		out.Activated = st.IsActivated(in.s.ID, m.ID)
		err = in.place(st, src, &out)
	}
	if err == nil {
		err = in.allow(src, &out)
	}
	if err != nil {
		out.Error = err
	}
	return out
}

// place puts the files into the store, unless they are there: a newer version replaces the older, the
// same version with other content is a conflict, an older one is taken and said.
func (in *installing) place(st *store.State, src *source, out *InstalledPack) *protocol.Error {
	old, err := in.Store.Meta(out.PackID)
	switch {
	case errors.Is(err, store.ErrNotInstalled):
		return in.write(src, out, "")
	case err != nil:
		return storeFault(err, "The record of the pack cannot be read")
	}
	_, broken := in.Gate.Installed(out.PackID)
	if old.Record.Digest == src.sum && broken == nil {
		return nil
	}
	if old.Version == out.Version && old.Record.Digest != src.sum && !in.o.Force {
		return protocol.Fail(protocol.DigestConflict, fmt.Sprintf("Version %s of %s is installed with other content.", out.Version, out.PackID)).
			With("installed", old.Record.Digest).With("offered", src.sum).WithHint("hcpx install " + protocol.Word(src.shown) + " --force")
	}
	if old.Record.Digest != src.sum { // the same content again is no other version
		if err := in.accepted(st, src, out); err != nil {
			return err
		}
	}
	switch {
	case old.Version != out.Version && semver.Compare("v"+old.Version, "v"+out.Version) > 0:
		out.say(fmt.Sprintf("This is an older version than %s, which hcpx rollback %s brings back.", old.Version, out.PackID))
	case broken != nil:
		out.say("The files that were installed had been changed.")
	}
	out.Previous = old.Version
	return in.write(src, out, old.Version)
}

// accepted holds a version that may do more than the one it replaces until a person takes it (§13.3).
func (in *installing) accepted(st *store.State, src *source, out *InstalledPack) *protocol.Error {
	out.Changes = in.changesTo(src.pack)
	out.Loosened = widening(out.Changes)
	if len(out.Loosened) == 0 || in.o.AcceptPolicyChange && !in.s.Principal.Agent() {
		return nil
	}
	if in.o.Ask != nil && in.s.Principal.Human() {
		c := in.consentPack(st, in.s, src.pack.Manifest, src.pack.Policy)
		c.Source, c.Changes, c.Loosened = src.shown, out.Changes, out.Loosened
		if in.o.Ask(Consent{Question: "policy", Packs: []ConsentPack{c}}) {
			return nil
		}
	}
	return protocol.Fail(protocol.PolicyLoosened, fmt.Sprintf("Version %s of %s may do more than the one that is installed: %s.", out.Version, out.PackID, strings.Join(out.Loosened, "; "))).
		With("changes", out.Changes).With("loosened", out.Loosened).WithHint("hcpx install " + protocol.Word(src.shown) + " --accept-policy-change")
}

// unknownBefore stands for every change, where the installed version can't be read.
var unknownBefore = policy.Change{What: "the installed files were changed, so nothing says what they could do", Widens: true}

// changesTo compares with what is installed (§13.3). Files that were changed since their install say
// nothing about what the old version could do, so the new one must be looked at.
func (l *Lifecycle) changesTo(next *pack.Pack) []policy.Change {
	old := l.installedPack(next.ID)
	if old == nil {
		return []policy.Change{unknownBefore}
	}
	return append([]policy.Change{}, lint.Against(old, next)...)
}

// widening are the sentences about what a version may do and the one before might not.
func widening(changes []policy.Change) []string {
	out := []string{}
	for _, c := range changes {
		if c.Widens {
			out = append(out, c.What)
		}
	}
	return out
}

func (in *installing) write(src *source, out *InstalledPack, previous string) *protocol.Error {
	detail := map[string]any{"version": out.Version, "digest": src.sum, "source": src.place}
	if previous != "" {
		detail["replaced"] = previous
	}
	if len(out.Loosened) > 0 {
		detail["loosened"] = out.Loosened
	}
	if err := in.changes(in.s, "install", out.PackID, detail); err != nil {
		return err
	}
	meta := store.Meta{PackID: out.PackID, Version: out.Version, Source: src.place, InstalledAt: in.Now(), InstalledBy: string(in.s.Principal),
		Record: pack.Record{Digest: src.sum}, Compiled: src.compiled}
	if err := in.Store.Install(out.PackID, src.fs, meta); err != nil {
		return in.failed(in.s, "install", out.PackID, storeFault(err, "The pack cannot be installed"))
	}
	out.Changed = true
	if previous == "" {
		return nil
	}
	if err := in.probed(out.PackID); err != nil {
		return in.undo(out, previous, err)
	}
	return in.refreshSkill(out.PackID)
}

// compile reads the document of an openapi pack into the summary that execs use in its place (§3.6).
func (in *installing) compile(src *source) {
	m := src.pack.Manifest
	if kind, ok := in.Gate.Adapters[m.Adapter].(adapter.Documented); ok {
		src.compiled, _ = kind.Summarize(m, src.fs) // lint has judged it
		kind.Adopt(m, src.compiled)
	}
}

// undo takes a failed upgrade back: its probe said that it does not work here.
func (in *installing) undo(out *InstalledPack, previous string, why *protocol.Error) *protocol.Error {
	if err := in.enter(in.s, "rollback", out.PackID, map[string]any{"version": previous, "because": why.Message}); err != nil {
		return unrecorded(fmt.Sprintf("Version %s of %s is installed and does not work here; going back to %s", out.Version, out.PackID, previous), err).
			WithHint("hcpx rollback " + out.PackID)
	}
	if err := in.Store.Rollback(out.PackID, ""); err != nil {
		return in.failed(in.s, "rollback", out.PackID, storeFault(err, "The version before cannot be brought back"))
	}
	out.Changed = false
	why.Message = fmt.Sprintf("Version %s of %s does not work here, so %s was kept: %s", out.Version, out.PackID, previous, why.Message)
	return why.WithHint("hcpx doctor")
}

// allow records programs and paths, when the caller or a person said so; what stays is listed as needed.
func (in *installing) allow(src *source, out *InstalledPack) *protocol.Error {
	st, err := in.state()
	if err != nil {
		return err
	}
	m := src.pack.Manifest
	bins, reads := in.o.AllowBin, in.o.AllowRead
	if asked := slices.ContainsFunc(needsOf(st, m), func(n Need) bool {
		return n.Kind == "read" && !reads || (n.Kind == "bin" || n.Kind == "uses") && !bins
	}); asked && in.o.Ask != nil && in.s.Principal.Human() {
		c := in.consentPack(st, in.s, m, src.pack.Policy)
		c.Source = src.shown
		if in.o.Ask(Consent{Question: "allow", Packs: []ConsentPack{c}}) {
			bins, reads = true, true
		}
	}
	refused := map[string]string{}
	if bins || reads {
		if refused, err = in.letIn(m, out, bins, reads); err != nil {
			return err
		}
		if st, err = in.state(); err != nil {
			return err
		}
	}
	loaded, err := in.Gate.Installed(m.ID)
	if err != nil {
		return err
	}
	in.scripts(st, loaded, out)
	out.Needs = needsOf(st, m)
	for i, n := range out.Needs {
		out.Needs[i].Reason = refused[n.Name]
	}
	return nil
}
