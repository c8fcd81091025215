package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"hcpx/internal/gate"
	"hcpx/internal/protocol"
	"hcpx/internal/skill"
	"hcpx/internal/store"
)

// Activate makes packs usable in the session and copies their skills (§11.1, §5.4). It needs no
// capability and registers nothing with any host (HCP-11.1-6). All are looked at before one is activated.
func (l *Lifecycle) Activate(s protocol.Session, ids []string) (SessionView, *protocol.Error) {
	view := SessionView{Session: s.ID, Packs: []PackChange{}}
	for _, id := range ids {
		if _, err := l.Gate.Installed(id); err != nil {
			if err.Code == protocol.PackNotInstalled && l.shipped(id) {
				err = err.WithHint("hcpx add " + id)
			}
			return view, err
		}
	}
	for _, id := range ids {
		// The stamps of a fresh install are young; from here on each exec would pay for that.
		if err := l.Store.Restamp(id); err != nil {
			return view, storeFault(err, "The record of the pack cannot be renewed")
		}
		if _, err := l.putSkill(id); err != nil {
			return view, err
		}
	}
	var err *protocol.Error
	view.Changed, err = l.update(s, "activate", only(ids), func(st *store.State) (any, *protocol.Error) {
		view.Packs = []PackChange{}
		return turn(ids, &view, func(id string) bool { return id != gate.Bootstrap && st.SetActivated(s.ID, id, true) }), nil
	})
	if err != nil {
		// Nothing was activated, so no copy may stay that only this act made. The first fault is the answer.
		for _, id := range ids {
			_ = l.settleSkill(id)
		}
		return view, err
	}
	for _, id := range ids {
		// Once more: a deactivation elsewhere may have removed the copy before the state said so.
		if _, err := l.putSkill(id); err != nil {
			return view, err
		}
	}
	return view, nil
}

// Deactivate takes packs out of the session, and their connection too (HCP-11.1-4). What is kept for one goes only where
// the caller may disconnect it; else it waits for who connected it. A pack that is not activated or not even installed
// is no error.
func (l *Lifecycle) Deactivate(ctx context.Context, s protocol.Session, ids []string) (SessionView, *protocol.Error) {
	view := SessionView{Session: s.ID, Packs: []PackChange{}}
	secrets, parked, planes := map[string]string{}, map[string]bool{}, map[string]string{}
	for _, id := range ids {
		planes[id] = l.plane(id)
	}
	changed, err := l.update(s, "deactivate", only(ids), func(st *store.State) (any, *protocol.Error) {
		view.Packs = []PackChange{}
		return turn(ids, &view, func(id string) bool {
			if id == gate.Bootstrap {
				return false
			}
			held := st.Session(s.ID).Bindings[id]
			if held.Secret == "" || l.weighed(s, st, protocol.PackConnect, subject{"disconnect", id, planes[id]}).Err == nil {
				secrets[id] = held.Secret
				return st.SetActivated(s.ID, id, false)
			}
			changed := st.IsActivated(s.ID, id) || st.IsConnected(s.ID, id)
			st.SetActivated(s.ID, id, false)
			st.Park(s.ID, id, held)
			parked[id] = changed
			return changed
		}), nil
	})
	if err != nil {
		return view, err
	}
	view.Changed = changed
	for i, p := range view.Packs {
		if p.PackID == gate.Bootstrap {
			view.Packs[i].Note = "the bootstrap pack is activated in each session"
		}
		if !p.Changed {
			continue
		}
		if parked[p.PackID] {
			view.Packs[i].Note = "what is kept for it stays: only who may disconnect it deletes that"
		}
		ended, left := l.sweep(ctx, []string{secrets[p.PackID]})
		if left == nil && l.deleted(secrets[p.PackID]) {
			view.Packs[i].Note = "its credential was deleted here; hcpx connect " + p.PackID + " asks for it again"
		}
		for _, e := range ended {
			view.Packs[i].Note = strings.TrimPrefix(view.Packs[i].Note+"; "+e.Message, "; ")
		}
		if left != nil {
			view.Packs[i].Note = left.Message // it is deactivated all the same (§11.1)
		}
		if err := l.settleSkill(p.PackID); err != nil {
			return view, err
		}
	}
	return view, nil
}

