package lifecycle

import (
	"errors"
	"io/fs"
	"slices"

	"hcpx/internal/gate"
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
	return l.reading().setup()
}

// SetupApply installs the bootstrap pack and makes skill copies that are missing, without a prompt.
func (l *Lifecycle) SetupApply(s protocol.Session) (SetupView, *protocol.Error) {
	return l.setUp(s, "setup.apply", skillMissing)
}

// SetupUpdate makes every skill copy current, as after an upgrade of a pack or of the program.
func (l *Lifecycle) SetupUpdate(s protocol.Session) (SetupView, *protocol.Error) {
	return l.setUp(s, "setup.update", skillMissing, skillStale)
}

// setUp looks, records what it will do, and does it (§15.4).
func (l *Lifecycle) setUp(s protocol.Session, act string, mend ...string) (SetupView, *protocol.Error) {
	before, err := l.setup()
	if err != nil {
		return before, err
	}
	todo := []string{}
	for _, p := range before.Packs {
		if slices.Contains(mend, p.Skill) {
			todo = append(todo, p.PackID)
		}
	}
	fresh := !l.Bootstrapped()
	if !fresh && len(todo) == 0 {
		return before, nil
	}
	if err := l.changes(s, act, "", map[string]any{"bootstrap": fresh, "skills": todo}); err != nil {
		return before, err
	}
	if err := l.EnsureBootstrap(s); err != nil {
		return before, l.failed(s, act, "", err)
	}
	for _, id := range todo {
		if _, err := l.putSkill(id); err != nil {
			return before, l.failed(s, act, id, err)
		}
	}
	view, err := l.setup()
	view.Changed = true
	for i, p := range view.Packs {
		view.Packs[i].Changed = slices.Contains(todo, p.PackID) || fresh && p.PackID == gate.Bootstrap
	}
	return view, err
}

// setup looks at each installed pack and its skill copy.
func (l *Lifecycle) setup() (SetupView, *protocol.Error) {
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
			p.Skill = l.skillState(id)
		}
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
