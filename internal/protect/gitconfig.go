package protect

import "strings"

// setting is one value of a git configuration: section and name are in lower case, a subsection is as it stands.
type setting struct{ key, value string }

// configText reads a git configuration as git does: quotes, escapes, comments, lines that go on. It ends where git
// would refuse the file.
type configText struct {
	text string
	at   int
}

// parseConfig is every setting with a value, in order.
func parseConfig(text string) []setting {
	c := &configText{text: strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")}
	var all []setting
	section := ""
	for {
		switch b := c.next(); {
		case b == 0:
			return all
		case b == '#' || b == ';':
			c.line()
		case b == '[':
			var ok bool
			if section, ok = c.section(); !ok {
				return all
			}
		case letter(b):
			c.at--
			name := strings.ToLower(c.while(func(b byte) bool { return letter(b) || b >= '0' && b <= '9' || b == '-' }))
			value, ok := c.assigned()
			if !ok {
				return all
			}
			all = append(all, setting{section + "." + name, value})
		case b != ' ' && b != '\t' && b != '\n' && b != '\r':
			return all
		}
	}
}

func letter(b byte) bool { return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' }

// next is the next byte, 0 at the end.
func (c *configText) next() byte {
	if c.at >= len(c.text) {
		return 0
	}
	c.at++
	return c.text[c.at-1]
}

func (c *configText) while(is func(byte) bool) string {
	from := c.at
	for c.at < len(c.text) && is(c.text[c.at]) {
		c.at++
	}
	return c.text[from:c.at]
}

func (c *configText) line() { c.while(func(b byte) bool { return b != '\n' }) }

// section is the name in brackets: [core], [a.b], [a "B"].
func (c *configText) section() (string, bool) {
	blank := func(b byte) bool { return b == ' ' || b == '\t' }
	name := strings.ToLower(c.while(func(b byte) bool { return letter(b) || b >= '0' && b <= '9' || b == '-' || b == '.' }))
	spaces := c.while(blank)
	switch c.next() {
	case ']':
		return name, spaces == ""
	case '"':
		if spaces == "" {
			return "", false
		}
	default:
		return "", false
	}
	var sub strings.Builder
	for {
		switch b := c.next(); b {
		case 0, '\n':
			return "", false
		case '"':
			return name + "." + sub.String(), c.next() == ']'
		case '\\':
			if b = c.next(); b == 0 || b == '\n' {
				return "", false
			}
			sub.WriteByte(b)
		default:
			sub.WriteByte(b)
		}
	}
}

// assigned is what stands after a name: nothing, or = and a value.
func (c *configText) assigned() (string, bool) {
	c.while(func(b byte) bool { return b == ' ' || b == '\t' })
	switch c.next() {
	case 0, '\n':
		return "", true
	case '=':
		return c.value()
	}
	return "", false
}

func (c *configText) value() (string, bool) {
	var out []byte
	quoted, solid := false, 0 // how much of out stays when blanks at the end go
	for {
		b := c.next()
		switch {
		case b == 0 || b == '\n':
			return string(out[:solid]), !quoted
		case !quoted && (b == ' ' || b == '\t' || b == '\r'):
			if len(out) > 0 {
				out = append(out, b)
			}
			continue
		case !quoted && (b == '#' || b == ';'):
			c.line()
			continue
		case b == '"':
			quoted = !quoted
		case b == '\\':
			i := strings.IndexByte("\ntbn\\\"", c.next())
			if i < 0 {
				return "", false
			}
			if i > 0 {
				out = append(out, "\n\t\b\n\\\""[i])
			}
		default:
			out = append(out, b)
		}
		solid = len(out)
	}
}
