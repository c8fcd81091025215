package cli

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/jsondoc"
)

const wordsSchema = `{
  "type": "object", "additionalProperties": false,
  "properties": {
    "text": {"type": "string"}, "count": {"type": "integer"}, "ratio": {"type": "number"}, "flag": {"type": "boolean"},
    "none": {"type": ["string", "null"]}, "gone": {"type": ["null", "string"]},
    "id": {"type": ["integer", "string"]}, "label": {"type": ["string", "integer"]},
    "tags": {"type": "array", "items": {"type": "string"}}, "sizes": {"type": "array", "items": {"type": "integer"}},
    "some": {"type": ["string", "array"], "items": {"type": "string"}},
    "opts": {"type": "object", "properties": {"depth": {"type": "integer"}, "deep": {"type": "object", "properties": {"on": {"type": "boolean"}}}}},
    "a.b": {"type": "integer"}, "a": {"type": "object", "properties": {"b": {"type": "string"}, "c.d": {"type": "integer"}}},
    "level": {"enum": ["low", 2, true]}, "one": {"const": 7},
    "ref": {"$ref": "#/$defs/size"}, "any": {}, "pick": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    "loop": {"$ref": "#/properties/loop"}
  },
  "$defs": {"size": {"type": "integer"}}
}`

func schemaNode(t testing.TB, src string) *jsondoc.Node {
	t.Helper()
	n, faults := jsondoc.Parse([]byte(src), jsondoc.Limits{})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return n
}

