package approval

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"hcpx/internal/order"
	"hcpx/internal/protocol"
	"hcpx/internal/store"
)

// Kind is the shelf of the store that approvals lie on.
const Kind = "approvals"

// maxID is more than any id that NewID makes.
const maxID = 64

// ErrUnknown: there is no approval of that id.
var ErrUnknown = errors.New("there is no such approval")

// ErrTooMany: the Principal has as many requests as may be.
var ErrTooMany = errors.New("too many requests are open")

// Book holds all approvals of a store. It may be used by several at once, and by several processes.
type Book struct {
	Shelf store.Shelf
	Now   func() time.Time
	NewID func() string // unique and sortable
}

// Ask opens a request, or finds the open one of the same request, but not the one of that id: asking again gives the
// same id (§15.2). fresh says which.
func (b *Book) Ask(q Request, but string) (a *Approval, fresh bool, err error) {
	err = b.Shelf.Locked(func() error {
		all, err := b.prune()
		if err != nil {
			return err
		}
		open, kept, size := 0, 0, len(q.Args)+len(q.Plan)
		for _, old := range all {
			if host(old.Principal) != host(q.Principal) {
				continue
			}
			kept, size = kept+1, size+len(old.Args)+len(old.Plan)
			if state := old.Now(b.Now()); state != Pending && state != Approved {
				continue
			}
			if open++; old.ID != but && old.binds(&q) {
				a = old
				return nil
			}
		}
		if open >= maxOpen || kept >= maxKept || size > maxBytes {
			return ErrTooMany
		}
		now := b.Now().UTC()
		fresh, a = true, &Approval{ID: b.NewID(), State: Pending, Request: q, AskedAt: now, ExpiresAt: now.Add(Expiry)}
		a.Bound = bound(a.ID, q.Canonical)
		return b.put(a)
	})
	if err != nil {
		return nil, false, err
	}
	return a, fresh, nil
}

// Forget takes an approval away that nobody was told of.
func (b *Book) Forget(id string) error {
	return b.Shelf.Locked(func() error { return b.Shelf.Drop(id) })
}

// prune reads all, and drops what nobody looks at any more, or nobody can. The caller has the lock.
func (b *Book) prune() ([]*Approval, error) {
	names, err := b.Shelf.Names()
	if err != nil {
		return nil, err
	}
	var kept []*Approval
	for _, name := range names {
		a, err := b.Find(name)
		switch {
		case err == nil && b.Now().Before(a.ExpiresAt.Add(retention)):
			kept = append(kept, a)
			continue
		case err != nil && !errors.Is(err, errDamaged):
			continue // it confirms nothing, and stops nobody else's question
		}
		if err := b.Shelf.Drop(name); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

// errDamaged: a record is none. It confirms nothing, as if it were not there, and the next ask drops it.
var errDamaged = errors.New("it is damaged")

// List reads all approvals, oldest first, but for those that confirm nothing because they cannot be read.
func (b *Book) List() ([]*Approval, error) {
	names, err := b.Shelf.Names()
	if err != nil {
		return nil, err
	}
	var all []*Approval
	for _, name := range names {
		a, err := b.Find(name)
		if err != nil {
			continue // dropped since, or damaged, or no file: it confirms nothing, and hides no other
		}
		all = append(all, a)
	}
	order.By(all, func(x, y *Approval) int { return strings.Compare(x.ID, y.ID) })
	return all, nil
}

// Find reads one approval; ErrUnknown when there is none. One that cannot be read is an error, never none.
func (b *Book) Find(id string) (*Approval, error) {
	if len(id) > maxID {
		return nil, ErrUnknown // no file has such a name
	}
	data, err := b.Shelf.Get(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrUnknown
	}
	if err != nil {
		return nil, err
	}
	var a Approval
	if err := json.Unmarshal(data, &a); err != nil || a.ID != id {
		return nil, fmt.Errorf("the approval %s cannot be read: %w", id, errDamaged)
	}
	return &a, nil
}

func (b *Book) put(a *Approval) error {
	data, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return b.Shelf.Put(a.ID, append(data, '\n'))
}

// Usable says whether the id confirms the request now, and else why not. It changes nothing.
func (b *Book) Usable(id string, q Request) (*Approval, Reason, error) {
	a, err := b.Find(id)
	if err != nil && !errors.Is(err, ErrUnknown) && !errors.Is(err, errDamaged) {
		return nil, ReasonUnknown, err
	}
	return a, a.usable(&q, b.Now()), nil
}

// Ready finds an approved, unspent approval of exactly this request; nil when there is none.
func (b *Book) Ready(q Request) (*Approval, error) {
	all, err := b.List()
	if err != nil {
		return nil, err
	}
	for _, a := range all {
		if a.usable(&q, b.Now()) == "" {
			return a, nil
		}
	}
	return nil, nil
}

// Spend gives the approval to one run, and to no other one ever (§15.2). It is on disk when Spend returns, so a run may
// begin. A reason means that nothing was spent.
func (b *Book) Spend(id string, q Request, run string) (reason Reason, err error) {
	err = b.Shelf.Locked(func() error {
		a, why, err := b.Usable(id, q)
		if reason = why; err != nil || why != "" {
			return err
		}
		a.State, a.Run = Spent, run
		return b.put(a)
	})
	return reason, err
}

// GiveBack undoes Spend for a run whose intent could not be written, so that nothing ran.
func (b *Book) GiveBack(id, run string) error {
	return b.Shelf.Locked(func() error {
		a, err := b.Find(id)
		if err != nil || a.State != Spent || a.Run != run {
			return err
		}
		a.State, a.Run = Approved, ""
		return b.put(a)
	})
}

// Decide changes an approval's state under the lock. record is called when the change is sure to be allowed and before
// it is made: what cannot be recorded is not done.
func (b *Book) Decide(id string, d Decision, record func(*Approval) error) (a *Approval, err error) {
	err = b.Shelf.Locked(func() error {
		if a, err = b.Find(id); err != nil {
			return err
		}
		if err := a.decide(d, b.Now().UTC()); err != nil {
			return err
		}
		if err := record(a); err != nil {
			return err
		}
		return b.put(a)
	})
	return a, err
}

// Of is the request's Session for another Principal: where the request runs, so that a preview sees what it would.
func (w Where) Of(p protocol.Principal) protocol.Session {
	return protocol.Session{ID: w.Session, Principal: p, Tenant: w.Tenant, Project: w.Project, Workspace: w.Workspace, GitDirs: w.GitDirs, Dir: w.Dir}
}
