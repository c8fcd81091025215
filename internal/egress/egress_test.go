package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
)

// §10.2: one grammar for an entry, and one spelling of each.
func Test_10_2_entries(t *testing.T) {
	for entry, want := range map[string]string{
		"api.example.org:443":             "api.example.org:443",
		"API.Example.ORG.:443":            "api.example.org:443",
		"_x.example:1":                    "_x.example:1",
		"db:5432":                         "db:5432",
		"127.0.0.1:80":                    "127.0.0.1:80",
		"[::1]:80":                        "[::1]:80",
		"[0:0::0:1]:80":                   "[::1]:80",
		"[::ffff:10.0.0.1]:80":            "10.0.0.1:80",
		"localhost:65535":                 "localhost:65535",
		"xn--bcher-kva.example:443":       "xn--bcher-kva.example:443",
		"api.example.org":                 "",
		"api.example.org:0":               "",
		"api.example.org:0443":            "",
		"api.example.org:65536":           "",
		"api.example.org:https":           "",
		":443":                            "",
		".:443":                           "",
		"a..b:443":                        "",
		"-a.example:443":                  "",
		"a-.example:443":                  "",
		"*.example.org:443":               "",
		"*:443":                           "",
		"user@api.example.org:443":        "",
		"a b:443":                         "",
		"bücher.example:443":              "",
		"::1:80":                          "",
		"[::1%lo]:80":                     "",
		"[127.0.0.1]:80":                  "",
		"[::1:80":                         "",
		"127.1:80":                        "",
		"0x7f000001:80":                   "",
		"2130706433:80":                   "",
		"0177.0.0.1:80":                   "",
		"0.0.0.0:80":                      "",
		"[::]:80":                         "",
		"224.0.0.1:80":                    "",
		"[ff02::1]:80":                    "",
		strings.Repeat("a", 64) + ":1":    "",
		strings.Repeat("a.", 126) + "a:1": strings.Repeat("a.", 126) + "a:1",
		strings.Repeat("a.", 127) + "a:1": "",
	} {
		h, err := ParseHost(entry)
		if (err == nil) != (want != "") || err == nil && h.String() != want {
			t.Errorf("%q: %v, %v; want %q", entry, h, err, want)
		}
		if _, again := Parse([]string{"localhost:1", entry}); (again == nil) != (err == nil) {
			t.Errorf("%q in a list: %v", entry, again)
		}
	}
}

// §10.2: an entry that no command could reach, or that is written another way, is refused with what to do about it.
func Test_10_2_entries_say_why(t *testing.T) {
	for entry, want := range map[string]string{
		"127.0.0.1:53":            "port 53 of the loopback is the runtime's own",
		"127.0.0.53:53":           "port 53 of the loopback",
		"[::1]:61080":             "port 61080 of the loopback",
		"[::ffff:127.0.0.1]:53":   "port 53 of the loopback",
		"LOCALHOST.:61080":        "port 61080 of the loopback",
		"[fe80::1]:80":            "needs a zone",
		"münchen.de:443":          "xn--",
		"http://x:443":            "without a scheme",
		"https://x.example/":      "without a scheme",
		"x.example/path:443":      "without user or path",
		"*.example.org:443":       "no wildcards",
		"2001:4860:4860::8888:53": "brackets",
		"0.0.0.0:80":              "an address that is unspecified is no host",
		"[ff02::1]:80":            "an address that is multicast is no host",
	} {
		if h, err := ParseHost(entry); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; want %q", entry, h, err, want)
		}
	}
	for _, entry := range []string{"8.8.8.8:53", "a.example:53", "10.0.0.1:61080", "127.0.0.1:54", "169.254.1.1:80"} {
		if _, err := ParseHost(entry); err != nil {
			t.Errorf("%q: %v", entry, err)
		}
	}
}

