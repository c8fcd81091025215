package manifest

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	_ "github.com/google/jsonschema-go/jsonschema" // its module carries the files of the official suite
	oracle "github.com/santhosh-tekuri/jsonschema/v6"

	"hcpx/internal/jsondoc"
)

// suiteDir is where the official 2020-12 suite lies in the module cache.
func suiteDir(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/google/jsonschema-go").Output()
	if err != nil {
		t.Skipf("the go command, which knows where the suite lies, does not answer: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "jsonschema", "testdata", "draft2020-12")
}

func node(t *testing.T, text []byte) *jsondoc.Node {
	t.Helper()
	n, faults := jsondoc.Parse(text, jsondoc.Limits{Bytes: 1 << 24})
	if len(faults) > 0 {
		t.Fatalf("%s: %v", text, faults)
	}
	return n
}

// Test_3_2_OfficialSuite runs the official suite but for what this runtime refuses to load: references out
// of the schema and dynamic references.
func Test_3_2_OfficialSuite(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(suiteDir(t), "*.json"))
	if err != nil || len(files) < 40 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	run, refused := 0, 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range node(t, text).Items {
			schema, err := newSchema(group.Get("schema"))
			if err != nil {
				refused++
				if !outside(filepath.Base(file), err) {
					t.Errorf("%s, %s: %v", filepath.Base(file), group.Get("description").Text, err)
				}
				continue
			}
			for _, test := range group.Get("tests").Items {
				run++
				found := schema.Validate(test.Get("data"))
				if valid := test.Get("valid").Text == "true"; valid != (len(found) == 0) {
					t.Errorf("%s, %s, %s: %v", filepath.Base(file), group.Get("description").Text, test.Get("description").Text, found)
				}
			}
		}
	}
	if run < 950 {
		t.Errorf("only %d cases ran", run)
	}
	t.Logf("%d cases, %d schemas refused", run, refused)
}

// outside says whether a schema may be refused: it names something outside itself.
func outside(file string, err error) bool {
	text := err.Error()
	return file == "dynamicRef.json" || strings.Contains(text, "leaves the schema") || strings.Contains(text, "$dynamicRef")
}

