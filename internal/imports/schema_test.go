package imports

import (
	"strconv"
	"strings"
	"testing"

	"hcpx/internal/jsondoc"
)

// §15.6: what a schema of a document becomes for a model.
func Test_15_6_Schemas(t *testing.T) {
	components := `{"schemas":{"S":{"type":"string","description":"A name."},"O":{"type":"object","required":["a"],"properties":{"a":{"type":"string"},"o":{"$ref":"#/components/schemas/O"}}}}}`
	root, _ := jsondoc.Parse([]byte(`{"openapi":"3.0.0","components":`+components+`}`), jsondoc.Limits{})
	for _, c := range []struct{ name, in, want string }{
		{"anything", `{}`, `{}`},
		{"nothing known", `{"type":"file","x-y":1,"example":2}`, `{}`},
		{"a reference", `{"$ref":"#/components/schemas/S"}`, `{"type":"string","description":"A name."}`},
		{"one with words of its own", `{"$ref":"#/components/schemas/S","description":"Of the boat."}`, `{"type":"string","description":"Of the boat."}`},
		{"one of nowhere", `{"$ref":"#/components/schemas/None"}`, `{}`},
		{"one of elsewhere", `{"$ref":"other.json#/S"}`, `{}`},
		{"itself", `{"$ref":"#/components/schemas/O"}`, `{"type":"object","properties":{"a":{"type":"string"},"o":{"type":"object"}},"required":["a"]}`},
		{"nullable", `{"type":"string","nullable":true,"enum":["a","b"]}`, `{"type":["string","null"],"enum":["a","b",null]}`},
		{"a list of types", `{"type":["string","null"]}`, `{"type":["string","null"]}`},
		{"null or", `{"oneOf":[{"type":"null"},{"$ref":"#/components/schemas/S"}]}`, `{"type":["string","null"],"description":"A name."}`},
		{"scalars", `{"anyOf":[{"type":"string"},{"type":"integer"}]}`, `{"type":["string","integer"]}`},
		{"one kind of number", `{"anyOf":[{"type":"number"},{"type":"integer"}]}`, `{"type":"number"}`},
		{"alternatives of objects", `{"oneOf":[{"type":"object","required":["k","x"],"properties":{"k":{"enum":["1"]},"x":{"type":"string"}}},{"type":"object","required":["k"],"properties":{"k":{"enum":["2"]}}}]}`,
			`{"type":"object","properties":{"k":{"enum":["1","2"]},"x":{"type":"string"}},"required":["k"]}`},
		{"all of", `{"allOf":[{"$ref":"#/components/schemas/O"},{"type":"object","required":["b"],"properties":{"b":{"type":"integer"},"a":{"type":"string","maxLength":3}}}]}`,
			`{"type":"object","properties":{"a":{"type":"string","maxLength":3},"o":{"type":"object","properties":{"a":{"type":"string"},"o":{"type":"object"}},"required":["a"]},"b":{"type":"integer"}},"required":["a","b"]}`},
		{"closed parts close nothing", `{"allOf":[{"type":"object","properties":{"a":{}},"additionalProperties":false},{"type":"object","properties":{"b":{}},"additionalProperties":false}]}`,
			`{"type":"object","properties":{"a":{},"b":{}}}`},
		{"closed", `{"type":"object","properties":{"a":{}},"additionalProperties":false}`, `{"type":"object","properties":{"a":{}},"additionalProperties":false}`},
		{"closed beside patterns", `{"type":"object","patternProperties":{"^x":{}},"additionalProperties":false}`, `{"type":"object"}`},
		{"a map", `{"type":"object","additionalProperties":{"type":"integer"}}`, `{"type":"object","additionalProperties":{"type":"integer"}}`},
		{"a default", `{"type":"integer","default":30,"description":"How many"}`, `{"type":"integer","description":"How many. Default: 30."}`},
		{"read only", `{"type":"object","required":["id"],"properties":{"id":{"type":"string","readOnly":true},"a":{"type":"string","writeOnly":true}},"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{"type":"string","writeOnly":true}}}`},
		{"an exclusive bound of 3.0", `{"type":"number","minimum":0,"exclusiveMinimum":true,"maximum":9,"exclusiveMaximum":false}`, `{"type":"number","maximum":9,"exclusiveMinimum":0}`},
		{"one of 3.1", `{"type":"number","exclusiveMinimum":0}`, `{"type":"number","exclusiveMinimum":0}`},
		{"patterns", `{"type":"object","properties":{"go":{"pattern":"^a+$"},"ecma":{"pattern":"(?=x)y"},"marks":{"pattern":"/^a$/i"}}}`, `{"type":"object","properties":{"go":{"pattern":"^a+$"},"ecma":{},"marks":{}}}`},
		{"formats", `{"type":"object","properties":{"d":{"format":"date"},"i":{"format":"int64"},"t":{"format":"time"}}}`, `{"type":"object","properties":{"d":{"format":"date"},"i":{},"t":{}}}`},
		{"an enum of another type", `{"type":"string","enum":[1,2]}`, `{"type":"string"}`},
		{"a constant", `{"const":"x"}`, `{"enum":["x"]}`},
		{"forms that are wrong", `{"type":"string","minLength":-1,"maxLength":"9","pattern":7,"uniqueItems":"yes","enum":"a","required":"b","properties":[]}`, `{"type":"string"}`},
		{"conditions", `{"type":"object","properties":{"a":{}},"not":{"required":["a"]},"if":{},"then":false}`, `{"type":"object","properties":{"a":{}}}`},
		{"places in a list", `{"type":"array","prefixItems":[{"type":"string"}],"items":false,"minItems":1}`, `{"type":"array","minItems":1}`},
		{"a circle of alternatives", `{"anyOf":[{"$ref":"#/components/schemas/O"},{"type":"array","items":{"$ref":"#/components/schemas/O"}}]}`,
			`{"type":["object","array"],"items":{"type":"object","properties":{"a":{"type":"string"},"o":{"type":"object"}},"required":["a"]},"properties":{"a":{"type":"string"},"o":{"type":"object","properties":{"a":{"type":"string"},"o":{"type":"object"}},"required":["a"]}}}`},
	} {
		in, faults := jsondoc.Parse([]byte(c.in), jsondoc.Limits{})
		if len(faults) > 0 {
			t.Fatal(c.name, faults)
		}
		if got := string(newDocument(root).writer(shapes[0]).schema(in, 0).Append(nil)); got != c.want {
			t.Errorf("%s:\n%s\n%s", c.name, got, c.want)
		}
	}
}

