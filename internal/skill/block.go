package skill

import (
	"sort"
	"strings"
)

// blockKind is the kind of a leaf block of CommonMark.
type blockKind uint8

const (
	none blockKind = iota
	heading
	paragraph
	fence
	indented
	html
	rule
)

// block is one leaf block. Containers are not kept; top says that the block stands in none.
type block struct {
	kind  blockKind
	level int // of a heading
	top   bool
	open  bool // a fence or an HTML block that nothing closed
	// closer is the line that closes a fence, or the mark that ends an HTML block; "" = a blank line does.
	closer string
	info   string // of a fence: the word behind the opening marks
	text   text
}

// text is the content of a block without the marks of its containers, with the place of every line.
type text struct {
	s     string
	lines []line
}

// line says that the content from at on stands in the source from src on, up to the next line.
type line struct{ at, src int }

// source is the source offset of an offset in the content.
func (t text) source(i int) int {
	n := t.line(i)
	if n < 0 {
		return 0
	}
	return t.lines[n].src + i - t.lines[n].at
}

// line is the index of the line that holds an offset in the content, -1 when there is none.
func (t text) line(i int) int {
	return sort.Search(len(t.lines), func(n int) bool { return t.lines[n].at > i }) - 1
}

// maxDepth bounds how deep containers nest: marks behind it are text, so that no line costs more than
// linear time.
const maxDepth = 100

// container is an open block quote or list item.
type container struct {
	quote bool
	width int  // list item: columns that its content is indented by
	bare  bool // list item that began with a blank line and has no content yet
}

// scanner reads the block structure line by line, as CommonMark describes it: first the open containers
// are matched, then new ones are opened, then the rest of the line goes to the open leaf.
type scanner struct {
	src    string
	blocks []block
	stack  []container

	leaf    block // the open leaf; kind none when there is none
	content strings.Builder
	indent  int // columns before an open fence

	cur cursor
}

// scan reads the leaf blocks of src from offset on.
func scan(src string, from int) []block {
	s := &scanner{src: src}
	for at := from; at < len(src); {
		end, next := lineEnd(src, at)
		s.cur = cursor{s: src[at:end], base: at}
		s.line()
		at = next
	}
	s.leaf.open = s.leaf.kind == fence || s.leaf.kind == html && s.leaf.closer != ""
	s.close()
	return s.blocks
}

// lineEnd is the end of the line that starts at, and the start of the next one.
func lineEnd(src string, at int) (end, next int) {
	i := strings.IndexAny(src[at:], "\r\n")
	if i < 0 {
		return len(src), len(src)
	}
	end = at + i
	if strings.HasPrefix(src[end:], "\r\n") {
		return end, end + 2
	}
	return end, end + 1
}

// line takes one line.
func (s *scanner) line() {
	matched := s.match()
	whole := matched == len(s.stack)
	if whole && s.verbatim() {
		return
	}
	opened := false
	for {
		step := s.start(whole && !opened, matched)
		if step == leafStarted {
			return
		}
		if step == nothingStarted {
			break
		}
		opened, matched = true, len(s.stack)
	}
	s.rest(whole, opened, matched)
}

// match advances over the marks of the open containers and counts those that go on.
func (s *scanner) match() int {
	for i := range s.stack {
		c := &s.stack[i]
		switch {
		case c.quote:
			if s.cur.indent() > 3 || !s.cur.quoteMark() {
				return i
			}
		case s.cur.blank():
			if c.bare {
				return i
			}
		case s.cur.indent() >= c.width:
			s.cur.columns(c.width)
			c.bare = false
		default:
			return i
		}
	}
	return len(s.stack)
}

// verbatim gives the line to an open fence, HTML block or indented code whose containers all go on.
func (s *scanner) verbatim() bool {
	switch s.leaf.kind {
	case fence:
		if s.cur.indent() <= 3 && closesFence(s.cur.rest(), s.leaf.closer) {
			s.close()
			return true
		}
		s.cur.columns(min(s.indent, s.cur.indent()))
		s.append()
		return true
	case html:
		if s.leaf.closer == "" && s.cur.blank() {
			s.close()
			return true
		}
		ends := endsHTML(s.cur.rest(), s.leaf.closer)
		s.append()
		if ends {
			s.close()
		}
		return true
	case indented:
		if s.cur.blank() || s.cur.indent() >= 4 {
			s.cur.columns(min(4, s.cur.indent()))
			s.append()
			return true
		}
		s.close()
	}
	return false
}

// rest gives what is left of the line to a paragraph.
func (s *scanner) rest(whole, opened bool, matched int) {
	blank := s.cur.blank()
	if lazy := !whole && !opened && !blank && s.leaf.kind == paragraph; lazy {
		s.trimmed()
		return
	}
	s.unmatched(matched)
	switch {
	case blank && s.leaf.kind == paragraph:
		s.close()
	case blank:
	case s.leaf.kind == paragraph:
		s.trimmed()
	default:
		s.begin(block{kind: paragraph})
		s.trimmed()
	}
}

// unmatched closes the containers after the first n, with the leaf that stands in them.
func (s *scanner) unmatched(n int) {
	if n < len(s.stack) {
		s.close()
		s.stack = s.stack[:n]
	}
}

// begin closes the open leaf and opens another.
func (s *scanner) begin(b block) {
	s.close()
	b.top = len(s.stack) == 0
	s.leaf = b
	s.filled()
}

// filled notes that the innermost container has content; those around it have had some since it began.
func (s *scanner) filled() {
	if n := len(s.stack); n > 0 {
		s.stack[n-1].bare = false
	}
}

// append adds the rest of the line to the leaf as it stands.
func (s *scanner) append() {
	s.put(s.cur.rest(), s.cur.base+s.cur.pos)
}

// trimmed adds the rest of the line without the blanks before it.
func (s *scanner) trimmed() {
	s.cur.columns(s.cur.indent())
	s.put(s.cur.rest(), s.cur.base+s.cur.pos)
}

// put adds a line to the leaf. The text grows in a builder, so that a long block costs linear time.
func (s *scanner) put(content string, src int) {
	if len(s.leaf.text.lines) > 0 {
		s.content.WriteByte('\n')
	}
	s.leaf.text.lines = append(s.leaf.text.lines, line{s.content.Len(), src})
	s.content.WriteString(content)
}

// close ends the open leaf.
func (s *scanner) close() {
	b := s.leaf
	b.text.s = s.content.String()
	s.leaf = block{}
	s.content.Reset()
	switch b.kind {
	case none:
		return
	case paragraph:
		b.text = withoutDefinitions(b.text)
		b.text.s = strings.TrimRight(b.text.s, " \t")
		if b.text.s == "" {
			return
		}
	case indented:
		b.text.s = strings.TrimRight(b.text.s, " \t\n")
	}
	s.blocks = append(s.blocks, b)
}
