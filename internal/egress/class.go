package egress

import "net/netip"

// class is a kind of address, in the words of a refusal. Only public ones may stand behind a name; every other has to
// be listed literally (§10.2).
type class string

const (
	public      class = "public address"
	loopback    class = "loopback address"
	linkLocal   class = "link-local address"
	private     class = "private address"
	uniqueLocal class = "unique local address"
	shared      class = "shared address"
	metadata    class = "metadata address"
	multicast   class = "multicast address"
	unspecified class = "unspecified address"
	reserved    class = "reserved address"
)

// block is a range of addresses and what it is.
type block struct {
	prefix netip.Prefix
	class  class
}

func v4(a, b, c, d byte, bits int, is class) block {
	return block{netip.PrefixFrom(netip.AddrFrom4([4]byte{a, b, c, d}), bits), is}
}

// v6 is a block by the first two groups.
func v6(a, b uint16, bits int, is class) block {
	addr := netip.AddrFrom16([16]byte{byte(a >> 8), byte(a), byte(b >> 8), byte(b)})
	return block{netip.PrefixFrom(addr, bits), is}
}

// blocks4 are the special ranges of IPv4; the first that holds the address counts.
func blocks4() []block {
	return []block{
		v4(169, 254, 169, 254, 32, metadata), v4(169, 254, 170, 2, 32, metadata), v4(100, 100, 100, 200, 32, metadata),
		v4(168, 63, 129, 16, 32, metadata), v4(192, 0, 0, 192, 32, metadata),
		v4(0, 0, 0, 0, 32, unspecified), v4(0, 0, 0, 0, 8, reserved), v4(10, 0, 0, 0, 8, private), v4(100, 64, 0, 0, 10, shared),
		v4(127, 0, 0, 0, 8, loopback), v4(169, 254, 0, 0, 16, linkLocal), v4(172, 16, 0, 0, 12, private), v4(192, 0, 0, 0, 24, reserved),
		v4(192, 0, 2, 0, 24, reserved), v4(192, 88, 99, 0, 24, reserved), v4(192, 168, 0, 0, 16, private), v4(198, 18, 0, 0, 15, reserved),
		v4(198, 51, 100, 0, 24, reserved), v4(203, 0, 113, 0, 24, reserved), v4(224, 0, 0, 0, 4, multicast), v4(240, 0, 0, 0, 4, reserved),
	}
}

// blocks6 are those of IPv6. Global unicast is 2000::/3; whatever lies outside of it is reserved.
func blocks6() []block {
	return []block{
		v6(0xfe80, 0, 10, linkLocal), v6(0xfc00, 0, 7, uniqueLocal), v6(0xff00, 0, 8, multicast),
		v6(0x2001, 0, 23, reserved), v6(0x2001, 0x0db8, 32, reserved), v6(0x3fff, 0, 20, reserved), v6(0x2000, 0, 3, public),
	}
}

// classOf sorts an address. One that carries an IPv4 address is what that one is.
func classOf(addr netip.Addr) class {
	addr = addr.Unmap()
	if !addr.IsValid() {
		return reserved
	}
	if addr.Is4() {
		return inBlocks(addr, blocks4(), public)
	}
	raw := addr.As16()
	switch {
	case addr == netip.IPv6Unspecified():
		return unspecified
	case addr == netip.IPv6Loopback():
		return loopback
	case addr.WithZone("") == netip.AddrFrom16([16]byte{0: 0xfd, 2: 0x0e, 3: 0xc2, 14: 2, 15: 0x54}):
		return metadata // fd00:ec2::254
	case v6(0x2002, 0, 16, public).prefix.Contains(addr):
		return classOf(netip.AddrFrom4([4]byte(raw[2:6])))
	case netip.PrefixFrom(netip.AddrFrom16([16]byte{1: 0x64, 2: 0xff, 3: 0x9b}), 96).Contains(addr):
		return classOf(netip.AddrFrom4([4]byte(raw[12:16])))
	}
	return inBlocks(addr.WithZone(""), blocks6(), reserved)
}

func inBlocks(addr netip.Addr, blocks []block, otherwise class) class {
	for _, b := range blocks {
		if b.prefix.Contains(addr) {
			return b.class
		}
	}
	return otherwise
}
