package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"hcpx/internal/approval"
	"hcpx/internal/audit"
	"hcpx/internal/gate"
	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// ApprovalView is one request for approval and what became of it (§15.2): exactly what runs, secret arguments apart.
type ApprovalView struct {
	ID          string             `json:"id"`
	State       approval.State     `json:"state"`
	Principal   protocol.Principal `json:"principal"`
	PackID      string             `json:"pack_id"`
	Version     string             `json:"version"`
	Digest      string             `json:"digest"`
	VerbKey     string             `json:"verb_key"`
	Operation   protocol.Operation `json:"operation"`
	Message     string             `json:"message"`
	Args        json.RawMessage    `json:"args"`
	Plan        json.RawMessage    `json:"plan"`
	Where       approval.Where     `json:"where"`
	AskedAt     time.Time          `json:"asked_at"`
	ExpiresAt   time.Time          `json:"expires_at"`
	AgeSeconds  int64              `json:"age_seconds"`
	By          protocol.Principal `json:"by,omitempty"`
	DecidedAt   *time.Time         `json:"decided_at,omitempty"`
	Run         string             `json:"run,omitempty"`
	PreviewHash string             `json:"preview_hash,omitempty"` // of the preview that the approver was shown
	Preview     *PreviewView       `json:"preview,omitempty"`
}

