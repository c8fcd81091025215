package grant

import "strings"

// Glob matches s against a pattern whose only wildcard is *, for any run of bytes, "/" among them
// (§9.6). There is no escape: a name with a literal * can't be told from the wildcard.
func Glob(pattern, s string) bool {
	if misses(pattern, s) {
		return false
	}
	star := strings.IndexByte(pattern, '*')
	if star < 0 {
		return pattern == s
	}
	if !strings.HasPrefix(s, pattern[:star]) {
		return false
	}
	if star == len(pattern)-1 {
		return true
	}
	return globTail(pattern[star:], s[star:])
}

// misses settles most misses by length and last byte, without a call or a scan: it stands in the one
// loop over all grants.
func misses(pattern, s string) bool {
	n := len(pattern)
	return n > 0 && pattern[n-1] != '*' && (len(s) == 0 || s[len(s)-1] != pattern[n-1])
}

// globTail matches a pattern that begins with *: on a miss the last star takes one byte more.
func globTail(pattern, s string) bool {
	p, i, star, mark := 0, 0, -1, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && pattern[p] == s[i]:
			p, i = p+1, i+1
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// oneFits says whether s fits one of the patterns; an empty list is ["*"] (§9.6).
func oneFits(patterns []string, s string) bool {
	if len(patterns) == 0 {
		return true
	}
	for _, p := range patterns {
		if !misses(p, s) && Glob(p, s) {
			return true
		}
	}
	return false
}

// all says whether the list fits everything.
func all(patterns []string) bool {
	if len(patterns) == 0 {
		return true
	}
	for _, p := range patterns {
		if p != "" && strings.Trim(p, "*") == "" {
			return true
		}
	}
	return false
}
