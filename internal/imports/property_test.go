package imports

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"hcpx/internal/jsondoc"
	"hcpx/internal/manifest"
)

var rounds = flag.Int("rounds", 1, "how much of what is random is tried")

// gen makes random documents: most of what the standard has, well formed and not.
type gen struct{ *rand.Rand }

func (g gen) pick(list ...string) string { return list[g.IntN(len(list))] }

func (g gen) some(p float64) bool { return g.Float64() < p }

var refs = []string{"A", "B", "C", "D"}

func (g gen) name() string {
	return g.pick("id", "name", "body", "page", "Page", "no-page", "filter[a]", "$top", "json", "hcp_x", "x y", "a/b", "~", "%", "länge", "file", "")
}

// schema is a random schema of at most depth levels, with references to the components.
func (g gen) schema(depth int) *jsondoc.Node {
	if depth == 0 || g.some(0.15) {
		return object(member("$ref", jsondoc.Str("#/components/schemas/"+g.pick(append(refs, "None", "")...))))
	}
	out := &jsondoc.Node{Kind: jsondoc.Object}
	add := func(p float64, key string, v func() *jsondoc.Node) {
		if g.some(p) {
			out.Members = append(out.Members, member(key, v()))
		}
	}
	list := func() *jsondoc.Node {
		l := jsondoc.Arr()
		for range 1 + g.IntN(3) {
			l.Items = append(l.Items, g.schema(depth-1))
		}
		return l
	}
	text := func(options ...string) func() *jsondoc.Node {
		return func() *jsondoc.Node { return jsondoc.Str(g.pick(options...)) }
	}
	add(0.8, "type", text("string", "integer", "number", "boolean", "array", "object", "object", "null", "file"))
	add(0.2, "nullable", func() *jsondoc.Node { return jsondoc.Boolean(true) })
	add(0.3, "description", text("x", "`hcpx exec doc nothing`", strings.Repeat("long ", 200), "a\nb\u202e"))
	add(0.1, "enum", func() *jsondoc.Node {
		return jsondoc.Arr(jsondoc.Str("a"), jsondoc.Num("1"), jsondoc.Str("a"), jsondoc.NullNode())
	})
	add(0.1, "default", func() *jsondoc.Node { return jsondoc.Num("7") })
	add(0.1, "format", text("date", "int64", "binary", "password", "nonsense"))
	add(0.1, "pattern", text("^a", "(?=a)", "[", "/a/i"))
	add(0.1, "minimum", func() *jsondoc.Node { return jsondoc.Num("1") })
	add(0.1, "exclusiveMinimum", func() *jsondoc.Node { return jsondoc.Boolean(true) })
	add(0.1, "minLength", func() *jsondoc.Node { return jsondoc.Num(g.pick("1", "-1", "1.5")) })
	add(0.1, "readOnly", func() *jsondoc.Node { return jsondoc.Boolean(true) })
	add(0.4, "items", func() *jsondoc.Node { return g.schema(depth - 1) })
	add(0.5, "properties", func() *jsondoc.Node {
		props := &jsondoc.Node{Kind: jsondoc.Object}
		for range g.IntN(4) {
			if name := g.name(); !props.Has(name) {
				props.Members = append(props.Members, member(name, g.schema(depth-1)))
			}
		}
		return props
	})
	add(0.2, "required", func() *jsondoc.Node { return jsondoc.Arr(jsondoc.Str(g.name()), jsondoc.Str(g.name())) })
	add(0.1, "additionalProperties", func() *jsondoc.Node { return jsondoc.Boolean(g.some(0.5)) })
	add(0.1, "additionalProperties2", func() *jsondoc.Node { return g.schema(depth - 1) })
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		add(0.1, key, list)
	}
	add(0.05, "not", func() *jsondoc.Node { return g.schema(depth - 1) })
	return out
}

