package skill

import "strings"

// step is what the start of a line opened.
type step uint8

const (
	nothingStarted step = iota
	containerStarted
	leafStarted
)

// start opens the block that begins here, if one does. inLeaf says that the open leaf's containers all go
// on, so that an open paragraph would be interrupted.
func (s *scanner) start(inLeaf bool, matched int) step {
	inParagraph := inLeaf && s.leaf.kind == paragraph
	if s.cur.blank() {
		return nothingStarted
	}
	if s.cur.indent() >= 4 {
		if s.leaf.kind == paragraph {
			return nothingStarted
		}
		s.unmatched(matched)
		s.cur.columns(4)
		s.begin(block{kind: indented})
		s.append()
		return leafStarted
	}
	if matched < maxDepth && s.cur.peekQuote() {
		s.unmatched(matched)
		s.close()
		s.cur.quoteMark()
		s.push(container{quote: true})
		return containerStarted
	}
	if s.startLeaf(inParagraph, matched) {
		return leafStarted
	}
	return s.startItem(inParagraph, matched)
}

// startLeaf opens a heading, a fence, an HTML block or a thematic break.
func (s *scanner) startLeaf(inParagraph bool, matched int) bool {
	here := s.cur.trimmed()
	src := s.cur.base + len(s.cur.s) - len(here)
	if level, from, to := atxHeading(here); level > 0 {
		s.unmatched(matched)
		s.begin(block{kind: heading, level: level})
		s.put(here[from:to], src+from)
		s.close()
		return true
	}
	if closer := opensFence(here); closer != "" {
		s.unmatched(matched)
		info, _, _ := strings.Cut(strings.Trim(here[len(closer):], " \t"), " ")
		s.begin(block{kind: fence, closer: closer, info: info})
		s.indent = s.cur.indent()
		return true
	}
	if ok, closer := opensHTML(here, inParagraph || s.leaf.kind == paragraph); ok {
		s.unmatched(matched)
		s.begin(block{kind: html, closer: closer})
		s.append()
		if endsHTML(here, closer) {
			s.close()
		}
		return true
	}
	if level := setext(here); level > 0 && inParagraph {
		s.leaf.text.s = s.content.String()
		if rest := withoutDefinitions(s.leaf.text); strings.TrimSpace(rest.s) != "" {
			s.leaf.kind, s.leaf.level, s.leaf.text = heading, level, rest
			s.content.Reset()
			s.content.WriteString(strings.TrimRight(rest.s, " \t"))
			s.close()
			return true
		}
	}
	if thematicBreak(here) {
		s.unmatched(matched)
		s.begin(block{kind: rule})
		s.close()
		return true
	}
	return false
}

// startItem opens a list item.
func (s *scanner) startItem(inParagraph bool, matched int) step {
	here := s.cur.trimmed()
	width, one := listMarker(here)
	if width == 0 || matched >= maxDepth {
		return nothingStarted
	}
	empty := strings.Trim(here[width:], " \t") == ""
	if inParagraph && (empty || !one) {
		return nothingStarted
	}
	s.unmatched(matched)
	s.close()
	before := s.cur.indent()
	s.cur.columns(before + width)
	c := container{width: before + width + 1, bare: empty}
	if after := s.cur.indent(); !empty {
		if after > 4 {
			after = 1
		}
		s.cur.columns(after)
		c.width = before + width + after
	}
	s.push(c)
	return containerStarted
}

// push opens a container.
func (s *scanner) push(c container) {
	s.filled()
	s.stack = append(s.stack, c)
}

// atxHeading is the level of a "# heading" and where its text stands; 0 when it is none.
func atxHeading(s string) (level, from, to int) {
	for level < len(s) && s[level] == '#' {
		level++
	}
	if level == 0 || level > 6 || level < len(s) && s[level] != ' ' && s[level] != '\t' {
		return 0, 0, 0
	}
	to = len(strings.TrimRight(s, " \t"))
	closing := strings.TrimRight(s[:to], "#")
	if cut := strings.TrimRight(closing, " \t"); len(cut) < len(closing) || len(closing) <= level {
		to = len(cut)
	}
	from = level
	for from < to && (s[from] == ' ' || s[from] == '\t') {
		from++
	}
	return level, from, max(from, to)
}

// setext is 1 for an underline of =, 2 for one of -, else 0.
func setext(s string) int {
	s = strings.TrimRight(s, " \t")
	switch {
	case s == "":
		return 0
	case strings.Trim(s, "=") == "":
		return 1
	case strings.Trim(s, "-") == "":
		return 2
	}
	return 0
}

// thematicBreak says whether the line is three or more of the same *, - or _.
func thematicBreak(s string) bool {
	count := strings.Count(s, s[:1])
	return strings.ContainsAny(s[:1], "*-_") && count >= 3 && strings.Trim(s, s[:1]+" \t") == "" &&
		strings.Count(s, " ")+strings.Count(s, "\t")+count == len(s)
}

// opensFence is the run of backticks or tildes that opens a code fence, "" when it is none.
func opensFence(s string) string {
	n := len(s) - len(strings.TrimLeft(s, s[:1]))
	if n < 3 || s[0] != '`' && s[0] != '~' || s[0] == '`' && strings.Contains(s[n:], "`") {
		return ""
	}
	return s[:n]
}

// closesFence says whether the line is a closing fence, at least as long as the opening one.
func closesFence(s, opener string) bool {
	s = strings.Trim(s, " \t")
	return strings.HasPrefix(s, opener) && strings.Trim(s, opener[:1]) == ""
}

// listMarker is the width of a bullet or number with a blank or nothing behind it, and whether it may
// interrupt a paragraph by its number.
func listMarker(s string) (width int, one bool) {
	switch {
	case strings.ContainsAny(s[:1], "-+*"):
		width, one = 1, true
	default:
		n := 0
		for n < len(s) && n < 10 && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		if n == 0 || n > 9 || n == len(s) || s[n] != '.' && s[n] != ')' {
			return 0, false
		}
		width, one = n+1, s[:n] == "1"
	}
	if width < len(s) && s[width] != ' ' && s[width] != '\t' {
		return 0, false
	}
	return width, one
}

// withoutDefinitions drops the link reference definitions at the start of a paragraph: they show nothing.
func withoutDefinitions(t text) text {
	for len(t.lines) > 0 {
		first, rest, _ := strings.Cut(t.s, "\n")
		label, target, ok := strings.Cut(first, "]:")
		target = strings.TrimSpace(target)
		if !ok || len(label) < 2 || label[0] != '[' || strings.ContainsAny(label[1:], "[]") ||
			target == "" || len(strings.Fields(target)) > 1 && !strings.ContainsAny(target[len(target)-1:], `"')`) {
			return t
		}
		cut := len(first) + 1
		out := text{s: rest}
		for _, l := range t.lines[1:] {
			out.lines = append(out.lines, line{l.at - cut, l.src})
		}
		t = out
	}
	return t
}
