package wrap

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
)

// origin says where a byte of a rendered element comes from: "" is the template itself.
type origin struct {
	b   byte
	arg string
}

// oracle renders a template straight from its JSON, byte by byte with the origin of each, without any
// compiling: a second reading of §3.3 to hold the first against.
type oracle struct {
	args    *jsondoc.Node
	array   string // the innermost each
	argv    [][]origin
	literal []bool
}

func (o *oracle) list(items []*jsondoc.Node, item *jsondoc.Node, inGroup bool) (dropped bool) {
	for _, n := range items {
		if o.element(n, item, inGroup) && inGroup {
			return true
		}
	}
	return false
}

func (o *oracle) element(n, item *jsondoc.Node, inGroup bool) (absent bool) {
	switch {
	case n.Kind == jsondoc.String:
		out, literal, ok := o.string(n.Text, item)
		if ok {
			o.argv, o.literal = append(o.argv, out), append(o.literal, literal)
		}
		return !ok
	case n.Kind == jsondoc.Array:
		before := len(o.argv)
		if o.list(n.Items, item, true) {
			o.argv, o.literal = o.argv[:before], o.literal[:before]
		}
		return false
	case n.Has("if"):
		v := o.args.Get(n.Get("if").Text)
		if v != nil && !(v.Kind == jsondoc.Bool && v.Text == "false") {
			return o.list(n.Get("then").Items, item, inGroup)
		}
		if n.Has("else") {
			return o.list(n.Get("else").Items, item, inGroup)
		}
		return false
	}
	v := o.args.Get(n.Get("each").Text)
	if v == nil {
		return true
	}
	outer := o.array
	defer func() { o.array = outer }()
	for _, it := range v.Items {
		o.array = n.Get("each").Text
		if o.list(n.Get("argv").Items, it, inGroup) {
			return true
		}
	}
	return false
}

func (o *oracle) string(s string, item *jsondoc.Node) (out []origin, literal, ok bool) {
	literal = true
	for len(s) > 0 {
		switch {
		case strings.HasPrefix(s, "{{"), strings.HasPrefix(s, "}}"):
			out, s = append(out, origin{s[0], ""}), s[2:]
		case s[0] == '{':
			end := strings.IndexByte(s, '}')
			name, asJSON := strings.CutSuffix(s[1:end], "|json")
			s, literal = s[end+1:], false
			v := item
			if name != "" {
				v = o.args.Get(name)
			} else {
				name = o.array
			}
			if v == nil {
				return nil, false, false
			}
			value := v.Text
			if v.Kind == jsondoc.Number {
				value = jsondoc.Plain(value)
			} else if asJSON {
				value = string(v.Append(nil))
			}
			for i := range len(value) {
				out = append(out, origin{value[i], name})
			}
		default:
			out, s = append(out, origin{s[0], ""}), s[1:]
		}
	}
	return out, literal, true
}

// judge gives the argv, and whether §3.3 refuses it.
func (o *oracle) judge() (argv []string, refused bool) {
	guarded := false
	for i, bytes := range o.argv {
		var b strings.Builder
		for _, x := range bytes {
			b.WriteByte(x.b)
			refused = refused || x.b == 0
		}
		if len(bytes) > 0 && bytes[0].b == '-' && bytes[0].arg != "" && !guarded && !strings.Contains(" d n i k ", " "+bytes[0].arg+" ") {
			refused = true
		}
		guarded = guarded || o.literal[i] && b.String() == "--"
		argv = append(argv, b.String())
	}
	return argv, refused
}

// generator makes random templates over the arguments of everything.
type generator struct{ *rand.Rand }

func (g generator) pick(list ...string) string { return list[g.IntN(len(list))] }

func (g generator) string(inEach bool) string {
	var b strings.Builder
	for range 1 + g.IntN(3) {
		piece := g.pick("{s}", "{u}", "{d}", "{n}", "{i}", "{b}", "{s|json}", "{t|json}", "-", "--", "x", "{{", "}}", "=", "ü")
		if inEach && g.IntN(2) == 0 {
			piece = "{|json}"
		}
		b.WriteString(piece)
	}
	return b.String()
}

func (g generator) list(depth int, inEach bool) string {
	var items []string
	for range g.IntN(4) {
		items = append(items, g.element(depth, inEach))
	}
	return "[" + strings.Join(items, ",") + "]"
}

func (g generator) element(depth int, inEach bool) string {
	kind := g.IntN(8)
	if depth == 0 {
		kind = 0
	}
	switch kind {
	case 5:
		return g.list(depth-1, inEach)
	case 6:
		return fmt.Sprintf(`{"if":%q,"then":%s,"else":%s}`, g.pick("s", "b", "n", "t"), g.list(depth-1, inEach), g.list(depth-1, inEach))
	case 7:
		return fmt.Sprintf(`{"each":%q,"argv":%s}`, g.pick("t", "k"), g.list(depth-1, true))
	case 4:
		return `"--"`
	}
	return string(jsondoc.Str(g.string(inEach)).Append(nil))
}