func (g gen) operation(n int) *jsondoc.Node {
	op := &jsondoc.Node{Kind: jsondoc.Object}
	if g.some(0.7) {
		op = op.With("operationId", jsondoc.Str(g.pick("list", "get.one", "a/b", strings.Repeat("long", 30), "one"+strconv.Itoa(n), "", "a\nb")))
	}
	if g.some(0.5) {
		op = op.With("summary", jsondoc.Str(g.pick("Do it", "", "`x` {a} }", strings.Repeat("s ", 300))))
	}
	params := jsondoc.Arr()
	for range g.IntN(5) {
		p := object(member("name", jsondoc.Str(g.name())), member("in", jsondoc.Str(g.pick("path", "query", "query", "header", "cookie", "body"))),
			member("required", jsondoc.Boolean(g.some(0.3))), member("schema", g.schema(2)), member("style", jsondoc.Str(g.pick("form", "deepObject", "matrix", "odd"))))
		params.Items = append(params.Items, p)
	}
	op = op.With("parameters", params)
	if g.some(0.5) {
		media := g.pick("application/json", "application/vnd.x+json", "application/x-www-form-urlencoded", "multipart/form-data", "text/plain", "application/xml",
			"application/octet-stream", "image/*", "*/*", "multipart/mixed", "odd")
		op = op.With("requestBody", object(member("required", jsondoc.Boolean(g.some(0.5))), member("content", object(member(media, object(member("schema", g.schema(3))))))))
	}
	if g.some(0.3) {
		op = op.With("security", jsondoc.Arr(object(member(g.pick("key", "basic", "none"), jsondoc.Arr()))))
	}
	return op
}

func (g gen) document() []byte {
	paths := &jsondoc.Node{Kind: jsondoc.Object}
	for n := range 1 + g.IntN(5) {
		path := "/" + g.pick("a", "a/{id}", "{id}/{name}", "b/{page}/c", "x{", "#y", "{}") + strings.Repeat("/d", n)
		item := &jsondoc.Node{Kind: jsondoc.Object}
		for _, m := range methods {
			if g.some(0.3) {
				item.Members = append(item.Members, member(m, g.operation(n)))
			}
		}
		paths.Members = append(paths.Members, member(path, item))
	}
	schemas := &jsondoc.Node{Kind: jsondoc.Object}
	for _, r := range refs {
		schemas.Members = append(schemas.Members, member(r, g.schema(3)))
	}
	key := object(member("type", jsondoc.Str("apiKey")), member("in", jsondoc.Str("query")), member("name", jsondoc.Str("id")))
	basic := object(member("type", jsondoc.Str("http")), member("scheme", jsondoc.Str("basic")))
	return object(member("openapi", jsondoc.Str(g.pick("3.0.1", "3.1.0"))), member("info", object(member("title", jsondoc.Str(g.pick("Doc", "", "Install", "日本"))))),
		member("servers", jsondoc.Arr(object(member("url", jsondoc.Str("https://doc.example"))))), member("paths", paths),
		member("components", object(member("schemas", schemas), member("securitySchemes", object(member("key", key), member("basic", basic)))))).Append(nil)
}

// §15.6: whatever a document says, its pack lints clean, is the same each time, and takes no top-level combination of
// schemas, no reference and no default.
func Test_15_6_EveryPackLintsClean(t *testing.T) {
	for seed := range uint64(25 * *rounds) {
		src := Source{Name: fmt.Sprint("seed ", seed), Text: gen{rand.New(rand.NewPCG(seed, 7))}.document()}
		if _, err := Build(src, Options{}); err != nil {
			if err.Details["reason"] != string(noOperations) {
				t.Errorf("seed %d: %s", seed, err.Message)
			}
			continue
		}
		m := made(t, src, Options{})
		again, _ := Build(src, Options{})
		for i, f := range again.Files {
			if !bytes.Equal(f.Text, m.Files[i].Text) {
				t.Errorf("seed %d: %s differs", seed, f.Name)
			}
		}
		for _, verb := range m.file(t, "surface.json").Get("verbs").Members {
			if word := combined(verb.Value.Get("args")); word != "" {
				t.Errorf("seed %d: %s has %s", seed, verb.Key, word)
			}
		}
		if t.Failed() {
			t.Fatalf("%s", src.Text)
		}
	}
}

