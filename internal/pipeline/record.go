package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"hcpx/internal/adapter"
	"hcpx/internal/audit"
	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
	"hcpx/internal/protocol"
)

// entry is what every audit entry of this run says (§15.4).
func (r *run) entry(kind string) audit.Entry {
	e := audit.Entry{Kind: kind, ID: r.id, Parent: r.s.Parent, Principal: string(r.s.Principal), Tenant: r.s.Tenant,
		Session: r.s.ID, Project: r.s.Project, Pack: r.req.PackID, Verb: r.req.VerbKey, Grant: r.decision.Path}
	if r.pack != nil {
		e.Digest = r.pack.Digest
	}
	if r.verb != nil {
		e.Operation = string(r.verb.Entry.Operation)
	}
	return e
}

// denied records a refusal and answers it (§9.7): every denial is in the audit, and one that cannot be
// recorded is internal.
func (r *run) denied(err *protocol.Error) protocol.Result {
	if err.Step == 0 {
		err.Step = r.step
	}
	r.mask.refusal(err)
	e := r.entry(audit.Denial)
	e.Code, e.Step, e.Message = string(err.Code), err.Step, err.Message
	e.Detail = r.asking()
	if fault := r.p.Audit.Append(e, false); fault != nil {
		r.unask()
		return protocol.Denied(r.req.PackID, r.req.VerbKey, r.unrecorded(fault, "refused", err.Step).With("code", err.Code))
	}
	return protocol.Denied(r.req.PackID, r.req.VerbKey, err)
}

// asking is what a denial says of the approval that it asked for.
func (r *run) asking() json.RawMessage {
	if r.opened == nil {
		return nil
	}
	asked := "again"
	if r.fresh {
		asked = "new"
	}
	return marshal(map[string]any{"approval_id": r.opened.ID, "asked": asked})
}

// unask takes back a request that cannot be recorded. Where that fails nobody was told of it, and it expires.
func (r *run) unask() {
	if r.opened != nil && r.fresh {
		_ = r.p.approvals.Forget(r.opened.ID)
	}
}

// intend writes the intent, on disk before a write runs; if it can't be written, nothing runs (§6.3).
func (r *run) intend() *protocol.Error {
	e := r.entry(audit.Intent)
	e.Args = r.openArgs()
	e.Confirm = r.confirm.by
	sum := sha256.Sum256(r.plan().Append(nil))
	e.PlanHash = hex.EncodeToString(sum[:])
	e.Detail = r.by()
	if fault := r.p.Audit.Append(e, r.durable()); fault != nil {
		return r.unrecorded(fault, "not run", 9)
	}
	r.ran = true
	return nil
}

// by is whose word and whose binding the run uses.
func (r *run) by() json.RawMessage {
	known := map[string]any{}
	if r.spent {
		known["approval_id"], known["approved_by"] = r.confirm.approval.ID, r.confirm.approval.By
	}
	if r.owner != "" {
		known["binding"] = r.lent()
	}
	if r.call.Request != nil {
		q := r.shownCall().Request
		known["request"] = map[string]any{"method": q.Method, "url": q.URL, "body_bytes": len(q.Body)}
	}
	if len(known) == 0 {
		return nil
	}
	return marshal(known)
}

// record writes the outcome.
func (r *run) record(out *adapter.Output, err *protocol.Error) *protocol.Error {
	e := r.entry(audit.Outcome)
	e.Grant = nil // the intent has it
	e.DurationMS = float64(r.p.Now().Sub(r.started).Microseconds()) / 1000
	if err != nil {
		e.Code, e.Step, e.Message = string(err.Code), err.Step, err.Message
	}
	if out != nil && out.Outcome != nil {
		e.Exit = &out.Outcome.Exit
		e.Sandbox = marshal(out.Outcome.Report)
	}
	e.Detail = r.mask.bytes(r.detail(out))
	if fault := r.p.Audit.Append(e, r.durable()); fault != nil {
		return r.unrecorded(fault, "run", 10).With("ran", true)
	}
	return nil
}

// detail is what else is known of a run: all of it, however much that is.
func (r *run) detail(out *adapter.Output) json.RawMessage {
	known := map[string]any{}
	if err := r.closeBox(); err != nil {
		known["cleanup"] = "The private directory of the run was not removed: " + protocol.Clause(err.Error()) + "."
	}
	if len(r.changes) > 0 {
		known["protected"], known["total"] = r.changes[:min(len(r.changes), shownChanges)], len(r.changes)
	}
	if out != nil {
		if len(out.Steps) > 0 {
			known["steps"] = out.Steps
		}
		if out.Answer != nil {
			known["answer"] = out.Answer
		}
		if out.Replaced > 0 {
			known["replaced"] = out.Replaced
		}
		if o := out.Outcome; o != nil {
			if o.Limit != "" {
				known["limit"] = o.Limit
			}
			if len(o.Denied) > 0 {
				known["denied"] = o.Denied
			}
		}
	}
	if len(known) == 0 {
		return nil
	}
	return marshal(known)
}

// durable: writes are on disk before they run, reads in batches.
func (r *run) durable() bool { return r.verb != nil && r.verb.Entry.Operation == protocol.Write }

func (r *run) unrecorded(fault error, what string, step int) *protocol.Error {
	e := protocol.Fail(protocol.InternalError, fmt.Sprintf("The command was %s, and the audit cannot be written: %s.", what, protocol.Clause(fault.Error()))).WithHint("hcpx doctor")
	e.Step = step
	return e
}

// openArgs are the arguments without those that the schema marks writeOnly or as a password, however deep.
func (r *run) openArgs() json.RawMessage {
	schema, err := r.verb.Command.Args()
	if err != nil {
		return nil // step 5 has refused it
	}
	return raw(hide(r.args, schema.Properties()))
}

func hide(v *jsondoc.Node, props []*manifest.Property) *jsondoc.Node {
	if v.Kind != jsondoc.Object {
		return v
	}
	for _, p := range props {
		if member := v.Get(p.Name); member != nil {
			v = v.With(p.Name, hidden(member, p))
		}
	}
	return v
}

func hidden(v *jsondoc.Node, p *manifest.Property) *jsondoc.Node {
	switch {
	case p.Secret:
		return jsondoc.Str(protocol.Redacted)
	case v.Kind == jsondoc.Array && p.Items != nil:
		items := make([]*jsondoc.Node, len(v.Items))
		for i, item := range v.Items {
			items[i] = hidden(item, p.Items)
		}
		return jsondoc.Arr(items...)
	default:
		return hide(v, p.Props)
	}
}

// marshal writes a report of our own types, which always can be written.
func marshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage(`{"fault":"unwritable"}`)
	}
	return b
}
