package skill

import "strings"

// word is one word of a command line, without the quotes and punctuation around it.
type word struct {
	raw string
	s   string
	at  int // offset of s in the code
}

// commandLines splits code into commands and their words, as a shell would roughly read them. In a code
// span a line's end is a blank; in a block it ends the command unless a backslash stands before it.
func commandLines(c code) [][]word {
	var out [][]word
	var line []word
	s, start := c.text.s, -1
	end := func(i int) {
		if start >= 0 {
			line = append(line, trim(s[start:i], start))
		}
		start = -1
	}
	flush := func(i int) {
		end(i)
		if len(line) > 0 {
			out = append(out, line)
		}
		line = nil
	}
	for i := range len(s) {
		switch s[i] {
		case ' ', '\t', '\r':
			end(i)
		case '\\':
			if i+1 < len(s) && s[i+1] == '\n' {
				end(i)
			} else if start < 0 {
				start = i
			}
		case '\n':
			if c.span || i > 0 && s[i-1] == '\\' {
				end(i)
			} else {
				flush(i)
			}
		case '|', ';', '&', '(', ')', '`':
			flush(i)
		default:
			if start < 0 {
				start = i
			}
		}
	}
	flush(len(s))
	return out
}

// trim takes quotes and punctuation off a word.
func trim(raw string, at int) word {
	left := strings.TrimLeft(raw, `"'[{`)
	return word{raw: raw, s: strings.TrimRight(left, `"'\]},.:`), at: at + len(raw) - len(left)}
}

// open says whether a word stands for something to be filled in: <key>, $KEY, {key}, VERB_KEY, ….
func open(w word) bool {
	return w.s == "" || strings.ContainsAny(w.raw, "<>{}$*…") || strings.HasPrefix(w.raw, "[") || w.s[0] == '-' ||
		strings.Trim(w.s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
}

// The global options that may stand between the words of a command, without and with a value.
const (
	switches = " --json --quiet --confirm --apply --plan --yes [--json] [--confirm] [--plan] "
	options  = " --home --session --as --project --workspace --color "
)

// afterFlags is the index of the next word behind global options, or -1: an option that is not known could
// take the next word, so nothing is claimed behind it.
func afterFlags(words []word, i int) int {
	for ; i < len(words); i++ {
		raw := words[i].raw
		name, _, valued := strings.Cut(raw, "=")
		switch {
		case strings.Contains(switches, " "+raw+" "):
		case strings.Contains(options, " "+name+" "):
			if !valued {
				i++
			}
		case strings.HasPrefix(raw, "-") || strings.HasPrefix(raw, "[-"):
			return -1
		default:
			return i
		}
	}
	return -1
}
