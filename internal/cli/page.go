package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// page is text for a person: one line per fact, aligned tables, colour only where the stream takes it.
// The first write error is kept and ends the output.
type page struct {
	out   io.Writer
	color bool
	quiet bool // leaves the next command out
	tty   bool
	err   error
}

// style is an SGR code; plain has none.
type style string

const (
	plain  style = ""
	strong style = "1"
	faint  style = "2"
	bad    style = "31"
	good   style = "32"
	warn   style = "33"
)

// cell is one field of a table.
type cell struct {
	text  string
	style style
}

// row makes plain cells.
func row(texts ...string) []cell {
	cells := make([]cell, len(texts))
	for i, t := range texts {
		cells[i] = cell{text: t}
	}
	return cells
}

func (p *page) paint(s style, text string) string {
	if !p.color || s == plain || text == "" {
		return text
	}
	return "\x1b[" + string(s) + "m" + text + "\x1b[0m"
}

// given writes what a run or a pack gave: a pipe gets it as it is, a terminal with its control characters shown.
func (p *page) given(text string) {
	if p.tty {
		text = tame(text)
	}
	p.raw(text)
}

// raw writes text as it is: what this program made, or cleaned.
func (p *page) raw(text string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.out, text)
	}
}

// line writes one line; args are shown with control characters escaped.
func (p *page) line(format string, args ...any) { p.styled(plain, format, args...) }

func (p *page) styled(s style, format string, args ...any) {
	for i, a := range args {
		if text, ok := a.(string); ok {
			args[i] = clean(text)
		}
	}
	p.raw(p.paint(s, fmt.Sprintf(format, args...)) + "\n")
}

// head writes a heading with an empty line before it, unless it is the first thing.
func (p *page) head(title string) { p.raw("\n" + p.paint(strong, clean(title)) + "\n") }

// next names the next useful commands.
func (p *page) next(commands ...string) {
	if p.quiet || len(commands) == 0 {
		return
	}
	p.raw("\n")
	for _, c := range commands {
		p.raw(p.paint(faint, "next: ") + clean(c) + "\n")
	}
}

// table writes rows in aligned columns; the header is left out when it is nil.
func (p *page) table(header []string, rows [][]cell) {
	if header != nil {
		top := make([]cell, len(header))
		for i, h := range header {
			top[i] = cell{h, faint}
		}
		rows = append([][]cell{top}, rows...)
	}
	var widths []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(clean(c.text)))
		}
	}
	for _, r := range rows {
		p.raw(p.tableLine(r, widths) + "\n")
	}
}

func (p *page) tableLine(cells []cell, widths []int) string {
	var b strings.Builder
	gap := 0 // written before the next text, so that no line ends in blanks
	for i, c := range cells {
		text := clean(c.text)
		if text != "" {
			b.WriteString(strings.Repeat(" ", gap))
			b.WriteString(p.paint(c.style, text))
			gap = 0
		}
		gap += widths[i] - utf8.RuneCountInString(text) + 2
	}
	return b.String()
}

// facts writes names and values in two columns; a fact without value is left out.
func (p *page) facts(pairs ...[2]string) {
	var rows [][]cell
	for _, pair := range pairs {
		if pair[1] != "" {
			rows = append(rows, []cell{{pair[0], faint}, {text: pair[1]}})
		}
	}
	p.table(nil, rows)
}

// clean escapes control characters and those that turn the direction of text, so that nothing from
// outside can move the cursor, hide a word or forge a line.
func clean(s string) string { return escape(s, "") }

// tame is clean for text of several lines. What it escapes in JSON is valid JSON still.
func tame(s string) string { return escape(strings.ReplaceAll(s, "\r\n", "\n"), "\n\t") }

// escape writes every unsafe character that is not kept as an escape.
func escape(s, keep string) string {
	if !strings.ContainsFunc(s, unsafeRune) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case strings.ContainsRune(keep, r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case unsafeRune(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r) // an invalid byte shows as U+FFFD
		}
	}
	return b.String()
}

func unsafeRune(r rune) bool {
	return r < 0x20 || r >= 0x7f && r <= 0x9f || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 ||
		r == 0x200e || r == 0x200f || r == 0x2028 || r == 0x2029
}

// quoted shows an argv so that a person sees where each element ends.
func quoted(argv []string) string {
	parts := make([]string, len(argv))
	for i, a := range argv {
		parts[i] = quote(a)
	}
	return strings.Join(parts, " ")
}

func quote(a string) string {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,@%+"
	shown := clean(a)
	switch {
	case a != "" && strings.Trim(a, safe) == "":
		return a
	case shown != a || strings.Contains(a, "'"):
		return `$'` + strings.ReplaceAll(shown, "'", `\'`) + `'`
	default:
		return "'" + a + "'"
	}
}

// counted is a number with its noun.
func counted[N int | int64 | uint64](n N, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
