package mcp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"hcpx/internal/approval"
	"hcpx/internal/jsondoc"
	"hcpx/internal/lifecycle"
	"hcpx/internal/protocol"
)

// A gated write of an agent asks the person in front of the client where the client can (§15.2). What he answers is an
// approval like any other: given by him, for exactly what he was shown, once. The envelope then carries its id, and the
// pipeline decides as it always does.

// stateless is the first version of the protocol in which a server may not ask by itself: the answer says what is
// needed, and the client calls again.
const stateless = "2026-07-28"

// Bounds: how long a question stands, as its approval does; how many may stand; and how much of what would run a client
// is trusted to show whole. What is longer is decided with hcpx approvals.
const (
	questionLasts = 15 * time.Minute
	maxQuestions  = 256
	maxShown      = 8000
)

// confirmSchema is the form: one required boolean.
const confirmSchema = `{"type":"object","properties":{"confirm":{"type":"boolean","title":"Run it","description":"Yes runs exactly this, once."}},"required":["confirm"]}`

// question is a gated write that a client was asked about.
type question struct {
	id      string            // of the approval; "": the Principal's own word counts, and the person's yes becomes it
	preview string            // hash of the preview that was shown
	bound   [sha256.Size]byte // who asked for what
	plan    string            // hash of what the caller's own word would run; "" with an id, which binds by itself
	refusal protocol.Result   // what stands unless the person says yes
	expires time.Time
}

// asks says whether an answer is one that a person's yes would change: step 6 found no confirmation.
func asks(r protocol.Result) bool {
	if r.OK || r.Error.Code != protocol.ConfirmRequired || r.Error.Step != 6 {
		return false
	}
	_, blocked := r.Error.Details["error"]
	_, id := r.Error.Details["approval_id"].(string)
	return !blocked && (id || r.Error.Details["reason"] == nil)
}

// ask asks the client's person. Versions with sessions are asked within the call; else the answer is the question, and
// the call comes again. Where nobody can be asked, the refusal stands as it is, with its approval_id.
func (v *server) ask(ctx context.Context, req *sdk.CallToolRequest, s protocol.Session, r request, refusal protocol.Result) (protocol.Result, *sdk.CallToolResult) {
	if v.Person == "" || !canAsk(req.ClientCapabilities()) {
		return refusal, nil
	}
	q, message := v.question(ctx, s, r, refusal)
	if q == nil {
		return refusal, nil
	}
	form := &sdk.ElicitParams{Mode: "form", Message: message, RequestedSchema: json.RawMessage(confirmSchema)}
	if req.ProtocolVersion() >= stateless {
		state := v.asked.keep(*q)
		if state == "" {
			return refusal, nil
		}
		return refusal, &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{confirmKey: form}, RequestState: state}
	}
	ctx, cancel := context.WithTimeout(ctx, questionLasts)
	defer cancel()
	said, err := req.Session.Elicit(ctx, form)
	if err != nil {
		v.log.Warn("the client could not ask: " + err.Error())
		return refusal, nil
	}
	return v.settle(ctx, req, s, r, *q, said), nil
}

const confirmKey = "confirm"

// canAsk says whether a client shows forms to a person. One that names no mode shows forms.
func canAsk(c *sdk.ClientCapabilities) bool {
	return c != nil && c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil)
}

// question makes the question and what the person is shown: exactly what would run. nil: it cannot be shown.
func (v *server) question(ctx context.Context, s protocol.Session, r request, refusal protocol.Result) (*question, string) {
	q := &question{bound: bound(s, r), refusal: refusal, expires: v.Now().Add(questionLasts)}
	id, _ := refusal.Error.Details["approval_id"].(string)
	if id == "" {
		if q.plan = v.Exec.Plan(ctx, s, r.src).Exact; q.plan == "" {
			return nil, ""
		}
		return q.shown(ownWord(s, refusal))
	}
	view, err := v.Life.Approval(ctx, v.person(), id)
	if err != nil {
		v.log.Warn("nobody was asked: " + err.Message)
		return nil, ""
	}
	if q.id = id; view.Preview != nil {
		if view.Preview.Error != nil {
			return nil, "" // nothing with a preview that fails is approved (§15.3)
		}
		q.preview = view.Preview.Hash
	}
	return q.shown(strings.TrimSpace(v.Shown(view)))
}

// shown is the question with its message; nil where that is longer than a client shows.
func (q *question) shown(message string) (*question, string) {
	if len(message) > maxShown {
		return nil, ""
	}
	return q, message
}

// ownWord is what a person is shown where the caller's own word counts: the sentence, and the argv or the request.
func ownWord(s protocol.Session, refusal protocol.Result) string {
	message := fmt.Sprintf("%s asks to run %s/%s.\n%s", s.Principal, refusal.PackID, refusal.VerbKey, refusal.Error.Message)
	if argv, ok := refusal.Error.Details["argv"].([]string); ok {
		message += fmt.Sprintf("\nruns: %q", argv)
	}
	if request, ok := refusal.Error.Details["request"].(json.RawMessage); ok {
		message += "\nsends: " + string(request)
	}
	return message
}

