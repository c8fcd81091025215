//go:build unix

package protect

import (
	"context"
	"errors"
	"fmt"
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
	var err error
	if g.trees, err = openTrees(append([]string{w.Root}, w.GitDirs...)); err != nil {
		return nil, err
	}
	if err := g.look(ctx); err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

func (g *Guard) look(ctx context.Context) error {
	if err := hold(ctx, g.trees[0].handle, len(g.w.May) > 0, g.w.Patience); err != nil {
		if errors.Is(err, errBusy) {
			return &BusyError{g.w.Root}
		}
		return err
	}
	left, err := Left(g.w.Home)
	if err != nil {
		return err
	}
	for _, l := range left {
		if !l.shares(g.trees) {
			continue
		}
		if same, err := l.settle(); err != nil || !same {
			return errors.Join(err, &LeftError{l})
		}
	}
	return g.write()
}

// write makes the journal: what was found, and beside it the content of every file, one after the other.
func (g *Guard) write() (err error) {
	g.dir = filepath.Join(openDir(g.w.Home), g.w.Run)
	if err := os.MkdirAll(g.dir, 0o700); err != nil {
		return err
	}
	if g.held, err = seize(g.dir); err != nil {
		return err
	}
	content, err := os.OpenFile(filepath.Join(g.dir, contentFile), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	g.before = record{Run: g.w.Run, Command: g.w.Command, May: g.w.May, Trees: g.trees.names()}
	l := &looker{trees: g.trees, content: content, view: view{}}
	if g.before.Git, err = gitPlaces(g.trees); err == nil {
		g.before.Hooks = hooksElsewhere(g.trees, g.before.Git)
		l.git, l.hooks = g.before.Git, g.before.Hooks
		err = l.all()
	}
	g.before.Nodes = l.view
	if err = errors.Join(err, content.Close()); err != nil {
		return errors.Join(err, os.RemoveAll(g.dir))
	}
	if err := g.before.save(g.dir); err != nil {
		return errors.Join(err, os.RemoveAll(g.dir))
	}
	return nil
}

// End looks again, once nothing of the run is alive, and undoes what it was not to do. The journal goes when all
// is as it was; where that fails it stays, for repair.
func (g *Guard) End() ([]Change, error) {
	m := mender{home: g.w.Home, before: &g.before, trees: g.trees, journal: g.dir}
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
	return errors.Join(err, g.trees.close())
}
