package openapi

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hcpx/internal/adapter"
)

func header(r *adapter.Request, name string) string {
	for _, f := range r.Header {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// op is a document with one operation.
func op(method, path, rest string) string {
	return `{"paths":{"` + path + `":{"` + method + `":{"operationId":"op"` + rest + `}}},"components":{
"securitySchemes":{"b":{"type":"http","scheme":"Bearer"},"p":{"type":"http","scheme":"basic"},"h":{"type":"apiKey","in":"header","name":"X-Key"},"q":{"type":"apiKey","in":"query","name":"key"},
"c":{"type":"apiKey","in":"cookie","name":"sid"},"o":{"type":"oauth2","flows":{}},"i":{"type":"openIdConnect","openIdConnectUrl":"x"},"d":{"type":"http","scheme":"digest"}},
"schemas":{"Pet":{"type":"object","required":["name"],"properties":{"id":{"type":"integer","readOnly":true},"name":{"type":"string"},"tag":{"type":["string","null"]},"parent":{"$ref":"#/components/schemas/Pet"}}}}}}`
}

func content(media, schema, more string) string {
	return `,"requestBody":{"required":true,"content":{"` + media + `":{"schema":` + schema + more + `}}}`
}

func Test_3_6_Bodies(t *testing.T) {
	for _, c := range []struct{ name, rest, args, media, want string }{
		{"json, lifted", content("application/json", `{"$ref":"#/components/schemas/Pet"}`, ""), `{"name":"Rex","tag":null,"more":1.50}`, "application/json", `{"name":"Rex","tag":null,"more":1.50}`},
		{"+json", content("application/vnd.x+json; v=1", `{"type":"array"}`, ""), `{"body":[12345678901234567890]}`, "application/vnd.x+json; v=1", `[12345678901234567890]`},
		{"one of", content("application/json", `{"oneOf":[{"type":"string"},{"type":"integer"}]}`, ""), `{"body":"x"}`, "application/json", `"x"`},
		{"form", content("application/x-www-form-urlencoded", `{"type":"object","properties":{"a":{},"l":{},"o":{}}}`, ""), `{"a":"x y&z","l":["1",2],"o":{"k":"v"},"n":null}`, "application/x-www-form-urlencoded", `a=x+y%26z&l=1&l=2&o=%7B%22k%22%3A%22v%22%7D`},
		{"form with styles", content("application/x-www-form-urlencoded", `{"type":"object","properties":{"l":{},"o":{},"s":{}}}`, `,"encoding":{"l":{"style":"pipeDelimited"},"o":{"style":"deepObject"},"s":{"style":"form","explode":false}}`),
			`{"l":["a","b"],"o":{"k":{"m":1}},"s":["x","y"]}`, "application/x-www-form-urlencoded", `l=a%7Cb&o%5Bk%5D%5Bm%5D=1&s=x,y`},
		{"text", content("text/plain", `{"type":"string"}`, ""), `{"body":"line\n"}`, "text/plain", "line\n"},
		{"xml", content("application/xml", `{"$ref":"#/components/schemas/Pet"}`, ""), `{"body":"<pet/>"}`, "application/xml", "<pet/>"},
		{"bytes", content("application/octet-stream", `{"type":"string","format":"binary"}`, ""), `{"body":"raw"}`, "application/octet-stream", "raw"},
		{"any kind", content("*/*", `{"type":"string"}`, ""), `{"body":"x"}`, "application/json", `"x"`},
		{"required and empty", content("application/json", `{"type":"object","properties":{"a":{}}}`, ""), `{}`, "application/json", `{}`},
		{"json before others", `,"requestBody":{"content":{"text/plain":{},"application/json":{"schema":{"type":"string"}}}}`, `{"body":"x"}`, "application/json", `"x"`},
	} {
		r := render(t, fixture{document: op("post", "/x", c.rest)}.command(t, Options{}), c.args)
		if got := string(r.Body); got != c.want || header(r, "Content-Type") != c.media {
			t.Errorf("%s: %s %q, want %s %q", c.name, header(r, "Content-Type"), got, c.media, c.want)
		}
	}
	optional := fixture{document: op("post", "/x", `,"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Pet"}}}}`)}
	if r := render(t, optional.command(t, Options{}), `{}`); r.Body != nil || header(r, "Content-Type") != "" {
		t.Errorf("a body that may be left out is sent: %q", r.Body)
	}
}

func Test_3_6_MultipartWithFiles(t *testing.T) {
	c := fixture{document: op("post", "/x", content("multipart/form-data", `{"type":"object","properties":{"title":{"type":"string"},"meta":{"type":"object"},"photos":{"type":"array","items":{"type":"string","format":"binary"}},"icon":{}}}`,
		`,"encoding":{"icon":{"contentType":"image/png, image/gif"}}`))}.command(t, Options{})
	r := render(t, c, `{"title":"a \"b\"","meta":{"k":1},"photos":["one.jpg","d/two.jpg"],"icon":"i.png"}`)
	if len(r.Files) != 3 || r.Files[1].Path != "d/two.jpg" || r.Files[1].Pointer != "/photos/1" || r.Fill == nil {
		t.Fatalf("%+v", r.Files)
	}
	for i, data := range []string{"1\r\n--", "two", "png"} {
		r.Files[i].Data = []byte(data)
	}
	r.Fill(r)
	media := header(r, "Content-Type")
	boundary := strings.TrimPrefix(media, "multipart/form-data; boundary=")
	want := strings.ReplaceAll("--B\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\na \"b\"\r\n"+
		"--B\r\nContent-Disposition: form-data; name=\"meta\"\r\nContent-Type: application/json\r\n\r\n{\"k\":1}\r\n"+
		"--B\r\nContent-Disposition: form-data; name=\"photos\"; filename=\"one.jpg\"\r\nContent-Type: application/octet-stream\r\n\r\n1\r\n--\r\n"+
		"--B\r\nContent-Disposition: form-data; name=\"photos\"; filename=\"two.jpg\"\r\nContent-Type: application/octet-stream\r\n\r\ntwo\r\n"+
		"--B\r\nContent-Disposition: form-data; name=\"icon\"; filename=\"i.png\"\r\nContent-Type: image/png\r\n\r\npng\r\n--B--\r\n", "--B", "--"+boundary)
	if diff := cmp.Diff(want, string(r.Body)); diff != "" {
		t.Error(diff)
	}
	bytes := fixture{document: op("put", "/x", content("image/png", `{}`, ""))}.command(t, Options{})
	if r := render(t, bytes, `{"body":{"file":"a.png"}}`); len(r.Files) != 1 || r.Files[0].Pointer != "/body/file" {
		t.Errorf("%+v", r)
	}
}

// The bytes on the wire, whole.
func Test_3_6_TheRequestOnTheWire(t *testing.T) {
	s := record(t, said("200 OK", "application/json", `{"ok":true}`))
	c := fixture{server: s.url() + "/v1/", binding: mock, document: op("post", "/pets/{id}", `,"security":[{"b":[],"c":[]}],"parameters":[{"name":"id","in":"path","required":true,"schema":{}},
{"name":"q","in":"query","schema":{}},{"name":"x-it","in":"header","schema":{}},{"name":"lang","in":"cookie","schema":{}},{"name":"sid","in":"cookie","schema":{}}]`+content("application/json", `{"$ref":"#/components/schemas/Pet"}`, ""))}.command(t, Options{})
	out, err := send(t, context.Background(), c, `{"id":"a b","q":"é","x-it":"y","lang":"de","name":"Rex"}`)
	if err != nil || string(out.Value.Append(nil)) != `{"ok":true}` || out.Answer.Status != 200 {
		t.Fatalf("%+v %+v", out, err)
	}
	want := "POST /v1/pets/a%20b?q=%C3%A9 HTTP/1.1\r\nHost: " + s.Addr().String() + "\r\nUser-Agent: hcpx\r\nContent-Length: 14\r\nAccept: application/json, */*\r\nAuthorization: Bearer secret-token\r\n" +
		"Content-Type: application/json\r\nCookie: lang=de; sid=secret-token\r\nX-It: y\r\nAccept-Encoding: gzip\r\n\r\n{\"name\":\"Rex\"}"
	if diff := cmp.Diff([]string{want}, s.seen()); diff != "" {
		t.Error(diff)
	}
}

func Test_3_6_SecuritySchemes(t *testing.T) {
	for _, c := range []struct{ security, want string }{
		{`[{"b":[]}]`, "Authorization: Bearer secret-token"},
		{`[{"o":["x"]}]`, "Authorization: Bearer secret-token"},
		{`[{"i":[]}]`, "Authorization: Bearer secret-token"},
		{`[{"p":[]}]`, "Authorization: Basic c2VjcmV0LXVzZXJuYW1lOnNlY3JldC1wYXNzd29yZA=="},
		{`[{"h":[]}]`, "X-Key: secret-token"},
		{`[{"q":[]}]`, "GET /x?a=1&key=secret-token"},
		{`[{"c":[]}]`, "Cookie: sid=secret-token"},
		{`[{"d":[]},{"h":[],"q":[]}]`, "GET /x?a=1&key=secret-token X-Key: secret-token"},
		{`[{},{"h":[]}]`, "X-Key: secret-token"},
		{`[]`, ""},
		{`[{}]`, ""},
		{`[{"missing":[]},{}]`, ""},
	} {
		s := record(t, said("204 No Content", "", ""))
		cmd := fixture{server: s.url(), binding: mock, document: op("get", "/x", `,"parameters":[{"name":"a","in":"query","schema":{}},{"name":"other","in":"query","schema":{}}],"security":`+c.security)}.command(t, Options{})
		args := `{"a":1}`
		if _, err := send(t, context.Background(), cmd, args); err != nil {
			t.Fatal(err)
		}
		got := s.seen()[0]
		for _, part := range strings.Split(strings.ReplaceAll(c.want, " X-", "\nX-"), "\n") {
			if !strings.Contains(got, part) || strings.Count(got, "secret") > 0 && c.want == "" {
				t.Errorf("%s: %s", c.security, got)
			}
		}
	}
	// Where nothing is minted nothing is sent, and a command that needs it is not even compiled.
	public := fixture{document: op("get", "/x", `,"security":[{"d":[]},{"b":[]}]`)}
	if issues := public.lint(t); len(issues) != 1 || issues[0].Code != "openapi.security" || !strings.Contains(issues[0].Message, "a bearer token") {
		t.Errorf("%+v", issues)
	}
	optional := fixture{document: op("get", "/x", `,"security":[{"b":[]},{}]`)}.command(t, Options{})
	if len(optional.places) != 0 {
		t.Errorf("%v", optional.places)
	}
	if issues := (fixture{binding: mock, document: op("get", "/x", `,"security":[{"b":[],"p":[]}]`)}).lint(t); len(issues) != 1 || issues[0].Code != "openapi.security" {
		t.Errorf("one header cannot hold both: %+v", issues)
	}
	lost := fixture{server: "http://127.0.0.1:1", binding: mock, document: op("get", "/x", `,"security":[{"b":[]}]`)}.command(t, Options{})
	call, _ := lost.Render(node(t, `{}`))
	run := runOf(call)
	for _, none := range []func(string) (string, bool){nil, func(string) (string, bool) { return "", false }, func(string) (string, bool) { return "a\r\nb", true }} {
		run.Credential = none
		if _, err := lost.Run(context.Background(), run); err == nil || err.Code != "binding_failed" {
			t.Errorf("%+v", err)
		}
	}
}

// §3.6: no argument stands in for the credential's cookie, or before it.
func Test_3_6_TheCredentialsCookieIsTheOnlyOneOfItsName(t *testing.T) {
	s := record(t, said("204 No Content", "", ""))
	c := fixture{server: s.url(), binding: mock, document: op("get", "/x", `,"security":[{"c":[]}],"parameters":[{"name":"prefs","in":"cookie","style":"form","explode":true,"schema":{"type":"object"}},
{"name":"sid","in":"cookie","schema":{}},{"name":"Cookie","in":"header","schema":{}}]`)}.command(t, Options{})
	if _, err := send(t, context.Background(), c, `{"prefs":{"sid":"mine","lang":"de"},"sid":"also","Cookie":"sid=first"}`); err != nil {
		t.Fatal(err)
	}
	if got := s.seen()[0]; !strings.Contains(got, "Cookie: lang=de; sid=secret-token\r\n") || strings.Count(got, "sid=") != 1 {
		t.Error(got)
	}
}
