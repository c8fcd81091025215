package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"hcpx/internal/app"
	"hcpx/internal/lifecycle"
	"hcpx/internal/protocol"
)

// MCP is one hcpx mcp, for the part of hcpxd that speaks the protocol (§12.2).
type MCP struct {
	Commands bool     // one tool for each command
	Packs    []string // only these; nil: all
	Listen   string   // address for HTTP; "": stdio
	App      *app.App
	Session  protocol.Session   // Principal "": the client's name decides (§9.3)
	Person   protocol.Principal // who answers what a client is asked (§15.2); "": nobody
	// Shown is what a person decides by, as text.
	Shown    func(lifecycle.ApprovalView) string
	In       io.Reader
	Out, Log io.Writer
	Version  string
	Now      func() time.Time
}

type mcpOptions struct {
	Tools  string
	Packs  []string
	HTTP   bool
	Listen string
}

// usualListen is where the face stands over HTTP.
const usualListen = "127.0.0.1:7411"

func newMCPCmd(d *deps, run runner[mcpOptions]) *cobra.Command {
	var o mcpOptions
	c := command(text{
		use:   "mcp [--tools commands] [--pack ID] [--http [--listen ADDRESS]]",
		short: "Serve the activated packs to an agent host by MCP",
		long: "A host starts it and speaks over stdio: one tool, hcp, runs any command, and hcp__read_skill teaches a pack. With --http it\n" +
			"serves this machine instead, and prints the address and a token. It acts as the agent at the other end, never as a person:\n" +
			"agent:HOST where the host marks its processes, else agent:NAME of the client; --as service:NAME is the operator's word for\n" +
			"another. A gated write asks the person through the client where that can; else it waits for hcpx approvals.",
		example: "hcpx mcp\nhcpx mcp --tools commands --pack git\nhcpx mcp --http --listen 127.0.0.1:7411",
	}, none(), nil)
	c.RunE = func(c *cobra.Command, _ []string) error {
		d.asJSON, d.flags.JSON = false, false
		if err := o.check(c); err != nil {
			return err
		}
		return run(c.Context(), d, o)
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&o.Tools, "tools", "single", "`SHAPE` of the tools: single, or commands for one tool a command")
	f.StringArrayVar(&o.Packs, "pack", nil, "serve only the pack `ID`; may be given again")
	f.BoolVar(&o.HTTP, "http", false, "serve over HTTP on this machine instead of stdio")
	f.StringVar(&o.Listen, "listen", usualListen, "loopback `ADDRESS` for --http")
	return c
}

func (o mcpOptions) check(c *cobra.Command) error {
	if o.Tools != "single" && o.Tools != "commands" {
		return usage("mcp", "--tools is single or commands, not %q", clean(o.Tools))
	}
	if c.Flags().Changed("listen") && !o.HTTP {
		return usage("mcp", "--listen is the address of --http")
	}
	return nil
}

// runMCP serves until the client or a signal ends it. stdout is the protocol's alone, so that even a refusal to start, and
// of flags, goes to stderr, whatever --json says.
func runMCP(ctx context.Context, d *deps, o mcpOptions) error {
	if d.env.Daemon == nil || d.env.Daemon.MCP == nil {
		return d.handOver([]string{"mcp"})
	}
	a, err := d.app()
	if err != nil {
		return err
	}
	caller, err := d.caller()
	if err != nil {
		return err
	}
	s, person, refusal := a.Serve(caller)
	if refusal != nil {
		return refusal
	}
	for _, id := range o.Packs { // a host waits for it, and it may come while this runs
		if !slices.Contains(a.PackIDs(), id) {
			d.note(fmt.Sprintf("no pack %q is installed: until one is, nothing of it is served", clean(id)))
		}
	}
	m := MCP{Commands: o.Tools == "commands", Packs: o.Packs, App: a, Session: s, Person: person, Shown: shownText, In: d.env.In, Out: d.env.Out, Log: d.env.Err,
		Version: buildVersion().Version, Now: d.env.Now}
	if o.HTTP {
		m.Listen = o.Listen
	}
	return d.env.Daemon.MCP(ctx, m)
}

// shownText is what hcpx approvals show prints of a request.
func shownText(v lifecycle.ApprovalView) string {
	var b strings.Builder
	showApproval(&page{out: &b}, v)
	return b.String()
}
