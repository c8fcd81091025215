package pipeline

import (
	"context"
	"encoding/json"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
)

// mask replaces minted values in whatever leaves a run (§8.4): the value itself and its forms. A nil mask has nothing to
// hide.
type mask struct {
	forms []form
	first [256][]int    // forms by the byte that they may begin with
	pairs [1 << 16]bool // two bytes that some form may begin with: all that most of a text is asked
}

// newMask makes the mask of the secrets of one run; nil when there are none.
func newMask(secrets []string) *mask {
	m := &mask{}
	for _, s := range secrets {
		if s != "" {
			m.forms = append(m.forms, formsOf(s)...)
		}
	}
	if len(m.forms) == 0 {
		return nil
	}
	for i, f := range m.forms {
		f.pairs(&m.pairs)
		var seen [256]bool
		for _, s := range first(f) {
			if !seen[s[0]] {
				seen[s[0]] = true
				m.first[s[0]] = append(m.first[s[0]], i)
			}
		}
	}
	return m
}

// first are the spellings that a form begins with; one without units begins with nothing.
func first(f form) [][]byte {
	if len(f.units) == 0 {
		return nil
	}
	return f.units[0]
}

// at is the end of the longest secret that begins at i, 0 when none does.
func (m *mask) at(text []byte, i int) int {
	if i+1 < len(text) && !m.pairs[int(text[i])<<8|int(text[i+1])] {
		return 0
	}
	longest := 0
	for _, n := range m.first[text[i]] {
		f := m.forms[n]
		if fit, end, _ := f.match(f.units, text[i:]); fit == len(f.units) {
			longest = max(longest, i+end)
		}
	}
	return longest
}

// bytes replaces every secret; text without one is answered as it is. A secret that begins within another goes with it.
func (m *mask) bytes(text []byte) []byte {
	if m == nil {
		return text
	}
	var out []byte
	done := 0
	for i := 0; i < len(text); i++ {
		end := m.at(text, i)
		if end == 0 {
			continue
		}
		for j := i + 1; j < end && j < len(text); j++ {
			end = max(end, m.at(text, j))
		}
		out = append(append(out, text[done:i]...), protocol.Redacted...)
		done, i = end, end-1
	}
	if done == 0 {
		return text
	}
	return append(out, text[done:]...)
}

// torn is bytes for a text that may have been cut at its end, where the beginning of a secret goes too.
func (m *mask) torn(text []byte, cut bool) []byte {
	if m == nil {
		return text
	}
	text = m.bytes(text)
	if cut {
		text = text[:m.tornEnd(text)]
	}
	return text
}

func (m *mask) text(s string) string {
	if m == nil {
		return s
	}
	return string(m.bytes([]byte(s)))
}

// node masks the texts and names of a value: what a command escaped in its JSON stands open once it is parsed.
func (m *mask) node(n *jsondoc.Node) *jsondoc.Node {
	if m == nil || n == nil {
		return n
	}
	switch n.Kind {
	case jsondoc.String:
		return jsondoc.Str(m.text(n.Text))
	case jsondoc.Array:
		items := make([]*jsondoc.Node, len(n.Items))
		for i, item := range n.Items {
			items[i] = m.node(item)
		}
		return jsondoc.Arr(items...)
	case jsondoc.Object:
		members := make([]jsondoc.Member, len(n.Members))
		for i, one := range n.Members {
			members[i] = jsondoc.Member{Key: m.text(one.Key), Value: m.node(one.Value)}
		}
		return jsondoc.Obj(members...)
	}
	return n
}

// refusal masks an error whole. Details are answered as they were where nothing had to go.
func (m *mask) refusal(e *protocol.Error) {
	if m == nil || e == nil {
		return
	}
	e.Message, e.Hint = m.text(e.Message), m.text(e.Hint)
	for key, value := range e.Details {
		open, err := json.Marshal(value)
		if err != nil {
			e.Details[key] = protocol.Redacted
			continue
		}
		if hidden := m.bytes(open); string(hidden) != string(open) {
			e.Details[key] = json.RawMessage(hidden)
			if s, ok := value.(string); ok {
				e.Details[key] = m.text(s)
			}
		}
	}
}

// tornStart is where text really begins, when it was cut at its start and the piece of a secret stands there.
func (m *mask) tornStart(text []byte) int {
	longest := 0
	for _, f := range m.forms {
		for n := 1; n < len(f.units); n++ {
			for skip := range min(maxSpelling, len(text)) {
				rest := f.units[n:]
				if skip > 0 && len(rest) < 4 {
					break // a piece of a spelling, and next to nothing after it
				}
				if fit, end, _ := f.match(rest, text[skip:]); fit == len(rest) {
					longest = max(longest, skip+end)
				}
			}
		}
	}
	return longest
}

// tornEnd is where text really ends, when it was cut at its end and the beginning of a secret stands there.
func (m *mask) tornEnd(text []byte) int {
	longest := 0
	for _, f := range m.forms {
		longest = max(longest, len(f.units)*maxSpelling)
	}
	for i := max(0, len(text)-longest); i < len(text); i++ {
		for _, n := range m.first[text[i]] {
			f := m.forms[n]
			if _, _, short := f.match(f.units, text[i:]); short {
				return i
			}
		}
	}
	return len(text)
}

// maxSpelling is the longest spelling of one character: four bytes in a URL, or two units in JSON.
const maxSpelling = 12

// maskedBox replaces minted values in what a run gave, before anything parses it or cuts it to a tail.
type maskedBox struct {
	sandbox.Box
	mask *mask
}

func masked(box sandbox.Box, m *mask) sandbox.Box {
	if m == nil {
		return box
	}
	return &maskedBox{Box: box, mask: m}
}

// Run implements sandbox.Box.
func (b *maskedBox) Run(ctx context.Context) (*sandbox.Outcome, *protocol.Error) {
	out, err := b.Box.Run(ctx)
	b.mask.refusal(err)
	if out != nil {
		out.Stdout, out.Stderr = b.mask.bytes(out.Stdout), b.mask.bytes(out.Stderr)
		for i, line := range out.Denied { // the command chose the names in it
			out.Denied[i] = b.mask.text(line)
		}
		if out.Overflow {
			out.Stdout = out.Stdout[:b.mask.tornEnd(out.Stdout)]
		}
		if out.StderrSize > int64(len(out.Stderr)) {
			out.Stderr = out.Stderr[b.mask.tornStart(out.Stderr):]
		}
	}
	return out, err
}
