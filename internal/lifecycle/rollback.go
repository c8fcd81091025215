package lifecycle

import (
	"errors"
	"fmt"
	"strings"

	"hcpx/internal/gate"
	"hcpx/internal/policy"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// Rollback goes back to the version that was installed before (§11). What a person may do unasked, an
// agent may not: going back must not loosen the policy under it (§13.3).
func (l *Lifecycle) Rollback(s protocol.Session, id string) (RollbackView, *protocol.Error) {
	view := RollbackView{PackID: id}
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
	current, _ := l.Gate.Installed(id) // nil when it was changed: then nothing says how strict it was
	if err := l.changes(s, "rollback", id, map[string]any{"version": before.Version, "replaced": now.Version}); err != nil {
		return view, err
	}
	if err := l.swap(s, id, current); err != nil {
		return view, l.failed(s, "rollback", id, err)
	}
	view.Version, view.Replaced, view.Changed = before.Version, now.Version, true
	return view, l.refreshSkill(id)
}

func (l *Lifecycle) swap(s protocol.Session, id string, current *gate.Loaded) *protocol.Error {
	if err := l.Store.Rollback(id); err != nil {
		return storeFault(err, "The version before cannot be brought back")
	}
	if s.Principal.Human() {
		return nil
	}
	loosened := []string{"the installed files were changed, so nothing says how strict their policy was"}
	if next, err := l.Gate.Installed(id); err == nil && current != nil {
		loosened = policy.Loosened(current.Policy, next.Policy)
	}
	if len(loosened) == 0 {
		return nil
	}
	if err := l.Store.Rollback(id); err != nil {
		return storeFault(err, "The version before loosens the policy and cannot be put away again")
	}
	return protocol.Fail(protocol.PolicyLoosened, fmt.Sprintf("The version before of %s loosens its policy: %s.", id, strings.Join(loosened, "; "))).
		With("loosened", loosened).WithHint("ask a person: hcpx rollback " + id)
}
