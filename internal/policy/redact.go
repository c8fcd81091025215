package policy

import (
	"slices"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// RedactResult replaces what the pointers of redact name, before the result leaves the runtime (§4.6).
// A pointer that names nothing in this result changes nothing. The value itself is left as it is.
func (e *Entry) RedactResult(v *jsondoc.Node) *jsondoc.Node {
	for _, pointer := range e.Redact {
		tokens, ok := jsondoc.Tokens(pointer)
		if !ok {
			return jsondoc.Str(protocol.Redacted) // lint refuses such a pointer; without lint, show nothing
		}
		v = redact(v, tokens)
	}
	return v
}

func redact(v *jsondoc.Node, tokens []string) *jsondoc.Node {
	if v == nil {
		return nil
	}
	if len(tokens) == 0 {
		return jsondoc.Str(protocol.Redacted)
	}
	child := v.Child(tokens[0])
	if child == nil {
		return v
	}
	changed := redact(child, tokens[1:])
	if changed == child {
		return v
	}
	if v.Kind == jsondoc.Object {
		return v.With(tokens[0], changed)
	}
	out := *v
	out.Items = slices.Clone(v.Items)
	out.Items[jsondoc.Index(tokens[0])] = changed
	return &out
}
