package pipeline

import (
	"encoding/json"
	"fmt"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// render is step 5: defaults, JSON Schema, the argv or request rendered once (§6.4) with the option guard, then the
// argument rules of grants (§9.6), then idempotency (§15.5).
func (r *run) render() *protocol.Error {
	schema, err := r.verb.Command.Args()
	if err != nil {
		return protocol.Fail(protocol.InternalError, fmt.Sprintf("The argument schema of %s/%s does not compile: %v.", r.pack.ID, r.verb.Command.Key, err))
	}
	r.args = schema.Defaults(r.req.args)
	if bad := schema.Validate(r.args); len(bad) > 0 {
		return r.invalidArgs(bad)
	}
	call, bad := r.verb.Adapter.Render(r.args)
	if len(bad) == 0 {
		bad = r.p.Gate.Attach(r.s, r.verb, call)
	}
	if len(bad) > 0 {
		return r.invalidArgs(bad)
	}
	r.call = call
	r.asked.Args = r.args
	r.decision = r.p.Gate.Decide(r.state, r.asked)
	if r.decision.Err != nil {
		return r.decision.Err
	}
	return r.idempotent()
}

func (r *run) invalidArgs(bad []protocol.Violation) *protocol.Error {
	e := protocol.Fail(protocol.InvalidArgs, fmt.Sprintf("Arguments of %s/%s are not valid%s. %s", r.pack.ID, r.verb.Command.Key, at(bad[0]), bad[0].Message)).
		With("violations", bad)
	return r.taught(e)
}

// at says where a violation is, as a part of a sentence: nothing for the whole value.
func at(v protocol.Violation) string {
	if v.Pointer == "" {
		return ""
	}
	return " at " + v.Pointer
}

// taught adds what a caller needs to say it better: schema, example and help (§6.3 step 5).
func (r *run) taught(e *protocol.Error) *protocol.Error {
	e = e.WithHint("hcpx exec " + r.pack.ID + " " + r.verb.Command.Key + " --help")
	if schema, err := r.verb.Command.Args(); err == nil {
		example := schema.Example()
		if declared := r.verb.Command.Examples; len(declared) > 0 {
			example = declared[0] // the author's own says more
		}
		e = e.With("schema", raw(schema.Node())).With("example", raw(example))
	}
	return e
}

// raw is a value for an envelope, with its exact numbers.
func raw(n *jsondoc.Node) json.RawMessage { return n.Append(nil) }
