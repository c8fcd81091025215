package egress

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
)

// ask makes a query; extra follows the question.
func ask(name string, kind uint16, extra ...byte) []byte {
	msg := []byte{0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, byte(min(len(extra), 1))}
	for label := range strings.SplitSeq(name, ".") {
		msg = append(append(msg, byte(len(label))), label...)
	}
	return append(append(msg, 0, byte(kind>>8), byte(kind), 0, 1), extra...)
}

// resolver is Go's own, which asks the run for every name.
func resolver(r *Run) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		a, b := net.Pipe()
		r.Serve(b, Messages)
		return a, nil
	}}
}

func names() *zone {
	return &zone{names: map[string][]string{
		"api.example.test":  {"93.184.216.34", "2606:2800:220:1::1"},
		"db.example.test":   {"10.0.0.5"},
		"void.example.test": {"169.254.169.254", "127.0.0.1", "10.1.1.1"},
		"bad.example.test":  {"fails"},
	}}
}

// §10.2: a resolver that knows nothing of the runtime gets listed names, and no word of any other leaves.
func Test_10_2_names(t *testing.T) {
	z := names()
	var denied []string
	r := newRun(t, z, &denied, "api.example.test:443", "db.example.test:5432", "10.0.0.5:5432", "void.example.test:80", "bad.example.test:80", "gone.example.test:80", "localhost:81")
	for name, want := range map[string]string{
		"api.example.test.":   "2606:2800:220:1::1 93.184.216.34",
		"API.Example.Test.":   "2606:2800:220:1::1 93.184.216.34",
		"db.example.test.":    "10.0.0.5",
		"localhost.x.test.":   "none",
		"void.example.test.":  "none",
		"gone.example.test.":  "none",
		"bad.example.test.":   "failed",
		"secret.evil.test.":   "none",
		"x.api.example.test.": "none",
		"example.test.":       "none",
	} {
		got, err := resolver(r).LookupHost(context.Background(), name)
		slices.Sort(got)
		text := strings.Join(got, " ")
		var dns *net.DNSError
		if errors.As(err, &dns) {
			text = map[bool]string{true: "none", false: "failed"}[dns.IsNotFound]
		}
		if text != want {
			t.Errorf("%s: %s (%v), want %s", name, text, err, want)
		}
	}
	slices.Sort(z.asked)
	if want := []string{"api.example.test", "bad.example.test", "db.example.test", "gone.example.test", "void.example.test"}; !slices.Equal(z.asked, want) {
		t.Errorf("outside was asked %v, want %v", z.asked, want)
	}
	for _, want := range []string{"name secret.evil.test", "name void.example.test: metadata address 169.254.169.254", "name x.api.example.test"} {
		if !slices.Contains(denied, want) {
			t.Errorf("%q is not among %q", want, denied)
		}
	}
	if a := r.Answer(ask("localhost", typeA)); a[3]&15 != 0 || !bytes.HasSuffix(a, []byte{0, 4, 127, 0, 0, 1}) {
		t.Errorf("localhost: %x", a)
	}
}

// §10.2: what is no plain question gets no more than an error, and what is no query gets silence.
func Test_10_2_odd_queries(t *testing.T) {
	var denied []string
	r := newRun(t, names(), &denied, "api.example.test:443")
	good := ask("api.example.test", typeA)
	edit := func(at int, b ...byte) []byte { m := slices.Clone(good); copy(m[at:], b); return m }
	for name, c := range map[string]struct {
		query   []byte
		code    int // -1 = silence
		answers int
	}{
		"address":                  {good, 0, 1},
		"with EDNS":                {ask("api.example.test", typeA, 0, 0, 41, 16, 0, 0, 0, 0, 0, 0, 0), 0, 1},
		"text":                     {ask("api.example.test", 16), 0, 0},
		"any":                      {ask("api.example.test", 255), 0, 0},
		"the root":                 {append(slices.Clone(good[:12]), 0, 0, 2, 0, 1), codeNoName, 0},
		"a dot in a label":         {append(append(slices.Clone(good[:12]), 16), "api.example.test\x00\x00\x01\x00\x01"...), codeRefused, 0},
		"chaos":                    {edit(len(good)-1, 3), codeRefused, 0},
		"update":                   {edit(2, 0x28), codeUnknown, 0},
		"two questions":            {edit(5, 2), codeFormat, 0},
		"a pointer":                {edit(12, 0xc0, 12), codeFormat, 0},
		"a label that is too long": {edit(12, 64), codeFormat, 0},
		"cut off":                  {good[:len(good)-1], codeFormat, 0},
		"no question":              {good[:12], codeFormat, 0},
		"an answer":                {edit(2, 0x81), -1, 0},
		"too short":                {good[:11], -1, 0},
		"too long":                 {append(slices.Clone(good), make([]byte, maxQuery)...), -1, 0},
		"nothing":                  {nil, -1, 0},
	} {
		denied = nil
		got := r.Answer(c.query)
		if told := c.code > 0; told != (len(denied) == 1) {
			t.Errorf("%s: the report has %q", name, denied)
		}
		if c.code < 0 {
			if got != nil {
				t.Errorf("%s: %x, want silence", name, got)
			}
			continue
		}
		if len(got) < headerSize || got[0] != 0xab || got[1] != 0xcd || got[2]&0x80 == 0 || int(got[3]&15) != c.code || int(binary.BigEndian.Uint16(got[6:])) != c.answers {
			t.Errorf("%s: %x, want code %d and %d answers", name, got, c.code, c.answers)
		}
	}
}

