//go:build unix

package protect

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

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
	User    string     `json:"user,omitempty"`
	Began   int64      `json:"began"`            // by the clock of files
	Secret  bool       `json:"secret,omitempty"` // the run had a credential
	Trees   []place    `json:"trees"`
	Held    []place    `json:"held"`
	Git     []gitPlace `json:"git"`
	Also    []spot     `json:"also,omitempty"`
	Files   []spot     `json:"files,omitempty"` // of indexes
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
		list = append(list, t.place())
	}
	return list
}

// words hands over each path of a record as it stands in the journal, where a name that is no text is escaped.
func (r *record) words(do func(*string)) {
	do(&r.User)
	for _, places := range [...][]place{r.Trees, r.Held} {
		for i := range places {
			do(&places[i].Path)
		}
	}
	for i := range r.Git {
		do(&r.Git[i].Rel)
		do(&r.Git[i].Alias)
	}
	for _, spots := range [...][]spot{r.Also, r.Files} {
		for i := range spots {
			do(&spots[i].Rel)
			do(&spots[i].Alias)
		}
	}
}

// written is a record with names that JSON can hold.
func (r *record) written() *record {
	w := *r
	w.Trees, w.Held, w.Git, w.Also, w.Files = slices.Clone(r.Trees), slices.Clone(r.Held), slices.Clone(r.Git), slices.Clone(r.Also), slices.Clone(r.Files)
	w.words(func(s *string) { *s = escape(*s) })
	return &w
}

// escape writes a name that is no text with its bytes in hexadecimal; a text that looks like that is written so too.
func escape(s string) string {
	if utf8.ValidString(s) && !strings.HasPrefix(s, escaped) {
		return s
	}
	return escaped + hex.EncodeToString([]byte(s))
}

const escaped = "bytes:"

func unescape(s string) (string, error) {
	text, ok := strings.CutPrefix(s, escaped)
	if !ok {
		return s, nil
	}
	raw, err := hex.DecodeString(text)
	return string(raw), err
}

// save is complete once its name is there. It is not forced to the disk: it serves a runtime that was killed.
func (r *record) save(dir string) error {
	r.Saved = make([]saved, 0, len(r.Nodes))
	for _, k := range r.Nodes.keys() {
		r.Saved = append(r.Saved, saved{[]byte(k), r.Nodes[k]})
	}
	text, err := json.Marshal(r.written())
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

// readRecord is ErrDamaged for what no run wrote.
func readRecord(dir string) (*record, error) {
	text, err := os.ReadFile(filepath.Join(dir, recordFile))
	if err != nil {
		return nil, err
	}
	r := &record{Nodes: view{}}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, errors.Join(ErrDamaged, err)
	}
	r.words(func(s *string) {
		text, fault := unescape(*s)
		*s, err = text, errors.Join(err, fault)
	})
	if err != nil {
		return nil, errors.Join(ErrDamaged, err)
	}
	for _, s := range r.Saved {
		if s.Node == nil || !r.within(string(s.Key)) || s.Node.Offset < 0 || s.Node.Size < 0 {
			return nil, ErrDamaged
		}
		r.Nodes[string(s.Key)] = s.Node
	}
	r.Saved = nil
	if r.Run != filepath.Base(dir) || len(r.Trees) == 0 {
		return nil, ErrDamaged
	}
	for i := range r.Trees {
		if r.Nodes[key(i, ".")] == nil {
			return nil, ErrDamaged
		}
	}
	for _, g := range r.Git {
		if !r.within(key(g.Tree, g.Rel)) {
			return nil, ErrDamaged
		}
	}
	for _, s := range slices.Concat(r.Also, r.Files) {
		if !r.within(key(s.Tree, s.Rel)) {
			return nil, ErrDamaged
		}
	}
	return r, nil
}

// within says whether a key names a place in one of the trees.
func (r *record) within(k string) bool {
	tree, rel := unkey(k)
	return tree >= 0 && tree < len(r.Trees) && key(tree, rel) == k && path.Clean(rel) == rel && filepath.IsLocal(rel) && !strings.Contains(rel, "\x00")
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

// seize locks a journal, which tells a run that goes on from one that was killed. Whoever only looks has it
// for a moment, so that it is tried again.
func seize(dir string, patience time.Duration) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for ; ; patience -= time.Millisecond {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return f, nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR):
			return nil, errors.Join(err, f.Close())
		case patience <= 0:
			return nil, errors.Join(errBusy, f.Close())
		}
		time.Sleep(time.Millisecond)
	}
}

// gather locks the directory of journals for the moment in which one is begun, or all are looked through.
func gather(home string, how int) (*os.File, error) {
	f, err := os.Open(openDir(home))
	if err != nil {
		return nil, err
	}
	for {
		if err = unix.Flock(int(f.Fd()), how); err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(err, f.Close())
		}
	}
}

// begin makes the directory of a journal, which is this run's from its first moment on.
func begin(home, run string) (dir string, held *os.File, err error) {
	if err := os.MkdirAll(openDir(home), 0o700); err != nil {
		return "", nil, err
	}
	all, err := gather(home, unix.LOCK_EX)
	if err != nil {
		return "", nil, err
	}
	defer all.Close()
	dir = filepath.Join(openDir(home), run)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, err
	}
	held, err = seize(dir, 0)
	return dir, held, err
}

