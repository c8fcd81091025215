// Package egress decides what a command with network hosts may reach (§10.2), and speaks for it: it answers its
// questions for names and is its proxy. It runs in the runtime, outside of the command, and opens no door by itself:
// whoever uses it brings the connections of one run, the resolver and the dialer.
//
// One rule for every way out: an address may be reached on a port when that literal stands in the list, or when a
// listed name with that port was resolved to it in this run and it is a public address. A name is resolved once in a
// run, so nothing changes between the check and the use.
//
// Nouns: Host (one entry), List (all of them), Run (the decisions and connections of one run), class (what kind of
// address).
package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// The ports of a command's loopback that belong to the runtime: its answers for names, and its proxy. Nothing of the
// machine is reached there, so no entry may mean them.
const (
	NamePort  = 53
	ProxyPort = 61080
)

// Localhost is the one name that stands for literal addresses: those of the loopback.
const Localhost = "localhost"

// Host is one entry: a name or a literal address, with a port.
type Host struct {
	Name string     // lower case, without the last dot; "" for a literal
	Addr netip.Addr // the literal
	Port uint16
}

// String is the entry's one spelling.
func (h Host) String() string {
	if h.Name != "" {
		return h.Name + ":" + strconv.Itoa(int(h.Port))
	}
	return netip.AddrPortFrom(h.Addr, h.Port).String()
}

// ParseHost reads name:port, address:port or [address]:port. There are no wildcards, no zones and no short forms of
// an address; upper case and one dot at the end of a name mean nothing. What no command could reach is no entry.
func ParseHost(s string) (Host, error) {
	h, err := parseHost(s)
	if err != nil {
		return Host{}, err
	}
	own := h.Name == Localhost || h.Addr.IsLoopback()
	switch {
	case own && (h.Port == NamePort || h.Port == ProxyPort):
		return Host{}, fmt.Errorf("port %d of the loopback is the runtime's own in a run", h.Port)
	case h.Addr.Is6() && h.Addr.IsLinkLocalUnicast():
		return Host{}, errors.New("a link-local IPv6 address needs a zone, and an entry has none")
	}
	return h, nil
}

func parseHost(s string) (Host, error) {
	if strings.Contains(s, "://") {
		return Host{}, errors.New("it is host and port alone, without a scheme")
	}
	at := strings.LastIndexByte(s, ':')
	if at < 0 {
		return Host{}, errors.New("it has no port")
	}
	port, err := parsePort(s[at+1:])
	if err != nil {
		return Host{}, err
	}
	if inner, ok := strings.CutPrefix(s[:at], "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		if !ok || !strings.Contains(inner, ":") {
			return Host{}, errors.New("brackets hold an IPv6 address")
		}
		return literal(inner, port)
	}
	name := foldName(s[:at])
	switch {
	case endsInNumber(name):
		return literal(name, port)
	case !validName(name):
		return Host{}, whyNoName(name)
	}
	return Host{Name: name, Port: port}, nil
}

// whyNoName says what is wrong with a name, as far as it can be told.
func whyNoName(name string) error {
	switch {
	case strings.ContainsFunc(name, func(c rune) bool { return c > 0x7f }):
		return errors.New("an international name stands in its ASCII form, xn--…")
	case strings.Contains(name, "*"):
		return errors.New("there are no wildcards: each name is an entry")
	case strings.ContainsAny(name, "/@"):
		return errors.New("it is host and port alone, without user or path")
	case strings.Contains(name, ":"):
		return errors.New("an IPv6 address stands in brackets, as [2001:4860:4860::8888]:443")
	}
	return errors.New("it holds no name")
}

func parsePort(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || strconv.FormatUint(n, 10) != s {
		return 0, errors.New("its port is no number from 1 to 65535")
	}
	return uint16(n), nil
}

func literal(s string, port uint16) (Host, error) {
	addr, err := netip.ParseAddr(s)
	if err != nil || addr.Zone() != "" {
		return Host{}, errors.New("it holds no address")
	}
	addr = addr.Unmap()
	if c := classOf(addr); c == unspecified || c == multicast {
		return Host{}, fmt.Errorf("an address that is %s is no host", strings.TrimSuffix(string(c), " address"))
	}
	return Host{Addr: addr, Port: port}, nil
}

// foldName makes names comparable.
func foldName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// validName takes labels of letters, digits, hyphens and underscores.
func validName(name string) bool {
	if len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, c := range []byte(label) {
			if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') {
				return false
			}
		}
	}
	return true
}

// endsInNumber tells addresses and what programs take for one, such as 127.1 and 0x7f000001, from names.
func endsInNumber(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// List is what a run may reach.
type List struct {
	names    map[string]map[uint16]bool
	literals map[netip.AddrPort]bool
}

// Parse reads the entries; the first that is none fails the whole.
func Parse(entries []string) (*List, error) {
	l := &List{names: map[string]map[uint16]bool{}, literals: map[netip.AddrPort]bool{}}
	for _, entry := range entries {
		h, err := ParseHost(entry)
		if err != nil {
			return nil, fmt.Errorf("%q is no host with a port: %w", entry, err)
		}
		if h.Name == "" {
			l.literals[netip.AddrPortFrom(h.Addr, h.Port)] = true
			continue
		}
		if l.names[h.Name] == nil {
			l.names[h.Name] = map[uint16]bool{}
		}
		l.names[h.Name][h.Port] = true
		if h.Name == Localhost {
			for _, addr := range loopbacks() {
				l.literals[netip.AddrPortFrom(addr, h.Port)] = true
			}
		}
	}
	return l, nil
}

// loopbacks are what localhost means, whatever a resolver would say.
func loopbacks() []netip.Addr {
	return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
}

// usable says whether a name that has the port may lead to the address: public, or listed literally.
func (l *List) usable(addr netip.Addr, port uint16) bool {
	return classOf(addr) == public || l.literals[netip.AddrPortFrom(addr, port)]
}

// forName keeps the addresses that are usable for one port of the name at least.
func (l *List) forName(name string, addrs []netip.Addr) []netip.Addr {
	var kept []netip.Addr
	for _, addr := range addrs {
		for port := range l.names[name] {
			if l.usable(addr, port) {
				kept = append(kept, addr)
				break
			}
		}
	}
	return kept
}
