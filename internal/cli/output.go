package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"hcpx/internal/audit"
	"hcpx/internal/lifecycle"
	"hcpx/internal/protocol"
)

// show is the one way of an answer to stdout: the view as one JSON value, or as text.
func (d *deps) show(view any, text func(*page)) error {
	if d.json() {
		return d.writeJSON(view)
	}
	p := d.outPage()
	text(p)
	if p.err != nil {
		return broken("write the answer", p.err)
	}
	return nil
}

// writeJSON writes one JSON value and a line feed in a single write.
func (d *deps) writeJSON(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return broken("write the answer as JSON", err)
	}
	return d.write(b.Bytes())
}

func (d *deps) write(line []byte) error {
	if err := d.put(line); err != nil {
		return broken("write the answer", err)
	}
	return nil
}

func (d *deps) put(line []byte) error {
	if d.env.OutTTY {
		line = []byte(tame(string(line)))
	}
	_, err := d.env.Out.Write(line)
	return err
}

func (d *deps) outPage() *page { return d.page(d.env.Out, d.env.OutTTY) }
func (d *deps) errPage() *page { return d.page(d.env.Err, d.env.ErrTTY) }

func (d *deps) page(w io.Writer, tty bool) *page {
	return &page{out: w, color: d.colored(tty), quiet: d.flags.Quiet, tty: tty}
}

// colored says whether a stream gets colour: --color, else a terminal without NO_COLOR.
func (d *deps) colored(tty bool) bool {
	switch d.flags.Color {
	case "always":
		return true
	case "never":
		return false
	default:
		return tty && d.env.Getenv("NO_COLOR") == "" && d.env.Getenv("TERM") != "dumb"
	}
}

// note writes a diagnostic to stderr, unless --quiet.
func (d *deps) note(text string) {
	if d.flags.Quiet {
		return
	}
	p := d.errPage()
	p.raw(p.paint(faint, "note: ") + clean(text) + "\n")
}

// indented is JSON for a person's eye, every number as it came.
func indented(raw []byte) string {
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return string(raw)
	}
	return b.String()
}

// explainDetails shows the details that tell a person what to change; --json shows all of them.
func explainDetails(p *page, e *protocol.Error) {
	if list := decode[[]protocol.Violation](e.Details["violations"]); len(list) > 1 { // one stands in the sentence
		for _, v := range list {
			p.line("  %s  %s", orWord(v.Pointer, "(arguments)"), v.Message)
		}
	}
	if list, ok := e.Details["issues"]; ok {
		showIssues(p, decode[[]protocol.Issue](list))
	}
	if list, ok := e.Details["nearest"]; ok {
		for _, name := range decode[[]string](list) {
			p.line("  did you mean %s", name)
		}
	}
	if list, ok := e.Details["packs"]; ok {
		for _, one := range decode[[]lifecycle.InstalledPack](list) {
			showInstalled(p, one)
		}
	}
	if c, ok := e.Details["consent"].(lifecycle.Consent); ok {
		showConsent(p, c)
	}
	if report, ok := e.Details["report"].(audit.Report); ok {
		showReport(p, report)
	}
	if list := decode[[]string](e.Details["denied"]); len(list) > 0 {
		p.raw(p.paint(faint, "the sandbox refused:") + "\n")
		for _, what := range list {
			p.line("  %s", what)
		}
	}
	if tail, ok := e.Details["stderr_tail"].(string); ok && tail != "" {
		p.raw(p.paint(faint, "the command's last words:") + "\n")
		p.given(terminated(tail))
	}
	if body, ok := e.Details["body"].(string); ok && body != "" && e.Code == protocol.UpstreamError {
		p.raw(p.paint(faint, "the server's own words:") + "\n")
		p.given(terminated(body))
	}
	if done := decode[[]string](e.Details["completed"]); len(done) > 0 {
		p.line("done before it, and not undone: %s", strings.Join(done, ", "))
	}
	if inner := decode[*protocol.Error](e.Details["error"]); inner != nil { // the failing step's own
		explainDetails(p, inner)
	}
}

// decode reads a detail whatever Go type its room gave it.
func decode[T any](v any) T {
	var out T
	if typed, ok := v.(T); ok {
		return typed
	}
	raw, err := json.Marshal(v)
	if err != nil || json.Unmarshal(raw, &out) != nil {
		var none T
		return none // shown in full with --json
	}
	return out
}

func orWord(s, word string) string {
	if s == "" {
		return word
	}
	return s
}

func terminated(s string) string {
	if s != "" && s[len(s)-1] != '\n' {
		s += "\n"
	}
	return s
}
