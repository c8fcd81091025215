package egress

import (
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// What the answerer knows of DNS messages (RFC 1035, 3596).
const (
	headerSize = 12
	maxQuery   = 4096
	typeA      = 1
	typeAAAA   = 28
	classIN    = 1
	// ttl is longer than any run: nothing changes within one.
	ttl = 3600

	flagResponse  = 0x8000
	flagOpcode    = 0x7800
	flagRecursion = 0x0100 // wanted
	flagAvailable = 0x0080

	codeFormat  = 1
	codeServer  = 2
	codeNoName  = 3
	codeUnknown = 4
	codeRefused = 5

	namePointer  = 0xc00c // to the question, which follows the header
	labelPointer = 0xc0
)

// question is the one question of a query.
type question struct {
	name  string // as asked, without the last dot
	kind  uint16
	class uint16
	odd   bool   // a dot stands within a label: no host has such a name
	raw   []byte // as it stands in the message
}

// errNoQuery is a message that no answer fits.
var errNoQuery = errors.New("no query")

// readQuestion reads header and question. What follows them, such as the record of EDNS, changes no answer.
func readQuestion(msg []byte) (question, error) {
	if binary.BigEndian.Uint16(msg[4:]) != 1 {
		return question{}, errNoQuery
	}
	var labels []string
	at, size := headerSize, 0
	for {
		if at >= len(msg) || msg[at] >= labelPointer {
			return question{}, errNoQuery
		}
		n := int(msg[at])
		if n == 0 {
			break
		}
		if n > 63 || at+1+n >= len(msg) || size+n+1 > 254 {
			return question{}, errNoQuery
		}
		labels = append(labels, string(msg[at+1:at+1+n]))
		at, size = at+1+n, size+n+1
	}
	if at+5 > len(msg) {
		return question{}, errNoQuery
	}
	return question{
		name: strings.Join(labels, "."), kind: binary.BigEndian.Uint16(msg[at+1:]), class: binary.BigEndian.Uint16(msg[at+3:]),
		odd: slices.ContainsFunc(labels, func(l string) bool { return strings.Contains(l, ".") }), raw: msg[headerSize : at+5],
	}, nil
}

// noQuestion is how the report calls a message to the name server that asks for no name.
const noQuestion = "a message to the name server that is no question"

// Answer answers one DNS message of the command (§10.2): listed names with what this run resolved for them, every
// other name with the word that there is none. Nothing but a listed name is ever asked outside. nil is silence.
func (r *Run) Answer(msg []byte) []byte {
	if len(msg) < headerSize || len(msg) > maxQuery {
		return nil
	}
	flags := binary.BigEndian.Uint16(msg[2:])
	if flags&flagResponse != 0 {
		return nil
	}
	head := flagResponse | flags&(flagOpcode|flagRecursion) | flagAvailable
	if flags&flagOpcode != 0 {
		r.deny(noQuestion)
		return reply(msg, head|codeUnknown, nil, nil)
	}
	q, err := readQuestion(msg)
	if err != nil {
		r.deny(noQuestion)
		return reply(msg, head|codeFormat, nil, nil)
	}
	name := foldName(q.name)
	look, listed := r.names[name]
	switch asked := "name " + cmp.Or(printable(name), "."); {
	case q.odd:
		r.deny(asked + ": a dot within a label")
		return reply(msg, head|codeRefused, q.raw, nil)
	case q.class != classIN:
		r.deny(asked + ": not asked for the internet's class")
		return reply(msg, head|codeRefused, q.raw, nil)
	case !listed:
		r.deny(asked)
		return reply(msg, head|codeNoName, q.raw, nil)
	}
	switch got := look(); {
	case got.failed:
		return reply(msg, head|codeServer, q.raw, nil)
	case len(got.addrs) == 0:
		return reply(msg, head|codeNoName, q.raw, nil)
	default:
		return reply(msg, head, q.raw, records(q.kind, got.addrs))
	}
}

// records are the addresses of the asked kind; other kinds have none.
func records(kind uint16, addrs []netip.Addr) [][]byte {
	var all [][]byte
	for _, addr := range addrs {
		if addr.Is4() && kind == typeA || addr.Is6() && kind == typeAAAA {
			all = append(all, addr.AsSlice())
		}
	}
	return all
}

func reply(query []byte, flags uint16, question []byte, addrs [][]byte) []byte {
	out := append(make([]byte, 0, 512), query[:2]...)
	word := func(n uint16) { out = binary.BigEndian.AppendUint16(out, n) }
	word(flags)
	word(uint16(min(len(question), 1)))
	word(uint16(len(addrs)))
	word(0)
	word(0)
	out = append(out, question...)
	for _, addr := range addrs {
		word(namePointer)
		word(map[int]uint16{4: typeA, 16: typeAAAA}[len(addr)])
		word(classIN)
		out = binary.BigEndian.AppendUint32(out, ttl)
		word(uint16(len(addr)))
		out = append(out, addr...)
	}
	return out
}

// Datagrams answers queries on a connection that keeps messages apart.
func Datagrams(r *Run, c net.Conn) {
	buf := make([]byte, maxQuery+1)
	for {
		n, err := c.Read(buf)
		if err != nil || n == 0 {
			return
		}
		if answer := r.Answer(buf[:n]); answer != nil {
			if _, err := c.Write(answer); err != nil {
				return
			}
		}
	}
}

// Messages answers queries on a stream, each with its length before it (RFC 7766).
func Messages(r *Run, c net.Conn) {
	buf := make([]byte, 2+maxQuery)
	for {
		if _, err := io.ReadFull(c, buf[:2]); err != nil {
			return
		}
		n := int(binary.BigEndian.Uint16(buf))
		if n < headerSize || n > maxQuery {
			return
		}
		if _, err := io.ReadFull(c, buf[:n]); err != nil {
			return
		}
		answer := r.Answer(buf[:n])
		if answer == nil {
			return
		}
		framed := binary.BigEndian.AppendUint16(make([]byte, 0, 2+len(answer)), uint16(len(answer)))
		if _, err := c.Write(append(framed, answer...)); err != nil {
			return
		}
	}
}

// printable is a name of the command's making for a report: what is no part of a host name is written as its number.
func printable(name string) string {
	const most = 100
	var b strings.Builder
	for _, c := range []byte(name) {
		if b.Len() > most {
			return b.String() + "…"
		}
		if c > ' ' && c < 0x7f && c != '\\' {
			b.WriteByte(c)
			continue
		}
		b.WriteString("\\" + strconv.Itoa(int(c)))
	}
	return b.String()
}
