package jsondoc

import (
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func parse(t *testing.T, text string) *Node {
	t.Helper()
	n, faults := Parse([]byte(text), Limits{})
	if len(faults) > 0 {
		t.Fatalf("Parse(%q): %v", text, faults)
	}
	return n
}

func TestParseReportsFaultsWithTheirPlace(t *testing.T) {
	tests := []struct {
		name, text string
		want       []Fault
		node       bool
	}{
		{"§2.1 nothing after the value", `{} x`, []Fault{{Code: Syntax, Offset: 3}}, false},
		{"§2.1 a second value", `1 2`, []Fault{{Code: Syntax, Offset: 2}}, false},
		{"§2.1 no BOM", "\xef\xbb\xbf{}", []Fault{{Code: Encoding}}, false},
		{"§2.1 UTF-8", "{\"a\":\"\xff\"}", []Fault{{Code: Encoding, Offset: 6}}, false},
		{"half a surrogate pair", `{"a":"\ud800"}`, []Fault{{Code: Syntax, Offset: 6, Pointer: "/a"}}, false},
		{"§2.1 duplicate key at its second occurrence", `{"a":1,"a":2}`, []Fault{{Code: DuplicateKey, Offset: 7, Pointer: "/a"}}, true},
		{"every duplicate", `{"a":1,"a":2,"b":{"c":1,"c":2,"c":3},"\u0061":4}`, []Fault{
			{Code: DuplicateKey, Offset: 7, Pointer: "/a"}, {Code: DuplicateKey, Offset: 24, Pointer: "/b/c"},
			{Code: DuplicateKey, Offset: 30, Pointer: "/b/c"}, {Code: DuplicateKey, Offset: 37, Pointer: "/a"}}, true},
		{"empty", ``, []Fault{{Code: Syntax}}, false},
		{"cut short", `{"a": [1,`, []Fault{{Code: Syntax, Offset: 9, Pointer: "/a"}}, false},
		{"trailing comma", `{"a":1,}`, []Fault{{Code: Syntax, Offset: 6}}, false},
		{"comment", "{} // no", []Fault{{Code: Syntax, Offset: 3}}, false},
		{"leading zero", `01`, []Fault{{Code: Syntax, Offset: 1}}, false},
		{"too deep", strings.Repeat("[", 129), []Fault{{Code: TooDeep, Offset: 128}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n, got := Parse([]byte(tt.text), Limits{})
			for i := range got {
				if got[i].Message == "" {
					t.Errorf("fault %d has no sentence", i)
				}
				got[i].Message = ""
				if got[i].Code == TooDeep || got[i].Code == Syntax && tt.want[i].Pointer == "" {
					got[i].Pointer = ""
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
			if (n != nil) != tt.node {
				t.Errorf("node = %v", n)
			}
		})
	}
}

func TestParseKeepsLimits(t *testing.T) {
	if _, f := Parse([]byte(`[[1]]`), Limits{Depth: 2}); f != nil {
		t.Errorf("two levels of two: %v", f)
	}
	if _, f := Parse([]byte(`[[[1]]]`), Limits{Depth: 2}); len(f) != 1 || f[0].Code != TooDeep || f[0].Offset != 2 {
		t.Errorf("three levels of two: %v", f)
	}
	if _, f := Parse([]byte(`[1]`), Limits{Bytes: 3}); f != nil {
		t.Errorf("three bytes of three: %v", f)
	}
	if _, f := Parse([]byte(`[1] `), Limits{Bytes: 3}); len(f) != 1 || f[0].Code != TooLarge {
		t.Errorf("four bytes of three: %v", f)
	}
}

func TestParseKeepsPlacesAndLastDuplicate(t *testing.T) {
	src := "{\n  \"ä\": [1, {\"k\" : \"v\"}],\n  \"d\": 1, \"d\": 2}"
	n, _ := Parse([]byte(src), Limits{})
	for pointer, want := range map[string]string{"": "{", "/ä": "[1", "/ä/0": "1,", "/ä/1": "{\"k", "/ä/1/k": "\"v", "/d": "2}"} {
		at := n.Lookup(pointer)
		if at == nil || !strings.HasPrefix(src[at.Offset:], want) {
			t.Errorf("%q is at %v, want before %q", pointer, at, want)
		}
	}
	if got := src[n.Members[1].Offset:]; got != `"d": 2}` {
		t.Errorf("key offset before %q", got)
	}
	if line, col := Place([]byte(src), n.Lookup("/ä/1").Offset); line != 2 || col != 12 {
		t.Errorf("place %d:%d, want 2:12: columns are code points", line, col)
	}
	if line, col := Place([]byte(src), 1<<20); line != 3 || col != 18 {
		t.Errorf("place past the end %d:%d", line, col)
	}
}

func TestManyMembersFindDuplicates(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"k0":0`)
	for i := range 100 {
		b.WriteString(`,"k` + strconv.Itoa(i%60) + `":1`)
	}
	b.WriteString("}")
	n, faults := Parse([]byte(b.String()), Limits{})
	if len(n.Members) != 60 || len(faults) != 41 {
		t.Errorf("%d members, %d faults", len(n.Members), len(faults))
	}
}

func TestPointer(t *testing.T) {
	n := parse(t, `{"a/b":{"~":[10,20]},"":1}`)
	for p, want := range map[string]string{"/a~1b/~0/1": "20", "/": "1", "/a~1b/~0/01": "", "/a~1b/~0/2": "", "/a~1b/~2": "", "a": "", "/a~1b/~0/-": ""} {
		got := ""
		if x := n.Lookup(p); x != nil {
			got = x.Text
		}
		if got != want {
			t.Errorf("Lookup(%q) = %q, want %q", p, got, want)
		}
	}
	if got := Pointer("a/b", "~", "0"); got != "/a~1b/~0/0" {
		t.Errorf("Pointer: %s", got)
	}
	var none *Node
	if none.Get("a") != nil || none.Has("a") || none.Lookup("/a") != nil {
		t.Error("a nil Node has members")
	}
}

func TestNumbersByValue(t *testing.T) {
	t.Run("§3.2 plain form", func(t *testing.T) {
		for literal, want := range map[string]string{
			"1.0": "1", "1e2": "100", "-0": "0", "-0.0": "0", "1.50": "1.5", "15e-1": "1.5", "1E+2": "100", "12e-4": "0.0012", "0e9": "0",
			"9007199254740993": "9007199254740993", "123456789012345678901234567890.5": "123456789012345678901234567890.5",
			"1e399": "1" + strings.Repeat("0", 399), "1e400": "1e400", "10e399": "10e399", "1e-401": "1e-401", "5e99999999999999999999": "5e99999999999999999999",
		} {
			if got := Plain(literal); got != want {
				t.Errorf("Plain(%s) = %s, want %s", literal, got, want)
			}
		}
	})
	t.Run("equal and canonical", func(t *testing.T) {
		for _, pair := range [][2]string{{"1e500", "10e499"}, {"1.0", "1"}, {"-0", "0"}, {"10e99999999999999999999", "1e100000000000000000000"}, {"1" + strings.Repeat("0", 500), "1e500"}} {
			a, b := Num(pair[0]), Num(pair[1])
			if !a.Equal(b) || string(a.Canonical(nil)) != string(b.Canonical(nil)) {
				t.Errorf("%v: %s %s", pair, a.Canonical(nil), b.Canonical(nil))
			}
		}
		if Num("9007199254740993").Equal(Num("9007199254740992")) {
			t.Error("2^53+1 equals 2^53")
		}
	})
	t.Run("integer", func(t *testing.T) {
		for literal, want := range map[string]bool{"1": true, "1.0": true, "1e2": true, "1.5": false, "15e-1": false, "150e-1": true, "1e-99999999999999999999": false, "1e99999999999999999999": true, "0.0": true} {
			if Integer(literal) != want {
				t.Errorf("Integer(%s) = %v", literal, !want)
			}
		}
	})
}

// Order and multiples agree with exact rational arithmetic.
func TestNumberArithmeticAgreesWithRationals(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		a, b := randomNumber(r), randomNumber(r)
		x, _ := new(big.Rat).SetString(a)
		y, _ := new(big.Rat).SetString(b)
		if got := Compare(a, b); got != x.Cmp(y) {
			t.Fatalf("Compare(%s, %s) = %d", a, b, got)
		}
		want := y.Sign() != 0 && new(big.Rat).Quo(x, nonZero(y)).IsInt()
		if got := MultipleOf(a, b); got != want {
			t.Fatalf("MultipleOf(%s, %s) = %v", a, b, got)
		}
		if p, ok := new(big.Rat).SetString(Plain(a)); !ok || p.Cmp(x) != 0 {
			t.Fatalf("Plain(%s) = %s", a, Plain(a))
		}
		if Integer(a) != x.IsInt() {
			t.Fatalf("Integer(%s)", a)
		}
	}
}

func nonZero(y *big.Rat) *big.Rat {
	if y.Sign() == 0 {
		return big.NewRat(1, 1)
	}
	return y
}

func randomNumber(r *rand.Rand) string {
	var b strings.Builder
	if r.IntN(3) == 0 {
		b.WriteByte('-')
	}
	b.WriteString(strconv.FormatUint(r.Uint64()>>r.IntN(64), 10))
	if r.IntN(2) == 0 {
		b.WriteString("." + strconv.Itoa(r.IntN(200)))
	}
	if r.IntN(2) == 0 {
		b.WriteString("e" + strconv.Itoa(r.IntN(12)-6))
	}
	return b.String()
}
