package cli

import (
	"bufio"

	"hcpx/internal/app"
	"hcpx/internal/jq/worker"
	"hcpx/internal/protocol"
	"hcpx/internal/session"
)

// deps is what a command may ask for. The costly things are made when first asked, so that a command
// pays for what it uses and no more.
type deps struct {
	env     Env
	flags   globals
	asJSON  bool            // --json was seen before the flags were read
	done    <-chan struct{} // closed by a signal
	helpErr error           // from writing a help page, which cobra's hook cannot return

	lines   *bufio.Reader // standard input, once lines of it are secrets
	opened  *app.App
	worker  *worker.Client    // where the core has expressions evaluated
	session *protocol.Session // fixed for a command of the bootstrap pack, else resolved once
}

// kept is how many runs of one policy beside each other a process that stays up is ready for.
const kept = 4

func newDeps(env Env) *deps { return &deps{env: env} }

// close ends what this command line started beside itself.
func (d *deps) close() {
	if d.worker != nil {
		d.worker.Close()
	}
}

func (d *deps) json() bool { return d.asJSON || d.flags.JSON }

// app opens the runtime: settings and paths; everything else follows when asked.
func (d *deps) app() (*app.App, error) {
	if d.opened != nil {
		return d.opened, nil
	}
	if err := d.hollow("HCP_HOME", d.flags.Home); err != nil {
		return nil, err
	}
	keep := 0
	if d.env.Daemon != nil {
		keep = kept
	}
	a, err := app.Open(app.Options{
		Home: d.flags.Home, Dir: d.env.Dir, Getenv: d.env.Getenv, UserHome: d.env.UserHome, Managed: d.env.Managed,
		Now: d.env.Now, Builtin: d.builtin, Ready: d.env.Ready, Done: d.done, Passphrase: d.passphrase,
		Machine: d.machine(), Keep: keep,
	})
	if err != nil {
		return nil, err
	}
	d.opened = a
	return a, nil
}

// here is a command that acts in the session that this command line named.
func (d *deps) here(command string) string { return protocol.InSession(command, d.flags.Session) }

// who resolves the Session, in one place for every command (§9.3); with an error it is as complete as it can be.
func (d *deps) who() (protocol.Session, error) {
	if d.session != nil {
		s := *d.session
		if d.flags.Project != "" {
			s.Project = d.flags.Project // a selector: it refines, and grants still decide (§12.1.5)
		}
		return s, nil
	}
	a, err := d.app()
	if err != nil {
		return protocol.Session{}, err
	}
	caller, err := d.caller()
	if err != nil {
		return protocol.Session{}, err
	}
	s, failure := a.Session(caller)
	if failure != nil {
		return s, failure
	}
	d.session = &s
	return s, nil
}

// caller is what this command line says of who acts.
func (d *deps) caller() (app.Caller, error) {
	for _, v := range [][2]string{{"HCP_SESSION", d.flags.Session}, {"HCP_PROJECT", d.flags.Project}, {"HCP_WORKSPACE", d.flags.Workdir}} {
		if err := d.hollow(v[0], v[1]); err != nil {
			return app.Caller{}, err
		}
	}
	return app.Caller{
		Session: d.flags.Session, As: d.flags.As, Project: d.flags.Project, Workspace: d.flags.Workdir,
		Nobody: d.nobody(), Dir: d.env.Dir, User: d.env.User, Parent: d.env.Parent,
	}, nil
}

// hollow refuses a variable that is set and empty, unless a flag stands in its place (§9.3): whoever set it meant to
// say something.
func (d *deps) hollow(name, flag string) error {
	if flag != "" || !d.empty(name) {
		return nil
	}
	return usage("", "%s is set and empty; unset it, or give it a value", name)
}

// nobody is what was to name a Principal and is empty.
func (d *deps) nobody() session.Nobody {
	switch {
	case d.flags.nobody:
		return "the flag --as"
	case d.flags.As == "" && d.empty("HCP_PRINCIPAL"):
		return "HCP_PRINCIPAL"
	}
	return ""
}

func (d *deps) empty(name string) bool {
	if d.env.Lookup == nil {
		return false
	}
	value, set := d.env.Lookup(name)
	return set && value == ""
}
