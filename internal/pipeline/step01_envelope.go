package pipeline

import (
	"fmt"
	"strings"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// Bounds of an envelope (§6.1).
const (
	envelopeBytes = 1 << 20
	envelopeDepth = 128
	maxKeyLength  = 255 // of an idempotency key
)

// request is a decoded envelope. No member can name a Principal, a tenant, a policy or a binding
// (HCP-1.1-2): there is none to decode.
type request struct {
	protocol.Envelope
	args     *jsondoc.Node // always an object
	confirm  bool
	approval string
}

// decode is step 1 (§6.1): one closed JSON object, no unknown or duplicate member, pack_id and surface_id
// never both with different values (§2.3). Ids that can be read are kept for the denial.
func (r *run) decode(src []byte) *protocol.Error {
	root, faults := jsondoc.Parse(src, jsondoc.Limits{Bytes: envelopeBytes, Depth: envelopeDepth})
	r.req.args = jsondoc.Obj()
	if root != nil && root.Kind == jsondoc.Object {
		r.ids(root)
	}
	if len(faults) > 0 {
		line, column := jsondoc.Place(src, faults[0].Offset)
		return invalidEnvelope(faults[0].Pointer, fmt.Sprintf("The envelope is not valid at %d:%d: %s.", line, column, strings.TrimSuffix(faults[0].Message, ".")))
	}
	if root == nil || root.Kind != jsondoc.Object {
		return invalidEnvelope("", "The envelope must be a JSON object.")
	}
	for _, m := range root.Members {
		if err := r.member(m); err != nil {
			return err
		}
	}
	if r.req.PackID == "" {
		return invalidEnvelope("/pack_id", "The envelope names no pack_id.")
	}
	if r.req.VerbKey == "" {
		return invalidEnvelope("/verb_key", "The envelope names no verb_key.")
	}
	if r.req.Project != "" {
		r.s.Project = r.req.Project // the envelope's project beats the session's (§9.3)
	}
	return nil
}

// ids reads what a denial can name, before anything is judged.
func (r *run) ids(root *jsondoc.Node) {
	for _, name := range []string{"surface_id", "pack_id"} {
		if v := root.Get(name); v != nil && v.Kind == jsondoc.String {
			r.req.PackID = v.Text
		}
	}
	if v := root.Get("verb_key"); v != nil && v.Kind == jsondoc.String {
		r.req.VerbKey = v.Text
	}
}

func (r *run) member(m jsondoc.Member) *protocol.Error {
	v, at := m.Value, jsondoc.Pointer(m.Key)
	text := v.Kind == jsondoc.String
	switch m.Key {
	case "pack_id", "surface_id":
		if !text || v.Text != r.req.PackID {
			return invalidEnvelope(at, "pack_id and surface_id must be one string.")
		}
	case "verb_key":
		if !text {
			return invalidEnvelope(at, "verb_key must be a string.")
		}
	case "args":
		if v.Kind != jsondoc.Object {
			return invalidEnvelope(at, "args must be an object.")
		}
		r.req.args = v
	case "confirm":
		return r.confirmMember(v, at)
	case "project":
		if !text || !protocol.Project(v.Text) {
			return invalidEnvelope(at, "project must be 1 to 64 of a-z, 0-9, dot, dash and underscore, without \"..\".")
		}
		r.req.Project = v.Text
	case "idempotency_key":
		if !text || v.Text == "" || len(v.Text) > maxKeyLength {
			return invalidEnvelope(at, fmt.Sprintf("idempotency_key must be a string of 1 to %d bytes.", maxKeyLength))
		}
		r.req.IdempotencyKey = v.Text
	default:
		return invalidEnvelope(at, fmt.Sprintf("The envelope has no member %q.", m.Key))
	}
	return nil
}

func (r *run) confirmMember(v *jsondoc.Node, at string) *protocol.Error {
	switch {
	case v.Kind == jsondoc.Bool:
		r.req.confirm = v.Text == "true"
	case v.Kind == jsondoc.String && v.Text != "":
		r.req.approval = v.Text
	default:
		return invalidEnvelope(at, "confirm must be true, false or an approval id.")
	}
	return nil
}

func invalidEnvelope(pointer, message string) *protocol.Error {
	e := protocol.Fail(protocol.InvalidEnvelope, message)
	if pointer != "" {
		e = e.With("pointer", pointer)
	}
	return e
}