// combined finds a keyword that no schema of a pack has.
func combined(n *jsondoc.Node) string {
	for _, m := range fields(n) {
		switch m.Key {
		case "$ref", "allOf", "anyOf", "oneOf", "not", "default", "nullable":
			if m.Key != "default" || n.Has("type") {
				return m.Key
			}
		case "properties":
			for _, p := range fields(m.Value) {
				if found := combined(p.Value); found != "" {
					return found
				}
			}
		default:
			if found := combined(m.Value); found != "" {
				return found
			}
		}
	}
	return ""
}

// sample makes a value that fits a schema which the generator of sound schemas made.
func (g gen) sample(d *document, n *jsondoc.Node, depth int) *jsondoc.Node {
	n = d.follow(n)
	for _, key := range []string{"oneOf", "anyOf"} {
		if list := items(n.Get(key)); len(list) > 0 {
			return g.sample(d, list[g.IntN(len(list))], depth)
		}
	}
	if list := items(n.Get("allOf")); len(list) > 0 {
		out := jsondoc.Obj()
		for _, one := range list {
			for _, m := range g.sample(d, one, depth).Members {
				out = out.With(m.Key, m.Value)
			}
		}
		return out
	}
	if yes(n, "nullable") && g.some(0.3) {
		return jsondoc.NullNode()
	}
	if list := items(n.Get("enum")); len(list) > 0 {
		return list[g.IntN(len(list))]
	}
	switch text(n, "type") {
	case "string":
		return jsondoc.Str(g.pick("", "x", "yy"))
	case "integer":
		return jsondoc.Num(strconv.Itoa(g.IntN(9) - 4))
	case "boolean":
		return jsondoc.Boolean(g.some(0.5))
	case "array":
		out := jsondoc.Arr()
		for range g.IntN(3) {
			out.Items = append(out.Items, g.sample(d, n.Get("items"), depth-1))
		}
		return out
	}
	out := jsondoc.Obj()
	for _, p := range fields(n.Get("properties")) {
		required := strings.Contains(string(n.Get("required").Append(nil)), `"`+p.Key+`"`)
		if required || depth > 0 && g.some(0.6) {
			out = out.With(p.Key, g.sample(d, p.Value, depth-1))
		}
	}
	return out
}

// sound is a random schema of which sample makes values that fit; an object's members have names of their own by part, as
// a document's have that means allOf well.
func (g gen) sound(depth int, part string) *jsondoc.Node {
	kind := g.IntN(8)
	if depth == 0 {
		kind = g.IntN(3)
	}
	null := func(n *jsondoc.Node) *jsondoc.Node {
		if g.some(0.2) {
			return n.With("nullable", jsondoc.Boolean(true))
		}
		return n
	}
	switch kind {
	case 0:
		return null(object(member("type", jsondoc.Str("string"))))
	case 1:
		return null(object(member("type", jsondoc.Str("integer"))))
	case 2:
		return object(member("type", jsondoc.Str("string")), member("enum", jsondoc.Arr(jsondoc.Str("x"), jsondoc.Str(g.pick("y", "z")))))
	case 3:
		return null(object(member("type", jsondoc.Str("array")), member("items", g.sound(depth-1, part))))
	case 4:
		return object(member(g.pick("oneOf", "anyOf"), jsondoc.Arr(g.sound(depth-1, part), g.sound(depth-1, part), g.sound(depth-1, part))))
	case 5:
		return object(member("allOf", jsondoc.Arr(g.objects(depth-1, part+"l"), g.objects(depth-1, part+"r"))))
	default:
		return null(g.objects(depth-1, part))
	}
}

func (g gen) objects(depth int, part string) *jsondoc.Node {
	props := &jsondoc.Node{Kind: jsondoc.Object}
	required := jsondoc.Arr()
	for i := range 1 + g.IntN(3) {
		name := part + strconv.Itoa(i)
		props.Members = append(props.Members, member(name, g.sound(max(depth, 0), part)))
		if g.some(0.4) {
			required.Items = append(required.Items, jsondoc.Str(name))
		}
	}
	return object(member("type", jsondoc.Str("object")), member("properties", props), member("required", required))
}