// deleted says whether what was kept under a name is gone, as nothing uses it any more.
func (l *Lifecycle) deleted(name string) bool {
	st, err := l.state()
	return name != "" && err == nil && !slices.Contains(st.Secrets, name)
}

// turn applies a change to each pack and answers the audit's detail, nil when nothing changed.
func turn(ids []string, view *SessionView, change func(id string) bool) any {
	var changed []string
	for _, id := range ids {
		c := change(id)
		view.Packs = append(view.Packs, PackChange{PackID: id, Changed: c})
		if c {
			changed = append(changed, id)
		}
	}
	if changed == nil {
		return nil
	}
	return map[string]any{"packs": changed}
}

// only is the pack that an entry is about, when it is about one.
func only(ids []string) string {
	if len(ids) == 1 {
		return ids[0]
	}
	return ""
}

// skillCopy is the text that activation stores (§5.4), from the installed files.
func (l *Lifecycle) skillCopy(id string) ([]byte, *protocol.Error) {
	loaded, err := l.Gate.Installed(id)
	if err != nil {
		return nil, err
	}
	text, fault := skillText(loaded)
	if fault != nil {
		return nil, storeFault(fault, "The skill of the pack cannot be read")
	}
	var rows []skill.Row
	for _, c := range loaded.Manifest.Commands {
		if e := loaded.Policy.Verb(c.Key); e != nil {
			rows = append(rows, skill.Row{Verb: c.Key, Operation: string(e.Operation), Land: string(e.Land), Confirm: e.Confirm, Summary: c.Summary})
		}
	}
	return skill.Copy(id, text, rows), nil
}

// putSkill makes the copy, and says whether it differs from what lay there. It tries again when another
// process removes the directory under it.
func (l *Lifecycle) putSkill(id string) (changed bool, failure *protocol.Error) {
	text, failure := l.skillCopy(id)
	if failure != nil {
		return false, failure
	}
	if old, err := l.Store.Skill(id); err == nil && string(old) == string(text) {
		return false, nil
	}
	var err error
	for range attempts {
		if err = l.Store.PutSkill(id, text); err == nil {
			return true, nil
		}
	}
	return false, storeFault(err, fmt.Sprintf("The skill of %s cannot be copied", id))
}

// attempts bounds how often one copy is fought over.
const attempts = 5

// settleSkill removes the copy when no session has the pack activated (§5.4). The state is read again
// after the removal: who activated in between finds the copy made once more.
func (l *Lifecycle) settleSkill(id string) *protocol.Error {
	var fault error
	dropped := false
	for range attempts {
		st, err := l.state()
		if err != nil {
			return err
		}
		if active(st, id) {
			_, err = l.putSkill(id)
			return err
		}
		if dropped {
			return nil
		}
		fault = l.Store.DropSkill(id)
		dropped = fault == nil
	}
	return storeFault(fault, fmt.Sprintf("The skill of %s cannot be removed", id))
}

// refreshSkill makes the copy again after an upgrade, where some session has the pack activated.
func (l *Lifecycle) refreshSkill(id string) *protocol.Error {
	st, err := l.state()
	if err != nil || !active(st, id) {
		return err
	}
	_, err = l.putSkill(id)
	return err
}

// active says whether some session has the pack activated.
func active(st *store.State, id string) bool {
	if id == gate.Bootstrap {
		return true
	}
	for _, session := range st.SessionsOf(id) {
		if st.IsActivated(session, id) {
			return true
		}
	}
	return false
}

// Skill reads the copy that activation made (§12.2.3); the pack must be activated in the session.
func (l *Lifecycle) Skill(s protocol.Session, id string) (SkillView, *protocol.Error) {
	st, err := l.state()
	if err != nil {
		return SkillView{PackID: id}, err
	}
	if _, err := l.Gate.Pack(st, s.ID, id); err != nil {
		return SkillView{PackID: id}, err
	}
	text, err := l.skillCopy(id)
	return SkillView{PackID: id, Skill: string(text)}, err
}
