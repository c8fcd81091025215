package adapter

import "unicode/utf8"

// Decode is b as text, each byte that is not UTF-8 replaced by U+FFFD and counted.
func Decode(b []byte) (string, int) {
	if utf8.Valid(b) {
		return string(b), 0
	}
	replaced := 0
	out := make([]byte, 0, len(b)+len(b)/8)
	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 {
			replaced++
		}
		out = utf8.AppendRune(out, r)
		b = b[size:]
	}
	return string(out), replaced
}
