package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"hcpx/internal/protocol"
)

// call runs one command (HCP-12.2-5, HCP-12.5-3a): the envelope goes to the Executor, and the Result comes back as it is.
func (v *server) call(ctx context.Context, req *sdk.CallToolRequest) (res *sdk.CallToolResult, err error) {
	ctx, done := v.begin(ctx)
	defer done()
	defer func() {
		if r := recover(); r != nil {
			e := protocol.Fail(protocol.InternalError, fmt.Sprintf("The call could not be finished: %v.", r)).WithHint("hcpx doctor")
			res, err = v.answer(v.as(req.ClientInfo()), protocol.Denied("", "", e), nil), nil
		}
	}()
	select {
	case v.slots <- struct{}{}:
		defer func() { <-v.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer v.progress(ctx, req)()
	s, r := v.as(req.ClientInfo()), requestOf(req.Params.Arguments, v.Life.Arguments)
	answer, question := v.run(ctx, req, s, r)
	if question != nil {
		return question, nil
	}
	v.look() // it may have changed what there is
	return v.answer(s, answer, r.read), nil
}

// begin ties a call to the server's end, which waits for it.
func (v *server) begin(ctx context.Context) (context.Context, func()) {
	v.calls.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(v.ctx, cancel)
	return ctx, func() {
		stop()
		cancel()
		v.calls.Done()
	}
}

// run is the envelope's way: refused where the launch left the pack out, asked about where a person must be.
func (v *server) run(ctx context.Context, req *sdk.CallToolRequest, s protocol.Session, r request) (protocol.Result, *sdk.CallToolResult) {
	if pack := r.pack(); pack != "" && !v.shows(pack) {
		why := protocol.Fail(protocol.PackNotActivated, fmt.Sprintf("This server was started for other packs than %q.", pack)).WithHint("hcp__read_skill {}")
		why.Step = 2
		return v.Refuse(ctx, s, r.src, why), nil
	}
	if answer, settled := v.retried(ctx, req, s, r); settled {
		return answer, nil
	}
	answer := v.Exec.Exec(ctx, s, r.src)
	if !asks(answer) || r.node == nil {
		return answer, nil
	}
	return v.ask(ctx, req, s, r, answer)
}

// answer is the Result as a tool's: the envelope as it is, in both places where clients look (§12.2).
func (v *server) answer(s protocol.Session, r protocol.Result, read []string) *sdk.CallToolResult {
	fit := v.fit(s, r)
	text := fit.AppendJSON(nil)
	out := &sdk.CallToolResult{
		Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}, StructuredContent: json.RawMessage(text), IsError: !r.OK,
		Meta: sdk.Meta{},
	}
	if len(r.Notes) > 0 {
		out.Meta["hcp/notes"] = r.Notes
	}
	if len(read) > 0 && (r.OK || r.Error.Step > 5) { // whoever may not run a command learns nothing of its arguments
		out.Meta["hcp/read"] = read
	}
	return out
}

// progress tells a client that asked for it that a long command is still at work.
func (v *server) progress(ctx context.Context, req *sdk.CallToolRequest) (stop func()) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	every := v.Every
	if every == 0 {
		every = progressEvery
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for n := 1; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			spent := time.Duration(n) * every
			p := &sdk.ProgressNotificationParams{ProgressToken: token, Progress: spent.Seconds(), Message: "at work for " + spent.String()}
			if err := req.Session.NotifyProgress(ctx, p); err != nil {
				return // the client has gone
			}
		}
	}()
	return func() {
		cancel()
		<-ended // nothing of it comes behind the answer
	}
}