func (g generator) args() *jsondoc.Node {
	text := func() *jsondoc.Node {
		return jsondoc.Str(g.pick("", "-", "--", "-x", "--y=z", "a b", "{s}", "\x00", "'\"$(x)\n", "–", "ü"))
	}
	number := func() *jsondoc.Node { return jsondoc.Num(g.pick("-1", "0", "7", "1.0", "9007199254740993", "-2e3")) }
	out := jsondoc.Obj()
	for _, name := range []string{"s", "u", "d"} {
		if g.IntN(3) > 0 {
			out = out.With(name, text())
		}
	}
	for _, name := range []string{"n", "i"} {
		if g.IntN(3) > 0 {
			out = out.With(name, number())
		}
	}
	if g.IntN(3) > 0 {
		out = out.With("b", jsondoc.Boolean(g.IntN(2) == 0))
	}
	if g.IntN(3) > 0 {
		out = out.With("t", jsondoc.Arr(text(), text()))
	}
	if g.IntN(3) > 0 {
		out = out.With("k", jsondoc.Arr(number()))
	}
	return out
}

func Test_3_3_RenderingAgreesWithASecondReading(t *testing.T) {
	refusals, renderings := 0, 0
	for seed := range uint64(3000) {
		g := generator{rand.New(rand.NewPCG(seed, 7))}
		argv := g.list(3, false)
		c := mustCompile(t, `"args":`+everything+`,"argv":`+argv)
		for range 4 {
			args := g.args()
			o := &oracle{args: args}
			o.list(node(t, argv).Items, nil, false)
			want, refused := o.judge()
			call, violations := c.Render(args)
			if refused != (call == nil) {
				t.Fatalf("seed %d: %s with %s: refused %v, want %v: %+v", seed, argv, args.Append(nil), call == nil, refused, violations)
			}
			if refused {
				refusals++
				continue
			}
			renderings++
			if diff := cmp.Diff(append([]string{"demo"}, want...), call.Argv); diff != "" {
				t.Fatalf("seed %d: %s with %s: %s", seed, argv, args.Append(nil), diff)
			}
		}
	}
	if refusals < 500 || renderings < 500 {
		t.Errorf("%d refusals and %d renderings prove little", refusals, renderings)
	}
}

// FuzzTemplate: whatever the template and the arguments, nothing panics, and no rendered element holds NUL.
func FuzzTemplate(f *testing.F) {
	f.Add(`["a","{s}",["--x","{u}"],{"if":"b","then":["-v"],"else":[]},{"each":"t","argv":["{}"]}]`, `{"s":"-x","t":["a"],"b":true}`)
	f.Add(`["{{{s|json}}}","{o|json}"]`, `{"o":{"a":[1.0,1e5]},"s":"\u0000"}`)
	f.Add(`[{"each":"t","argv":[["{}",{"if":"s","then":["{s}"]}]]}]`, `{"t":["--"],"s":1}`)
	f.Fuzz(func(t *testing.T, argv, args string) {
		m, _ := manifest.Decode(surface(`{"bin":"demo"}`, `"args":`+everything+`,"argv":`+argv+`,"stdin":"{s}"`))
		if m == nil || len(m.Commands) != 1 {
			return
		}
		c, issues := New().Compile(m, m.Commands[0])
		for _, i := range issues {
			if i.Line < 1 || i.Column < 1 || i.Pointer == "" {
				t.Errorf("an issue without place: %+v", i)
			}
		}
		given, _ := jsondoc.Parse([]byte(args), jsondoc.Limits{})
		if c == nil || given == nil {
			return
		}
		call, violations := c.Render(given)
		if (call == nil) != (len(violations) > 0) {
			t.Errorf("call %v with violations %v", call, violations)
		}
		if call != nil && strings.ContainsRune(strings.Join(call.Argv, ""), 0) {
			t.Errorf("NUL in %q", call.Argv)
		}
	})
}

func BenchmarkRender(b *testing.B) {
	for name, test := range map[string]struct{ argv, args string }{
		"small": {`["trip","--from={s}","--to={u}",{"if":"b","then":["-v"]},["--n","{n}"]]`, `{"s":"Zürich HB","u":"Bern","b":true,"n":3}`},
		"each":  {`["add",{"each":"t","argv":["--tag={}"]},"--","{s}"]`, `{"s":"x","t":["a","b","c","d"]}`},
	} {
		b.Run(name, func(b *testing.B) {
			c := mustCompile(b, `"args":`+everything+`,"argv":`+test.argv)
			args := node(b, test.args)
			b.ReportAllocs()
			for b.Loop() {
				if call, _ := c.Render(args); call == nil {
					b.Fatal("refused")
				}
			}
		})
	}
}

// §3.3: what Linux takes as one command line is asked at step 5, before anything is prepared.
func Test_3_3_WholeCommandLineIsBounded(t *testing.T) {
	m, issues := manifest.Decode([]byte(`{"hcp":{"version":"1.1"},"id":"a","version":"1.0.0","summary":"A.","adapter":"wrap","wrap":{"bin":"x"},
"verbs":{"v":{"summary":"V","argv":[{"each":"l","argv":["--t={}"]}],"args":{"type":"object","properties":{"l":{"type":"array","items":{"type":"string"}}}}}}}`))
	if len(issues) > 0 {
		t.Fatal(issues)
	}
	c, _ := New().Compile(m, m.Commands[0])
	for n, refused := range map[int]bool{1000: false, 100_000: false, 200_000: true} {
		items := make([]*jsondoc.Node, n)
		for i := range items {
			items[i] = jsondoc.Str("a")
		}
		_, bad := c.Render(jsondoc.Obj(jsondoc.Member{Key: "l", Value: jsondoc.Arr(items...)}))
		if (len(bad) > 0) != refused {
			t.Errorf("%d items: %v", n, bad)
		}
	}
}
