package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// wellFormed holds a Result against §6.2 (HCP-14.3-9): success has a result and no error, a denial an error and no
// result, with one sentence for a person and a step.
func wellFormed(r protocol.Result) error {
	switch {
	case r.OK && r.Error != nil, !r.OK && r.Error == nil:
		return errors.New("ok and error disagree")
	case !r.OK && len(r.Result) > 0:
		return errors.New("a denial carries a result")
	case r.OK:
		return nil
	case r.Error.Step < 1 || r.Error.Step > 10:
		return fmt.Errorf("%s has no step", r.Error.Code)
	case strings.TrimSpace(r.Error.Message) == "" || strings.Contains(r.Error.Message, "\n"):
		return fmt.Errorf("%s has no sentence for a person", r.Error.Code)
	}
	return nil
}

// resultNode is the part of a Result that vectors compare: no sentences, which each runtime words by itself.
func resultNode(r protocol.Result) (*jsondoc.Node, error) {
	src, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	n, err := parseJSON(src)
	if err != nil {
		return nil, err
	}
	return wordless(n), nil
}

// wordless is an answer without the sentence and the hint of its error.
func wordless(n *jsondoc.Node) *jsondoc.Node {
	e := n.Get("error")
	if e == nil || e.Kind != jsondoc.Object {
		return n
	}
	failure := jsondoc.Obj()
	for _, m := range e.Members {
		if m.Key != "message" && m.Key != "hint" {
			failure = failure.With(m.Key, m.Value)
		}
	}
	return n.With("error", failure)
}

// compare holds an answer against the wanted file. Members that the wanted answer does not name may stand in the
// answer, as in details, plans and reports; "ok", a code and, with whole, the result can't hide that way.
func (p *play) compare(name string, got *jsondoc.Node, whole bool) error {
	src, ok := p.vector.file(name)
	if !ok && !p.update {
		return fmt.Errorf("the vector has no file %s", name)
	}
	var want *jsondoc.Node
	if ok {
		var err error
		if want, err = parseJSON(src); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	got = restrict(got, want, whole)
	if want != nil && want.Equal(got) {
		return nil
	}
	if p.update {
		p.vector.setFile(name, indent(got))
		return nil
	}
	return fmt.Errorf("answered %s; want %s", got.Append(nil), want.Append(nil))
}

// restrict drops what the wanted answer does not name. An empty object names nothing and therefore wants nothing
// there.
func restrict(got, want *jsondoc.Node, whole bool) *jsondoc.Node {
	if got == nil || want == nil || got.Kind != want.Kind {
		return got
	}
	switch got.Kind {
	case jsondoc.Object:
		if len(want.Members) == 0 {
			return got
		}
		out := jsondoc.Obj()
		for _, m := range got.Members {
			switch {
			case m.Key == "ok" || m.Key == "code" || whole && m.Key == "result":
				out = out.With(m.Key, m.Value)
			case want.Has(m.Key):
				out = out.With(m.Key, restrict(m.Value, want.Get(m.Key), whole))
			}
		}
		return out
	case jsondoc.Array:
		items := make([]*jsondoc.Node, len(got.Items))
		for i, item := range got.Items {
			items[i] = item
			if i < len(want.Items) {
				items[i] = restrict(item, want.Items[i], whole)
			}
		}
		return jsondoc.Arr(items...)
	default:
		return got
	}
}

func indent(n *jsondoc.Node) []byte {
	var out bytes.Buffer
	raw := n.Append(nil)
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return append(raw, '\n')
	}
	return append(out.Bytes(), '\n')
}
