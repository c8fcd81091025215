// Package sandbox runs one command in its jail (§10). This file is what the pipeline knows. On Linux a locked
// thread gives up its rights for good and starts the command: seccomp (syscalls.go is the table, filter.go the
// program), Landlock (landlock_linux.go), in that thread (thread_linux.go, launcher_linux.go, run_linux.go). What
// Landlock does not see, modes, owners, times and attributes, is asked of the broker (broker*_linux.go). native.go
// is the explicit opt-out of §10.3. Every kind passes sandboxtest. A rule that cannot be enforced here is refused
// with sandbox_unavailable (kernel.go); nothing is ever run in a weaker way than the Spec says (§10.5).
//
// Not promised: bugs of the kernel; hard links that were in the jail before; existence of paths outside; code
// that an allowed interpreter, or the ELF loader with a file of the jail, runs inside the same jail.
//
// Nouns: Spec (everything a child may have, complete before anything is prepared), Program (a recorded
// absolute path), Box (one prepared run: private directory and launcher), Outcome, Report, Rule; domain (the
// proof that a thread is confined), launcher (that thread), grant (one Landlock rule), slot (a private directory).
package sandbox

import (
	"context"
	"time"

	"hcpx/internal/protocol"
)

// Program is an executable under its name: the path is recorded or shipped, never looked up in PATH.
type Program struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// Spec is the whole world of one child. Whoever makes a Spec names everything; the kinds add only what
// §10.2 gives every command (libraries, CA certificates, devices, the private HOME and TMPDIR).
type Spec struct {
	Program Program   // what runs
	Args    []string  // argv[1:]; argv[0] is Program.Name
	Uses    []Program // other programs that may be executed; reachable by name through PATH
	UseDirs []string  // directories whose programs may be executed
	Dir     string    // working directory
	Env     []string  // NAME=value beyond what every command gets: the manifest's env and the injection
	Secrets []string  // minted values, masked by whoever shows output; never logged
	Files   []File    // what only this child may read (§8.2)
	Read    []string  // readable trees (land, workspace, git directories, pack)
	Write   []string  // writable trees
	Exec    []string  // trees whose files may be executed (the pack's own)
	Links   []Link    // reads under ~: a link at the same place in the private HOME (§10.2)
	Network Network
	Stdin   []byte // nil = empty
	Limits  Limits
	Native  bool // §10.3: manifest and operator both said so
	// Done is closed when the caller gives up before Run, which has a context for that: Prepare ends what it waits for.
	// nil: never.
	Done <-chan struct{}
}

// File lies in the private directory of the run, with mode 0600, where the child can read it and change nothing. The variable Env
// has its path.
type File struct {
	Env     string
	Content []byte
}

// Link is a path outside the jail, readable, that stands in the private HOME too when HomeRel is set.
type Link struct {
	Target  string // absolute
	HomeRel string // path below HOME, "" when Target does not lie under the user's home
}

// Network is what the child may reach.
type Network struct {
	Mode  string   // none | full | hosts
	Hosts []string // host:port, for hosts
}

// Limits of one run (§10.4). Zero means the kind's default.
type Limits struct {
	Wall     time.Duration `json:"wall"`
	Grace    time.Duration `json:"grace"` // between SIGTERM and SIGKILL, 2 s
	CPU      time.Duration `json:"cpu"`
	Files    uint64        `json:"files"`
	FileSize uint64        `json:"file_size"`
	Output   int           `json:"output"` // bytes of stdout; stderr keeps a tail
	// Of the whole run: bytes of memory and swap, and processes with their threads.
	Memory    uint64 `json:"memory"`
	Processes int    `json:"processes"`
}

// Sandbox is the contract. All methods may be called from several goroutines.
type Sandbox interface {
	// Facts says what this machine can enforce. Probed once per process; it changes nothing.
	Facts() Facts
	// Prove runs the canary (§10.5), whatever an earlier one found, and answers its row of the table. It starts a
	// command; doctor is who asks. The other methods run it only before the first confined run of a process.
	Prove(ctx context.Context) Rule
	// Check answers whether the Spec could run here: kernel rules, programs, jail, network form. It runs
	// nothing, makes nothing, and is what availability and plan ask; Prepare asks it too.
	Check(spec *Spec) *protocol.Error
	// Environ is the child's complete environment in order, for plan: home and tmp stand for the private
	// directory of the run.
	Environ(spec *Spec, home string) []string
	// Jail is what a child of the Spec can reach in the file system, for plan: the very list that its jail is
	// built from. home stands for the private directory of the run. It makes nothing, and looks at no path of
	// the Spec.
	Jail(spec *Spec, home string) Jail
	// Prepare makes the private directory and everything else that must exist before the run.
	// The caller closes the Box.
	Prepare(spec *Spec) (Box, *protocol.Error)
}

// Box is one prepared run.
type Box interface {
	// Run starts the command and waits (§6.9): it returns when the direct child has ended and nothing
	// that it started is alive. A cancelled context kills the tree like a timeout. An error means that
	// the command was not started.
	Run(ctx context.Context) (*Outcome, *protocol.Error)
	// Close removes the private directory. It is safe to call twice.
	Close() error
}

// Jail is what a child can reach in the file system, and what is not enforced around it.
type Jail struct {
	Backend  string   // what confines it: landlock | namespace | native
	Declared []Access // what the Spec names, in its order
	Own      []Access // the run's private directory
	Base     []Access // what every command with this network gets, as far as this machine has it
	Degraded []string // rules and limits that are not enforced, as the report of the run will name them
}

// Access is what a child may do with a file or device, or with everything below a directory.
type Access struct {
	Path                               string
	Read, Write, Execute, Tree, Device bool
}

// Outcome is what happened in a run.
type Outcome struct {
	Exit       int    // exit code, -1 when ended by a signal
	Signal     string // "SIGKILL", "" when it exited
	TimedOut   bool
	Canceled   bool
	Overflow   bool     // stdout passed Limits.Output; the tree was killed
	Stdout     []byte   // whole, at most Limits.Output
	Stderr     []byte   // the last bytes, at most 64 KiB
	StderrSize int64    // all bytes written
	Limit      string   // which limit ended it: cpu, open_files, file_size, memory, processes, "" else
	Denied     []string // what the sandbox is known to have refused
	Duration   time.Duration
	Report     Report
}

// Report says how a run was confined; it stands in the audit outcome.
type Report struct {
	Backend  string   `json:"backend"` // landlock | namespace | native
	ABI      int      `json:"abi,omitempty"`
	Errata   int      `json:"errata,omitempty"`
	Network  string   `json:"network"`
	Killed   int      `json:"killed,omitempty"`  // processes left over at the end of the run
	Left     bool     `json:"left,omitempty"`    // native: something may be running still, the search for it came to no end in its time
	Watched  string   `json:"watched,omitempty"` // how memory and processes were watched: sampled | cgroup; "" = it was over before the first look
	Degraded []string `json:"degraded"`          // rules or limits that are not enforced, or only now and then
}

// Facts is what the machine can enforce.
type Facts struct {
	Backend string // landlock | namespace | "" when nothing can confine here
	ABI     int
	Errata  int
	Rules   []Rule
}

// Rule is one row of doctor's table: what is promised, by which mechanism, and its state here.
type Rule struct {
	Name      string `json:"rule"`
	Mechanism string `json:"mechanism"`
	State     string `json:"state"` // enforced | degraded | missing
	Detail    string `json:"detail,omitempty"`
}
