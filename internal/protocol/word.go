package protocol

import "strings"

// Clause takes the full stop off a text that becomes part of a sentence.
func Clause(s string) string { return strings.TrimRight(s, ". \n") }

// Word writes s as one word of a command line, so that a hint can be typed as it stands: quoted when a
// shell would read it otherwise.
func Word(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,@%+"
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune(plain, r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
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
