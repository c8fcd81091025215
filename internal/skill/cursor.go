package skill

// cursor stands in one line and counts columns, tabs being as wide as to the next multiple of four.
type cursor struct {
	s    string
	base int // offset of the line in the source
	pos  int // bytes taken
	col  int // columns taken
}

// indent is the number of columns of blanks from here on.
func (c *cursor) indent() int {
	col, n := c.col, 0
	for i := c.pos; i < len(c.s); i++ {
		switch c.s[i] {
		case ' ':
			n++
			col++
		case '\t':
			w := 4 - col%4
			n += w
			col += w
		default:
			return n
		}
	}
	return n
}

// blank says whether nothing but blanks is left.
func (c *cursor) blank() bool { return c.trimmed() == "" }

// rest is what is left. A tab of which columns were taken is left out.
func (c *cursor) rest() string { return c.s[c.pos:] }

// trimmed is what is left behind the blanks.
func (c *cursor) trimmed() string {
	i := c.pos
	for i < len(c.s) && (c.s[i] == ' ' || c.s[i] == '\t') {
		i++
	}
	return c.s[i:]
}

// columns advances n columns, within a tab too.
func (c *cursor) columns(n int) {
	for n > 0 && c.pos < len(c.s) {
		if c.s[c.pos] != '\t' {
			c.pos++
			c.col++
			n--
			continue
		}
		w := 4 - c.col%4
		if w > n {
			c.col += n
			return
		}
		c.col += w
		c.pos++
		n -= w
	}
}

// peekQuote says whether a block quote's mark follows the blanks.
func (c *cursor) peekQuote() bool {
	t := c.trimmed()
	return t != "" && t[0] == '>'
}

// quoteMark advances over the mark of a block quote and one blank behind it.
func (c *cursor) quoteMark() bool {
	if !c.peekQuote() {
		return false
	}
	c.columns(c.indent() + 1)
	if c.pos < len(c.s) && (c.s[c.pos] == ' ' || c.s[c.pos] == '\t') {
		c.columns(1)
	}
	return true
}
