package pipeline

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protect"
	"hcpx/internal/protocol"
)

// guards says whether the command could change what the host runs later: it writes a workspace (§10.2). Nothing
// else pays for the look.
func (r *run) guards() bool {
	return protect.Supported && r.verb.Entry.Operation == protocol.Write && r.verb.Entry.Land == protocol.Local &&
		r.world != nil && r.world.Spec != nil && len(r.world.Spec.Write) > 0
}

func (r *run) watch() protect.Watch {
	w := protect.Watch{
		Home: r.p.Gate.Store.Home(), Run: r.id, Command: r.req.PackID + "/" + r.req.VerbKey, User: r.p.Gate.Places.Home,
		Root: r.s.Workspace, GitDirs: r.s.GitDirs, May: r.verb.Entry.Protected, Patience: r.world.Spec.Limits.Wall,
	}
	if r.mask != nil {
		w.Mask = r.mask.text
	}
	return w
}

// guard waits for its turn and looks at the protected names before a command that could change them; where it can't,
// nothing runs.
func (r *run) guard() *protocol.Error {
	if !r.guards() {
		return nil
	}
	g, err := protect.Begin(r.ctx, r.watch())
	if err == nil {
		r.guarded = g
		return nil
	}
	return r.unbegun(err)
}

// guardable is guard's refusal for the workspace as it is, without waiting or changing anything.
func (r *run) guardable() *protocol.Error {
	if !r.guards() {
		return nil
	}
	if err := protect.Look(r.watch()); err != nil {
		return r.unbegun(err)
	}
	return nil
}

// unbegun is the refusal of step 8 for what protect says.
func (r *run) unbegun(err error) *protocol.Error {
	var left *protect.LeftError
	var busy *protect.BusyError
	var full *protect.TooMuchError
	switch {
	case errors.As(err, &left):
		return protocol.Fail(protocol.ProtectedPathChanged, fmt.Sprintf("An earlier run in this workspace, %s of %s, was cut off, and protected names are not as they were before it.", left.Left.Run, left.Left.Command)).
			With("run", left.Left.Run).With("workspace", left.Left.Root).WithHint("hcpx repair")
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e := protocol.Fail(protocol.Canceled, "The run was cancelled before it started.")
		e.Step = 9
		return e
	case errors.As(err, &busy):
		return unguarded("Another write command is running in " + busy.Root + ", and write commands of one workspace take turns; it did not end within the time limit of this one.").
			WithHint("hcpx audit tail")
	case errors.As(err, &full):
		if !filepath.IsAbs(full.Path) {
			full.Path = filepath.Join(r.s.Workspace, full.Path)
		}
		return unguarded("What the host would run later cannot be guarded: " + full.Error() + ", and more is not remembered.").WithHint("du -a " + protocol.Word(full.Path))
	}
	return unguarded("What the host would run later cannot be guarded: " + protocol.Clause(err.Error()) + ".").WithHint("ls -la " + protocol.Word(r.s.Workspace))
}

func unguarded(why string) *protocol.Error {
	return protocol.Fail(protocol.SandboxUnavailable, why).With("rule", "protected-names")
}

// unguard looks again, once nothing of the run is alive, however it ended.
func (r *run) unguard() {
	if r.guarded == nil {
		return
	}
	g := r.guarded
	r.guarded = nil
	r.changes, r.unseen = g.End()
}

// undone is the answer of a run that changed protected names, whatever else became of it.
func (r *run) undone(err *protocol.Error) *protocol.Error {
	if r.unseen == nil && len(r.changes) == 0 {
		return err
	}
	e := r.changedError()
	switch {
	case r.unseen != nil && len(r.changes) > 0:
		e = e.With("fault", protocol.Clause(r.unseen.Error())).WithHint("hcpx repair")
	case r.unseen != nil:
		e = protocol.Fail(protocol.InternalError, "The command ran, and the protected names of the workspace could not be looked at or put back: "+protocol.Clause(r.unseen.Error())+".").
			With("ran", true).WithHint("hcpx repair")
	}
	if err != nil {
		r.discreet(err)
		e = e.With("error", err)
	}
	e.Step = 10
	return e
}

// shownChanges is how many changes an error and the audit name; changes.json in the quarantine has all.
const shownChanges = 20

func (r *run) changedError() *protocol.Error {
	var names, left []string
	for _, c := range r.changes {
		names = append(names, jsondoc.Quote(c.Path))
		if !c.Restored {
			left = append(left, jsondoc.Quote(c.Path))
		}
	}
	end := "The old content was restored."
	if len(left) > 0 {
		end = "Not all could be restored: look at " + few(left) + "."
	}
	shelf := filepath.Join(r.p.Gate.Store.Home(), "quarantine", r.id)
	return protocol.Fail(protocol.ProtectedPathChanged, fmt.Sprintf("%s/%s changed what the host may run later: %s. %s", r.req.PackID, r.req.VerbKey, few(names), end)).
		With("changes", r.changes[:min(len(r.changes), shownChanges)]).With("total", len(r.changes)).With("quarantine", shelf).
		WithHint("cat " + protocol.Word(filepath.Join(shelf, "changes.json")))
}

// few are the first names of a list, and how many more there are.
func few(names []string) string {
	if more := len(names) - 3; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), more)
	}
	return strings.Join(names, ", ")
}

// guardPlan names what is guarded, and what of it the command changes by design.
func (r *run) guardPlan() *jsondoc.Node {
	var why []string
	for _, g := range protect.List() {
		why = append(why, g.Why)
	}
	return object("guarded", stringsNode(why), "may_change", stringsNode(r.verb.Entry.Protected))
}
