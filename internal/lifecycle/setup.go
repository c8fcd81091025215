package lifecycle

import (
	"errors"
	"io/fs"

	"hcpx/internal/protocol"
)

// The states of a skill copy.
const (
	skillCurrent = "current"
	skillStale   = "stale"
	skillMissing = "missing"
	skillNone    = "none" // activated nowhere, so there is none to have
)

// SetupStatus says what is installed and linked (HCP-12.1-8): read and idempotent, it writes nothing.
func (l *Lifecycle) SetupStatus(protocol.Session) (SetupView, *protocol.Error) {
	return l.setup(func(string) (bool, *protocol.Error) { return false, nil })
}

// SetupApply installs the bootstrap pack and makes skill copies that are missing, without a prompt.
func (l *Lifecycle) SetupApply(s protocol.Session) (SetupView, *protocol.Error) {
	return l.setUp(s, "setup.apply", func(id string) (bool, *protocol.Error) {
		if l.skillState(id) != skillMissing {
			return false, nil
		}
		return l.putSkill(id)
	})
}

// SetupUpdate makes every skill copy again, as after an upgrade of a pack or of the program.
func (l *Lifecycle) SetupUpdate(s protocol.Session) (SetupView, *protocol.Error) {
	return l.setUp(s, "setup.update", l.putSkill)
}

func (l *Lifecycle) setUp(s protocol.Session, act string, mend func(id string) (bool, *protocol.Error)) (SetupView, *protocol.Error) {
	fresh := !l.Bootstrapped()
	if err := l.EnsureBootstrap(s); err != nil {
		return SetupView{Packs: []SetupPack{}}, err
	}
	view, err := l.setup(mend)
	view.Changed = view.Changed || fresh
	if err != nil || !view.Changed {
		return view, err
	}
	// The copies are made from what is installed and can be made again, so they are recorded once made.
	return view, l.changes(s, act, "", map[string]any{"packs": view.Packs})
}

func (l *Lifecycle) setup(mend func(id string) (bool, *protocol.Error)) (SetupView, *protocol.Error) {
	view := SetupView{Packs: []SetupPack{}}
	st, err := l.state()
	if err != nil {
		return view, err
	}
	ids, fault := l.Store.Packs()
	if fault != nil {
		return view, storeFault(fault, "The packs cannot be listed")
	}
	for _, id := range ids {
		p := SetupPack{PackID: id, Installed: true, Activated: active(st, id), Skill: skillNone}
		if meta, err := l.Store.Meta(id); err == nil {
			p.Version = meta.Version
		}
		if _, broken := l.Gate.Installed(id); p.Activated && broken == nil {
			if p.Changed, err = mend(id); err != nil {
				return view, err
			}
			p.Skill = l.skillState(id)
		}
		view.Changed = view.Changed || p.Changed
		view.Packs = append(view.Packs, p)
	}
	return view, nil
}

// skillState compares the copy with what would be made now.
func (l *Lifecycle) skillState(id string) string {
	have, err := l.Store.Skill(id)
	if errors.Is(err, fs.ErrNotExist) {
		return skillMissing
	}
	want, refusal := l.skillCopy(id)
	if err != nil || refusal != nil || string(have) != string(want) {
		return skillStale
	}
	return skillCurrent
}
