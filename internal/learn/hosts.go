package learn

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// network fills none, hosts or full.
func (p *proposing) network() {
	p.out.Wrap.Network = Network{Mode: "none"}
	told, names := p.toldHosts(), map[netip.Addr]string{}
	for _, r := range p.seen.Reached {
		addr := r.To.Addr()
		if _, known := names[addr]; !known {
			names[addr] = p.hostOf(addr, told)
		}
		host := r.To.String()
		switch name := names[addr]; {
		case name == "":
			p.note("No name is known for %s: it stands as an address.", host)
		case name != addr.String():
			host = net.JoinHostPort(name, fmt.Sprint(r.To.Port()))
		}
		p.out.Wrap.Network.Hosts = append(p.out.Wrap.Network.Hosts, host)
		if literal := r.To.String(); inner(addr) && host != literal && names[addr] != "localhost" {
			p.out.Wrap.Network.Hosts = append(p.out.Wrap.Network.Hosts, literal)
			p.note("%s is an address of this network: beside the name, it must stand there itself.", literal)
		}
	}
	slices.Sort(p.out.Wrap.Network.Hosts)
	p.out.Wrap.Network.Hosts = slices.Compact(p.out.Wrap.Network.Hosts)
	for _, to := range p.seen.Datagrams { // a resolver aims one at each address of a name, and sends nothing
		if _, known := names[to.Addr()]; !known && p.asked(to.Addr(), told) == "" {
			p.note("It may send datagrams to %s. With hosts there are none; a command that needs them takes network full.", to)
		}
	}
	if p.seen.Listens {
		p.out.Wrap.Network = Network{Mode: "full"}
		p.note("It waits for connections, which takes network full: then every address is reachable.")
	}
}

// hostOf is the name that led to an address: the address itself when a program was told that, else what a name
// server was asked, what the hosts file says, what a URL among the arguments names. "" when nothing tells.
func (p *proposing) hostOf(addr netip.Addr, told toldHosts) string {
	if slices.Contains(told.words, addr.String()) {
		return addr.String()
	}
	if name := p.asked(addr, told); name != "" {
		return name
	}
	local := p.Hosts[addr]
	for _, name := range local {
		if slices.Contains(told.words, name) {
			return name
		}
	}
	for _, name := range told.urls {
		if slices.ContainsFunc(p.Addresses(name), func(a netip.Addr) bool { return a.Unmap() == addr }) {
			return name
		}
	}
	if len(local) > 0 {
		return local[0]
	}
	return ""
}

// asked is the name that a name server gave this address for. A name that was asked with the suffix of a search list
// is the one that a program was told.
func (p *proposing) asked(addr netip.Addr, told toldHosts) string {
	for _, a := range p.seen.Answers {
		if !slices.Contains(a.At, addr) {
			continue
		}
		for _, word := range told.words {
			if strings.HasPrefix(a.Name, word+".") {
				return word
			}
		}
		return a.Name
	}
	return ""
}

// toldHosts are what arguments name. Only the hosts of URLs are ever looked up: any other word may be a secret, and a
// name server is a stranger.
type toldHosts struct{ words, urls []string }

// maxTold bounds the names of one run.
const maxTold = 256

func (p *proposing) toldHosts() (t toldHosts) {
	for _, prog := range p.seen.Programs {
		for _, word := range prog.Argv[min(1, len(prog.Argv)):] {
			name, isURL := hostWord(word)
			if name == "" || len(t.words) >= maxTold {
				continue
			}
			t.words = append(t.words, name)
			if isURL {
				t.urls = append(t.urls, name)
			}
		}
	}
	return toldHosts{unique(t.words), unique(t.urls)}
}

// hostWord is what may be a host in one argument, a name or an address: that of a URL, of user@host:path, of
// host:port, of name=value, or the word itself.
func hostWord(word string) (name string, isURL bool) {
	if at := strings.Index(word, "://"); at >= 0 {
		u, err := url.Parse(word[strings.LastIndexAny(word[:at], "= ,'\"")+1:])
		if err != nil {
			return "", false
		}
		word, isURL = u.Hostname(), true
	} else {
		word = word[strings.LastIndexByte(word, '=')+1:]
		word = word[strings.LastIndexByte(word, '@')+1:]
		if addr, err := netip.ParseAddrPort(word); err == nil {
			return addr.Addr().Unmap().String(), false
		}
		if _, err := netip.ParseAddr(word); err != nil {
			word, _, _ = strings.Cut(word, ":")
			word, _, _ = strings.Cut(word, "/")
		}
	}
	word = strings.ToLower(strings.TrimSuffix(word, "."))
	if addr, err := netip.ParseAddr(word); err == nil {
		return addr.Unmap().String(), isURL
	}
	if !hostName(word) {
		return "", false
	}
	return word, isURL
}

// hostName says whether a word has the form of a host's name.
func hostName(word string) bool {
	if word == "" || len(word) > 253 || word[0] == '-' || word[0] == '.' {
		return false
	}
	letter := false
	for _, r := range word {
		switch {
		case 'a' <= r && r <= 'z':
			letter = true
		case '0' <= r && r <= '9' || r == '-' || r == '.' || r == '_':
		default:
			return false
		}
	}
	return letter && !strings.Contains(word, "..")
}

// inner says whether an address is none of the internet's, so that a name alone does not open it (§10.2).
func inner(addr netip.Addr) bool {
	return addr.IsLoopback() || addr.IsPrivate() || addr.IsLinkLocalUnicast() || netip.MustParsePrefix("100.64.0.0/10").Contains(addr)
}
