package lifecycle

import "hcpx/internal/protocol"

// Whoami says who acts and where (§9.3, HCP-12.1-9): it reads nothing and writes nothing.
func (l *Lifecycle) Whoami(s protocol.Session) WhoamiView {
	return WhoamiView{Principal: s.Principal, Kind: s.Principal.Kind(), Tenant: s.Tenant, Session: s.ID,
		Project: s.Project, Workspace: s.Workspace, How: s.How}
}