// person is the Session of who answers.
func (v *server) person() protocol.Session {
	s := v.Session
	s.Principal, s.How = v.Person, "the person at the client"
	return s
}

// bound is who asked for what, however a client wrote it the second time.
func bound(s protocol.Session, r request) [sha256.Size]byte {
	return sha256.Sum256(append([]byte(string(s.Principal)+"\x00"+s.ID+"\x00"), r.node.Canonical(nil)...))
}

// retried is the second round of a question that was answered (2026-07-28). The state is single use and holds for the
// same call of the same Principal; anything else is a new call.
func (v *server) retried(ctx context.Context, req *sdk.CallToolRequest, s protocol.Session, r request) (protocol.Result, bool) {
	if req.Params.RequestState == "" || r.node == nil || v.Person == "" {
		return protocol.Result{}, false
	}
	q := v.asked.take(req.Params.RequestState, bound(s, r))
	if q == nil {
		return protocol.Result{}, false
	}
	said, _ := req.Params.InputResponses[confirmKey].(*sdk.ElicitResult)
	return v.settle(ctx, req, s, r, *q, said), true
}

// settle does what the person said. Only an accept with true is a yes, and only a yes runs anything; an accept with false,
// or a decline, is his no; else the request stays open, and so does what anybody else decides about it.
func (v *server) settle(ctx context.Context, req *sdk.CallToolRequest, s protocol.Session, r request, q question, said *sdk.ElicitResult) protocol.Result {
	switch {
	case said == nil:
		return q.refusal
	case said.Action == "accept" && said.Content[confirmKey] == true:
		return v.agreed(ctx, req, s, r, q)
	case said.Action == "decline" || said.Action == "accept" && said.Content[confirmKey] == false:
		return v.declined(ctx, req, s, r, q)
	}
	return q.refusal
}

// agreed runs what the person said yes to. His yes is the approval, unless another gave one while he looked.
func (v *server) agreed(ctx context.Context, req *sdk.CallToolRequest, s protocol.Session, r request, q question) protocol.Result {
	if q.id == "" {
		if v.Exec.Plan(ctx, s, r.src).Exact != q.plan {
			return v.Refuse(ctx, s, r.src, approval.Changed())
		}
		return v.Exec.Exec(ctx, s, r.confirmed(jsondoc.Boolean(true)))
	}
	_, err := v.Life.Approve(ctx, v.person(), q.id, lifecycle.ApproveOptions{Preview: q.preview, Through: clientName(req.ClientInfo())})
	if err != nil && err.Details["state"] != approval.Approved {
		v.log.Warn("the yes did not count: " + err.Message)
		return q.refusal
	}
	return v.Exec.Exec(ctx, s, r.confirmed(jsondoc.Str(q.id)))
}

// declined runs nothing, whatever became of the request meanwhile: an open one is rejected, and what this person approved
// himself is withdrawn.
func (v *server) declined(ctx context.Context, req *sdk.CallToolRequest, s protocol.Session, r request, q question) protocol.Result {
	no := protocol.Fail(protocol.ConfirmRequired, "The person at the client said no; nothing was run.")
	if no.Step = 6; q.id == "" {
		return v.Refuse(ctx, s, r.src, no)
	}
	became, through := approval.ReasonRejected, clientName(req.ClientInfo())
	_, err := v.Life.Reject(v.person(), q.id, through)
	if err != nil && err.Details["state"] == approval.Approved {
		became = approval.ReasonWithdrawn
		_, err = v.Life.Withdraw(v.person(), q.id, through)
	}
	if err != nil { // it is another's, or over
		v.log.Warn("the no ended this call alone: " + err.Message)
		no = no.WithHint("hcpx approvals show " + q.id)
	} else {
		no = no.With("reason", became).WithHint("repeat it without an id to ask again")
	}
	return v.Refuse(ctx, s, r.src, no)
}

// clientName is what the audit has of the client that a person answered through.
func clientName(c *sdk.Implementation) string {
	if c == nil {
		return "mcp"
	}
	return strings.ToValidUTF8(c.Name[:min(len(c.Name), 64)], "")
}

// questions are those that stand, by a state that cannot be guessed.
type questions struct {
	now  func() time.Time
	mu   sync.Mutex
	open map[string]question
}

// keep answers the state of a question; "" when too many stand.
func (q *questions) keep(one question) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open == nil {
		q.open = map[string]question{}
	}
	for state, old := range q.open {
		if !q.now().Before(old.expires) {
			delete(q.open, state)
		}
	}
	if len(q.open) >= maxQuestions {
		return ""
	}
	state := rand.Text()
	q.open[state] = one
	return state
}

// take answers a question once: to the call that it was asked of, and while it stands.
func (q *questions) take(state string, bound [sha256.Size]byte) *question {
	q.mu.Lock()
	defer q.mu.Unlock()
	one, found := q.open[state]
	if !found || one.bound != bound {
		return nil
	}
	delete(q.open, state)
	if !q.now().Before(one.expires) {
		return nil
	}
	return &one
}
