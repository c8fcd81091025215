package app

import (
	"hcpx/internal/protocol"
	"hcpx/internal/session"
)

// Serve makes the Session of a server for an agent host (§9.3), its Principal "" where the client's name decides, and
// says which person answers what the client asks: "" where no client's answer is one's (§15.2), which is within an
// agent's own shell, and where the operator demands approvals and nothing else.
func (a *App) Serve(c Caller) (s protocol.Session, person protocol.Principal, refusal *protocol.Error) {
	in := a.inputs(c)
	s, refusal = session.Serve(in)
	a.narrow(s.Workspace)
	if refusal != nil || a.settings.ConfirmAgent == "approval" || session.Inside(in) {
		return s, "", refusal
	}
	if person = protocol.Principal(a.o.Getenv("HCP_PRINCIPAL")); !person.Human() {
		person = session.Person(c.User())
	}
	return s, person, nil
}

// NewID makes ids like those of runs: unique, and sorted as they were made.
func (a *App) NewID() func() string { return ids(a.o.Now) }

// Pulse differs once the state or a pack of the store may have changed: a look that reads nothing.
func (a *App) Pulse() string { return a.store().Pulse() }
