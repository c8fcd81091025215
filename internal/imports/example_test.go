package imports

import (
	"regexp"
	"testing"

	"hcpx/internal/jsondoc"
)

// §3.2: an example fits patterns and lengths, or there is none.
func Test_3_2_Examples(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`{"type":"string","pattern":"^FO[0-9a-fA-F]{32}$","minLength":34,"maxLength":34}`, "FOaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
		{`{"type":"string","pattern":"^[a-f0-9\\-]+$","minLength":12,"maxLength":12}`, "aaaaaaaaaaaa"},
		{`{"type":"string","pattern":"^(?:top|bottom|after:\\d+)$"}`, "top"},
		{`{"type":"string","pattern":"[a-z]{2,4}x?\\.y*"}`, "aa."},
		{`{"type":"string","maxLength":2}`, "xx"},
		{`{"type":"string","minLength":5}`, "xxxxx"},
		{`{"type":"string","pattern":"^a$","minLength":2}`, ""},
		{`{"type":"string","enum":["a"]}`, ""},
		{`{"type":"integer"}`, ""},
		{`{"type":"string","minLength":3,"maxLength":2}`, ""},
		{`{"type":"string","pattern":"^((a{500}){500}){500}$"}`, ""},
	} {
		n, faults := jsondoc.Parse([]byte(c.schema), jsondoc.Limits{})
		if len(faults) > 0 {
			t.Fatal(c.schema, faults)
		}
		got, found := sampleText(n)
		if found != (c.want != "") || found && got != c.want {
			t.Errorf("%s: %q, %v", c.schema, got, found)
		}
		if p := text(n, "pattern"); found && p != "" && !regexp.MustCompile(p).MatchString(got) {
			t.Errorf("%s: %q does not fit", c.schema, got)
		}
	}
	m := made(t, doc(`{"/a/{id}":{"post":{"parameters":[{"in":"path","name":"id","schema":{"type":"string","pattern":"^x-[0-9]{4}$"}}],
		"requestBody":{"content":{"application/json":{"schema":{"type":"object","required":["rows"],"properties":{"rows":{"type":"array","minItems":1,"items":{"type":"string","pattern":"^r:"}}}}}}}}}}`, `{}`), Options{})
	if got := string(m.file(t, "surface.json").Get("verbs").Get("a.create-by-id").Get("examples").Append(nil)); got != `[{"args":{"id":"x-0000","rows":["r:"]}}]` {
		t.Error(got)
	}
}
