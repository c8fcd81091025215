package cli

import (
	"io"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/term"

	"hcpx/internal/adapter/composite"
	"hcpx/internal/manifest"
)

// Env is what the process has. Nothing in this room reads the process itself.
type Env struct {
	Name     string   // the program's own name, hcpx or hcp
	Face     string   // the pack whose link started the program (§12.1); "": none did
	Args     []string // without the program
	In       io.Reader
	Out, Err io.Writer
	// Terminal facts of the three streams.
	InTTY, OutTTY, ErrTTY bool

	Getenv   func(string) string
	Lookup   func(string) (string, bool) // tells an empty variable from none; nil: none is empty
	Environ  func() []string             // all of them, for a program that runs with the caller's rights; nil: none
	Dir      string                      // working directory, absolute; "" when it is gone
	UserHome string                      // "" when unknown
	User     func() string               // the operating system's name of the user
	Now      func() time.Time
	Managed  string // the operator's settings of this machine; "" = the usual place (§9.3)
	Parent   int    // the process above; 0: none is looked at for an agent's mark (§9.3)

	// Ready is closed when a signal would cancel the work; no command of a pack starts before. nil: at once.
	Ready <-chan struct{}
	// Self is the path of this program, and Become replaces this process by another program (§11); nil: it can't.
	Self   func() (string, error)
	Become func(program string, argv []string) error
	// Daemon is set in hcpxd alone; nil: its words are handed over.
	Daemon *Daemon
	// Machine evaluates the expressions of composites in this process (§3.5); nil: a process of hcpxd does.
	Machine composite.Machine
	// KeepPipe makes a closed stdout an error of the next write instead of the end of the process; nil: it is one already.
	KeepPipe func()
}

// System is the Env of this process.
func System() Env {
	dir, err := os.Getwd()
	if err != nil {
		dir = "" // a removed directory is no workspace (§9.2)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = ""
	}
	return Env{
		Name: programName(os.Args), Face: faceName(os.Args, os.Executable), Args: os.Args[1:],
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTTY: isTerminal(os.Stdin), OutTTY: isTerminal(os.Stdout), ErrTTY: isTerminal(os.Stderr),
		Getenv: os.Getenv, Lookup: os.LookupEnv, Environ: os.Environ, Dir: dir, UserHome: home, User: userName, Now: time.Now,
		Parent: os.Getppid(), Self: os.Executable, Become: become, KeepPipe: keepPipe,
	}
}

func become(program string, argv []string) error { return syscall.Exec(program, argv, os.Environ()) }

func programName(args []string) string {
	if len(args) > 0 && filepath.Base(args[0]) == "hcp" {
		return "hcp"
	}
	return "hcpx"
}

// keepPipe: what is caught, and not ignored, is the default again in a program that this one starts.
func keepPipe() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// faceName is the pack that the program was called as (§12.1): a name that could be a pack's, and is not the file's own,
// so that it was reached by a link. The name decides nothing else: whoever calls a program chooses it.
func faceName(args []string, self func() (string, error)) string {
	if len(args) == 0 {
		return ""
	}
	name := filepath.Base(args[0])
	if !manifest.ValidID(name) || manifest.Reserved(name) {
		return ""
	}
	if file, err := self(); err != nil || filepath.Base(file) == name {
		return ""
	}
	return name
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

func userName() string {
	u, err := user.Current()
	if err != nil {
		return ""
	}
	return u.Username
}
