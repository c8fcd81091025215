package egress

import (
	"net/netip"
	"slices"
	"testing"
)

// §10.2: an answer is read past its aliases, and what is cut off gives what stands before.
func Test_10_2_answers_are_read(t *testing.T) {
	question := "\x00\x01\x81\x80\x00\x01\x00\x03\x00\x00\x00\x00\x02Db\x07example\x00\x00\x01\x00\x01"
	alias := "\xc0\x0c\x00\x05\x00\x01\x00\x00\x00\x3c\x00\x04\x01x\xc0\x0f"
	four := "\x01x\xc0\x0f\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xcb\x00\x71\x09"
	six := "\xc0\x0c\x00\x1c\x00\x01\x00\x00\x00\x3c\x00\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x7f\x00\x00\x01"
	for name, test := range map[string]struct {
		msg  string
		want []string
	}{
		"whole":             {question + alias + four + six, []string{"203.0.113.9", "127.0.0.1"}},
		"cut off":           {question + alias + four + six[:20], []string{"203.0.113.9"}},
		"an alias alone":    {question + alias, nil},
		"a query":           {question[:2] + "\x01\x00" + question[4:] + alias + four, nil},
		"a reserved label":  {question + "\x80" + four, nil},
		"two questions":     {question[:5] + "\x02" + question[6:] + four, nil},
		"a question's name": {question[:12] + "\xc0\x0c\x00\x01\x00\x01" + four, nil},
		"nothing":           {"", nil},
	} {
		asked, at, ok := ReadAnswer([]byte(test.msg))
		var got []string
		for _, addr := range at {
			got = append(got, addr.String())
		}
		if !slices.Equal(got, test.want) || ok != (len(test.want) > 0) || ok && asked != "db.example" {
			t.Errorf("%s: %q %v %v, want %v", name, asked, got, ok, test.want)
		}
	}
}

// §10.2: what learning proposes is judged by the rules of the list itself.
func Test_10_2_exported_rules(t *testing.T) {
	for name, valid := range map[string]bool{"db": true, "_x.example": true, "": false, "a..b": false, "-a": false, "a-": false, "10.0.0.1": false, "0x7f": false, "a/b": false, "é": false} {
		if ValidName(name) != valid {
			t.Errorf("%q", name)
		}
	}
	for addr, is := range map[string]bool{"93.184.216.34": true, "168.63.129.16": false, "192.0.0.192": false, "0.1.2.3": false, "224.0.0.1": false, "2002:7f00:1::": false, "64:ff9b::a00:1": false} {
		if Public(netip.MustParseAddr(addr)) != is {
			t.Errorf("%s", addr)
		}
	}
}

// FuzzReadAnswer: whatever a name server says, reading it ends, and a name comes with addresses.
func FuzzReadAnswer(f *testing.F) {
	f.Add([]byte("\x00\x01\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00\x01a\x00\x00\x01\x00\x01\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\x7f\x00\x00\x01"))
	f.Add([]byte("\x00\x01\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00\xc0\x0c\x00\x01\x00\x01"))
	f.Fuzz(func(t *testing.T, msg []byte) {
		if name, at, ok := ReadAnswer(msg); ok && (name == "" || len(at) == 0) {
			t.Errorf("%q %v", name, at)
		}
	})
}
