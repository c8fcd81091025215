package protocol

import (
	"slices"
	"strings"
)

// Clause takes the full stop off a text that becomes part of a sentence.
func Clause(s string) string { return strings.TrimRight(s, ". \n") }

// Word writes s as one word of a command line, so that a hint can be typed as it stands: quoted when a
// shell would read it otherwise.
func Word(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,@%+"
	if s != "" && s[0] != '=' && !strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune(plain, r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Words are the operands of a command line, which stand at its end: behind "--" where one of them would be read as an
// option. Whoever chose the names of a hint must not choose what it does.
func Words(operands ...string) string {
	words := make([]string, 0, len(operands)+1)
	if slices.ContainsFunc(operands, func(s string) bool { return strings.HasPrefix(s, "-") }) {
		words = append(words, "--")
	}
	for _, s := range operands {
		words = append(words, Word(s))
	}
	return strings.Join(words, " ")
}

// DefaultSession is the session of a caller who names none (§9.3).
const DefaultSession = "default"

// InSession is a command line that acts in a session, as it is typed where none is named.
func InSession(command, session string) string {
	if session == "" || session == DefaultSession {
		return command
	}
	return command + " --session " + Word(session)
}
