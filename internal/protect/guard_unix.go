//go:build unix

package protect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Supported says whether this system can look at names the way a Guard does.
const Supported = true

// Guard is the look before a run.
type Guard struct {
	w      Watch
	trees  trees
	locks  locks
	found  *namer // under the locks
	before record
	dir    string // the journal's directory
	held   *os.File
}

// Begin waits for the workspace, refuses it while a leftover of it was not judged, and looks (§10.2).
func Begin(ctx context.Context, w Watch) (*Guard, error) {
	if !filepath.IsLocal(w.Run) || strings.ContainsAny(w.Run, `/\`) {
		return nil, fmt.Errorf("%q cannot name a run", w.Run)
	}
	g := &Guard{w: w}
	if err := g.enter(ctx); err != nil {
		return nil, errors.Join(err, g.close())
	}
	if err := g.look(); err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

// enter opens the trees and takes them. While it waited one may have become another directory; it is looked for anew.
func (g *Guard) enter(ctx context.Context) (err error) {
	for range 8 {
		if g.trees, err = openTrees(append([]string{g.w.Root}, g.w.GitDirs...)); err != nil {
			if errors.Is(err, os.ErrPermission) {
				return errors.Join(pendingAt(g.w.Home, g.w.Root), err)
			}
			return err
		}
		if g.locks, g.found, err = hold(ctx, g.w, g.trees); err != nil {
			return err
		}
		if len(g.trees.moved()) == 0 {
			return nil
		}
		if err = g.close(); err != nil {
			return err
		}
		g.trees, g.locks = nil, nil
	}
	return fmt.Errorf("%s changes all the time", g.w.Root)
}

func (g *Guard) look() error {
	left, err := leftovers(g.w.Home, true)
	if err != nil {
		return err
	}
	for _, l := range left {
		if !l.shares(g.locks) {
			continue
		}
		if same, err := l.settle(g.locks); err != nil || !same {
			return errors.Join(err, &LeftError{l})
		}
	}
	return g.write()
}

// Pending is the LeftError with which Begin would refuse the workspace now. It changes nothing.
func Pending(w Watch) error {
	left, err := Left(w.Home)
	if err != nil || len(left) == 0 {
		return err
	}
	ts, err := openTrees(append([]string{w.Root}, w.GitDirs...))
	if errors.Is(err, os.ErrPermission) {
		return errors.Join(pendingAt(w.Home, w.Root), err)
	}
	if err != nil {
		return err
	}
	defer ts.close()
	held, _, err := domain(ts, w.User)
	if err != nil {
		return err
	}
	defer held.close()
	for _, l := range left {
		if !l.shares(held) {
			continue
		}
		same := false
		err := l.judge(nil, true, func(m *mender) error {
			diffs, err := m.differ()
			same = err == nil && len(diffs.keys) == 0
			return err
		})
		if errors.Is(err, errBusy) || errors.Is(err, os.ErrNotExist) {
			continue // somebody puts it back right now
		}
		if !same {
			return errors.Join(err, &LeftError{l})
		}
	}
	return nil
}

// first looks at all names before a run, and copies what lies there.
func first(ts trees, n *namer, content io.Writer) (*looker, error) {
	l := &looker{trees: ts, content: content, view: view{}, git: n.git, also: n.spots, files: n.files}
	if n.err != nil {
		return nil, n.err
	}
	return l, l.all()
}

// Look is the error with which Begin would refuse the workspace as it is now: a leftover, or more at a name than is
// remembered. It waits for nobody and changes nothing.
func Look(w Watch) error {
	if err := Pending(w); err != nil {
		return err
	}
	ts, err := openTrees(append([]string{w.Root}, w.GitDirs...))
	if err != nil {
		return err
	}
	n, err := found(ts, w.User)
	if err == nil {
		_, err = first(ts, n, io.Discard)
	}
	return errors.Join(err, ts.close())
}

// pendingAt is the LeftError of a workspace that can't be opened: the run that was cut off may have closed it.
func pendingAt(home, root string) error {
	left, err := Left(home)
	for _, l := range left {
		if l.Root == root {
			return &LeftError{l}
		}
	}
	return err
}

// write makes the journal: what was found, and beside it the content of every file, one after the other.
func (g *Guard) write() (err error) {
	if g.dir, g.held, err = begin(g.w.Home, g.w.Run); err != nil {
		return err
	}
	if err := g.remember(); err != nil {
		return errors.Join(err, os.RemoveAll(g.dir))
	}
	return nil
}

func (g *Guard) remember() error {
	content, err := os.OpenFile(filepath.Join(g.dir, contentFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer content.Close()
	info, err := content.Stat()
	if err != nil {
		return err
	}
	g.before = record{Run: g.w.Run, Command: g.w.Command, May: g.w.May, User: g.w.User, Began: info.ModTime().UnixNano(), Secret: g.w.Mask != nil,
		Trees: g.trees.names(), Held: g.locks.names()}
	l, err := first(g.trees, g.found, content)
	if err != nil {
		return err
	}
	g.before.Git, g.before.Also, g.before.Files, g.before.Nodes = l.git, l.also, l.files, l.view
	if err := content.Close(); err != nil {
		return err
	}
	return g.before.save(g.dir)
}

// End looks again, once nothing of the run is alive, and undoes what it was not to do. What it could not undo is told
// as not restored, and the error says why. The journal goes when all was looked at and put back as far as that is
// possible; else it stays, for repair.
func (g *Guard) End() ([]Change, error) {
	m := mender{home: g.w.Home, before: &g.before, trees: g.trees, journal: g.dir, mask: g.w.Mask}
	changes, err := m.mend()
	if err == nil {
		err = os.RemoveAll(g.dir)
	}
	return changes, errors.Join(err, g.close())
}

func (g *Guard) close() error {
	var err error
	if g.held != nil {
		err = g.held.Close()
	}
	return errors.Join(err, g.locks.close(), g.trees.close())
}
