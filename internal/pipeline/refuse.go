package pipeline

import (
	"context"
	"slices"
	"strings"

	"hcpx/internal/jsondoc"
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
		why = r.taught(r.judged(why))
	}
	return r.denied(why)
}

// judged adds what the schema has against the arguments that could be said, so that all is told at once (§12.1). What was
// refused already is not judged again.
func (r *run) judged(why *protocol.Error) *protocol.Error {
	schema, err := r.verb.Command.Args()
	told, ok := why.Details["violations"].([]protocol.Violation)
	if err != nil || !ok {
		return why // step 5 says what is wrong with a schema
	}
	all := slices.Clone(told)
	for _, v := range schema.Validate(schema.Defaults(r.req.args)) {
		if !slices.ContainsFunc(told, func(t protocol.Violation) bool { return t.Pointer != "" && about(v, t.Pointer) }) {
			all = append(all, v)
		}
	}
	return why.With("violations", all)
}

// about says whether a violation is of the value at a pointer, of what is below it, or that it is missing.
func about(v protocol.Violation, pointer string) bool {
	above, name := pointer[:strings.LastIndexByte(pointer, '/')], pointer[strings.LastIndexByte(pointer, '/')+1:]
	return v.Pointer == pointer || strings.HasPrefix(v.Pointer, pointer+"/") ||
		v.Pointer == above && strings.HasSuffix(v.Message, " is missing.") && strings.Contains(v.Message, jsondoc.Quote(name))
}
