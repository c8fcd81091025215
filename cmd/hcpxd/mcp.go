package main

import (
	"context"

	"hcpx/internal/cli"
	"hcpx/internal/mcp"
	"hcpx/internal/projection"
	"hcpx/internal/session"
)

// serveMCP is hcpx mcp (§12.2): the face gets what it needs of the runtime, and no more.
func serveMCP(ctx context.Context, m cli.MCP) error {
	first := m.Session // who has the bootstrap pack made, in a fresh store
	if first.Principal == "" {
		first.Principal = session.Client("")
	}
	exec, refusal := m.App.Executor(first)
	if refusal != nil {
		return refusal
	}
	life, refusal := m.App.Lifecycle(first)
	if refusal != nil {
		return refusal
	}
	c := mcp.Config{
		Version: m.Version, Shape: projection.Single, Packs: m.Packs, Session: m.Session, Person: m.Person,
		Exec: exec, Refuse: m.App.Refuse, Life: life, Shown: m.Shown,
		NewID: m.App.NewID(), Pulse: m.App.Pulse, Now: m.Now, Log: m.Log,
	}
	if m.Commands {
		c.Shape = projection.Commands
	}
	if m.Listen != "" {
		return mcp.HTTP(ctx, c, m.Listen)
	}
	return mcp.Stdio(ctx, c, m.In, m.Out)
}
