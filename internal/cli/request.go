package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// planSend is the request of an openapi command as plan, question and approval show it (§3.6).
type planSend struct {
	Method     string            `json:"method"`
	URL        string            `json:"url"`
	Headers    map[string]string `json:"headers"`
	Credential []string          `json:"credential"`
	Files      []struct {
		Path   string `json:"path"`
		Bytes  int    `json:"bytes"`
		SHA256 string `json:"sha256"`
	} `json:"files"`
	Body   *string `json:"body"`
	Bytes  int     `json:"body_bytes"`
	SHA256 string  `json:"body_sha256"`
}

// show writes the request so that a person sees all of it, every character that a terminal would not show written out.
func (q *planSend) show(p *page, in string) {
	p.raw(in + p.paint(faint, "sends:") + " " + visible(q.Method+" "+q.URL) + "\n")
	for _, name := range slices.Sorted(maps.Keys(q.Headers)) {
		p.raw(in + "  " + visible(name+": "+q.Headers[name]) + "\n")
	}
	if len(q.Credential) > 0 {
		p.raw(in + p.paint(faint, "with the credential in:") + " " + visible(strings.Join(q.Credential, ", ")) + "\n")
	}
	for _, f := range q.Files {
		p.raw(in + p.paint(faint, "with the file:") + " " + visible(fmt.Sprintf("%s, %d bytes, sha256 %s", f.Path, f.Bytes, f.SHA256)) + "\n")
	}
	switch {
	case q.Body != nil && *q.Body != "":
		p.raw(in + p.paint(faint, "with the body:") + "\n" + indent(visibleLines(*q.Body), in+"  ") + "\n")
	case q.SHA256 != "":
		p.raw(in + p.paint(faint, "with a body of:") + " " + fmt.Sprintf("%d bytes, sha256 %s", q.Bytes, q.SHA256) + "\n")
	}
}
