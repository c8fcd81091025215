package lifecycle

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"hcpx/internal/lint"
	"hcpx/internal/pack"
	"hcpx/internal/policy"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// Rollback goes back to the version that was installed before (§11). What a person may do unasked, an
// agent may not: going back must not let the pack do more (§13.3). It is judged before anything moves.
func (l *Lifecycle) Rollback(s protocol.Session, id string) (RollbackView, *protocol.Error) {
	view := RollbackView{PackID: id, Changes: []policy.Change{}}
	st, err := l.state()
	if err != nil {
		return view, err
	}
	if err := l.may(s, st, protocol.PackInstall, subject{"rollback", id, l.plane(id)}); err != nil {
		return view, err
	}
	now, fault := l.Store.Meta(id)
	if fault != nil {
		return view, storeFault(fault, "The record of the pack cannot be read")
	}
	before, fault := l.Store.Previous(id)
	if errors.Is(fault, store.ErrNotInstalled) {
		return view, protocol.Fail(protocol.NotFound, fmt.Sprintf("There is no earlier version of %s.", id)).WithHint("hcpx list")
	}
	if fault != nil {
		return view, storeFault(fault, "The record of the pack cannot be read")
	}
	if err := l.judgeBack(s, before, &view); err != nil {
		return view, err
	}
	detail := map[string]any{"version": before.Version, "replaced": now.Version}
	if loosened := widening(view.Changes); len(loosened) > 0 {
		detail["loosened"] = loosened
	}
	if err := l.changes(s, "rollback", id, detail); err != nil {
		return view, err
	}
	if err := l.Store.Rollback(id, before.Record.Digest); err != nil {
		return view, l.failed(s, "rollback", id, storeFault(err, "The version before cannot be brought back"))
	}
	view.Version, view.Replaced, view.Changed = before.Version, now.Version, true
	return view, l.refreshSkill(id)
}

// judgeBack reads the version before where it lies: it must be what was installed then, and what it may do
// more than the one of now is a person's to accept.
func (l *Lifecycle) judgeBack(s protocol.Session, before *store.Meta, view *RollbackView) *protocol.Error {
	dir := l.Store.PreviousDir(view.PackID)
	earlier, err := openIntact(dir, before.Record)
	if err != nil {
		return protocol.Fail(protocol.PackTampered, fmt.Sprintf("The version before of %s differs from what was installed: %s.", view.PackID, sentenceEnd(plainReason(err)))).
			WithHint("hcpx install " + protocol.Words(before.Source))
	}
	if now := l.installedPack(view.PackID); now != nil {
		view.Changes = append(view.Changes, lint.Against(now, earlier)...)
	} else {
		view.Changes = append(view.Changes, unknownBefore)
	}
	loosened := widening(view.Changes)
	if len(loosened) == 0 || s.Principal.Human() {
		return nil
	}
	return protocol.Fail(protocol.PolicyLoosened, fmt.Sprintf("Version %s of %s may do more than the one that is installed: %s.", before.Version, view.PackID, strings.Join(loosened, "; "))).
		With("changes", view.Changes).With("loosened", loosened).WithHint("ask a person: hcpx rollback " + view.PackID)
}

// openIntact reads a pack that still is what was recorded.
func openIntact(dir string, r pack.Record) (*pack.Pack, error) {
	if err := pack.Intact(dir, r); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	p, err := pack.Open(root.FS())
	return p, errors.Join(err, root.Close())
}
