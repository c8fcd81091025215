package pipeline

import (
	"hcpx/internal/approval"
	"hcpx/internal/gate"
)

// previewed is §15.3 at the use of an approval: the preview is run again under the approver's Principal, as an exec of its
// own, and only its hash is used. Another hash, or none, confirms nothing and spends nothing.
func (r *run) previewed() {
	c := &r.confirm
	if c.approval.Preview == "" {
		return
	}
	c.given, c.by, c.reason = false, "", approval.ReasonPreview
	args, err := gate.PreviewArgs(r.pack, c.approval.Preview, r.shownArgs())
	if err != nil {
		return
	}
	s := r.s
	s.Principal, s.Parent, s.Confirmed, s.Shown, s.Seen = c.approval.By, r.id, false, false, ""
	res := r.p.Exec(r.ctx, s, approval.PreviewEnvelope(r.pack.ID, c.approval.Preview, raw(args)))
	if res.OK && approval.PreviewHash(res) == c.approval.Shown {
		c.given, c.by, c.reason = true, byApproval, ""
	}
}
