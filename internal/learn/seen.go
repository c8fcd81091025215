// Package learn watches one trusted run of a program and proposes what a pack that wraps it must declare (§10.2):
// uses, reads, hosts, and whether it writes. It confines nothing. The program runs with all rights of its caller; a
// seccomp filter only tells of its calls, and each of them goes on. So what it sees is for a person to judge, and
// no program that hides from it is caught: a path may be another by the time that the kernel reads it.
//
// Nouns: Trial (the run to be watched), Seen (what happened in it), Proposal (what a pack would need). stage_linux.go
// is the start, by this program started once more; watch_linux.go and call_linux.go are the watching; propose.go,
// reads.go, programs.go and hosts.go make the proposal and start nothing.
package learn

import (
	"io"
	"net/netip"
)

// Trial is a run to be watched.
type Trial struct {
	Path  string   // of the program, absolute
	Argv  []string // with argv[0]
	Env   []string
	Dir   string // absolute
	In    io.Reader
	Out   io.Writer       // of its output and its errors alike
	Ready <-chan struct{} // closed when a signal would be heard; nil: at once
}

// Seen is what a watched run did, each thing once, in the order of its first time.
type Seen struct {
	Programs  []Program
	Files     []File
	Reached   []Reached
	Answers   []Answer // of name servers
	Sockets   []string // paths of sockets of this machine that it connected to
	Listens   bool
	Datagrams []netip.AddrPort // what a datagram socket was aimed at, name servers apart
	Unread    int              // calls whose arguments could not be read
	Left      int              // processes that were left over and were ended
	Exit      int              // -1 when a signal ended it
	Signal    string
}

// Program is an executable that was started.
type Program struct {
	Path string   // as it was named, absolute
	Real string   // where its links lead
	Head string   // the first line of a script, "" for what is none
	Argv []string // as far as it could be read
}

// File is a file or directory that was opened, made, renamed or removed.
type File struct {
	Path string // as it was named, absolute
	Real string // where its links lead
	Dir  bool
	Read bool // it was there and was opened to be read
	// Write says that it was written, made, renamed or removed; Made, that it was not there before; Gone, that it is
	// not there any more.
	Write, Made, Gone bool
	// Bare says that all that was written is a directory made or removed, with nothing in it.
	Bare bool
}

// Reached is a stream connection that was begun.
type Reached struct{ To netip.AddrPort }

// Answer is what a name server said of a name.
type Answer struct {
	Name string
	At   []netip.Addr
}
