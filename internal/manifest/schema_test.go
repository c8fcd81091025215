package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"hcpx/internal/jsondoc"
	"hcpx/internal/protocol"
)

// newSchema compiles a schema that stands nowhere in a manifest. It follows the standard: nothing is closed
// that it leaves open.
func newSchema(n *jsondoc.Node) (*Schema, error) {
	s, faults := load(n, "")
	if len(faults) > 0 {
		return nil, &SchemaError{faults}
	}
	return s, nil
}

// argsOf loads a schema the way a command's own args are loaded.
func argsOf(t *testing.T, text string) *Schema {
	t.Helper()
	c := Command{Key: "a", ArgsNode: node(t, []byte(text))}
	s, err := c.Args()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func violations(s *Schema, v *jsondoc.Node) []string {
	var out []string
	for _, x := range s.Validate(v) {
		out = append(out, x.Pointer+": "+x.Message)
	}
	return out
}

func Test_3_2_LoadRefusesWithThePlace(t *testing.T) {
	for schema, want := range map[string]string{
		`7`:                                  "1:1 ",
		`[]`:                                 "1:1 ",
		`{"type":"text"}`:                    "1:9 /type",
		`{"type":["string","strin"]}`:        "1:19 /type/1",
		`{"type":["string","string"]}`:       "1:19 /type/1",
		`{"type":[]}`:                        "1:9 /type",
		`{"minimum":"1"}`:                    "1:12 /minimum",
		`{"exclusiveMinimum":true}`:          "1:21 /exclusiveMinimum",
		`{"multipleOf":0}`:                   "1:15 /multipleOf",
		`{"minLength":-1}`:                   "1:14 /minLength",
		`{"minLength":1.5}`:                  "1:14 /minLength",
		`{"minLength":1.0}`:                  "",
		`{"required":"a"}`:                   "1:13 /required",
		`{"required":["a","a"]}`:             "1:18 /required/1",
		`{"properties":[]}`:                  "1:15 /properties",
		`{"properties":{"a/b":{"type":1}}}`:  "1:30 /properties/a~1b/type",
		`{"properties":{"a":7}}`:             "1:20 /properties/a",
		`{"items":[{}]}`:                     "1:10 /items",
		`{"prefixItems":[]}`:                 "1:16 /prefixItems",
		`{"allOf":{}}`:                       "1:10 /allOf",
		`{"enum":1}`:                         "1:9 /enum",
		`{"uniqueItems":1}`:                  "1:16 /uniqueItems",
		`{"dependentRequired":{"a":"b"}}`:    "1:27 /dependentRequired/a",
		`{"pattern":"(?=a)"}`:                "1:12 /pattern",
		`{"pattern":"("}`:                    "1:12 /pattern",
		`{"patternProperties":{"(?!x)":{}}}`: "1:31 /patternProperties/(?!x)",
		`{"x-hcp-allow-dash":"yes"}`:         "1:21 /x-hcp-allow-dash",
		`{"$schema":"http://json-schema.org/draft-07/schema#"}`: "1:12 /$schema",
		`{"$ref":"https://example.org/x"}`:                      "1:9 /$ref",
		`{"$ref":"other.json"}`:                                 "1:9 /$ref",
		`{"$ref":"#/$defs/x"}`:                                  "1:9 /$ref",
		`{"$ref":"#x"}`:                                         "1:9 /$ref",
		`{"$ref":"#/~2"}`:                                       "1:9 /$ref",
		`{"$ref":"#"}`:                                          "1:9 /$ref",
		`{"$ref":7}`:                                            "1:9 /$ref",
		`{"$ref":"#/x","x":{"type":1}}`:                         "1:27 /x/type",
		`{"$dynamicRef":"#a"}`:                                  "1:16 /$dynamicRef",
		`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{"$ref":"#/$defs/a"}]}}}`: "1:23 /$defs/a/$ref",
		`{"$defs":{"a":{"type":"string"}},"properties":{"x":{"$ref":"#/$defs/a"}}}`: "",
		`{"properties":{"child":{"$ref":"#"}}}`:                                     "",
	} {
		t.Run(schema, func(t *testing.T) {
			_, faults := compile(node(t, []byte(schema)), "")
			got := ""
			for _, f := range faults {
				line, column := jsondoc.Place([]byte(schema), f.Offset)
				got += fmt.Sprintf("%d:%d %s", line, column, f.Pointer)
			}
			if got != want {
				t.Errorf("got %q, want %q (%v)", got, want, faults)
			}
		})
	}
}

func Test_3_2_ArgsAreClosedAtTheTop(t *testing.T) {
	for _, tt := range []struct{ name, schema, value, want string }{
		{"unknown member", `{"properties":{"a":{}}}`, `{"b":1}`, `/b: The member "b" is not known.`},
		{"says otherwise", `{"additionalProperties":true}`, `{"b":1}`, ``},
		{"says it with a schema", `{"additionalProperties":{"type":"string"}}`, `{"b":1}`, `/b: The value is a number, not a string.`},
		{"patterns count", `{"patternProperties":{"^x":{}}}`, `{"xa":1}`, ``},
		{"a nested object is open", `{"properties":{"a":{"type":"object","properties":{"b":{}}}}}`, `{"a":{"c":1}}`, ``},
		{"allOf counts", `{"allOf":[{"properties":{"a":{}}}]}`, `{"a":1,"b":2}`, `/b: The member "b" is not known.`},
		{"a reference counts", `{"$ref":"#/$defs/x","$defs":{"x":{"properties":{"a":{}}}}}`, `{"a":1}`, ``},
		{"no object", `{"type":"object"}`, `[]`, `: The value is an array, not an object.`},
		{"type is implied", `{}`, `7`, `: The value is a number, not an object.`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(violations(argsOf(t, tt.schema), node(t, []byte(tt.value))), "; "); got != tt.want {
				t.Errorf("got %s", got)
			}
		})
	}
	none, err := (&Command{Key: "a"}).Args()
	if err != nil || len(none.Validate(jsondoc.Obj())) > 0 || len(none.Validate(node(t, []byte(`{"a":1}`)))) != 1 {
		t.Error("no args is not: no arguments")
	}
	c := Command{Key: "a", ArgsNode: node(t, []byte(`{"type":["object","null"]}`))}
	if _, err := c.Args(); err == nil || !strings.HasPrefix(err.Error(), "/verbs/a/args/type: ") {
		t.Errorf("arguments that may be null: %v", err)
	}
	if s, err := (&Command{}).Result(); s != nil || err != nil {
		t.Errorf("no result: %v %v", s, err)
	}
}

