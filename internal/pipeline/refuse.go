package pipeline

import (
	"context"

	"hcpx/internal/protocol"
)

// Refuse answers a request that its face already knows cannot run: a caller without a valid Principal (step
// 4), words that are no arguments (5), a question that was answered with no (6), a store that gave no way in
// (2). The steps before why.Step come first, as ever, so that whoever may not run the command learns that and
// nothing else; the refusal is in the audit like any other (§9.7).
func (p *Pipeline) Refuse(ctx context.Context, s protocol.Session, envelope []byte, why *protocol.Error) (res protocol.Result) {
	r := p.newRun(ctx, s)
	defer r.recovered(&res)
	if err := r.upTo(why.Step-1, envelope); err != nil {
		return r.denied(err)
	}
	r.step = why.Step
	if why.Code == protocol.InvalidArgs && r.verb != nil {
		why = r.taught(why)
	}
	return r.denied(why)
}
