package pipeline

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"hcpx/internal/order"
)

// form is one way to write a secret (§8.4): a row of units, each with its spellings. Encoders differ in which characters
// they escape and in the case of their digits; a form knows them all, so that none needs a list of its own.
type form struct {
	units [][][]byte
	lines bool // broken lines between units count as nothing, as in base64
}

// formsOf are a secret as it is, with any of its characters escaped for JSON or a URL, and in base64 at each of the
// three places that it may take in a longer text.
func formsOf(secret string) []form {
	forms := []form{exact(secret), escaped(secret)}
	for shift := range 3 {
		forms = append(forms, coded(secret, shift))
	}
	return forms
}

func exact(secret string) form {
	var f form
	for i := range len(secret) {
		f.units = append(f.units, [][]byte{{secret[i]}})
	}
	return f
}

func escaped(secret string) form {
	var f form
	for rest := secret; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		raw := rest[:size]
		rest = rest[size:]
		f.units = append(f.units, spellings(r, raw, r != utf8.RuneError || size > 1))
	}
	return f
}

// spellings are a character as it stands, in JSON and in a URL.
func spellings(r rune, raw string, valid bool) [][]byte {
	upper, lower := "", ""
	for _, b := range []byte(raw) {
		upper += fmt.Sprintf("%%%02X", b)
		lower += fmt.Sprintf("%%%02x", b)
	}
	all := []string{raw, upper, lower}
	if valid {
		var units string
		for _, u := range utf16.Encode([]rune{r}) {
			units += fmt.Sprintf(`\u%04x`, u)
		}
		all = append(all, units, strings.ReplaceAll(strings.ToUpper(units), `\U`, `\u`))
	}
	switch r {
	case '"', '\\', '/':
		all = append(all, `\`+raw)
	case ' ':
		all = append(all, "+")
	}
	return each(all)
}

func each(all []string) [][]byte {
	order.By(all, func(a, b string) int { return len(b) - len(a) }) // the longest first
	out := make([][]byte, 0, len(all))
	for _, s := range slices.Compact(all) {
		out = append(out, []byte(s))
	}
	return out
}

// coded is the part of a base64 text that holds bits of the secret, when it begins shift bytes into a group of three. The
// characters at its edges hold bits of what stands around it too, so they may be any that have the secret's.
func coded(secret string, shift int) form {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	bytes := append(make([]byte, shift), secret...)
	text := base64.RawStdEncoding.EncodeToString(bytes)
	f := form{lines: true}
	for i := 8 * shift / 6; i < len(text); i++ {
		own := 0 // the bits of this character that are the secret's
		for bit := range 6 {
			if at := 6*i + bit; at >= 8*shift && at < 8*len(bytes) {
				own |= 1 << (5 - bit)
			}
		}
		var unit []string
		value := strings.IndexByte(alphabet, text[i])
		for other := range len(alphabet) {
			if other&own == value&own {
				unit = append(unit, digit(alphabet[other])...)
			}
		}
		f.units = append(f.units, each(unit))
	}
	return f
}

// digit is one character of base64 in all that it is written as.
func digit(c byte) []string {
	switch c {
	case '+':
		return []string{"+", "-", "%2B", "%2b", `\u002b`, `\u002B`}
	case '/':
		return []string{"/", "_", "%2F", "%2f", `\/`, `\u002f`, `\u002F`}
	}
	return []string{string(c)}
}

// breaks are what may stand between two units of a form with lines.
func breaks() [][]byte {
	return [][]byte{[]byte("\n"), []byte("\r"), []byte(`\n`), []byte(`\r`), []byte("%0A"), []byte("%0a"), []byte("%0D"), []byte("%0d")}
}

// pairs marks the two bytes that a text of the form may begin with.
func (f form) pairs(all *[1 << 16]bool) {
	for _, s := range first(f) {
		if len(s) > 1 {
			all[int(s[0])<<8|int(s[1])] = true
			continue
		}
		if len(f.units) == 1 {
			for next := range 256 {
				all[int(s[0])<<8|next] = true
			}
			continue
		}
		next := f.units[1]
		if f.lines {
			next = append(breaks(), next...)
		}
		for _, t := range next {
			all[int(s[0])<<8|int(t[0])] = true
		}
	}
}

// match reads units from the start of text: how many fit, where the last ended, and whether the text ended before the
// form did.
func (f form) match(units [][][]byte, text []byte) (fit, end int, short bool) {
	for i, unit := range units {
		at := end
		if f.lines && i > 0 {
			at += skipBreaks(text[at:])
		}
		n, cut := spelled(unit, text[at:])
		if n == 0 {
			return fit, end, cut
		}
		fit, end = fit+1, at+n
	}
	if f.lines {
		end += skip(text[end:], [][]byte{[]byte("="), []byte("%3D"), []byte("%3d"), []byte(`\u003d`), []byte(`\u003D`)})
	}
	return fit, end, false
}

func skipBreaks(text []byte) int {
	if len(text) == 0 || text[0] != '\n' && text[0] != '\r' && text[0] != '\\' && text[0] != '%' {
		return 0
	}
	return skip(text, breaks())
}

// skip is the length of all that text begins with of what is skipped.
func skip(text []byte, these [][]byte) int {
	at := 0
	for again := true; again; {
		again = false
		for _, b := range these {
			if bytes.HasPrefix(text[at:], b) {
				at, again = at+len(b), true
			}
		}
	}
	return at
}

// spelled is the length of the spelling that text begins with, 0 for none; cut says that text ends within one.
func spelled(unit [][]byte, text []byte) (n int, cut bool) {
	for _, s := range unit {
		if bytes.HasPrefix(text, s) {
			return len(s), false
		}
		cut = cut || len(text) < len(s) && bytes.HasPrefix(s, text)
	}
	return 0, cut
}
