// Package conformance holds the executable vectors of §14.3 and runs them against a runtime: the nine that
// §14.5 publishes, one for each step of §6.3, and more for single rules. Each works on the gold packs that are
// embedded in the program, in a store of its own.
//
// Nouns: Vector (prose, section, rules, a script and the answers it wants; a txtar file in vectors/), Target and
// Runtime (the narrow door through which a runtime is driven), Trace (what its doors did, so that a vector can
// prove that nothing ran), Report, Requirement (a rule by its number).
//
// A broken pack is a gold pack and one change; it must fail with the one code that the change deserves. An
// answer is compared by code, step and the details that the vector names; the sentences for people are only
// asked to be there, since a runtime may word them as it likes.
//
// The room knows no other part of the runtime, so whatever implements Target can be judged by it.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hcpx/internal/protocol"
)

// Target makes the runtimes that vectors run on.
type Target interface {
	// New gives a runtime whose store is the directory home, which does not exist yet. It is as on a fresh
	// machine, except that nobody is asked anything and identity is what the session says.
	New(home string) (Runtime, error)
}

// Runtime is one runtime under test. Each method is the act of the same name in §11.1 or §9.6, as the session's
// Principal; a refusal is its code, and nil means that it was done.
type Runtime interface {
	protocol.Executor
	Lint(dirs []string) ([]protocol.Issue, *protocol.Error)
	// Install installs the packs of one call; with allow it also allows the programs and paths that they need.
	Install(s protocol.Session, dirs []string, allow bool) *protocol.Error
	Activate(s protocol.Session, ids []string) *protocol.Error
	Connect(s protocol.Session, id string) *protocol.Error
	Deactivate(s protocol.Session, ids []string) *protocol.Error
	Disconnect(s protocol.Session, id string) *protocol.Error
	Uninstall(s protocol.Session, id string) *protocol.Error
	Allow(s protocol.Session, programs []string) *protocol.Error
	// Grant adds one grant in the form of §9.6.
	Grant(s protocol.Session, grant []byte) *protocol.Error
	// Approve and Reject decide what an agent asked for (§15.2), by the id of its refusal.
	Approve(s protocol.Session, id string) *protocol.Error
	Reject(s protocol.Session, id string) *protocol.Error
	// Availability is the report of §11.2 as JSON; no ids means all packs.
	Availability(s protocol.Session, ids []string) ([]byte, *protocol.Error)
	// Command runs a command line of the face (§12.1), or a stream of envelopes (§6.8), as the session, and answers its
	// stdout with --json and its exit code. argv is without the program.
	Command(s protocol.Session, argv []string, stdin []byte) (stdout []byte, exit int)
	Trace() Trace
	Close() error
}

// Trace counts what the doors of a runtime have done since it was made. The doors count, not the rules that
// ask them, so a rule can't claim to have refused what it let through.
type Trace struct {
	Minted   int // credentials minted, without the trial mint of connect
	Spawned  int // processes started
	Intents  int // audit entries before a run
	Outcomes int // audit entries after a run
	Denials  int // audit entries of a refusal
}

// Options of one run.
type Options struct {
	Vectors []string      // names; empty means all
	Done    func(Outcome) // told of each vector when it has run; may be nil
	// Update makes every wanted answer the one that came; Outcome.Archive is then the vector's new text.
	Update bool
}

// Report is what a run gave.
type Report struct {
	OK      bool      `json:"ok"`
	Passed  int       `json:"passed"`
	Failed  int       `json:"failed"`
	Vectors []Outcome `json:"vectors"`
}

// Outcome is one vector's result.
type Outcome struct {
	Vector    string   `json:"vector"`
	Section   string   `json:"section"`
	Published bool     `json:"published"` // one of the nine of §14.5
	Rules     []string `json:"rules"`
	About     string   `json:"about"`
	OK        bool     `json:"ok"`
	Detail    string   `json:"detail,omitempty"` // the line that failed, and how
	Archive   []byte   `json:"-"`
}

// Published are the vectors that §14.5 names, in its order.
func Published() []string {
	return []string{
		"pack.lint.transit", "pack.lint.ledger", "pack.lint.echo", "exec.transit.plan",
		"exec.ledger.transfer.confirm-required", "exec.denied.missing-write-grant", "exec.sandbox.bin-not-allowlisted",
		"exec.brain.requires-project", "availability.flags",
	}
}

// Run runs vectors one after the other (§14.3, HCP-14.5-1). Each has a temporary store of its own, which is removed
// afterwards. An error means that a vector could not even be prepared or that no vector has the name.
func Run(ctx context.Context, t Target, o Options) (Report, error) {
	vectors, err := pick(o.Vectors)
	if err != nil {
		return Report{}, err
	}
	report := Report{Vectors: []Outcome{}}
	for _, v := range vectors {
		out, err := runOne(ctx, t, v, o.Update)
		if err != nil {
			return report, fmt.Errorf("vector %s: %w", v.Name, err)
		}
		if out.OK {
			report.Passed++
		} else {
			report.Failed++
		}
		report.Vectors = append(report.Vectors, out)
		if o.Done != nil {
			o.Done(out)
		}
	}
	report.OK = report.Failed == 0
	return report, nil
}

func pick(names []string) ([]Vector, error) {
	all, err := Vectors()
	if err != nil || len(names) == 0 {
		return all, err
	}
	var picked []Vector
	for _, name := range names {
		i := slices.IndexFunc(all, func(v Vector) bool { return v.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no vector is called %q", name)
		}
		picked = append(picked, all[i])
	}
	return picked, nil
}

func runOne(ctx context.Context, t Target, v Vector, update bool) (out Outcome, err error) {
	out = Outcome{Vector: v.Name, Section: v.Section, Published: v.Published, Rules: v.Rules, About: v.About}
	dir, err := os.MkdirTemp("", "hcp-vector-")
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, removeAll(dir)) }()
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return out, err
	}
	rt, err := t.New(filepath.Join(dir, "home"))
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	p := &play{ctx: ctx, rt: rt, vector: v, dir: dir, update: update}
	if err := p.prepare(); err != nil {
		return out, err
	}
	for _, line := range v.Script {
		if err := p.do(line); err != nil {
			out.Detail = fmt.Sprintf("line %d, %s: %s", line.Number, strings.Join(line.Words, " "), err)
			return out, nil
		}
	}
	out.OK = true
	out.Archive = p.vector.format()
	return out, nil
}

// removeAll also removes what an installed pack made read-only.
func removeAll(dir string) error {
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return err
	})
	return errors.Join(err, os.RemoveAll(dir))
}
