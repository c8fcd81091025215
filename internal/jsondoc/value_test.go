package jsondoc

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func randomNode(r *rand.Rand, depth int) *Node {
	words := []string{"", "a", "b", "é", "\u2028<&>", "x\x00\"\\", "🙂", "\uffff"}
	switch k := r.IntN(6); {
	case k == 0:
		return NullNode()
	case k == 1:
		return Boolean(r.IntN(2) == 0)
	case k == 2:
		return Num(randomNumber(r))
	case k == 3 || depth == 0:
		return Str(words[r.IntN(len(words))])
	case k == 4:
		n := Arr()
		for range r.IntN(4) {
			n.Items = append(n.Items, randomNode(r, depth-1))
		}
		return n
	default:
		n := Obj()
		for range r.IntN(4) {
			n = n.With(words[r.IntN(len(words))], randomNode(r, depth-1))
		}
		return n
	}
}

// What was written is read as the same value, and written again is the same text (§6.5).
func TestParseAppendIdentity(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		n := randomNode(r, 4)
		text := n.Append(nil)
		if !json.Valid(text) {
			t.Fatalf("%s is not JSON", text)
		}
		back := parse(t, string(text))
		if again := back.Append(nil); string(again) != string(text) || !back.Equal(n) {
			t.Fatalf("%s became %s", text, again)
		}
		made, err := FromAny(n.Any())
		if err != nil || !made.Equal(n) {
			t.Fatalf("FromAny(%s) = %s, %v", text, made.Append(nil), err)
		}
	}
}

// Canonical is the same text for equal values, and only for them.
func TestCanonicalAgreesWithEqual(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	equal := 0
	for range 20000 {
		a := randomNode(r, 1)
		b := randomNode(r, 1)
		if r.IntN(2) == 0 {
			b = shuffled(r, a)
		}
		same := string(a.Canonical(nil)) == string(b.Canonical(nil))
		if same != a.Equal(b) || a.Equal(b) != b.Equal(a) {
			t.Fatalf("%s and %s: canonical %v, equal %v", a.Append(nil), b.Append(nil), same, a.Equal(b))
		}
		if same {
			equal++
		}
		if c := parse(t, string(a.Canonical(nil))); !c.Equal(a) {
			t.Fatalf("canonical %s of %s is another value", a.Canonical(nil), a.Append(nil))
		}
	}
	if equal < 1000 {
		t.Errorf("only %d equal pairs", equal)
	}
}

func shuffled(r *rand.Rand, n *Node) *Node {
	out := *n
	out.Members = append([]Member(nil), n.Members...)
	r.Shuffle(len(out.Members), func(i, j int) { out.Members[i], out.Members[j] = out.Members[j], out.Members[i] })
	if n.Kind == Number && !strings.Contains(n.Text, "e") {
		out.Text += "e0"
	}
	return &out
}

func TestCanonicalSortsByCodePoint(t *testing.T) {
	n := parse(t, `{"\uffff":1,"🙂":2,"a":1e2,"Z":1.0}`)
	if got := string(n.Canonical(nil)); got != "{\"Z\":1,\"a\":100,\"\uffff\":1,\"🙂\":2}" {
		t.Error(got)
	}
}

func TestAppendKeepsLiteralsAndEscapesLittle(t *testing.T) {
	const text = `{"b":1.00,"a":1e2,"s":"<&>\u0000\n\"é"}`
	want := `{"b":1.00,"a":1e2,"s":"<&>\u0000\n\"é"}`
	if got := string(parse(t, text).Append(nil)); got != want {
		t.Errorf("%s", got)
	}
	if got := string(Str("a\xffb").Append(nil)); got != "\"a\ufffdb\"" {
		t.Errorf("invalid UTF-8: %q", got)
	}
	var none *Node
	if got := string(none.Append(nil)); got != "null" {
		t.Errorf("nil: %s", got)
	}
}

func TestFromAny(t *testing.T) {
	big1, _ := new(big.Int).SetString("123456789012345678901234567890", 10)
	n, err := FromAny(map[string]any{"z": []any{1, int64(-2), uint8(3), big1, 1.5, 1e21}, "a": json.Number("1.0"), "n": nil, "t": true})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"a":1.0,"n":null,"t":true,"z":[1,-2,3,123456789012345678901234567890,1.5,1e+21]}`
	if d := cmp.Diff(want, string(n.Append(nil))); d != "" {
		t.Error(d)
	}
	for _, bad := range []any{math.NaN(), math.Inf(1), json.Number("x"), json.Number(" 1"), struct{}{}, []any{make(chan int)}} {
		if _, err := FromAny(bad); err == nil {
			t.Errorf("%v became a Node", bad)
		}
	}
}

func TestWithCopies(t *testing.T) {
	n := parse(t, `{"a":1,"b":2}`)
	if got := string(n.With("a", Num("3")).With("c", NullNode()).Append(nil)); got != `{"a":3,"b":2,"c":null}` {
		t.Error(got)
	}
	if got := string(n.Append(nil)); got != `{"a":1,"b":2}` {
		t.Errorf("the old object became %s", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e3,null,true,"\u00e9\ud83d\ude42"]}`, `{"a":1,"a":2}`, "\xef\xbb\xbf1", `[1,]`, `"\ud800"`, `-0.0e-0`, " [ ] ", `1e999999999999999999999`, `{} {}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		n, faults := Parse(src, Limits{Bytes: 1 << 16})
		for _, x := range faults {
			if x.Offset < 0 || x.Offset > len(src) {
				t.Fatalf("offset %d of %d", x.Offset, len(src))
			}
		}
		if n == nil {
			if len(faults) == 0 {
				t.Fatal("nothing was read, and nothing said")
			}
			return
		}
		if len(faults) == 0 && !json.Valid(src) {
			t.Fatalf("%q was taken", src)
		}
		back, again := Parse(n.Append(nil), Limits{})
		if len(again) > 0 || !back.Equal(n) || string(back.Canonical(nil)) != string(n.Canonical(nil)) {
			t.Fatalf("%s is not what was read", n.Append(nil))
		}
	})
}

func BenchmarkParse(b *testing.B) {
	src := []byte(`{"pack_id":"transit","verb_key":"trip.plan","args":{"from":"north","to":"south","via":["a","b"],"limit":3},"confirm":true}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, f := Parse(src, Limits{}); f != nil {
			b.Fatal(f)
		}
	}
}

// §3.2: what is shown and handed to programs keeps its text but for exponents and fractions of zeros.
func Test_3_2_Written(t *testing.T) {
	for literal, want := range map[string]string{"1.50": "1.50", "1.0": "1", "100.00": "100", "-0": "-0", "0.00": "0", "1e2": "100", "1.5E1": "15",
		"9007199254740993": "9007199254740993", "0.1000000000000000055511151231257827": "0.1000000000000000055511151231257827", "1e999": "1e999"} {
		if got := Written(literal); got != want {
			t.Errorf("%s is written %s, want %s", literal, got, want)
		}
	}
}
