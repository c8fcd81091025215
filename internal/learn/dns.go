package learn

import (
	"encoding/binary"
	"net/netip"
	"strings"
)

// The pieces of a DNS message that matter here.
const (
	dnsHeader = 12
	dnsA      = 1
	dnsAAAA   = 28
)

// answer reads a name server's answer: the name that was asked, and every address that stands in it, whatever alias
// led there. ok is false for what is no such answer.
func answer(msg []byte) (a Answer, ok bool) {
	if len(msg) < dnsHeader || msg[2]&0x80 == 0 || binary.BigEndian.Uint16(msg[4:]) != 1 {
		return a, false
	}
	name, at := dnsName(msg, dnsHeader)
	if at < 0 || at+4 > len(msg) || name == "" {
		return a, false
	}
	a.Name = name
	at += 4
	for range binary.BigEndian.Uint16(msg[6:]) {
		if _, at = dnsName(msg, at); at < 0 || at+10 > len(msg) {
			return a, len(a.At) > 0
		}
		kind, size := binary.BigEndian.Uint16(msg[at:]), int(binary.BigEndian.Uint16(msg[at+8:]))
		at += 10
		if at+size > len(msg) {
			return a, len(a.At) > 0
		}
		if addr, fits := netip.AddrFromSlice(msg[at : at+size]); fits && (kind == dnsA && size == 4 || kind == dnsAAAA && size == 16) {
			a.At = append(a.At, addr.Unmap())
		}
		at += size
	}
	return a, len(a.At) > 0
}

// dnsName reads a name and says where it ends; -1 when it is none. A pointer ends it in place, and is followed
// backwards only, so that no message makes a circle.
func dnsName(msg []byte, at int) (name string, end int) {
	var labels []string
	end = -1
	for limit := at; at < len(msg); {
		n := int(msg[at])
		switch {
		case n == 0:
			if end < 0 {
				end = at + 1
			}
			return strings.ToLower(strings.Join(labels, ".")), end
		case n&0xc0 == 0xc0:
			if at+1 >= len(msg) {
				return "", -1
			}
			if end < 0 {
				end = at + 2
			}
			to := (n&0x3f)<<8 | int(msg[at+1])
			if to >= limit {
				return "", -1
			}
			at, limit = to, to
		case n&0xc0 != 0 || at+1+n > len(msg):
			return "", -1
		default:
			labels = append(labels, string(msg[at+1:at+1+n]))
			if at += 1 + n; len(labels) > 128 {
				return "", -1
			}
		}
	}
	return "", -1
}