// PreviewView is what the preview shows now (§15.3).
type PreviewView struct {
	VerbKey string          `json:"verb_key"`
	Hash    string          `json:"hash,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *protocol.Error `json:"error,omitempty"`
}

// ApprovalsView lists requests, oldest first.
type ApprovalsView struct {
	Approvals []ApprovalView `json:"approvals"`
}

// ApproveOptions say how an approval is given.
type ApproveOptions struct {
	Preview string                  // the hash of the preview that was looked at; "" = the one that is shown now
	Ask     func(ApprovalView) bool // shows it and asks; nil asks nobody
	Through string                  // the client that asked him, for the audit; "" = hcpx itself
}

func (l *Lifecycle) book() *approval.Book {
	return &approval.Book{Shelf: l.Store.Shelf(approval.Kind), Now: l.Now, NewID: l.NewID}
}

func (l *Lifecycle) approvalView(a *approval.Approval) ApprovalView {
	now := l.Now()
	return ApprovalView{ID: a.ID, State: a.Now(now), Principal: a.Principal, PackID: a.Pack, Version: a.Version, Digest: a.Digest, VerbKey: a.Verb,
		Operation: a.Operation, Message: a.Message, Args: a.Args, Plan: a.Plan, Where: a.Where, AskedAt: a.AskedAt, ExpiresAt: a.ExpiresAt,
		AgeSeconds: int64(now.Sub(a.AskedAt) / time.Second), By: a.By, DecidedAt: a.DecidedAt, Run: a.Run, PreviewHash: a.Shown}
}

// sees: a person sees every request of his tenant, everyone else his own alone.
func sees(s protocol.Session, a *approval.Approval) bool {
	return a.Where.Tenant == s.Tenant && (s.Principal.Human() || a.Principal == s.Principal)
}

// Approvals lists the requests that are open, or all that are kept.
func (l *Lifecycle) Approvals(s protocol.Session, all bool) (ApprovalsView, *protocol.Error) {
	view := ApprovalsView{Approvals: []ApprovalView{}}
	list, err := l.book().List()
	if err != nil {
		return view, storeFault(err, "The approvals cannot be read")
	}
	for _, a := range list {
		if state := a.Now(l.Now()); sees(s, a) && (all || state == approval.Pending || state == approval.Approved) {
			view.Approvals = append(view.Approvals, l.approvalView(a))
		}
	}
	return view, nil
}

// Approval shows one request. A person is shown what its preview says now, which is an exec of its own under his
// Principal, in the place of the request (§15.3).
func (l *Lifecycle) Approval(ctx context.Context, s protocol.Session, id string) (ApprovalView, *protocol.Error) {
	a, err := l.approval(s, id)
	if err != nil {
		return ApprovalView{}, err
	}
	v := l.approvalView(a)
	if open := v.State == approval.Pending || v.State == approval.Approved; open && s.Principal.Human() {
		v.Preview = l.preview(ctx, s, a)
	}
	return v, nil
}

func (l *Lifecycle) approval(s protocol.Session, id string) (*approval.Approval, *protocol.Error) {
	a, err := l.book().Find(id)
	if err != nil || !sees(s, a) {
		if err == nil {
			err = approval.ErrUnknown
		}
		return nil, approvalFault(id, err)
	}
	return a, nil
}

// approvalFault says why a request was not found or not decided.
func approvalFault(id string, err error) *protocol.Error {
	var closed *approval.ClosedError
	var notYours *approval.NotYoursError
	switch {
	case errors.Is(err, approval.ErrUnknown):
		return protocol.Fail(protocol.NotFound, fmt.Sprintf("There is no request for approval %q.", id)).WithHint("hcpx approvals list --all")
	case errors.As(err, &closed):
		return protocol.Fail(protocol.NotFound, fmt.Sprintf("The request %s is %s, so it cannot become %s.", id, closed.State, closed.To)).
			With("state", closed.State).WithHint("hcpx approvals show " + id)
	case errors.As(err, &notYours):
		return protocol.Fail(protocol.OperatorRequired, fmt.Sprintf("That is an act of %s, and the caller is %s.", notYours.Owner, notYours.By)).
			With("principal", string(notYours.By)).WithHint("hcpx whoami")
	}
	return storeFault(err, "The approval cannot be changed")
}

// preview runs the command that shows what a request would change; nil when it declares none.
func (l *Lifecycle) preview(ctx context.Context, s protocol.Session, a *approval.Approval) *PreviewView {
	if a.Preview == "" {
		return nil
	}
	v := &PreviewView{VerbKey: a.Preview}
	args, err := l.previewArgs(a)
	if err == nil && l.Run == nil {
		err = protocol.Fail(protocol.InternalError, "This runtime runs no previews.")
	}
	if err != nil {
		v.Error = err
		return v
	}
	r := l.Run(ctx, a.Where.Of(s.Principal), approval.PreviewEnvelope(a.Pack, a.Preview, args.Append(nil)))
	if v.Error = r.Error; r.OK {
		v.Result, v.Hash = r.Result, approval.PreviewHash(r)
	}
	return v
}

func (l *Lifecycle) previewArgs(a *approval.Approval) (*jsondoc.Node, *protocol.Error) {
	loaded, err := l.Gate.Installed(a.Pack)
	if err != nil {
		return nil, err
	}
	args, err := argsOf(a)
	if err != nil {
		return nil, err
	}
	return gate.PreviewArgs(loaded, a.Preview, args)
}

// argsOf are the request's arguments, secret ones redacted.
func argsOf(a *approval.Approval) (*jsondoc.Node, *protocol.Error) {
	args, faults := jsondoc.Parse(a.Args, jsondoc.Limits{Bytes: len(a.Args)})
	if args == nil || len(faults) > 0 {
		return nil, protocol.Fail(protocol.InternalError, "The arguments of the request cannot be read.").WithHint("hcpx doctor")
	}
	return args, nil
}

// Approve lets the request run once (§15.2). It is the act of another person who could run the command himself, and it
// binds what he was shown.
func (l *Lifecycle) Approve(ctx context.Context, s protocol.Session, id string, o ApproveOptions) (ApprovalView, *protocol.Error) {
	if err := l.operator(s, "approve"); err != nil {
		return ApprovalView{}, err
	}
	a, err := l.approval(s, id)
	if err != nil {
		return ApprovalView{}, err
	}
	if err := l.mayApprove(s, a); err != nil {
		return ApprovalView{}, err
	}
	v := l.approvalView(a)
	shown := ""
	if v.Preview = l.preview(ctx, s, a); v.Preview != nil {
		if err := previewFault(v.Preview, o.Preview); err != nil {
			return v, err
		}
		shown = v.Preview.Hash
	}
	if o.Ask != nil && v.State == approval.Pending && !o.Ask(v) {
		return v, protocol.Fail(protocol.ConfirmRequired, "Nothing was approved; the request is open still.").WithHint("hcpx approvals reject " + id)
	}
	preview := v.Preview
	v, err = l.decide(s, "approve", id, approval.Decision{To: approval.Approved, By: s.Principal, Shown: shown}, o.Through)
	v.Preview = preview
	return v, err
}

// previewFault refuses an approval whose preview failed, or is not the one that was looked at.
func previewFault(v *PreviewView, looked string) *protocol.Error {
	switch {
	case v.Error != nil:
		return protocol.Fail(v.Error.Code, "The preview cannot be shown, so nothing was approved: "+v.Error.Message).WithHint(v.Error.Hint)
	case looked != "" && looked != v.Hash:
		return protocol.Fail(protocol.ConfirmRequired, "What the command would change is no longer what you looked at; nothing was approved.").
			With("preview_hash", v.Hash)
	}
	return nil
}

// mayApprove: the pack is the one that was asked about, and the caller could run the command himself.
func (l *Lifecycle) mayApprove(s protocol.Session, a *approval.Approval) *protocol.Error {
	st, err := l.state()
	if err != nil {
		return err
	}
	loaded, err := l.Gate.Installed(a.Pack)
	if err != nil {
		return err
	}
	if loaded.Digest != a.Digest {
		return protocol.Fail(protocol.NotFound, fmt.Sprintf("Pack %q is another version now than the one that was asked about; the request can no longer run.", a.Pack)).
			WithHint("hcpx approvals reject " + a.ID)
	}
	verb, err := l.Gate.Verb(st, a.Where.Session, loaded, a.Verb)
	if err != nil {
		return err
	}
	asked := l.Gate.Ask(a.Where.Of(s.Principal), verb, a.Where.Project, true)
	if asked.Args, err = argsOf(a); err != nil {
		return err
	}
	if d := l.Gate.Decide(st, asked); d.Err != nil {
		return l.refuse(s, audit.Entry{Act: "approve", Pack: a.Pack, Verb: a.Verb, Grant: d.Path}, d.Err)
	}
	return nil
}

// Reject says no to a pending request; it is the act of another person. through is as in ApproveOptions.
func (l *Lifecycle) Reject(s protocol.Session, id, through string) (ApprovalView, *protocol.Error) {
	if err := l.operator(s, "reject"); err != nil {
		return ApprovalView{}, err
	}
	return l.close(s, "reject", id, approval.Rejected, through)
}

// Withdraw takes a request back: who asked a pending one, who approved an approved and unspent one. through is as in
// ApproveOptions.
func (l *Lifecycle) Withdraw(s protocol.Session, id, through string) (ApprovalView, *protocol.Error) {
	return l.close(s, "withdraw", id, approval.Withdrawn, through)
}

func (l *Lifecycle) close(s protocol.Session, act, id string, to approval.State, through string) (ApprovalView, *protocol.Error) {
	if _, err := l.approval(s, id); err != nil {
		return ApprovalView{}, err
	}
	return l.decide(s, act, id, approval.Decision{To: to, By: s.Principal}, through)
}

// decide changes the request under its lock, with one entry in the audit before the change.
func (l *Lifecycle) decide(s protocol.Session, act, id string, d approval.Decision, through string) (ApprovalView, *protocol.Error) {
	recorded := ""
	a, err := l.book().Decide(id, d, func(a *approval.Approval) error {
		detail := map[string]any{"approval_id": a.ID, "principal": a.Principal, "verb_key": a.Verb, "digest": a.Digest}
		if d.Shown != "" {
			detail["preview_hash"] = d.Shown
		}
		if through != "" {
			detail["through"] = through
		}
		if refusal := l.changes(s, act, a.Pack, detail); refusal != nil {
			return refusal
		}
		recorded = a.Pack
		return nil
	})
	if err == nil {
		return l.approvalView(a), nil
	}
	fault := approvalFault(id, err)
	switch {
	case recorded != "":
		return ApprovalView{}, l.failed(s, act, recorded, fault)
	case fault.Code == protocol.OperatorRequired:
		return ApprovalView{}, l.refuse(s, audit.Entry{Act: act}, fault)
	}
	return ApprovalView{}, fault
}
