package skill

import "strings"

// code is one code span or code block: what a reader would type or see as a command.
type code struct {
	text  text
	span  bool
	shell bool // its lines may be commands, and not the output of one or data
}

// shells are the info strings of fences that hold commands.
const shells = " sh bash shell console zsh fish terminal shell-session "

// codes lists the code of a skill in source order.
func codes(blocks []block) []code {
	var out []code
	for _, b := range blocks {
		switch b.kind {
		case fence, indented:
			out = append(out, code{text: b.text, shell: b.info == "" || strings.Contains(shells, " "+strings.ToLower(b.info)+" ")})
		case heading, paragraph:
			out = append(out, spans(b.text)...)
		}
	}
	return out
}

// spans finds the code spans of a paragraph or heading. Escapes, autolinks and tags are stepped over.
func spans(t text) []code {
	var out []code
	closers := runs(t.s)
	for i := 0; i < len(t.s); {
		switch t.s[i] {
		case '\\':
			i += 2
		case '<':
			i += markup(t.s[i:])
		case '`':
			n := run(t.s, i)
			end, ok := closers.after(n, i+n)
			if ok {
				out = append(out, code{t.cut(i+n, end), true, true})
				i = end
			}
			i += n
		default:
			i++
		}
	}
	return out
}

// run is the number of backticks from i on.
func run(s string, i int) int { return len(s[i:]) - len(strings.TrimLeft(s[i:], "`")) }

// backticks holds the starts of the runs of backticks, by their length.
type backticks map[int][]int

// runs finds all runs once, so that many unclosed ones cost linear time.
func runs(s string) backticks {
	out := backticks{}
	for i := 0; i < len(s); {
		if s[i] != '`' {
			i++
			continue
		}
		n := run(s, i)
		out[n] = append(out[n], i)
		i += n
	}
	return out
}

// after is the first run of length n that starts at or behind at.
func (b backticks) after(n, at int) (int, bool) {
	for len(b[n]) > 0 && b[n][0] < at {
		b[n] = b[n][1:]
	}
	if len(b[n]) == 0 {
		return 0, false
	}
	return b[n][0], true
}

// markup is the length of the comment, autolink or tag at the start of s, or 1.
func markup(s string) int {
	if strings.HasPrefix(s, "<!--") {
		if end := strings.Index(s, "-->"); end >= 0 {
			return end + 3
		}
		return 1
	}
	// A tag longer than this is no tag of a skill; the bound keeps many "<" linear.
	short := s[:min(len(s), 2048)]
	if m := autolink().FindString(short); m != "" {
		return len(m)
	}
	if m := anyTag().FindString(short); m != "" {
		return len(m)
	}
	return 1
}

// cut is a part of a text with its places.
func (t text) cut(from, to int) text {
	out := text{s: t.s[from:to]}
	for n := max(0, t.line(from)); n < len(t.lines) && t.lines[n].at <= to; n++ {
		l := t.lines[n]
		out.lines = append(out.lines, line{max(0, l.at-from), l.src + max(0, from-l.at)})
	}
	return out
}
