//go:build unix

package protect

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Files of a journal, and where journals lie below the quarantine.
const (
	recordFile  = "before.json"
	contentFile = "content"
)

func quarantineDir(home string) string { return filepath.Join(home, "quarantine") }
func openDir(home string) string       { return filepath.Join(quarantineDir(home), ".open") }

// record is a look before a run, as it stands in the journal.
type record struct {
	Run     string     `json:"run"`
	Command string     `json:"command"`
	May     []string   `json:"may,omitempty"`
	Trees   []place    `json:"trees"`
	Git     []gitPlace `json:"git"`
	Hooks   []string   `json:"hooks,omitempty"`
	Nodes   view       `json:"-"`
	Saved   []saved    `json:"nodes"`
}

// saved is a node with its key as bytes, for names need not be text.
type saved struct {
	Key  []byte `json:"key"`
	Node *node  `json:"node"`
}

func (ts trees) names() []place {
	var list []place
	for _, t := range ts {
		list = append(list, place{t.path, t.node.Dev, t.node.Ino})
	}
	return list
}

// save is complete once its name is there. It is not forced to the disk: it serves a runtime that was killed.
func (r *record) save(dir string) error {
	r.Saved = make([]saved, 0, len(r.Nodes))
	for _, k := range r.Nodes.keys() {
		r.Saved = append(r.Saved, saved{[]byte(k), r.Nodes[k]})
	}
	text, err := json.Marshal(r)
	r.Saved = nil
	if err != nil {
		return err
	}
	at := filepath.Join(dir, recordFile)
	if err := os.WriteFile(at+"-", text, 0o600); err != nil {
		return err
	}
	return os.Rename(at+"-", at)
}

func readRecord(dir string) (*record, error) {
	text, err := os.ReadFile(filepath.Join(dir, recordFile))
	if err != nil {
		return nil, err
	}
	r := &record{Nodes: view{}}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, err
	}
	for _, s := range r.Saved {
		if s.Node == nil {
			return nil, errors.New("the journal " + dir + " is damaged")
		}
		r.Nodes[string(s.Key)] = s.Node
	}
	if len(r.Trees) == 0 {
		return nil, errors.New("the journal " + dir + " is damaged")
	}
	return r, nil
}

func (v view) keys() []string {
	keys := make([]string, 0, len(v))
	for k := range v {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

var errBusy = errors.New("it is in use")

// seize locks a journal, which tells a run that goes on from one that was killed.
func seize(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = errBusy
		}
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// hold locks the workspace for the run: alone when the command changes protected names by design, so that no other
// run takes its changes for its own command's. A file system without locks has no such order.
func hold(ctx context.Context, root *os.File, alone bool, patience time.Duration) error {
	how := unix.LOCK_SH
	if alone {
		how = unix.LOCK_EX
	}
	var late <-chan time.Time
	for nap := time.Millisecond; ; nap = min(2*nap, 20*time.Millisecond) {
		err := unix.Flock(int(root.Fd()), how|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil
		}
		if late == nil {
			late = time.After(patience)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late:
			return errBusy
		case <-time.After(nap):
		}
	}
}

// Left are the journals of runs that were killed, oldest first.
func Left(home string) ([]Leftover, error) {
	entries, err := os.ReadDir(openDir(home))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var left []Leftover
	for _, e := range entries {
		dir := filepath.Join(openDir(home), e.Name())
		f, err := seize(dir)
		if errors.Is(err, errBusy) || errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		r, err := readRecord(dir)
		if err = errors.Join(err, f.Close()); errors.Is(err, os.ErrNotExist) {
			continue // killed before it was whole, and so before the command started
		}
		if err != nil {
			left = append(left, Leftover{Home: home, Run: e.Name(), Command: "an unreadable journal", Root: dir})
			continue
		}
		left = append(left, Leftover{Home: home, Run: e.Name(), Command: r.Command, Root: r.Trees[0].Path, trees: r.Trees})
	}
	return left, nil
}

// shares says whether the leftover is of one of these trees.
func (l Leftover) shares(ts trees) bool {
	return slices.ContainsFunc(ts.names(), func(p place) bool {
		return slices.ContainsFunc(l.trees, func(q place) bool { return p.Dev == q.Dev && p.Ino == q.Ino })
	})
}

// judge seizes the leftover and hands over what mends it. busy means that somebody else does so right now.
func (l Leftover) judge(do func(m *mender) error) error {
	dir := filepath.Join(openDir(l.Home), l.Run)
	held, err := seize(dir)
	if err != nil {
		return err
	}
	defer held.Close()
	r, err := readRecord(dir)
	if err != nil {
		return errors.Join(ErrGone, err)
	}
	var paths []string
	for _, p := range r.Trees {
		paths = append(paths, p.Path)
	}
	ts, err := openTrees(paths)
	if errors.Is(err, os.ErrNotExist) || err == nil && !slices.Equal(ts.names(), r.Trees) {
		return errors.Join(ErrGone, ts.close())
	}
	if err != nil {
		return err
	}
	err = do(&mender{home: l.Home, before: r, trees: ts, journal: dir})
	return errors.Join(err, ts.close())
}

// settle removes the journal when nothing of the list differs from it.
func (l Leftover) settle() (same bool, err error) {
	err = l.judge(func(m *mender) error {
		diffs, err := m.differ()
		if err != nil || len(diffs.keys) > 0 {
			return err
		}
		same = true
		return os.RemoveAll(m.journal)
	})
	return same, err
}

// Mend puts back what stood before the run that was cut off, as End would have done. When the workspace is gone
// or the journal can't be read (ErrGone), the journal goes to the quarantine with what it remembers.
func (l Leftover) Mend() (changes []Change, err error) {
	err = l.judge(func(m *mender) error {
		if changes, err = m.mend(); err != nil {
			return err
		}
		return os.RemoveAll(m.journal)
	})
	if errors.Is(err, ErrGone) {
		err = errors.Join(err, os.Rename(filepath.Join(openDir(l.Home), l.Run), filepath.Join(quarantineDir(l.Home), l.Run)))
	}
	return changes, err
}
