// Package session finds who acts and where (§9.1 to §9.3): the session id, the Principal, the project and
// the workspace, from flags, environment and working directory. One face calls Resolve once and passes
// the result on; nothing in an envelope or a pack can reach it.
//
// It refuses a Principal, session id or project without the right form. A workspace that may not be used
// is no error here, only land local needs one: the Session then carries the reason. What the Principal
// may do is asked elsewhere (§9.5).
package session

import (
	"path/filepath"
	"strings"

	"hcpx/internal/places"
	"hcpx/internal/protocol"
)

// Flags are the global flags of the CLI; "" when not given.
type Flags struct{ Session, As, Project, Workspace string }

// Nobody names the flag or variable that was to say who acts and is empty, as in --as "$WHO" without a WHO: then
// nobody acts, and not the OS user.
type Nobody string

const flagAs Nobody = "the flag --as"

func nobodyActs(how string) *protocol.Error {
	return protocol.Fail(protocol.Unauthenticated, "The Principal of "+how+" is empty, so nobody is known to act.").
		WithHint("hcpx --as human:NAME …")
}

// Inputs is all that a Session is made of. Everything comes in: nothing is read but directories, and with Detect
// the environments of ancestors.
type Inputs struct {
	Flags  Flags
	Getenv func(string) string
	Dir    string        // working directory
	Closed places.Places // where no workspace is
	User   string        // name of the OS user
	Nobody Nobody        // "" = the rest holds
	// Detect looks for an agent host's mark (§9.3): in this process's environment, and from Parent upwards in
	// those of its ancestors, which Proc shows. 0 = no ancestor is looked at.
	Detect bool
	Parent int
	Proc   string
}

// Resolve makes the Session (§9.3). With an error the Session is still as complete as it can be: where only
// the Principal is missing (unauthenticated), it carries the refusal down to step 4 and into the audit (§9.7).
func Resolve(in Inputs) (protocol.Session, *protocol.Error) {
	return in.resolve(in.principal)
}

func (in Inputs) resolve(who func() (protocol.Principal, string, *protocol.Error)) (protocol.Session, *protocol.Error) {
	s := protocol.Session{Tenant: "local", Dir: in.Dir}
	var errs [3]*protocol.Error
	s.ID, errs[0] = in.id()
	s.Project, errs[1] = in.project()
	s.Principal, s.How, errs[2] = who()
	named := first(in.Flags.Workspace, in.Getenv("HCP_WORKSPACE"))
	w := FindWorkspace(in.Dir, named, in.Closed)
	s.Workspace, s.GitDirs, s.WorkspaceReason = w.Root, w.GitDirs, w.Reason
	if real, err := filepath.EvalSymlinks(in.Dir); err == nil {
		s.Dir = real
	}
	for _, err := range errs {
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func (in Inputs) id() (string, *protocol.Error) {
	id := first(in.Flags.Session, in.Getenv("HCP_SESSION"), "default")
	if !sessionID(id) {
		return id, protocol.Fail(protocol.UsageError, "A session id has letters, digits and . _ - : @, begins with a letter or digit, and is at most 128 long.").
			WithHint("hcpx --session NAME …")
	}
	return id, nil
}

// principal is who acts (§9.1, §9.3): named by flag or environment, else the OS user as a person. A process of an
// agent is that agent.
func (in Inputs) principal() (p protocol.Principal, how string, err *protocol.Error) {
	host, where := in.agentHost()
	switch env := in.Getenv("HCP_PRINCIPAL"); {
	case in.Nobody != "":
		how = string(in.Nobody)
		return "", how, nobodyActs(how)
	case in.Flags.As != "":
		p, how = protocol.Principal(in.Flags.As), string(flagAs)
	case env != "":
		p, how = protocol.Principal(env), "HCP_PRINCIPAL"
	case host != "":
		return protocol.Principal("agent:" + host), where, nil
	default:
		p, how = Person(in.User), "the OS user"
	}
	if p.Valid() && host != "" {
		return p, how, asAgent(p, how, host, where)
	}
	if p.Valid() {
		return p, how, nil
	}
	if p == "" {
		return p, how, protocol.Fail(protocol.Unauthenticated, "The OS user has no name, so nobody is known to act.").
			WithHint("hcpx --as human:NAME …")
	}
	return p, how, protocol.Fail(protocol.Unauthenticated, "The Principal of "+how+" does not have the form kind:name, where kind is human, service, agent or mothership and name is lower-case.").
		WithHint("hcpx --as human:ada …").With("principal", string(p))
}

// Person is the Principal of an OS user (§9.3): lower-case, with what a name may not hold as "-". "" when
// nothing is left of it.
func Person(user string) protocol.Principal {
	if i := strings.LastIndexByte(user, '\\'); i >= 0 {
		user = user[i+1:] // DOMAIN\user
	}
	name := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', strings.ContainsRune("._@-", c):
			return c
		}
		return '-'
	}, strings.ToLower(user))
	name = strings.TrimLeft(name, "._@-")
	if name == "" {
		return ""
	}
	return protocol.Principal("human:" + name[:min(len(name), 64)])
}

func (in Inputs) project() (string, *protocol.Error) {
	p := first(in.Flags.Project, in.Getenv("HCP_PROJECT"))
	if p != "" && !protocol.Project(p) {
		return "", protocol.Fail(protocol.UsageError, "A project has lower-case letters, digits and . _ -, begins with a letter or digit, has no .. and is at most 64 long.").
			WithHint("hcpx --project NAME …")
	}
	return p, nil
}

// sessionID says whether s has the form of a session id.
func sessionID(s string) bool {
	for i := range len(s) {
		c := s[i]
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || strings.IndexByte("._-:@", c) < 0) {
			return false
		}
	}
	return s != "" && len(s) <= 128
}
