package egress

import "net/netip"

// Never says whether the runtime itself sends no credential to an address, whatever name led there: those of the link,
// of machines' metadata, and those that are no single host (§10.2). Private ones and the loopback are not among them.
func Never(addr netip.Addr) bool {
	switch classOf(addr) {
	case public, private, uniqueLocal, shared, loopback:
		return false
	}
	return true
}