// §10.2: what kind an address is; only a public one may stand behind a name.
func Test_10_2_classes(t *testing.T) {
	for addr, want := range map[string]class{
		"93.184.216.34": public, "1.1.1.1": public, "2606:2800:220:1::1": public, "172.32.0.1": public, "100.128.0.1": public, "64:ff9b::5db8:d822": public,
		"127.0.0.1": loopback, "127.255.1.2": loopback, "::1": loopback, "::ffff:127.0.0.1": loopback, "64:ff9b::7f00:1": loopback, "2002:7f00:1::": loopback,
		"10.0.0.5": private, "172.16.0.1": private, "172.31.255.255": private, "192.168.1.1": private, "::ffff:10.1.1.1": private, "2002:a00:1::1": private,
		"169.254.1.1": linkLocal, "fe80::1": linkLocal, "fe80::1%eth0": linkLocal, "febf::1": linkLocal,
		"169.254.169.254": metadata, "169.254.170.2": metadata, "100.100.100.200": metadata, "168.63.129.16": metadata, "fd00:ec2::254": metadata, "64:ff9b::a9fe:a9fe": metadata,
		"fc00::1": uniqueLocal, "fdff::1": uniqueLocal, "100.64.0.1": shared, "100.127.255.255": shared,
		"224.0.0.251": multicast, "ff02::1": multicast, "0.0.0.0": unspecified, "::": unspecified,
		"0.1.2.3": reserved, "240.0.0.1": reserved, "255.255.255.255": reserved, "192.0.2.1": reserved, "198.18.0.1": reserved, "203.0.113.5": reserved,
		"2001::1": reserved, "2001:db8::1": reserved, "::7f00:1": reserved, "fec0::1": reserved, "4000::1": reserved, "64:ff9b:1::1": reserved,
	} {
		if got := classOf(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}

// zone is a resolver made of a table; it counts what it is asked.
type zone struct {
	names map[string][]string
	asked []string
}

func (z *zone) lookup(_ context.Context, name string) ([]netip.Addr, error) {
	z.asked = append(z.asked, name)
	var all []netip.Addr
	for _, s := range z.names[name] {
		if s == "fails" {
			return nil, errors.New("no answer")
		}
		all = append(all, netip.MustParseAddr(s))
	}
	if all == nil {
		return nil, &net.DNSError{IsNotFound: true}
	}
	return all, nil
}

// newRun is a run whose refusals are appended to denied.
func newRun(t *testing.T, z *zone, denied *[]string, hosts ...string) *Run {
	t.Helper()
	list, err := Parse(hosts)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	r := NewRun(list, Outside{
		Lookup: z.lookup,
		Dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", to.String())
		},
		Deny: func(what string) {
			mu.Lock()
			defer mu.Unlock()
			*denied = append(*denied, what)
		},
	})
	t.Cleanup(r.Close)
	return r
}

// §10.2: an address is reached when it is listed literally, or a listed name with that port was resolved to it.
func Test_10_2_connect(t *testing.T) {
	z := &zone{names: map[string][]string{"api.example.test": {"93.184.216.34", "10.0.0.7"}, "db.example.test": {"10.0.0.5"}, "odd.example.test": {"169.254.169.254"}}}
	var denied []string
	r := newRun(t, z, &denied, "API.example.test:443", "db.example.test:5432", "10.0.0.5:5432", "odd.example.test:80", "localhost:8080", "127.0.0.1:9", "10.9.9.9:1")
	decide := func(to string) string {
		denied = nil
		addr := netip.MustParseAddrPort(to)
		if r.Connect(addr) != r.Open(addr) {
			t.Errorf("%s: Connect and Open differ", to)
		}
		return strings.Join(denied, "|")
	}
	if got := decide("93.184.216.34:443"); got != "connect 93.184.216.34:443: not listed" {
		t.Errorf("before it was resolved: %q", got)
	}
	for _, name := range []string{"api.example.test", "db.example.test", "odd.example.test", "localhost"} {
		r.names[name]()
		r.names[name]()
	}
	for to, want := range map[string]string{
		"93.184.216.34:443":          "",
		"[::ffff:93.184.216.34]:443": "",
		"93.184.216.34:80":           "not listed",
		"93.184.216.35:443":          "not listed",
		"10.0.0.7:443":               "private address",
		"10.0.0.5:5432":              "",
		"[::ffff:10.0.0.5]:5432":     "",
		"10.0.0.5:443":               "private address",
		"10.9.9.9:1":                 "",
		"10.9.9.9:2":                 "private address",
		"169.254.169.254:80":         "metadata address",
		"127.0.0.1:8080":             "",
		"[::1]:8080":                 "",
		"127.0.0.2:8080":             "loopback address",
		"127.0.0.1:9":                "",
		"[::1]:9":                    "loopback address",
		"127.0.0.1:22":               "loopback address",
		"0.0.0.0:8080":               "unspecified address",
		"[::]:8080":                  "unspecified address",
		"224.0.0.1:8080":             "multicast address",
		"[::7f00:1]:8080":            "reserved address",
		"[64:ff9b::5db8:d822]:443":   "not listed",
		"[::1%1]:8080":               "an address with a zone",
		"[::ffff:10.0.0.5%1]:5432":   "an address with a zone",
	} {
		full := want
		if want != "" {
			full = "connect " + netip.MustParseAddrPort(to).String() + ": " + want
		}
		if got := decide(to); got != full {
			t.Errorf("%s: %q, want %q", to, got, full)
		}
	}
	if want := []string{"api.example.test", "db.example.test", "odd.example.test"}; !slices.Equal(z.asked, want) {
		t.Errorf("the resolver was asked %v, want each name once", z.asked)
	}
}

func FuzzParseHost(f *testing.F) {
	for _, s := range []string{"api.example.org:443", "[::1]:80", "127.0.0.1:1", "[::ffff:1.2.3.4]:5", "0x7f.1:2", "a..b:1", "*:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := ParseHost(s)
		if err != nil {
			return
		}
		again, err := ParseHost(h.String())
		if err != nil || again != h {
			t.Errorf("%q gives %v, which gives %v (%v)", s, h, again, err)
		}
		if h.Port == 0 || (h.Name == "") == !h.Addr.IsValid() || h.Addr.Is4In6() || h.Addr.Zone() != "" {
			t.Errorf("%q gives %v", s, h)
		}
	})
}
