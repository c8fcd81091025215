package learn

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"hcpx/internal/egress"
)

// network fills none, hosts or full.
func (p *proposing) network() {
	p.out.Wrap.Network = Network{Mode: "none"}
	if p.seen.Listens {
		p.out.Wrap.Network = Network{Mode: "full"}
		p.note("It waits for connections, which takes network full: then every address is reachable.")
		return
	}
	told, names := p.toldHosts(), map[netip.Addr][]string{}
	for _, r := range p.seen.Reached {
		addr := r.To.Addr()
		if _, known := names[addr]; !known {
			names[addr] = p.hostsOf(addr, told)
		}
		p.reached(r.To, names[addr])
	}
	slices.Sort(p.out.Wrap.Network.Hosts)
	p.out.Wrap.Network.Hosts = slices.Compact(p.out.Wrap.Network.Hosts)
	for _, to := range p.seen.Datagrams { // a resolver aims one at each address of a name, and sends nothing
		if _, known := names[to.Addr()]; !known && len(p.asked(to.Addr(), told)) == 0 {
			p.note("It may send datagrams to %s. With hosts there are none; a command that needs them takes network full.", to)
		}
	}
}

// reached proposes one end of a connection by the names that led there, by itself where there is none, and by both where
// a name alone does not open it.
func (p *proposing) reached(to netip.AddrPort, names []string) {
	literal := to.String()
	if _, err := egress.ParseHost(literal); err != nil {
		p.note("It connects to %s, which no list of hosts takes: %v.", literal, err)
		return
	}
	closed := false
	for _, name := range names {
		p.out.Wrap.Network.Hosts = append(p.out.Wrap.Network.Hosts, net.JoinHostPort(name, strconv.Itoa(int(to.Port()))))
		closed = closed || name != to.Addr().String() && !suffices(name, to.Addr())
	}
	switch {
	case len(names) == 0:
		p.out.Wrap.Network.Hosts = append(p.out.Wrap.Network.Hosts, literal)
		p.note("No name is known for %s: it stands as an address.", literal)
	case closed:
		p.out.Wrap.Network.Hosts = append(p.out.Wrap.Network.Hosts, literal)
		p.note("%s is an address of this network: beside the name, it must stand there itself.", literal)
	}
	if len(names) > 1 {
		p.note("%s has several names (%s), and which of them is meant is not known: remove those that are not.", to.Addr(), strings.Join(names, ", "))
	}
}

// suffices says whether a name that is listed opens the address, without the address itself (§10.2).
func suffices(name string, addr netip.Addr) bool {
	loopback := addr == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || addr == netip.IPv6Loopback()
	return egress.Public(addr) || name == egress.Localhost && loopback
}

// hostsOf are the names that may have led to an address: the address itself when a program was told that, else those
// that a name server was asked, those of the hosts file that a program was told, those that a URL among the arguments
// names, and then every name of the hosts file. None when nothing tells.
func (p *proposing) hostsOf(addr netip.Addr, told toldHosts) []string {
	if slices.Contains(told.words, addr.String()) {
		return []string{addr.String()}
	}
	if names := p.asked(addr, told); len(names) > 0 {
		return names
	}
	var local, meant []string
	for _, name := range p.Hosts[addr] {
		if name = strings.ToLower(strings.TrimSuffix(name, ".")); egress.ValidName(name) {
			local = append(local, name)
		}
	}
	for _, name := range told.words {
		if slices.Contains(local, name) {
			meant = append(meant, name)
		}
	}
	for _, name := range told.urls {
		if len(meant) == 0 && slices.ContainsFunc(p.Addresses(name), func(a netip.Addr) bool { return a.Unmap() == addr }) {
			return []string{name}
		}
	}
	if len(meant) > 0 {
		return unique(meant)
	}
	return unique(local)
}

// asked are the names that a name server gave this address for. A name that was asked with the suffix of a search list
// is the one that a program was told.
func (p *proposing) asked(addr netip.Addr, told toldHosts) (names []string) {
	for _, a := range p.seen.Answers {
		if !slices.Contains(a.At, addr) {
			continue
		}
		name := a.Name
		for _, word := range told.words {
			if strings.HasPrefix(a.Name, word+".") {
				name = word
				break
			}
		}
		if egress.ValidName(name) {
			names = append(names, name)
		}
	}
	return unique(names)
}

// toldHosts are what arguments name. Only the hosts of URLs are ever looked up: any other word may be a secret, and a
// name server is a stranger.
type toldHosts struct{ words, urls []string }

// maxTold bounds the names of one run.
const maxTold = 256

func (p *proposing) toldHosts() (t toldHosts) {
	for _, prog := range p.seen.Programs {
		for _, word := range prog.Argv[min(1, len(prog.Argv)):] {
			if len(t.words) >= maxTold {
				break
			}
			urls := urlHosts(word)
			t.urls = append(t.urls, urls...)
			t.words = append(t.words, urls...)
			if name := hostWord(word); name != "" && len(urls) == 0 {
				t.words = append(t.words, name)
			}
		}
	}
	return toldHosts{unique(t.words), unique(t.urls)}
}

// urlHosts are the hosts of the URLs in one argument, which may be a whole script. What may be a password is none.
func urlHosts(word string) (names []string) {
	for {
		_, rest, found := strings.Cut(word, "://")
		if !found {
			return names
		}
		word = rest
		end := strings.IndexAny(rest, "/?# \t\r\n\"<>\\^`{|}")
		if end < 0 {
			end = len(rest)
		}
		user, host := "", rest[:end]
		if at := strings.LastIndexByte(host, '@'); at >= 0 {
			user, host = host[:at], host[at+1:]
		}
		if strings.ContainsAny(user, "'(),;") {
			continue // it may be the end of a URL, and a part of a password
		}
		if inner, six := strings.CutPrefix(host, "["); six {
			host, _, _ = strings.Cut(inner, "]")
		} else if end := strings.IndexFunc(host, notOfHosts); end >= 0 {
			host = host[:end]
		}
		if name := hostOrAddress(host); name != "" {
			names = append(names, name)
		}
	}
}

// notOfHosts says that a character stands in no host.
func notOfHosts(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.", r)
}

// hostWord is what may be a host in one argument that holds no URL, a name or an address: that of user@host:path, of
// host:port, of name=value, or the word itself.
func hostWord(word string) string {
	word = word[strings.LastIndexByte(word, '=')+1:]
	word = word[strings.LastIndexByte(word, '@')+1:]
	if addr, err := netip.ParseAddrPort(word); err == nil {
		return addr.Addr().Unmap().String()
	}
	if _, err := netip.ParseAddr(word); err != nil {
		word, _, _ = strings.Cut(word, ":")
		word, _, _ = strings.Cut(word, "/")
	}
	return hostOrAddress(word)
}

// hostOrAddress is a host in its one spelling, "" for what is none.
func hostOrAddress(word string) string {
	word = strings.ToLower(strings.TrimSuffix(word, "."))
	if addr, err := netip.ParseAddr(word); err == nil {
		return addr.Unmap().String()
	}
	if !egress.ValidName(word) {
		return ""
	}
	return word
}
