package grant

import "hcpx/internal/protocol"

// The denials of §9.5. Each names the missing capability and the Principal (§9.7), nothing of what
// was asked for beyond pack and command, and the next command where the caller's operator has one.

func unauthenticated() *protocol.Error {
	return protocol.Fail(protocol.Unauthenticated, "The caller could not be identified as a principal.").
		WithHint("hcpx whoami")
}

func tenantUnresolved(r Request) *protocol.Error {
	return protocol.Fail(protocol.TenantUnresolved,
		"The session of "+string(r.Principal)+" belongs to no tenant.").WithHint("hcpx whoami")
}

func because(reason string) string {
	switch reason {
	case ReasonDeny:
		return "a grant denies it"
	case ReasonPlane:
		return "no grant covers this plane"
	case ReasonExpired:
		return "the grant has ended"
	case ReasonArgs:
		return "no grant fits these arguments"
	}
	return "no grant gives it"
}

func missing(r Request, reason string) *protocol.Error {
	e := protocol.Fail(protocol.GrantMissing,
		string(r.Principal)+" lacks "+string(r.Capability)+on(r)+": "+because(reason)+".").
		With("capability", string(r.Capability)).
		With("principal", string(r.Principal)).
		With("reason", reason)
	switch reason {
	case ReasonNone, ReasonExpired:
		return e.WithHint("hcpx grant " + string(r.Principal) + " " + string(r.Capability) + selectors(r))
	case ReasonPlane:
		return e.WithHint("hcpx grant " + string(r.Principal) + " " + string(r.Capability) + selectors(r) +
			" --plane " + r.Plane)
	}
	return e.WithHint("hcpx grants" + explain(r))
}

func projectRequired(r Request) *protocol.Error {
	return protocol.Fail(protocol.ProjectRequired,
		r.Pack+" "+r.Verb+" keeps its data in a project, and none was named.").
		WithHint("hcpx exec " + r.Pack + " " + r.Verb + " --project NAME")
}

func projectDenied(r Request) *protocol.Error {
	return protocol.Fail(protocol.ProjectDenied,
		string(r.Principal)+" has "+string(r.Capability)+on(r)+", but not for project "+r.Project+".").
		With("capability", string(r.Capability)).
		With("principal", string(r.Principal)).
		With("project", r.Project).
		WithHint("hcpx grant " + string(r.Principal) + " " + string(r.Capability) + selectors(r) +
			" --project " + r.Project)
}

func workspaceRequired(r Request) *protocol.Error {
	message := r.Pack + " " + r.Verb + " works in a workspace, and there is none here"
	if r.WorkspaceReason != "" {
		message += ": " + protocol.Clause(r.WorkspaceReason)
	}
	return protocol.Fail(protocol.WorkspaceRequired, message+".").
		WithHint("hcpx exec " + r.Pack + " " + r.Verb + " --workspace DIR")
}

// on names pack and command, as far as the request has them.
func on(r Request) string {
	switch {
	case r.Pack == "":
		return ""
	case r.Verb == "":
		return " on " + r.Pack
	}
	return " on " + r.Pack + " " + r.Verb
}

func selectors(r Request) string {
	s := ""
	if r.Pack != "" {
		s += " --pack " + r.Pack
	}
	if r.Verb != "" {
		s += " --verb " + r.Verb
	}
	return s
}

func explain(r Request) string {
	if r.Pack == "" || r.Verb == "" {
		return ""
	}
	return " --explain " + string(r.Principal) + " " + r.Pack + " " + r.Verb
}
