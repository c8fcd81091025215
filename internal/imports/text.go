package imports

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// oneLine is a text of a document as one plain line of at most limit characters: no tags, no marks of links and code, no
// control characters, and nothing that turns the direction of text.
func oneLine(s string, limit int) string {
	if len(s) > 20*limit+200 {
		s = strings.ToValidUTF8(s[:20*limit+200], "")
	}
	s = strings.NewReplacer("`", "'", "**", "").Replace(withoutLinks(withoutTags(s)))
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || hidden(r) }), " ")
	s = strings.TrimLeft(s, "#*->|= ")
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	cut := string([]rune(s)[:max(limit-1, 0)])
	if i := strings.LastIndexByte(cut, ' '); i > len(cut)/2 {
		cut = cut[:i]
	}
	return strings.TrimRight(cut, " ,;:.-(") + "…"
}

// hidden are characters that no line of text needs.
func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' || r == utf8.RuneError
}

// withoutTags takes out what stands between < and > when it begins like a tag.
func withoutTags(s string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '<')
		if i < 0 {
			return b.String() + s
		}
		b.WriteString(s[:i])
		end := strings.IndexByte(s[i:], '>')
		if rest := s[i+1:]; end < 0 || rest == "" || !(rest[0] == '/' || rest[0] == '!' || rest[0]|0x20 >= 'a' && rest[0]|0x20 <= 'z') {
			b.WriteString("<")
			s = rest
			continue
		}
		if breaks(s[i+1 : i+end]) {
			b.WriteByte(' ')
		}
		s = s[i+end+1:]
	}
}

// breaks says whether words on both sides of a tag are apart.
func breaks(tag string) bool {
	name := strings.ToLower(strings.Trim(tag, "/ "))
	if i := strings.IndexFunc(name, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }); i >= 0 {
		name = name[:i]
	}
	return !strings.Contains(" a b i em strong code tt span sup sub u s small mark kbd var ", " "+name+" ")
}

// withoutLinks keeps the words of [words](address).
func withoutLinks(s string) string {
	var b strings.Builder
	for {
		i := strings.Index(s, "](")
		if i < 0 {
			return b.String() + s
		}
		open, end := strings.LastIndexByte(s[:i], '['), strings.IndexByte(s[i:], ')')
		if open < 0 || end < 0 {
			b.WriteString(s[:i+2])
			s = s[i+2:]
			continue
		}
		b.WriteString(s[:open] + s[open+1:i])
		s = s[i+end+1:]
	}
}

// firstSentence is the text up to its first full stop that ends a sentence.
func firstSentence(s string) string {
	s = strings.TrimSpace(s)
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '\n' && s[i+1] == '\n' {
			return s[:i]
		}
		if s[i] == '.' && (s[i+1] == ' ' || s[i+1] == '\n') && i > 8 && !strings.HasSuffix(s[:i], "e.g") && !strings.HasSuffix(s[:i], "i.e") {
			return s[:i+1]
		}
	}
	return s
}

// wordsOf are the words of a name, in lower case: it parts at capitals and at everything that is neither letter nor
// digit, and keeps ASCII alone.
func wordsOf(s string) []string {
	var out []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			out = append(out, strings.ToLower(string(word)))
		}
		word = nil
	}
	runes := []rune(s)
	for i, r := range runes {
		if r >= utf8.RuneSelf || !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			flush()
			continue
		}
		if unicode.IsUpper(r) && i > 0 && beginsWord(runes, i) {
			flush()
		}
		word = append(word, r)
	}
	flush()
	return out
}

// beginsWord: userByID, HTTPServer and getIDs have one seam before their last word.
func beginsWord(runes []rune, i int) bool {
	before := runes[i-1]
	if unicode.IsLower(before) || unicode.IsDigit(before) {
		return true
	}
	next := func(n int) rune {
		if i+n < len(runes) {
			return runes[i+n]
		}
		return 0
	}
	return unicode.IsUpper(before) && unicode.IsLower(next(1)) && !(next(1) == 's' && !unicode.IsLower(next(2)))
}