func oracleSays(t *testing.T, schema, data *jsondoc.Node) (valid, ok bool) {
	t.Helper()
	c := oracle.NewCompiler()
	c.AssertFormat()
	document, err := oracle.UnmarshalJSON(bytes.NewReader(schema.Append(nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.AddResource("mem:schema", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("mem:schema")
	if err != nil {
		return false, false
	}
	value, err := oracle.UnmarshalJSON(bytes.NewReader(data.Append(nil)))
	if err != nil {
		t.Fatal(err)
	}
	return compiled.Validate(value) == nil, true
}

// Random schemas and values: this engine and the oracle agree on every one.
func Test_3_2_AgreesWithTheOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	valid, invalid := 0, 0
	for range 1500 {
		schema, data := randomSchema(r, 3), randomValue(r, 2)
		s, err := newSchema(schema)
		if err != nil {
			t.Fatalf("%s: %v", schema.Append(nil), err)
		}
		found := s.Validate(data)
		want, ok := oracleSays(t, schema, data)
		if !ok {
			t.Fatalf("the oracle refuses %s", schema.Append(nil))
		}
		if want != (len(found) == 0) {
			t.Fatalf("%s of %s: oracle %v, here %v", schema.Append(nil), data.Append(nil), want, found)
		}
		if want {
			valid++
		} else {
			invalid++
		}
	}
	if valid < 150 || invalid < 150 {
		t.Errorf("%d valid, %d invalid: the schemas say too little", valid, invalid)
	}
}

var someWords = []string{"a", "b", "ab", "x_y", "", "é"}

func randomValue(r *rand.Rand, depth int) *jsondoc.Node {
	switch k := r.IntN(8); {
	case k == 0:
		return jsondoc.NullNode()
	case k == 1:
		return jsondoc.Boolean(r.IntN(2) == 0)
	case k <= 3 || depth == 0:
		numbers := []string{"0", "1", "2", "3", "-1", "1.0", "1.5", "0.3", "9007199254740993", "9007199254740992", "1e2", "12345678901234567890123"}
		return jsondoc.Num(numbers[r.IntN(len(numbers))])
	case k == 4:
		return jsondoc.Str(someWords[r.IntN(len(someWords))])
	case k == 5:
		out := jsondoc.Arr()
		for range r.IntN(4) {
			out.Items = append(out.Items, randomValue(r, depth-1))
		}
		return out
	default:
		out := jsondoc.Obj()
		for range r.IntN(4) {
			out = out.With(someWords[r.IntN(len(someWords))], randomValue(r, depth-1))
		}
		return out
	}
}

func randomSchema(r *rand.Rand, depth int) *jsondoc.Node {
	if r.IntN(12) == 0 {
		return jsondoc.Boolean(r.IntN(3) > 0)
	}
	out := jsondoc.Obj()
	for range 1 + r.IntN(4) {
		key, value := randomKeyword(r, depth)
		out = out.With(key, value)
	}
	return out
}

func randomKeyword(r *rand.Rand, depth int) (string, *jsondoc.Node) {
	count := func() *jsondoc.Node { return jsondoc.Num(strconv.Itoa(r.IntN(4))) }
	word := func() *jsondoc.Node { return jsondoc.Str(someWords[r.IntN(len(someWords))]) }
	simple := []func() (string, *jsondoc.Node){
		func() (string, *jsondoc.Node) { return "type", jsondoc.Str(typeNames[r.IntN(len(typeNames))]) },
		func() (string, *jsondoc.Node) {
			return "type", jsondoc.Arr(jsondoc.Str("object"), jsondoc.Str("integer"))
		},
		func() (string, *jsondoc.Node) {
			return "enum", jsondoc.Arr(randomValue(r, 1), randomValue(r, 1), jsondoc.Obj())
		},
		func() (string, *jsondoc.Node) { return "const", randomValue(r, 1) },
		func() (string, *jsondoc.Node) { return "minimum", count() },
		func() (string, *jsondoc.Node) { return "maximum", jsondoc.Num("9007199254740992") },
		func() (string, *jsondoc.Node) { return "exclusiveMaximum", count() },
		func() (string, *jsondoc.Node) { return "exclusiveMinimum", count() },
		func() (string, *jsondoc.Node) {
			return "multipleOf", jsondoc.Num([]string{"0.1", "3", "1.5", "2e0"}[r.IntN(4)])
		},
		func() (string, *jsondoc.Node) { return "minLength", count() },
		func() (string, *jsondoc.Node) { return "maxLength", count() },
		func() (string, *jsondoc.Node) {
			return "pattern", jsondoc.Str([]string{"^a", "b$", "_", "^$"}[r.IntN(4)])
		},
		func() (string, *jsondoc.Node) { return "minItems", count() },
		func() (string, *jsondoc.Node) { return "maxItems", count() },
		func() (string, *jsondoc.Node) { return "uniqueItems", jsondoc.Boolean(true) },
		func() (string, *jsondoc.Node) { return "minProperties", count() },
		func() (string, *jsondoc.Node) { return "maxProperties", count() },
		func() (string, *jsondoc.Node) { return "required", jsondoc.Arr(word()) },
		func() (string, *jsondoc.Node) {
			return "dependentRequired", jsondoc.Obj(jsondoc.Member{Key: "a", Value: jsondoc.Arr(word())})
		},
		func() (string, *jsondoc.Node) { return "minContains", count() },
		func() (string, *jsondoc.Node) { return "maxContains", count() },
	}
	if depth == 0 || r.IntN(2) == 0 {
		return simple[r.IntN(len(simple))]()
	}
	sub := func() *jsondoc.Node { return randomSchema(r, depth-1) }
	named := func(keys ...string) *jsondoc.Node {
		out := jsondoc.Obj()
		for _, k := range keys {
			out = out.With(k, sub())
		}
		return out
	}
	switch key := []string{"properties", "patternProperties", "dependentSchemas", "allOf", "anyOf", "oneOf", "prefixItems", "not", "if", "then", "else",
		"items", "contains", "additionalProperties", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "$defs", "$ref"}[r.IntN(19)]; key {
	case "properties", "dependentSchemas", "$defs":
		return key, named("a", "ab")
	case "patternProperties":
		return key, named("^a", "_")
	case "allOf", "anyOf", "oneOf", "prefixItems":
		return key, jsondoc.Arr(sub(), sub())
	case "$ref":
		return "items", jsondoc.Obj(jsondoc.Member{Key: "$ref", Value: jsondoc.Str("#")})
	default:
		return key, sub()
	}
}

func Test_3_2_FormatsAgreeWithTheOracle(t *testing.T) {
	texts := map[string][]string{
		"date-time":             {"2026-01-31T12:00:00Z", "2026-01-31t12:00:00.5+01:30", "2026-02-30T12:00:00Z", "2016-12-31T23:59:60Z", "2016-12-31T15:59:60-08:00", "2016-12-31T22:59:60Z", "2026-01-31 12:00:00Z", "2026-01-31T24:00:00Z", "x"},
		"date":                  {"2024-02-29", "2023-02-29", "2026-1-1", "2026-01-31T00:00:00Z"},
		"time":                  {"12:00:00Z", "12:00:00", "12:00:00.Z", "23:59:60Z", "12:00:00+25:00", "1:00:00Z"},
		"duration":              {"P1Y", "PT1H", "P1W", "P1W1D", "P", "PT", "P1YT", "P1Y2M3DT4H5M6S", "P1S", "PT1D", "1Y", "P1D2Y"},
		"email":                 {"a@example.org", "a@", "a..b@example.org", "\"a b\"@example.org", "a@[127.0.0.1]", "a b@example.org"},
		"hostname":              {"example.org", "-a.org", "a-.org", "a_b.org", "1.2", strings.Repeat("a", 64) + ".org"},
		"ipv4":                  {"1.2.3.4", "1.2.3", "01.2.3.4", "1.2.3.256"},
		"ipv6":                  {"::1", "1::2::3", "::ffff:1.2.3.4", "fe80::1%eth0", "12345::"},
		"uri":                   {"https://example.org/a?b#c", "/a", "a b:c", "urn:x:y", "http://[::1]/"},
		"uri-reference":         {"/a", "a/b", "#x", "\\\\x", "https://example.org"},
		"iri":                   {"https://é.org/ü", "/é"},
		"uuid":                  {"123e4567-e89b-12d3-a456-426614174000", "123e4567e89b12d3a456426614174000", "123E4567-E89B-12D3-A456-42661417400g"},
		"json-pointer":          {"", "/a", "a", "/~0~1", "/~2"},
		"relative-json-pointer": {"0", "1/a", "01", "0#", "/a", "-1/a"},
		"regex":                 {"^a+$", "a("},
		"unknown":               {"anything"},
	}
	for format, list := range texts {
		schema := jsondoc.Obj(jsondoc.Member{Key: "format", Value: jsondoc.Str(format)})
		for _, text := range list {
			want, _ := oracleSays(t, schema, jsondoc.Str(text))
			if got := formatFits(format, text); got != want {
				t.Errorf("%s %q = %v, the oracle says %v", format, text, got, want)
			}
		}
	}
}

func BenchmarkCompileAndValidate(b *testing.B) {
	schema, _ := jsondoc.Parse([]byte(`{"type":"object","properties":{"from":{"type":"string","minLength":1},"to":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":50,"default":5},"when":{"type":"string","format":"date-time"}},"required":["from","to"],"additionalProperties":false}`), jsondoc.Limits{})
	data, _ := jsondoc.Parse([]byte(`{"from":"north","to":"south","limit":7,"when":"2026-01-02T03:04:05Z"}`), jsondoc.Limits{})
	b.ReportAllocs()
	for b.Loop() {
		s, err := newSchema(schema)
		if err != nil || len(s.Validate(data)) > 0 {
			b.Fatal(err)
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	var v any
	if err := json.Unmarshal([]byte(`{"type":"object","properties":{"from":{"type":"string","minLength":1},"limit":{"type":"integer","minimum":1,"maximum":50}}}`), &v); err != nil {
		b.Fatal(err)
	}
	schema, _ := jsondoc.FromAny(v)
	data, _ := jsondoc.Parse([]byte(`{"from":"north","limit":7}`), jsondoc.Limits{})
	s, err := newSchema(schema)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Validate(data)
	}
}
