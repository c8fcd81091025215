package egress

import (
	"encoding/binary"
	"net/netip"
)

// Public says whether a listed name may lead to an address that is not listed itself (§10.2).
func Public(addr netip.Addr) bool { return classOf(addr) == public }

// ValidName says whether a list takes a word as the name of a host: lower case, without the last dot (§10.2).
func ValidName(name string) bool { return name != "" && !endsInNumber(name) && validName(name) }

// ReadAnswer reads a name server's answer: the name that was asked, in lower case, and every address that stands in
// it, whatever alias led there. ok is false for what is no such answer.
func ReadAnswer(msg []byte) (name string, at []netip.Addr, ok bool) {
	if len(msg) < headerSize || binary.BigEndian.Uint16(msg[2:])&flagResponse == 0 {
		return "", nil, false
	}
	q, err := readQuestion(msg)
	if err != nil || q.name == "" || q.odd {
		return "", nil, false
	}
	next := headerSize + len(q.raw)
	for range binary.BigEndian.Uint16(msg[6:]) {
		next = skipName(msg, next)
		if next < 0 || next+10 > len(msg) {
			break
		}
		kind, size := binary.BigEndian.Uint16(msg[next:]), int(binary.BigEndian.Uint16(msg[next+8:]))
		next += 10
		if next+size > len(msg) {
			break
		}
		if addr, fits := netip.AddrFromSlice(msg[next : next+size]); fits && (kind == typeA && size == 4 || kind == typeAAAA && size == 16) {
			at = append(at, addr.Unmap())
		}
		next += size
	}
	return foldName(q.name), at, len(at) > 0
}

// skipName is where a name ends, which a pointer does in place; -1 when it is none.
func skipName(msg []byte, at int) int {
	for at < len(msg) {
		n := int(msg[at])
		switch {
		case n == 0:
			return at + 1
		case n >= labelPointer:
			return at + 2
		case n > 63:
			return -1
		}
		at += 1 + n
	}
	return -1
}
