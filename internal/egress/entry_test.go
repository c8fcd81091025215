package egress

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// §10.2: what was refused is named as it can be listed, and not at all where nothing that can be listed opens it.
func Test_10_2_entries_of_refusals(t *testing.T) {
	for line, want := range map[string]string{
		"connect api.example.org:443: not listed":             "api.example.org:443",
		"connect 10.0.0.5:5432: private address":              "10.0.0.5:5432",
		"connect [::1]:1: loopback address":                   "[::1]:1",
		"connect db.example.org:2: private address 10.0.0.5":  "10.0.0.5:2",
		"connect db.example.org:2: link-local address fe80::": "",
		"name evil.example":                                   "evil.example:PORT",
		"name evil.example: does not resolve":                 "",
		"name evil.example: private address 10.0.0.5":         "",
		"name ":                                  "",
		"name .":                                 "",
		"name a.":                                "",
		"name -rf":                               "",
		"name a\\32b":                            "",
		"name 127.1":                             "",
		"connect api.example.org:443: no answer": "",
		"connect 0.0.0.0:80: unspecified address":                   "",
		"connect 224.0.0.1:80: multicast address":                   "",
		"connect [fe80::1]:80: link-local address":                  "",
		"connect [::1%1]:80: an address with a zone":                "",
		"connect 8.8.8.8:0: not listed":                             "",
		"connect 127.0.0.1:53: loopback address":                    "",
		"connect localhost:61080: not listed":                       "",
		"connect :443: not listed":                                  "",
		"connect -rf:443: not listed":                               "",
		"connect --dangerous:443: not listed":                       "",
		"connect " + strings.Repeat("x", 101) + "…:443: not listed": "",
		"connect a\\59b:443: not listed":                            "",
		"connect a.:443: not listed":                                "",
		"connect 127.1:80: not listed":                              "",
		"connect udp 8.8.8.8:53: no datagrams":                      "",
		"connect of a socket that is no TCP socket":                 "",
		"and 3 more": "",
		"":           "",
	} {
		if got := Entry(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// FuzzEntry: whatever a command asks for, an entry that its refusal leads to is taken, is no option, needs no more
// quotes than brackets do, and what is refused with it is refused for another reason.
func FuzzEntry(f *testing.F) {
	for _, s := range []string{"evil.example", "0.0.0.0", "224.0.0.1", "fe80::1", "::1%1", "8.8.8.8", "", "-rf", "--dangerous", "a b;id", "a.", "a..", "\x1b[2J", "db.example.test", "api.example.test",
		"64:ff9b::7f00:1", "::ffff:8.8.8.8", "169.254.169.254", "localhost", strings.Repeat("x", 255)} {
		f.Add(s, uint16(443))
		f.Add(s, uint16(0))
		f.Add(s, uint16(53))
	}
	z := &zone{names: map[string][]string{"api.example.test": {"93.184.216.34"}, "db.example.test": {"10.0.0.5"}, "two.example.test": {"93.184.216.35", "10.0.0.6"}}}
	base := []string{"api.example.test:1", "db.example.test:443", "two.example.test:1", "10.0.0.6:2"}
	run := func(t *testing.T, entries ...string) (*Run, *[]string) {
		list, err := Parse(append(slices.Clone(base), entries...))
		if err != nil {
			t.Fatal(err)
		}
		denied := new([]string)
		return NewRun(list, Outside{Lookup: z.lookup, Deny: func(what string) { *denied = append(*denied, what) }}), denied
	}
	f.Fuzz(func(t *testing.T, host string, port uint16) {
		addr, noAddr := netip.ParseAddr(host)
		for way, refused := range map[string]func(r *Run) bool{
			"proxy":   func(r *Run) bool { to, _ := r.targets(host, port); return len(to) == 0 },
			"connect": func(r *Run) bool { return noAddr == nil && !r.Connect(netip.AddrPortFrom(addr, port)) },
			"ask":     func(r *Run) bool { a := r.Answer(ask(host, typeA)); return len(a) > 3 && a[3]&15 != 0 },
		} {
			r, denied := run(t)
			if !refused(r) {
				continue
			}
			for _, line := range *denied {
				entry := Entry(line)
				if entry == "" {
					continue
				}
				if entry[0] == '-' || strings.Trim(entry, "abcdefghijklmnopqrstuvwxyz0123456789-_.:[]PORT") != "" {
					t.Errorf("%s %q gives %q", way, line, entry)
				}
				listed, again := run(t, strings.Replace(entry, ":PORT", ":443", 1))
				if refused(listed) && slices.Contains(*again, line) {
					t.Errorf("%s %q: %q changes nothing", way, line, entry)
				}
			}
		}
	})
}
