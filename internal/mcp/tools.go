package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"hcpx/internal/jsondoc"
	"hcpx/internal/projection"
	"hcpx/internal/protocol"
)

// tools are what a client may call: the constant two, or one for each command that it could run (§12.2.2, §12.2.6).
func (v *server) tools(s protocol.Session) []*sdk.Tool {
	var packs []projection.Pack
	if v.Shape == projection.Commands {
		packs = v.offered(s)
		v.watch.saw(s, packs)
	}
	list := []*sdk.Tool{}
	for _, t := range projection.Tools(packs, v.Shape) {
		list = append(list, tool(t))
	}
	return list
}

// tool is one as the protocol has it; its group is in the name and in _meta (§12.5.2).
func tool(t projection.Tool) *sdk.Tool {
	out := &sdk.Tool{
		Name: t.Name, Description: t.Description, InputSchema: raw(t.Input),
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: t.ReadOnly, IdempotentHint: t.Idempotent, DestructiveHint: &t.Destructive},
	}
	if t.Output != nil {
		out.OutputSchema = raw(t.Output)
	}
	if t.Pack != "" {
		out.Meta = sdk.Meta{"hcp/pack": t.Pack}
	}
	return out
}

func raw(n *jsondoc.Node) json.RawMessage { return n.Append(nil) }

// named turns a call of a command's tool into the call of the one tool, so that there is one way to run. A tool that
// no installed pack has is unknown; whether this one may be run is for the pipeline to say, which records it.
func (v *server) named(req *sdk.CallToolRequest) (*sdk.CallToolRequest, error) {
	if req.Params.Name == projection.ReadSkill {
		return req, nil
	}
	pack, verb := v.Life.Tool(req.Params.Name)
	if pack == "" || !v.shows(pack) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("There is no tool %q; tools/list has those that there are now.", req.Params.Name)}
	}
	p := *req.Params
	p.Name, p.Arguments = projection.One, commandEnvelope(pack, verb, req.Params.Arguments)
	return &sdk.CallToolRequest{Session: req.Session, Params: &p, Extra: req.Extra}, nil
}

// shows says whether the launch left the pack in (--pack).
func (v *server) shows(pack string) bool { return v.Packs == nil || slices.Contains(v.Packs, pack) }

// readSkill answers hcp__read_skill: the text of one pack, or the leads of all (HCP-12.2-3).
func (v *server) readSkill(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	s := v.as(req.ClientInfo())
	id, fault := packID(req.Params.Arguments)
	if fault != "" {
		return said(fault, true), nil
	}
	packs := v.offered(s)
	if id == "" {
		if len(packs) == 0 {
			return said("No pack is activated in session "+s.ID+" that "+string(s.Principal)+" could run a command of. A person does that with: hcpx add PACK", false), nil
		}
		return said(projection.Leads(packs), false), nil
	}
	for _, p := range packs {
		if p.ID == id {
			return said(string(projection.Skill(p)), false), nil
		}
	}
	return said(fmt.Sprintf("There is no pack %q here that %s could run a command of. hcp__read_skill {} lists those that there are.", id, s.Principal), true), nil
}

// packID is the one argument of hcp__read_skill.
func packID(args []byte) (id, fault string) {
	n, _ := plain(args)
	switch {
	case n == nil:
		return "", `The arguments are {"pack_id": NAME} or {}.`
	case len(n.Members) == 0:
		return "", ""
	case len(n.Members) == 1 && n.Get("pack_id") != nil && n.Get("pack_id").Kind == jsondoc.String:
		return n.Get("pack_id").Text, ""
	}
	return "", `The arguments are {"pack_id": NAME} or {}, and nothing else.`
}

func said(text string, wrong bool) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}, IsError: wrong}
}
