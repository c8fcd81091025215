// Package procs is what this process asks of others (§10.2): what /proc says of them, their memory, and the calls
// that a seccomp filter hands over. It decides nothing and changes nothing. The sandbox holds its commands by it,
// and learn watches with it. Linux only; elsewhere it is empty.
//
// Nouns: Notice (a call that waits for an answer), Reply (the answer).
package procs