// §10.2: queries on a stream have their length before them, and several may come on one.
func Test_10_2_names_on_a_stream(t *testing.T) {
	r := newRun(t, names(), new([]string), "api.example.test:443")
	client, server := net.Pipe()
	r.Serve(server, Messages)
	for range 3 {
		query := ask("api.example.test", typeAAAA)
		go func() { _, _ = client.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(query))), query...)) }()
		var size [2]byte
		if _, err := io.ReadFull(client, size[:]); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(client, answer); err != nil || !bytes.Equal(answer, r.Answer(query)) {
			t.Fatalf("%x, %v", answer, err)
		}
	}
	go func() { _, _ = client.Write([]byte{0xff, 0xff}) }()
	if n, err := client.Read(make([]byte, 1)); err == nil {
		t.Errorf("%d bytes after a message that is too long", n)
	}
}

// §10.2: what was asked and refused is told of, whatever stands in its labels.
func Test_10_2_refused_questions_are_told(t *testing.T) {
	var denied []string
	r := newRun(t, names(), &denied, "api.example.test:443")
	head := ask("x", typeA)[:headerSize]
	for labels, want := range map[string]string{
		"\x03a b\x01c":           `name a\32b.c`,
		"\x05a.b;c\x01d":         `name a.b;c.d: a dot within a label`,
		"\x10api.example.test":   "name api.example.test: a dot within a label",
		"\x04\x1b[2J\x01\n":      `name \27[2j.\10`,
		"":                       "name .",
		"\xc0\x0c":               noQuestion,
		"\x41too long to be one": noQuestion,
	} {
		denied = nil
		r.Answer(slices.Concat(head, []byte(labels), []byte{0, 0, typeA, 0, classIN}))
		if !slices.Equal(denied, []string{want}) {
			t.Errorf("%q: the report has %q, want %q", labels, denied, want)
		}
	}
	denied = nil
	chaos := ask("version.bind", 16)
	chaos[len(chaos)-1] = 3
	r.Answer(chaos)
	if want := "name version.bind: not asked for the internet's class"; !slices.Equal(denied, []string{want}) {
		t.Errorf("%q, want %q", denied, want)
	}
}

// §10.2: a name of the command's making is written without its control characters.
func Test_10_2_printable_names(t *testing.T) {
	if got := printable("a\x1b[2J\nb\\é"); got != `a\27[2J\10b\92\195\169` {
		t.Errorf("%q", got)
	}
	if got := printable(strings.Repeat("x", 300)); len(got) > 120 {
		t.Errorf("%d bytes", len(got))
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(ask("api.example.test", typeA))
	f.Add(ask("evil.test", typeAAAA, 0, 0, 41, 16, 0, 0, 0, 0, 0, 0, 0))
	f.Add([]byte{0, 1, 0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0xc0, 0x0c, 0, 1, 0, 1})
	z := names()
	list, _ := Parse([]string{"api.example.test:443", "localhost:1"})
	r := NewRun(list, Outside{Lookup: z.lookup, Deny: func(string) {}})
	f.Fuzz(func(t *testing.T, msg []byte) {
		got := r.Answer(msg)
		if got == nil {
			return
		}
		if len(got) < headerSize || len(got) > 800 || !bytes.Equal(got[:2], msg[:2]) || got[2]&0x80 == 0 {
			t.Fatalf("%x gives %x", msg, got)
		}
		if len(z.asked) > 1 {
			t.Fatalf("outside was asked %v", z.asked)
		}
	})
}