func Test_6_3_AllViolationsSortedWithPointers(t *testing.T) {
	s := argsOf(t, `{"type":"object","required":["z","a"],"properties":{"list":{"type":"array","items":{"type":"object","required":["id"],"properties":{"id":{"type":"integer","minimum":1}}}},"when":{"format":"date"},"kind":{"enum":["x","y"]},"a~/b":{"const":1}}}`)
	got := violations(s, node(t, []byte(`{"list":[{"id":0},{},{"id":"7"},8],"when":"soon","kind":"z","a~/b":2,"more":true}`)))
	want := []string{
		`: The member "a" is missing.`,
		`: The member "z" is missing.`,
		`/a~0~1b: The value is not 1.`,
		`/kind: The value is none of "x", "y".`,
		`/list/0/id: The number is below 1.`,
		`/list/1: The member "id" is missing.`,
		`/list/2/id: The value is a string, not an integer.`,
		`/list/3: The value is a number, not an object.`,
		`/more: The member "more" is not known.`,
		`/when: The text has not the format "date".`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func Test_6_5_NumbersAreExact(t *testing.T) {
	for _, tt := range []struct {
		schema, value string
		want          bool
	}{
		{`{"const":9007199254740993}`, `9007199254740992`, false},
		{`{"enum":[9007199254740993]}`, `9007199254740993.0`, true},
		{`{"maximum":9007199254740992}`, `9007199254740993`, false},
		{`{"minimum":0.1000000000000000000001}`, `0.1`, false},
		{`{"multipleOf":0.01}`, `19.99`, true},
		{`{"multipleOf":3}`, `9007199254740993`, true},
		{`{"multipleOf":1e-30}`, `1e300`, true},
		{`{"multipleOf":7}`, `1e99999999999999999999`, false},
		{`{"type":"integer"}`, `1.0`, true},
		{`{"type":"integer"}`, `1e400`, true},
		{`{"type":"integer"}`, `1.5`, false},
		{`{"exclusiveMaximum":1e1000}`, `9e999`, true},
		{`{"uniqueItems":true}`, `[9007199254740993,9007199254740992]`, true},
		{`{"uniqueItems":true}`, `[1,1.0]`, false},
		{`{"uniqueItems":true}`, `[1,2,3,4,5,6,7,8,9,{"a":1,"b":2},{"b":2.0,"a":1e0}]`, false},
	} {
		s, err := newSchema(node(t, []byte(tt.schema)))
		if err != nil {
			t.Fatal(err)
		}
		if got := len(s.Validate(node(t, []byte(tt.value)))) == 0; got != tt.want {
			t.Errorf("%s of %s = %v", tt.schema, tt.value, got)
		}
	}
}

func Test_3_2_Defaults(t *testing.T) {
	s := argsOf(t, `{"properties":{"a":{"default":1},"o":{"type":"object","properties":{"b":{"default":"x"}}},"d":{"default":{},"properties":{"e":{"default":null}}},"r":{"$ref":"#/$defs/r"}},"$defs":{"r":{"default":[2]}}}`)
	for args, want := range map[string]string{
		`{}`:                          `{"a":1,"d":{"e":null},"r":[2]}`,
		`{"a":null,"o":{},"d":7}`:     `{"a":null,"o":{"b":"x"},"d":7,"r":[2]}`,
		`{"o":{"b":"y","c":1},"r":1}`: `{"o":{"b":"y","c":1},"r":1,"a":1,"d":{"e":null}}`,
		`[]`:                          `[]`,
	} {
		in := node(t, []byte(args))
		if got := string(s.Defaults(in).Append(nil)); got != want {
			t.Errorf("%s became %s, want %s", args, got, want)
		}
		if string(in.Append(nil)) != args {
			t.Errorf("the arguments themselves became %s", in.Append(nil))
		}
	}
	if got := string(s.Defaults(nil).Append(nil)); !strings.HasPrefix(got, `{"a":1`) {
		t.Errorf("no arguments became %s", got)
	}
	endless := argsOf(t, `{"properties":{"a":{"$ref":"#","default":{}},"b":{"$ref":"#","default":{}}}}`)
	if n := len(endless.Defaults(jsondoc.Obj()).Append(nil)); n > 1<<16 {
		t.Errorf("a schema that holds itself filled in %d bytes", n)
	}
}

func TestCostlySchemasEnd(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range 40 {
		fmt.Fprintf(&b, `"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	b.WriteString(`"d40":false}}`)
	s, err := newSchema(node(t, []byte(b.String())))
	if err != nil {
		t.Fatal(err)
	}
	want := []protocol.Violation{{Message: "The value is too costly to check against the schema."}}
	if d := cmp.Diff(want, s.Validate(jsondoc.Num("1"))); d != "" {
		t.Error(d)
	}
}

func TestProperties(t *testing.T) {
	s := argsOf(t, `{"required":["to"],"allOf":[{"properties":{"via":{"type":"string"}},"required":["via"]}],"properties":{
		"to":{"$ref":"#/$defs/stop"},"tags":{"type":"array","items":{"enum":["a","b"]}},
		"any":{},"one":{"anyOf":[{"type":"string"},{"type":"null"}]},"fix":{"const":2},
		"o":{"type":"object","required":["x"],"properties":{"x":{"type":["integer","null"]}}}},
		"$defs":{"stop":{"type":"string","description":"A stop","x-hcp-allow-dash":true}}}`)
	want := []*Property{
		{Name: "to", Types: []string{"string"}, Required: true, AllowDash: true, Description: "A stop"},
		{Name: "tags", Types: []string{"array"}, Items: &Property{Types: []string{"string"}}},
		{Name: "any"},
		{Name: "one", Types: []string{"null", "string"}},
		{Name: "fix", Types: []string{"integer"}},
		{Name: "o", Types: []string{"object"}, Props: []*Property{{Name: "x", Types: []string{"null", "integer"}, Required: true}}},
		{Name: "via", Types: []string{"string"}, Required: true},
	}
	if d := cmp.Diff(want, s.Properties(), cmpopts.IgnoreFields(Property{}, "Node", "Enum")); d != "" {
		t.Error(d)
	}
	if p := s.Property("tags"); p == nil || len(p.Items.Enum) != 2 || p.Node == nil {
		t.Errorf("tags: %+v", p)
	}
	if s.Property("none") != nil {
		t.Error("a property that is not declared was found")
	}
}

func TestExampleFitsItsSchema(t *testing.T) {
	for _, schema := range []string{
		`{}`, `{"required":["a","b","c","d"],"properties":{"a":{"type":"string","minLength":9},"b":{"type":"integer","minimum":5},"c":{"enum":["x"]},"d":{"type":"array","items":{"type":"number"},"minItems":2}}}`,
		`{"required":["a","b","c"],"properties":{"a":{"format":"date-time"},"b":{"type":["null","boolean"]},"c":{"type":"object","required":["x"],"properties":{"x":{"const":7}}}}}`,
		`{"required":["a","b"],"properties":{"a":{"type":"number","multipleOf":0.5},"b":{"type":"integer","maximum":-3}}}`,
	} {
		s := argsOf(t, schema)
		if e := s.Example(); len(s.Validate(e)) > 0 {
			t.Errorf("%s gave %s: %v", schema, e.Append(nil), s.Validate(e))
		}
	}
}

func TestCheckReportsSchemasOfEveryCommand(t *testing.T) {
	m, _ := Decode([]byte(`{"verbs":{"a":{"args":{"type":"array"}},"b":{"result":{"pattern":"("}},"c":{"args":7}}}`))
	var got []string
	for _, i := range m.Check() {
		got = append(got, string(i.Code)+" "+i.Pointer)
	}
	want := []string{"manifest.args-schema /verbs/a/args/type", "manifest.args-schema /verbs/b/result/pattern", "manifest.args-schema /verbs/c/args"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