// Left are the journals of runs that were killed, oldest first. It changes nothing.
func Left(home string) ([]Leftover, error) { return leftovers(home, false) }

// leftovers are the journals that nobody holds. One that isn't whole was cut off before its command started: it
// is nobody's, and goes when sweep says so.
func leftovers(home string, sweep bool) ([]Leftover, error) {
	how := unix.LOCK_SH
	if sweep {
		how = unix.LOCK_EX
	}
	all, err := gather(home, how)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer all.Close()
	names, err := all.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var left []Leftover
	for _, name := range names {
		dir := filepath.Join(openDir(home), name)
		held, err := seize(dir, 0)
		if errors.Is(err, errBusy) || errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		l, err := leftover(home, name, dir, sweep)
		if err = errors.Join(err, held.Close()); err != nil {
			return nil, err
		}
		if l != nil {
			left = append(left, *l)
		}
	}
	return left, nil
}

func leftover(home, name, dir string, sweep bool) (*Leftover, error) {
	r, err := readRecord(dir)
	switch {
	case errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR):
		if sweep {
			return nil, os.RemoveAll(dir)
		}
		return nil, nil
	case err != nil:
		return &Leftover{Home: home, Run: name, Command: "an unreadable journal", Root: dir}, nil
	}
	return &Leftover{Home: home, Run: name, Command: r.Command, Root: r.Trees[0].Path, held: append(r.Held, r.Trees...)}, nil
}

// Sweep removes what runs left that were killed before their command started.
func Sweep(home string) error {
	_, err := leftovers(home, true)
	return err
}

// shares says whether the leftover's run held one of these directories.
func (l Leftover) shares(held locks) bool {
	return slices.ContainsFunc(l.held, held.has)
}

// judge hands over what mends the leftover. It holds what the run held, beside what the caller holds already, so that
// no command is at work there.
func (l Leftover) judge(held locks, gentle bool, do func(m *mender) error) error {
	dir := filepath.Join(openDir(l.Home), l.Run)
	own, err := seize(dir, time.Second)
	if err != nil {
		return err
	}
	defer own.Close()
	r, err := readRecord(dir)
	if err != nil {
		return err
	}
	ts, err := reopen(r.Trees)
	if err != nil {
		return err
	}
	defer ts.close()
	if !gentle {
		more, err := rest(l.Home, r.User, ts, held)
		if err != nil {
			return err
		}
		defer more.close()
	}
	return do(&mender{home: l.Home, before: r, trees: ts, journal: dir, gentle: gentle})
}

// rest takes what these trees need beside what is held, without waiting.
func rest(home, user string, ts trees, held locks) (locks, error) {
	all, _, err := domain(ts, user)
	if err != nil {
		// What the run left there can't be looked through: the roots alone are taken.
		if all, err = roots(ts); err != nil {
			return nil, err
		}
	}
	for i := range all {
		if held.has(all[i].place) {
			continue
		}
		now := make(chan time.Time)
		close(now)
		if err := all[i].take(context.Background(), home, now); err != nil {
			return nil, errors.Join(err, all.close())
		}
	}
	return all, nil
}

// settle removes the journal when nothing of the list differs from it.
func (l Leftover) settle(held locks) (same bool, err error) {
	err = l.judge(held, false, func(m *mender) error {
		diffs, err := m.differ()
		if err != nil || len(diffs.keys) > 0 {
			return errors.Join(err, m.giveBack())
		}
		same = true
		return os.RemoveAll(m.journal)
	})
	return same, err
}

// Mend puts back what stood before the run that was cut off, as End would have done. When the workspace is gone
// (ErrGone), the journal can't be read (ErrDamaged) or lost what it kept, it goes to the quarantine as it is, to the
// place that is told: it would hold up the workspace for ever.
func (l Leftover) Mend() (changes []Change, kept string, err error) {
	hopeless := false
	err = l.judge(nil, false, func(m *mender) error {
		if changes, err = m.mend(); err != nil {
			hopeless = m.hopeless()
			return err
		}
		return os.RemoveAll(m.journal)
	})
	shelf := filepath.Join(quarantineDir(l.Home), l.Run)
	if !errors.Is(err, ErrGone) && !errors.Is(err, ErrDamaged) && !hopeless {
		return changes, shelf, err
	}
	if fault := os.MkdirAll(shelf, 0o700); fault != nil {
		return changes, "", fault
	}
	kept = unused(filepath.Join(shelf, "journal"))
	if fault := os.Rename(filepath.Join(openDir(l.Home), l.Run), kept); fault != nil {
		return changes, "", fault
	}
	return changes, kept, err
}

// unused is a path at which nothing lies.
func unused(at string) string {
	for i, name := 2, at; ; i++ {
		if !exists(name) {
			return name
		}
		name = at + "-" + strconv.Itoa(i)
	}
}

func exists(at string) bool {
	_, err := os.Lstat(at)
	return !errors.Is(err, os.ErrNotExist)
}
