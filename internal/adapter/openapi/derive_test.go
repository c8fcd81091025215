package openapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func Test_3_6_ArgsAreDerived(t *testing.T) {
	for _, c := range []struct{ name, version, document, want string }{
		{"parameters by name, those of the path item too", "3.0.3", `{"paths":{"/x/{id}":{"parameters":[{"name":"id","in":"path","required":true,"description":"Which","schema":{"type":"integer","minimum":0,"exclusiveMinimum":true}},
{"$ref":"#/components/parameters/Page"}],"get":{"operationId":"op","parameters":[{"name":"id","in":"query","schema":{"type":"string","nullable":true,"enum":["a"]}},{"name":"page","in":"query","required":true,"schema":{"type":"string"}}]}}},
"components":{"parameters":{"Page":{"name":"page","in":"query","schema":{"type":"integer"}}}}}`,
			`{"type":"object","properties":{"id":{"type":"integer","exclusiveMinimum":0,"description":"Which"},"page":{"type":"string"},"id_query":{"type":["string","null"],"enum":["a",null]}},"required":["id","page"],"additionalProperties":false}`},
		{"a body's members, through a reference", "3.1.0", op("post", "/x", content("application/json", `{"$ref":"#/components/schemas/Pet"}`, "")),
			`{"type":"object","properties":{"name":{"type":"string"},"tag":{"type":["string","null"]},"parent":{"$ref":"#/$defs/Pet"}},"required":["name"],"$defs":{"Pet":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"tag":{"type":["string","null"]},"parent":{"$ref":"#/$defs/Pet"}}}}}`},
		{"through allOf, and closed", "3.1.0", op("post", "/x", content("application/json", `{"allOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{},"a":{"maxLength":3}}}],"additionalProperties":false}`, "")),
			`{"type":"object","properties":{"a":{"allOf":[{"type":"string"},{"maxLength":3}]},"b":{}},"required":["a"],"additionalProperties":false}`},
		{"a body that may be left out", "3.1.0", op("post", "/x", `,"requestBody":{"content":{"application/json":{"schema":{"type":"object","properties":{"a":{},"b":{}},"required":["a"]}}}}`),
			`{"type":"object","properties":{"a":{},"b":{}},"dependentRequired":{"a":["a"],"b":["a"]}}`},
		{"a clash", "3.1.0", op("post", "/x", `,"parameters":[{"name":"a","in":"query","schema":{"type":"string"}},{"name":"body","in":"query","schema":{}}]`+content("application/json", `{"type":"object","properties":{"a":{}},"required":["a"]}`, "")),
			`{"type":"object","properties":{"a":{"type":"string"},"body":{},"request_body":{"type":"object","properties":{"a":{}},"required":["a"]}},"required":["request_body"],"additionalProperties":false}`},
		{"a member named body", "3.1.0", op("post", "/x", content("application/json", `{"type":"object","properties":{"body":{"type":"string"}}}`, "")),
			`{"type":"object","properties":{"body":{"type":"string"}}}`},
		{"alternatives", "3.1.0", op("post", "/x", content("application/json", `{"type":"object","properties":{"a":{},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, "")),
			`{"type":"object","properties":{"a":{},"b":{}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`},
		{"alternatives that differ, and a discriminator", "3.0.0", op("post", "/x", content("application/json", `{"oneOf":[{"$ref":"#/components/schemas/Pet","description":"ignored"},{"type":"object","nullable":true}],"discriminator":{"propertyName":"kind"}}`, "")),
			`{"type":"object","properties":{"body":{"oneOf":[{"$ref":"#/$defs/Pet"},{"type":["object","null"]}]}},"required":["body"],"additionalProperties":false,"$defs":{"Pet":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"tag":{"type":["string","null"]},"parent":{"$ref":"#/$defs/Pet"}}}}}`},
		{"what 2020-12 does not take is left out", "3.0.0", op("get", "/x", `,"parameters":[{"name":"a","in":"query","schema":{"type":"file","pattern":"(?=x)","minLength":"3","maximum":5,"exclusiveMaximum":true,"items":[],"enum":[],"xml":{},"required":true,"format":"int64","default":7,"example":8}}]`),
			`{"type":"object","properties":{"a":{"format":"int64","default":7,"exclusiveMaximum":5}},"additionalProperties":false}`},
		{"nothing", "3.1.0", op("get", "/x", ""), `{"type":"object","properties":{},"additionalProperties":false}`},
		{"the credential's place is no argument", "3.1.0", op("get", "/x", `,"security":[{"q":[]},{}],"parameters":[{"name":"key","in":"query","schema":{}},{"name":"authorization","in":"header","schema":{}}]`), `{"type":"object","properties":{},"additionalProperties":false}`},
	} {
		got := string(fixture{version: c.version, document: c.document}.schema(t).Node().Append(nil))
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

// A derived schema follows the standard: a default says what the server takes and is not sent, other members are open
// where the document leaves them open.
func Test_3_6_DerivedArgsFollowTheStandard(t *testing.T) {
	s := fixture{document: op("post", "/x", `,"parameters":[{"name":"page","in":"query","schema":{"type":"integer","default":1}}]`+content("application/json", `{"$ref":"#/components/schemas/Pet"}`, ""))}.schema(t)
	if got := string(s.Defaults(node(t, `{"name":"x"}`)).Append(nil)); got != `{"name":"x"}` {
		t.Errorf("a default is sent: %s", got)
	}
	for args, valid := range map[string]bool{`{"name":"x","more":1,"parent":{"name":"y","parent":{"name":"z"}}}`: true, `{}`: false, `{"name":"x","page":"1"}`: false, `{"name":"x","parent":{}}`: false} {
		if bad := s.Validate(node(t, args)); (len(bad) == 0) != valid {
			t.Errorf("%s: %v", args, bad)
		}
	}
}

func Test_3_6_HandWrittenArgsGoWhereTheOperationSays(t *testing.T) {
	doc := op("post", "/x/{id}", `,"parameters":[{"name":"id","in":"path","required":true,"schema":{}}]`+content("application/json", `{"$ref":"#/components/schemas/Pet"}`, ""))
	lifted := fixture{document: doc, args: `{"type":"object","properties":{"id":{"type":"string"},"name":{"type":"string"}},"required":["id"]}`}
	if r := render(t, lifted.command(t, Options{}), `{"id":"1","name":"x"}`); string(r.Body) != `{"name":"x"}` {
		t.Errorf("%s", r.Body)
	}
	whole := fixture{document: doc, args: `{"type":"object","properties":{"id":{"type":"string"},"body":{"type":"object"}},"required":["id"]}`}
	if r := render(t, whole.command(t, Options{}), `{"id":"1","body":{"name":"x"}}`); string(r.Body) != `{"name":"x"}` {
		t.Errorf("%s", r.Body)
	}
	for _, args := range []string{`{"type":"object","properties":{"name":{"type":"string"}}}`, `{"type":"object","properties":{"id":{"type":"string"},"stray":{}}}`} {
		f := fixture{document: op("get", "/x/{id}", `,"parameters":[{"name":"id","in":"path","required":true,"schema":{}}]`), args: args}
		issues := f.lint(t)
		if len(issues) == 0 || issues[0].Code != "openapi.operation" || issues[0].Pointer != "/verbs/go/args" {
			t.Errorf("%s: %+v", args, issues)
		}
	}
}

func Test_3_6_IssuesHaveTheirPlaces(t *testing.T) {
	for _, c := range []struct {
		name string
		f    fixture
		want string // code file pointer
	}{
		{"a reference that leads nowhere", fixture{document: op("post", "/x", content("application/json", `{"type":"object","properties":{"a":{"$ref":"#/components/schemas/None"}}}`, ""))}, "openapi.document openapi.json /paths/~1x/post/requestBody/content/application~1json/schema/properties/a/$ref"},
		{"a reference to another file", fixture{document: op("get", "/x", `,"parameters":[{"$ref":"other.json#/P"}]`)}, "openapi.document openapi.json /paths/~1x/get/parameters/0/$ref"},
		{"a reference to itself", fixture{document: `{"paths":{"/x":{"get":{"operationId":"op","parameters":[{"$ref":"#/components/parameters/A"}]}}},"components":{"parameters":{"A":{"$ref":"#/components/parameters/A"}}}}`}, "openapi.document openapi.json /paths/~1x/get/parameters/0"},
		{"an operation's server elsewhere", fixture{document: op("get", "/x", `,"servers":[{"url":"https://other.example.org"}]`)}, "openapi.server openapi.json /paths/~1x/get/servers"},
		{"a style of another place", fixture{document: op("get", "/x", `,"parameters":[{"name":"a","in":"query","style":"matrix","schema":{}}]`)}, "openapi.operation openapi.json /paths/~1x/get/parameters/0"},
		{"a path that names no parameter", fixture{document: op("get", "/x/{id}", "")}, "openapi.operation openapi.json /paths/~1x~1{id}/get"},
		{"twice", fixture{document: `{"paths":{"/x":{"get":{"operationId":"op"}},"/y":{"get":{"operationId":"op"}}}}`}, "openapi.operation surface.json /verbs/go/operation_id"},
		{"a reserved argument", fixture{document: op("get", "/x", `,"parameters":[{"name":"hcp_x","in":"query","schema":{}}]`)}, "manifest.reserved-arg surface.json /verbs/go/operation_id"},
		{"metadata", fixture{server: "https://169.254.169.254", document: op("get", "/x", "")}, "openapi.server surface.json /openapi/server"},
		{"a link-local server", fixture{server: "https://[fe80::1]/", document: op("get", "/x", "")}, "openapi.server surface.json /openapi/server"},
		{"a number for a host", fixture{server: "https://2130706433/", document: op("get", "/x", "")}, "openapi.server surface.json /openapi/server"},
		{"a query", fixture{server: "https://api.example.org/?a=b", document: op("get", "/x", "")}, "openapi.server surface.json /openapi/server"},
	} {
		got := ""
		for _, i := range c.f.lint(t) {
			if at := string(i.Code) + " " + i.File + " " + i.Pointer; at == c.want {
				got = at
				if i.Line < 1 || i.Column < 1 {
					t.Errorf("%s: no place: %+v", c.name, i)
				}
			}
		}
		if got == "" {
			t.Errorf("%s: %+v, want %s", c.name, c.f.lint(t), c.want)
		}
	}
	for server, path := range map[string]string{"/v2": "/v2/x", "https://API.example.org:443/v3/": "/v3/x", "https://{host}/v4": "/v4/x"} {
		f := fixture{document: op("get", "/x", `,"servers":[{"url":"https://other.example.org"},{"url":"`+server+`","variables":{"host":{"default":"api.example.org"}}}]`)}
		if r := render(t, f.command(t, Options{}), `{}`); r.URL != "https://api.example.org"+path {
			t.Errorf("%s: %s", server, r.URL)
		}
	}
}
