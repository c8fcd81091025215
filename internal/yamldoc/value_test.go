package yamldoc

import (
	"strings"
	"testing"

	"hcpx/internal/jsondoc"
)

func value(t *testing.T, src string) (*jsondoc.Node, error) {
	t.Helper()
	root, err := Parse([]byte(src), 1<<20)
	if err != nil {
		return nil, err
	}
	return Value(root, []byte(src))
}

func Test_3_6_YAMLMeansJSON(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"a: 1\nb: [x, 'y', \"z\\n\"]\n", `{"a":1,"b":["x","y","z\n"]}`},
		{"responses:\n  200: {ok: true}\n  default: ~\n", `{"responses":{"200":{"ok":true},"default":null}}`},
		{"a: 12345678901234567890.10\nc: 0x1F\nd: +3\ne: .5\nf: yes\ng: 1_000\n", `{"a":12345678901234567890.10,"c":31,"d":3,"e":0.5,"f":"yes","g":1000}`},
		{"a: &x {k: v}\nb: *x\nc:\n  <<: *x\n  l: w\n", `{"a":{"k":"v"},"b":{"k":"v"},"c":{"l":"w","k":"v"}}`},
		{"a: |\n  one\n  two\nb: >-\n  one\n  two\n", `{"a":"one\ntwo\n","b":"one two"}`},
		{"a: !!str 12\nb: !!int 3\n", `{"a":"12","b":3}`},
		{"- 2020-01-01\n- .inf\n", `["2020-01-01",".inf"]`},
		{"a:\n", `{"a":null}`},
	} {
		n, err := value(t, c.src)
		if err != nil {
			t.Errorf("%q: %v", c.src, err)
			continue
		}
		if got := string(n.Append(nil)); got != c.want {
			t.Errorf("%q: %s, want %s", c.src, got, c.want)
		}
	}
}

func Test_3_6_YAMLIsBounded(t *testing.T) {
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < 12; i++ {
		prior := "*a" + string(rune('0'+(i-1)%10))
		if i > 10 {
			prior = "*b"
		}
		name := "a" + string(rune('0'+i%10))
		if i == 10 {
			name = "b"
		}
		bomb += name + "_: &" + name + " [" + strings.Repeat(prior+",", 9) + prior + "]\n"
	}
	for name, src := range map[string]string{"aliases": bomb, "within itself": "a: &a [*a]\n", "of nothing": "a: *b\n", "twice": "a: 1\na: 2\n", "a key that is no text": "? [a]\n: b\n"} {
		if n, err := value(t, src); err == nil {
			t.Errorf("%s: taken: %.80s", name, n.Append(nil))
		}
	}
}

func Test_3_6_YAMLHasPlaces(t *testing.T) {
	src := "ü: x\npaths:\n  /a:\n    get: {operationId: é, b: [1, two]}\n"
	n, err := value(t, src)
	if err != nil {
		t.Fatal(err)
	}
	for pointer, want := range map[string]string{"/paths/~1a/get/operationId": "é", "/paths/~1a/get": "{op", "/paths/~1a/get/b/1": "two", "/paths": "/a:", "/ü": "x"} {
		if at := n.Lookup(pointer).Offset; !strings.HasPrefix(src[at:], want) {
			t.Errorf("%s stands at %q", pointer, src[at:])
		}
	}
}
