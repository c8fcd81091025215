package lifecycle

import (
	"errors"
	"fmt"
	"slices"

	"hcpx/internal/gate"
	"hcpx/internal/protect"
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
	err := l.mend(s, &view)
	if view.Changed = len(view.Done) > 0; view.Changed {
		// What is broken is known once it is mended, and the audit may be what stands in the way: this
		// entry comes after the acts.
		fault := l.enter(s, "repair", "", map[string]any{"done": view.Done, "kept": view.Kept})
		if fault != nil && err == nil {
			err = unrecorded("The store was repaired, but that", fault).With("done", view.Done).With("kept", view.Kept)
		}
	}
	if err != nil {
		return view, err
	}
	for _, f := range l.Status(s).Findings {
		if f.Level == LevelFailure {
			view.Left = append(view.Left, f.Subject+": "+f.Message)
		}
	}
	return view, nil
}

func (l *Lifecycle) mend(s protocol.Session, view *RepairView) *protocol.Error {
	if err := l.repairStore(view); err != nil {
		return err
	}
	if err := l.repairBootstrap(s, view); err != nil {
		return err
	}
	if err := l.repairSkills(view); err != nil {
		return err
	}
	if err := l.sweepSkills(view); err != nil {
		return err
	}
	if err := l.repairSecrets(view); err != nil {
		return err
	}
	return l.repairRuns(view)
}

// repairRuns puts back what runs that were killed with their runtime changed of what the host runs later (§10.2). One
// that can't be mended keeps no other from it.
func (l *Lifecycle) repairRuns(view *RepairView) *protocol.Error {
	if err := protect.Sweep(l.Store.Home()); err != nil {
		return storeFault(err, "Runs that were cut off cannot be looked for")
	}
	left, err := protect.Left(l.Store.Home())
	if err != nil {
		return storeFault(err, "Runs that were cut off cannot be looked for")
	}
	for _, run := range left {
		repairRun(run, view)
	}
	return nil
}

func repairRun(run protect.Leftover, view *RepairView) {
	changes, kept, err := run.Mend()
	var busy *protect.BusyError
	switch {
	case errors.Is(err, protect.ErrGone):
		view.Kept = append(view.Kept, kept)
		view.Done = append(view.Done, "The workspace "+run.Root+" of the cut off run "+run.Run+" is gone, or another directory stands there; what it held before was put aside.")
		view.Left = append(view.Left, "What the run "+run.Run+" changed in "+run.Root+" was not put back.")
		return
	case errors.Is(err, protect.ErrDamaged):
		view.Kept = append(view.Kept, kept)
		view.Done = append(view.Done, "What the cut off run "+run.Run+" left cannot be read and was put aside; look at the workspace yourself before you work there.")
		view.Left = append(view.Left, "What the run "+run.Run+" changed was not put back.")
		return
	case errors.As(err, &busy):
		view.Left = append(view.Left, "A write command is running in "+busy.Root+"; repair again when it has ended, for the cut off run "+run.Run+".")
		return
	case err != nil:
		view.Left = append(view.Left, "What the run "+run.Run+" changed in "+run.Root+" cannot all be put back: "+sentenceEnd(err.Error())+".")
	}
	if err == nil || len(changes) > 0 {
		view.Done = append(view.Done, fmt.Sprintf("The run %s of %s in %s was cut off; %d protected names had changed since it began.", run.Run, run.Command, run.Root, len(changes)))
	}
	if len(changes) > 0 {
		view.Kept = append(view.Kept, kept)
	}
	for _, c := range changes {
		if c.Restored {
			view.Done = append(view.Done, c.Path+" in "+run.Root+" is as it was before that run.")
		} else {
			view.Left = append(view.Left, c.Path+" in "+run.Root+" could not be put back.")
		}
	}
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
	var damaged *store.DamagedError
	if _, err := l.Store.Meta(gate.Bootstrap); errors.As(err, &damaged) {
		// Its record can't be read, so nothing can be put in its place: it goes as a whole.
		if err := l.Store.Remove(gate.Bootstrap); err != nil {
			return storeFault(err, "The bootstrap pack cannot be removed")
		}
	}
	if err := l.installBootstrap(string(s.Principal)); err != nil {
		return err
	}
	view.Done = append(view.Done, "The bootstrap pack "+gate.Bootstrap+" was installed.")
	return nil
}

func (l *Lifecycle) repairSkills(view *RepairView) *protocol.Error {
	setup, err := l.setup()
	if err != nil {
		return err
	}
	for _, p := range setup.Packs {
		switch {
		case p.Skill == skillMissing || p.Skill == skillStale:
			if _, err := l.putSkill(p.PackID); err != nil {
				return err
			}
			view.Done = append(view.Done, "The skill copy of "+p.PackID+" was made again.")
		case !p.Activated:
			if _, err := l.Store.Skill(p.PackID); err != nil {
				continue
			}
			if err := l.settleSkill(p.PackID); err != nil {
				return err
			}
			view.Done = append(view.Done, "The skill copy of "+p.PackID+" was removed: no session has it activated.")
		}
	}
	return nil
}

// sweepSkills removes the copies of packs that are not installed any more (§5.4).
func (l *Lifecycle) sweepSkills(view *RepairView) *protocol.Error {
	left, err := l.leftSkills()
	if err != nil {
		return storeFault(err, "The skill copies cannot be listed")
	}
	for _, id := range left {
		if err := l.Store.DropSkill(id); err != nil {
			return storeFault(err, "The skill copy of "+id+" cannot be removed")
		}
		view.Done = append(view.Done, "The skill copy of "+id+" was removed: it is not installed.")
	}
	return nil
}

// leftSkills names the copies of packs that are not installed.
func (l *Lifecycle) leftSkills() ([]string, error) {
	ids, err := l.Store.Skills()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(ids, func(id string) bool {
		_, err := l.Store.Meta(id)
		return !errors.Is(err, store.ErrNotInstalled)
	}), nil
}
