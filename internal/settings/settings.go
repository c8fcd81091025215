// Package settings reads config.toml, the managed settings and a project's hcp.toml (§9.3, §11.3): identity,
// confirmation, limits of a run (§10.4) and of a pack (§2.1), the sandbox (§10.5), which packs. A store without
// a config.toml has the defaults, and costs one look for each file.
//
// Nouns: Settings (the values in force), Row (one key, its value and where it came from, for `hcpx config
// show`), Deny (what a project forbids), Problem (what is wrong in a file, with its place). Managed settings beat
// config.toml; a project may only narrow. A key or value that this runtime does not know is an error with its
// place, never ignored: it could be the one that was meant to forbid something. Who may change settings is asked
// elsewhere (§9.6).
package settings

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Settings are the values in force. They are not changed after Load.
type Settings struct {
	Agents       string // detect | trust-flags (§9.3)
	ConfirmAgent string // envelope | ask | approval: an agent's own confirmation counts, by a grant alone, never (§15.2)
	Limits       Limits
	PackFiles    int64    // §2.1
	PackBytes    int64    // §2.1
	Accept       []string // rules that the operator lets the sandbox keep in a weaker way (§10.5)
	Home         string   // where the managed settings pin the store; "" = nowhere
	Sources      []string // patterns of where packs may come from; nil = anywhere
	Packs        []string // patterns of the packs that a project lets run in it; nil = all
	Native       string   // allow | forbid: native-local (§10.3)
	Dangerous    string   // allow | forbid: interpreters as the program of a command (§10.2)
	Anchor       string   // none | journald | syslog: where each head of the audit goes as well (§15.4)
	VaultKey     string   // file | passphrase: what a vault that is made now is kept by (§8.3)
	Endpoints    []string // token endpoints that packs of mode mothership may have; nil = what a person connects (§8.3)
	Denies       []Deny   // of a project, in the order of the file
	from         map[string]string
}

// The files that settings come from.
const (
	config  = "config.toml"
	managed = "managed.toml"
	project = "hcp.toml"
)

// Limits bound every run (§10.4).
type Limits struct {
	Output   int64         // bytes of stdout
	WallMax  time.Duration // no command's timeout is longer
	CPU      time.Duration
	Files    int64 // open files
	FileSize int64 // bytes of one written file
	// Of a whole run.
	Memory    int64 // bytes
	Processes int64 // with their threads
}

// Row is one setting.
type Row struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	From  string `json:"from"` // default | config.toml | managed.toml | hcp.toml
	Note  string `json:"note,omitempty"`
}

// Problem is one thing wrong in a settings file; line and column are 1-based, the column in code points.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

func (p Problem) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// Error holds every Problem of the files, in their order.
type Error struct{ Problems []Problem }

// Error is one line for each problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Default is what holds without any file.
func Default() *Settings {
	s := &Settings{from: map[string]string{}}
	for _, k := range keys() {
		k.set(s, k.preset)
	}
	return s
}

// Managed is the operator's file of this machine, read once. Its absence is the usual thing.
type Managed struct {
	path string
	src  []byte
	err  error
}

// ReadManaged reads the managed file; path may be "".
func ReadManaged(path string) *Managed {
	m := &Managed{path: path, err: fs.ErrNotExist}
	if path != "" {
		m.src, m.err = read(path, 0)
	}
	return m
}

// Home is where the store is pinned, "" where it is not; of a file with problems nothing counts.
func (m *Managed) Home() string {
	s := Default()
	if m.err != nil || len(s.apply(m.path, managed, m.src)) > 0 {
		return ""
	}
	return s.Home
}

// Load reads home/config.toml, then the managed file over it; either may be absent. An *Error lists all that is
// wrong in both; then no setting holds.
func Load(home string, m *Managed) (*Settings, error) {
	s := Default()
	path := filepath.Join(home, config)
	src, err := read(path, 0)
	problems, err := s.take(path, config, src, err)
	if err != nil {
		return nil, err
	}
	more, err := s.take(m.path, managed, m.src, m.err)
	if err != nil {
		return nil, err
	}
	if problems = append(problems, more...); len(problems) > 0 {
		return nil, &Error{problems}
	}
	return s, nil
}

// take puts a file that was read, or could not be, into s. What is not there says nothing; what stands in the
// way of a path is the store's word.
func (s *Settings) take(path, name string, src []byte, err error) ([]Problem, error) {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, &Error{[]Problem{{File: path, Line: 1, Column: 1, Message: err.Error()}}}
	}
	return s.apply(path, name, src), nil
}

// read refuses a file that other users can write, and what is no regular file without waiting for it. flags are
// more of open(2).
func read(path string, flags int) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|flags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case info.Mode().Perm()&0o022 != 0:
		return nil, errors.New("the file can be written by other users; chmod go-w it")
	}
	return io.ReadAll(f)
}

// Rows are all settings in a fixed order, each with where it came from.
func (s *Settings) Rows() []Row {
	var rows []Row
	for _, k := range keys() {
		from := s.from[k.name]
		if from == "" {
			from = "default"
		}
		rows = append(rows, Row{k.name, k.show(s), from, k.note})
	}
	for _, d := range s.Denies {
		rows = append(rows, Row{"deny", d.String(), project, ""})
	}
	return rows
}
