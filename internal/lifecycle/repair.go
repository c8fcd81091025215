package lifecycle

import (
	"hcpx/internal/gate"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// Repair mends what doctor finds and nothing decides: it finishes what a crash left, rebuilds a damaged
// state and keeps the damaged file, puts the bootstrap pack back, and makes or removes skill copies
// (§11.3). It is a person's act, for it may change grants.
func (l *Lifecycle) Repair(s protocol.Session) (RepairView, *protocol.Error) {
	view := RepairView{Done: []string{}, Kept: []string{}, Left: []string{}}
	if err := l.operator(s, "Repairing the store"); err != nil {
		return view, err
	}
	if err := l.repairStore(&view); err != nil {
		return view, err
	}
	if err := l.repairBootstrap(s, &view); err != nil {
		return view, err
	}
	if err := l.repairSkills(&view); err != nil {
		return view, err
	}
	for _, f := range l.Status(s).Findings {
		if f.Level == LevelFailure {
			view.Left = append(view.Left, f.Subject+": "+f.Message)
		}
	}
	view.Changed = len(view.Done) > 0
	if !view.Changed {
		return view, nil
	}
	return view, l.changes(s, "repair", "", map[string]any{"done": view.Done, "kept": view.Kept})
}

// mender is a store that can repair itself.
type mender interface {
	Repair() (store.Repaired, error)
}

func (l *Lifecycle) repairStore(view *RepairView) *protocol.Error {
	disk, ok := l.Store.(mender)
	if !ok {
		return nil
	}
	done, err := disk.Repair()
	if err != nil {
		return storeFault(err, "The store cannot be repaired")
	}
	if done.Copy != "" {
		view.Kept = append(view.Kept, done.Copy)
		view.Done = append(view.Done, "state.json was rebuilt from what could be read.")
		for _, lost := range done.Lost {
			view.Left = append(view.Left, "state.json: "+lost+" could not be read and begins anew.")
		}
	}
	for _, j := range done.Journals {
		view.Kept = append(view.Kept, j)
		view.Done = append(view.Done, "An unfinished change that cannot be read was put aside: "+j+".")
	}
	return nil
}

func (l *Lifecycle) repairBootstrap(s protocol.Session, view *RepairView) *protocol.Error {
	if l.bootstrapIntact() == nil {
		return nil
	}
	if err := l.installBootstrap(string(s.Principal)); err != nil {
		return err
	}
	view.Done = append(view.Done, "The bootstrap pack "+gate.Bootstrap+" was installed.")
	return nil
}

func (l *Lifecycle) repairSkills(view *RepairView) *protocol.Error {
	setup, err := l.setup(func(id string) (bool, *protocol.Error) {
		if l.skillState(id) == skillCurrent {
			return false, nil
		}
		return l.putSkill(id)
	})
	if err != nil {
		return err
	}
	for _, p := range setup.Packs {
		if p.Changed {
			view.Done = append(view.Done, "The skill copy of "+p.PackID+" was made again.")
		}
		if _, err := l.Store.Skill(p.PackID); err == nil && !p.Activated {
			if err := l.settleSkill(p.PackID); err != nil {
				return err
			}
			view.Done = append(view.Done, "The skill copy of "+p.PackID+" was removed: no session has it activated.")
		}
	}
	return nil
}
