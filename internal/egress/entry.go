package egress

import (
	"net/netip"
	"strings"
)

// noAnswer ends the line of a connection that was tried.
const noAnswer = "no answer"

// Entry is what an operator can list so that the next run reaches what this line of a report refused (§10.2), in the
// one spelling that ParseHost takes; "" where no entry does. A question for a name tells no port, which is PORT then.
func Entry(refusal string) string {
	if name, asked := strings.CutPrefix(refusal, "name "); asked {
		if h, err := ParseHost(name + ":1"); err != nil || h.Name != name {
			return ""
		}
		return name + ":PORT"
	}
	rest, connect := strings.CutPrefix(refusal, "connect ")
	to, why, told := strings.Cut(rest, ": ")
	if !connect || !told || why == noAnswer {
		return ""
	}
	h, err := ParseHost(to)
	if err != nil || h.String() != to {
		return ""
	}
	// Of a listed name it is the address that is not open.
	if addr, err := netip.ParseAddr(why[strings.LastIndexByte(why, ' ')+1:]); err == nil {
		if h, err = ParseHost(Host{Addr: addr, Port: h.Port}.String()); err != nil {
			return ""
		}
	}
	return h.String()
}