// §15.6: what is too large for a model is cut: an enum, a description, depth, and in the end the names themselves.
func Test_15_6_LargeSchemas(t *testing.T) {
	var values, props []string
	for i := range 3000 {
		values = append(values, `"v`+strings.Repeat("x", i%40)+`"`)
		props = append(props, `"p`+strings.Repeat("y", i%50)+strconv.Itoa(i)+`":{"type":"object","description":"`+strings.Repeat("word ", 100)+`","properties":{"q":{"enum":[`+values[i]+`]}}}`)
	}
	long := `{"type":"object","properties":{` + strings.Join(props[:700], ",") + `}}`
	m := made(t, doc(`{"/a":{"post":{"requestBody":{"content":{"application/json":{"schema":`+long+`}}}}},"/b":{"post":{"requestBody":{"content":{"application/json":{"schema":
		{"type":"object","properties":{"deep":`+strings.Repeat(`{"type":"object","properties":{"d":`, 50)+`{}`+strings.Repeat(`}}`, 50)+`,"text":{"type":"string","description":"`+strings.Repeat("word ", 500)+`"}}}}}}}}}`, `{}`), Options{})
	for _, v := range m.file(t, "surface.json").Get("verbs").Members {
		if size := len(v.Value.Get("args").Append(nil)); size > maxLastArgs {
			t.Errorf("%s has arguments of %d bytes", v.Key, size)
		}
		if n := depth(v.Value.Get("args")); n > 3+2*shapes[0].depth {
			t.Errorf("%s nests %d deep", v.Key, n)
		}
	}
}

func depth(n *jsondoc.Node) int {
	most := 0
	for _, m := range fields(n) {
		most = max(most, 1+depth(m.Value))
	}
	return most
}
