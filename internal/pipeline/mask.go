package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"hcpx/internal/protocol"
	"hcpx/internal/sandbox"
)

// maskForms are a secret and its encodings, longest first, so that no form leaves a piece of another.
func maskForms(secrets []string) [][]byte {
	var forms [][]byte
	for _, s := range secrets {
		if s == "" {
			continue
		}
		escaped, err := json.Marshal(s)
		if err != nil {
			escaped = []byte(`""`)
		}
		raw := []byte(s)
		for _, f := range []string{
			s, string(escaped[1 : len(escaped)-1]), url.QueryEscape(s), url.PathEscape(s),
			base64.StdEncoding.EncodeToString(raw), base64.RawStdEncoding.EncodeToString(raw),
			base64.URLEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw),
		} {
			forms = append(forms, []byte(f))
		}
	}
	slices.SortFunc(forms, func(a, b []byte) int { return cmp.Or(cmp.Compare(len(b), len(a)), bytes.Compare(a, b)) })
	return slices.CompactFunc(forms, bytes.Equal)
}

// maskedBox replaces minted values in what a run gave, before anything parses it or cuts it to a tail.
type maskedBox struct {
	sandbox.Box
	secrets []string
	forms   [][]byte // of the secrets, made when there is something to mask
}

func masked(box sandbox.Box, secrets []string) sandbox.Box {
	if len(secrets) == 0 {
		return box
	}
	return &maskedBox{Box: box, secrets: secrets}
}

// Run implements sandbox.Box.
func (m *maskedBox) Run(ctx context.Context) (*sandbox.Outcome, *protocol.Error) {
	out, err := m.Box.Run(ctx)
	if out != nil {
		m.forms = maskForms(m.secrets)
		for _, form := range m.forms {
			out.Stdout = bytes.ReplaceAll(out.Stdout, form, []byte(protocol.Redacted))
			out.Stderr = bytes.ReplaceAll(out.Stderr, form, []byte(protocol.Redacted))
			for i, line := range out.Denied { // the command chose the names in it
				out.Denied[i] = strings.ReplaceAll(line, string(form), protocol.Redacted)
			}
		}
		if out.Overflow { // cut at its end
			out.Stdout = out.Stdout[:len(out.Stdout)-m.torn(func(form []byte, n int) bool { return bytes.HasSuffix(out.Stdout, form[:n]) })]
		}
		if out.StderrSize > int64(len(out.Stderr)) { // cut at its start
			out.Stderr = out.Stderr[m.torn(func(form []byte, n int) bool { return bytes.HasPrefix(out.Stderr, form[len(form)-n:]) }):]
		}
	}
	return out, err
}

// torn is the length of the longest piece of a secret that a cut left at the edge.
func (m *maskedBox) torn(there func(form []byte, n int) bool) int {
	longest := 0
	for _, form := range m.forms {
		for n := longest + 1; n < len(form); n++ {
			if there(form, n) {
				longest = n
			}
		}
	}
	return longest
}