// §15.6: no request that the document allows is refused by the schema that a model sees, in any of its shapes.
func Test_15_6_SchemasRefuseNothingValid(t *testing.T) {
	for seed := range uint64(100 * *rounds) {
		g := gen{rand.New(rand.NewPCG(seed, 3))}
		schema := g.sound(3, "p")
		d := newDocument(object(member("openapi", jsondoc.Str("3.0.0"))))
		for level, s := range shapes {
			simple := d.writer(s).schema(schema, 0)
			args := object(member("type", jsondoc.Str("object")), member("properties", object(member("v", simple))))
			m, _ := manifest.Decode(object(member("adapter", jsondoc.Str("openapi")), member("verbs", object(member("x", object(member("args", args)))))).Append(nil))
			compiled, err := m.Commands[0].Args()
			if err != nil {
				t.Fatalf("seed %d, shape %d: %s", seed, level, err)
			}
			for range 8 {
				v := g.sample(d, schema, 4)
				if bad := compiled.Validate(jsondoc.Obj(member("v", v))); len(bad) > 0 {
					t.Fatalf("seed %d, shape %d: %v\nschema %s\nsimple %s\nvalue %s", seed, level, bad, schema.Append(nil), simple.Append(nil), v.Append(nil))
				}
			}
		}
	}
}

// §15.6: what grows without end in a document ends here: references that lead to themselves, schemas that hold
// themselves, alternatives within alternatives, aliases of YAML.
func Test_15_6_DocumentsThatGrow(t *testing.T) {
	wide := &jsondoc.Node{Kind: jsondoc.Object}
	for i := range 60 {
		alternatives := jsondoc.Arr()
		for k := range 20 {
			props := object(member("p", object(member("$ref", jsondoc.Str(fmt.Sprintf("#/components/schemas/S%d", (i*7+k)%60))))), member(fmt.Sprint("q", k), object(member("$ref", jsondoc.Str(fmt.Sprintf("#/components/schemas/S%d", (i+k*3)%60))))))
			alternatives.Items = append(alternatives.Items, object(member("type", jsondoc.Str("object")), member("properties", props)))
		}
		wide.Members = append(wide.Members, member(fmt.Sprint("S", i), object(member("oneOf", alternatives))))
	}
	for name, c := range map[string]struct{ paths, components string }{
		"wide": {`{"/a":{"post":{"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/S0"}}}}}}}`, string(object(member("schemas", wide)).Append(nil))},
		"itself": {`{"/a":{"post":{"parameters":[{"in":"query","name":"q","schema":{"$ref":"#/components/schemas/X"}}],"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Y"}}}}}}}`,
			`{"schemas":{"X":{"$ref":"#/components/schemas/X"},"Y":{"allOf":[{"$ref":"#/components/schemas/Y"},{"type":"object","properties":{"y":{"$ref":"#/components/schemas/Y"}}}]}}}`},
		"deep": {`{"/a":{"post":{"requestBody":{"content":{"application/json":{"schema":` + strings.Repeat(`{"items":`, 400) + `{}` + strings.Repeat(`}`, 400) + `}}}}}}`, `{}`},
	} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			made(t, doc(c.paths, c.components), Options{})
		}()
		select {
		case <-done:
		case <-time.After(2 * time.Minute):
			t.Fatalf("%s does not end", name)
		}
	}
	laughs := "openapi: 3.0.0\na0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for i := range 9 {
		laughs += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), ", "))
	}
	if _, err := Build(Source{Name: "laughs", Text: []byte(laughs)}, Options{}); err == nil || err.Details["reason"] != string(badSyntax) {
		t.Errorf("aliases: %v", err)
	}
}

// FuzzBuild: no text breaks the import, and what it makes lints clean.
func FuzzBuild(f *testing.F) {
	text, err := os.ReadFile("testdata/harbour.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"openapi":"3.1.0","servers":[{"url":"https://a.example"}],"paths":{"/a/{b}":{"get":{}}}}`))
	f.Add([]byte("openapi: 3.0.0\n<<: &a {x: *a}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 64<<10 {
			return
		}
		if m, err := Build(Source{Name: "fuzz", Text: text}, Options{Server: "https://a.example"}); err == nil {
			for _, issue := range linted(m) {
				if issue.Severity == "error" {
					t.Errorf("%s:%d %s %s", issue.File, issue.Line, issue.Code, issue.Message)
				}
			}
		}
	})
}