func Test_6_7_WordsAreTypedByTheSchema(t *testing.T) {
	schema := schemaNode(t, wordsSchema)
	for _, tt := range []struct {
		about string
		words []string
		want  string
	}{
		{"no word is no argument", nil, `{}`},
		{"a string stands as it is", []string{"text=true"}, `{"text":"true"}`},
		{"a string may be empty", []string{"text="}, `{"text":""}`},
		{"a string may hold = and :=", []string{"text=a=b:=c"}, `{"text":"a=b:=c"}`},
		{"an integer keeps its literal", []string{"count=9007199254740993"}, `{"count":9007199254740993}`},
		{"1.0 fits integer and stays 1.0", []string{"count=1.0"}, `{"count":1.0}`},
		{"a number keeps its literal", []string{"ratio=0.10"}, `{"ratio":0.10}`},
		{"a number may have an exponent", []string{"ratio=-1e400"}, `{"ratio":-1e400}`},
		{"what is no integer stays text", []string{"count=1.5"}, `{"count":"1.5"}`},
		{"007 is no JSON number", []string{"count=007"}, `{"count":"007"}`},
		{"a blank is no part of a number", []string{"count= 7"}, `{"count":" 7"}`},
		{"a boolean is true or false", []string{"flag=false"}, `{"flag":false}`},
		{"yes is no boolean", []string{"flag=yes"}, `{"flag":"yes"}`},
		{"True is no boolean", []string{"flag=True"}, `{"flag":"True"}`},
		{"the first listed type wins: string", []string{"none=null"}, `{"none":"null"}`},
		{"the first listed type wins: null", []string{"gone=null"}, `{"gone":null}`},
		{"the first listed type wins: integer", []string{"id=5"}, `{"id":5}`},
		{"the second takes what the first cannot", []string{"id=x5"}, `{"id":"x5"}`},
		{"a string type listed first takes digits", []string{"label=5"}, `{"label":"5"}`},
		{"one value of an array is an array of one", []string{"tags=x"}, `{"tags":["x"]}`},
		{"items are typed", []string{"sizes=1", "sizes=2"}, `{"sizes":[1,2]}`},
		{"a repeated key builds an array", []string{"tags=b", "tags=a", "tags=b"}, `{"tags":["b","a","b"]}`},
		{"also where the schema takes none", []string{"text=a", "text=b"}, `{"text":["a","b"]}`},
		{"string or array: one is a string", []string{"some=a"}, `{"some":"a"}`},
		{"string or array: two are an array", []string{"some=a", "some=b"}, `{"some":["a","b"]}`},
		{":= takes any JSON", []string{`opts:={"depth": 1.50}`}, `{"opts":{"depth":1.50}}`},
		{":= gives an array as a whole", []string{`tags:=["a"]`}, `{"tags":["a"]}`},
		{"a repeated := is an item each", []string{`any:=1`, `any:=[2]`}, `{"any":[1,[2]]}`},
		{":= may override the type", []string{`text:=5`}, `{"text":5}`},
		{"a dot nests", []string{"opts.depth=3", "opts.deep.on=true"}, `{"opts":{"depth":3,"deep":{"on":true}}}`},
		{"an exact name wins", []string{"a.b=3"}, `{"a.b":3}`},
		{"an exact name wins below too", []string{"a.c.d=3"}, `{"a":{"c.d":3}}`},
		{"an unknown name is a string", []string{"zip=07"}, `{"zip":"07"}`},
		{"an unknown name nests", []string{"x.y=1"}, `{"x":{"y":"1"}}`},
		{"an empty part does not nest", []string{"x..y=1", ".z=1", "w.=1"}, `{"x":{".y":"1"},".z":"1","w.":"1"}`},
		{"an enum without type", []string{"level=2"}, `{"level":2}`},
		{"an enum text", []string{"level=low"}, `{"level":"low"}`},
		{"a const", []string{"one=7"}, `{"one":7}`},
		{"a $ref is followed", []string{"ref=7"}, `{"ref":7}`},
		{"anyOf in its order", []string{"pick=7"}, `{"pick":7}`},
		{"no type is a string", []string{"any=7"}, `{"any":"7"}`},
		{"a $ref in a circle ends", []string{"loop=7"}, `{"loop":"7"}`},
		{"an object cannot be typed from text", []string{"opts=x"}, `{"opts":"x"}`},
	} {
		t.Run("§6.7 "+tt.about, func(t *testing.T) {
			got, bad := buildArgs(tt.words, schema)
			if len(bad) > 0 {
				t.Fatalf("refused: %v", bad)
			}
			if diff := cmp.Diff(tt.want, string(got.Append(nil))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func Test_6_7_WhatIsNoArgumentIsAViolation(t *testing.T) {
	schema := schemaNode(t, wordsSchema)
	for _, tt := range []struct {
		about, pointer string
		words          []string
	}{
		{"no =", "", []string{"text"}},
		{"no name", "", []string{"=x"}},
		{"no name before :=", "", []string{":=1"}},
		{"not UTF-8", "", []string{"text=\xff"}},
		{"not JSON", "/opts", []string{"opts:={"}},
		{"two JSON values", "/any", []string{"any:=1 2"}},
		{"a duplicate key", "/any", []string{`any:={"a":1,"a":2}`}},
		{"JSON of an object behind =", "/opts", []string{`opts={"depth":1}`}},
		{"JSON of a list behind =", "/sizes", []string{"sizes=[1,2]"}},
		{"value, then member", "/opts/depth", []string{"opts:={}", "opts.depth=1"}},
		{"member, then value", "/opts", []string{"opts.depth=1", "opts:={}"}},
	} {
		t.Run("§6.7 "+tt.about, func(t *testing.T) {
			_, bad := buildArgs(tt.words, schema)
			if len(bad) != 1 || bad[0].Pointer != tt.pointer {
				t.Errorf("violations %v, want one at %q", bad, tt.pointer)
			}
		})
	}
}

// Any text arrives byte for byte, whatever it holds.
func Test_6_7_TextArrivesByteForByte(t *testing.T) {
	schema := schemaNode(t, wordsSchema)
	for name, v := range map[string]string{
		"100 kB": strings.Repeat("ab\n\t\"'$()`\\ü—漢🙂\u202e\u0001", 100_000/40), "newlines": "\n\r\n\n", "quotes": `"'"'\`,
		"html": "<a>&\u2028\u2029</a>", "dash": "--upload-pack=x", "json": `{"a":1}`, "empty": "",
	} {
		for _, key := range []string{"text", "tags", "opts.name", "unknown"} {
			t.Run("§6.7 "+name+" as "+key, func(t *testing.T) {
				got, bad := buildArgs([]string{key + "=" + v}, schema)
				if len(bad) > 0 {
					t.Fatal(bad)
				}
				if s := onlyString(t, got.Append(nil)); s != v {
					t.Errorf("%d bytes arrived, %d were given", len(s), len(v))
				}
			})
		}
	}
}

func onlyString(t testing.TB, src []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(src, &v); err != nil {
		t.Fatal(err)
	}
	for {
		switch x := v.(type) {
		case map[string]any:
			for _, v = range x {
			}
		case []any:
			v = x[0]
		case string:
			return x
		default:
			t.Fatalf("%T", v)
		}
	}
}

// FuzzWords holds for any words: the arguments are one JSON object, every number in it was typed as it
// stands, and a string value is never changed.
func FuzzWords(f *testing.F) {
	f.Add("text=x", "count=7")
	f.Add("opts.depth:=[1]", "opts=3")
	f.Add("a.b.c=1", "a.b=2")
	f.Add("tags=\xff", ":==")
	schema := schemaNode(f, wordsSchema)
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, s := range []*jsondoc.Node{schema, nil} {
			got, bad := buildArgs([]string{a, b}, s)
			text := got.Append(nil)
			back, faults := jsondoc.Parse(text, jsondoc.Limits{Depth: 1 << 20, Bytes: 1 << 30})
			if len(faults) > 0 || back.Kind != jsondoc.Object {
				t.Fatalf("%q and %q make %s: %v", a, b, text, faults)
			}
			if !back.Equal(got) {
				t.Fatalf("%s reads back otherwise", text)
			}
			if len(bad) == 0 && !(utf8.ValidString(a) && utf8.ValidString(b)) {
				t.Fatal("invalid UTF-8 went through")
			}
		}
	})
}

// A literal typed for an integer or number property is the literal in the envelope, or it is a string.
func Test_6_7_NumbersAreNeverRounded(t *testing.T) {
	schema := schemaNode(t, wordsSchema)
	for _, v := range []string{"0", "-0", "1e2", "1E+2", "123456789012345678901234567890", "0.1", "00", "+1", "1.", ".5", "0x10", "NaN", "1_000", "١"} {
		for _, key := range []string{"count", "ratio"} {
			got, _ := buildArgs([]string{key + "=" + v}, schema)
			text := string(got.Append(nil))
			if text != fmt.Sprintf(`{%q:%s}`, key, v) && text != fmt.Sprintf(`{%q:%q}`, key, v) {
				t.Errorf("%s=%s became %s", key, v, text)
			}
		}
	}
}
